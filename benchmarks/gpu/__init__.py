"""What only a GPU shows, item by item; see docs/performance.md."""

import os
import sys

if "--rehearse" in sys.argv[1:]:  # read when torch and Triton are first imported, which is now
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    os.environ["TRITON_INTERPRET"] = "1"
# NVIDIA's containers set it: products of float32 would be made in TF32, and compared with exact ones
os.environ.pop("TORCH_ALLOW_TF32_CUBLAS_OVERRIDE", None)
os.environ["PYTORCH_NVML_BASED_CUDA_CHECK"] = "1"  # asking for a GPU must not keep a fork from it
os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
