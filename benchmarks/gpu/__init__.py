"""Checks and measurements that need a GPU; see docs/performance.md."""

import os
import sys

if "--rehearse" in sys.argv[1:]:  # torch and Triton read these variables when they are imported
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    os.environ["TRITON_INTERPRET"] = "1"
# NVIDIA's containers set this variable, which would make float32 matrix products use TF32.
os.environ.pop("TORCH_ALLOW_TF32_CUBLAS_OVERRIDE", None)
os.environ["PYTORCH_NVML_BASED_CUDA_CHECK"] = "1"  # lets forked processes use the GPU
os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
