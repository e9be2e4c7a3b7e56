"""CUDA graphs, Triton kernels, and their comparison with PyTorch operations."""
