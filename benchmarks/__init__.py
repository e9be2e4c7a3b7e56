"""Measurements of speed and memory; see docs/performance.md."""

from nmt.utils.cores import bound_spinning

bound_spinning()  # as every command does, before torch is imported
