"""Installs each compared toolkit in its own Python environment."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

ENVIRONMENTS = Path("build/peers")
JOEYNMT = "2.3.0"
MARIAN = "1.12.42"


def install(folder: Path, *requirements: str, borrow: bool) -> Path:
    """Creates an environment if it does not exist, and returns its Python interpreter.

    Args:
        folder: folder of the environment.
        requirements: packages to install.
        borrow: whether the environment can import the packages of the current one, such as torch.
    """
    python = folder.absolute() / "bin" / "python"
    if not (folder / "ready").exists():
        venv.create(folder, with_pip=True, clear=True)
        if borrow:  # must precede the installation, so that pip finds torch
            (packages,) = folder.glob("lib/python*/site-packages")
            (packages / "borrowed.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
        command = [str(python), "-m", "pip", "install", "-q", *requirements]
        subprocess.run(command, check=True, stdout=sys.stderr)
        (folder / "ready").touch()
    return python


def install_joeynmt() -> Path:
    """Returns the Python interpreter of JoeyNMT's environment."""
    # JoeyNMT needs importlib_metadata, but does not declare it.
    requirements = f"joeynmt=={JOEYNMT}", "importlib_metadata"
    return install(ENVIRONMENTS / "joeynmt", *requirements, borrow=True)


def install_marian() -> Path:
    """Returns the path of Marian's program."""
    python = install(ENVIRONMENTS / "marian", f"pymarian=={MARIAN}", borrow=False)
    return python.with_name("pymarian")
