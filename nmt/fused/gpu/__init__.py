"""CUDA graphs, Triton kernels, and the choice of what a device can run."""
