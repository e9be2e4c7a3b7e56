"""CUDA graphs, Triton kernels, and a check of the kernels against PyTorch operations."""
