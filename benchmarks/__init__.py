"""Measurements of speed and memory; see docs/performance.md."""

from nmt.utils.startup import set_up_process

set_up_process()  # must run before torch is imported
