"""Measurements of speed and memory; see docs/performance.md."""

from nmt.utils.startup import set_up_process

set_up_process()  # as every command does, before torch is imported
