"""The recurrences, attention and cross-entropy with a backward of their own, and as CUDA graphs."""
