"""Recurrences, attention and cross-entropy with hand-written backward passes, and CUDA graphs."""
