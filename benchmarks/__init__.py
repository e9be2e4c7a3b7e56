"""Measurements of speed and memory; see docs/performance.md."""

from nmt.utils.startup import set_up_threads

set_up_threads()  # as every command does, before torch is imported
