"""Measurements of speed and memory; see docs/performance.md."""

from nmt.utils.cores import set_up_libraries

set_up_libraries()  # as every command does, before torch is imported
