"""Gathers what a machine without a network needs to run the benchmark of a GPU.

    python -m benchmarks.gpu.bundle --out FOLDER

FOLDER then holds wheels, this package and `run.sh`. Copied to the machine, `bash FOLDER/run.sh` installs
the wheels beside itself, touching nothing else, and runs `python -m benchmarks.gpu` with its arguments.
The machine brings Python 3.12, torch with Triton, and what `BROUGHT` names.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LIMIT = 64 * 2**20  # bytes of all of it
PYTHON = "3.12"
PLATFORMS = [
    f"manylinux{name}_x86_64" for name in ("_2_28", "_2_27", "_2_24", "_2_17", "2014", "1")
]
BROUGHT = (
    "torch", "pytorch-lightning", "torchmetrics", "sacrebleu", "numpy", "pandas", "pyarrow", "matplotlib", "pillow",
    "tqdm", "filelock", "PyYAML", "huggingface-hub", "fsspec", "packaging", "joblib", "click",
)  # fmt: skip
UNUSED = ("wandb", "vl-convert-python")  # what the benchmark does not import
# as wheels; what only sources are published of is built here
WHEELS = (
    "hydra-core", "omegaconf", "zstandard", "datasets", "sacremoses", "tokenizers", "dill", "multiprocess",
    "xxhash", "regex", "pydantic", "pydantic-core", "annotated-types", "typing-inspection", "typing-extensions",
)  # fmt: skip
BUILT = ("antlr4-python3-runtime==4.9.3",)  # the one that Hydra is written for
SCRIPT = """#!/usr/bin/env bash
# Installs the wheels into a folder beside this file, and runs the benchmark with the given arguments.
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
[ -d "$here/site" ] || python3 -m pip install --quiet --no-index --no-deps --no-compile \\
    --no-cache-dir --target "$here/site" "$here"/wheels/*.whl
export PYTHONPATH="$here:$here/site" HF_HUB_OFFLINE=1 PYTHONUNBUFFERED=1
exec python3 -m benchmarks.gpu "$@"
"""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER")
    args = parser.parse_args()
    if args.out.exists():
        sys.exit(f"--out={args.out}: is there already; take another")
    bundle(args.out)
    size = sum(path.stat().st_size for path in args.out.rglob("*") if path.is_file())
    print(f"{args.out}: {size / 2**20:.1f} MiB")
    if size > LIMIT:
        sys.exit(f"more than {LIMIT // 2**20} MiB")


def bundle(folder: Path) -> None:
    """Fills a folder; raises CalledProcessError where a package cannot be had."""
    wheels = folder / "wheels"
    wheels.mkdir(parents=True)
    platforms = [word for name in PLATFORMS for word in ("--platform", name)]
    target = ["--python-version", PYTHON, "--implementation", "cp", *platforms]
    pip(
        "download",
        "--no-deps",
        "--only-binary=:all:",
        *target,
        "-d",
        str(wheels),
        *installed(WHEELS),
    )
    pip("wheel", "--no-deps", "-w", str(wheels), *BUILT, str(ROOT))
    copied = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "benchmarks", folder / "benchmarks", ignore=copied)
    script = folder / "run.sh"
    script.write_text(SCRIPT)
    script.chmod(0o755)


def installed(names: Sequence[str]) -> list[str]:
    """The packages with the versions that are installed here, which go together."""
    return [f"{name}=={version(name)}" for name in names]


def pip(*words: str) -> None:
    subprocess.run([sys.executable, "-m", "pip", words[0], "--quiet", *words[1:]], check=True)


if __name__ == "__main__":
    main()
