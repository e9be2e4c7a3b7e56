"""Compositions in this process, and two trained runs that all tests of commands look at."""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import hydra
import pytest
import torch
from omegaconf import DictConfig

from nmt.cli.command import exit_code
from nmt.cli.composition import conf_folder, register_configs
from nmt.config.validation import load, validate_keys
from tests.helpers import ROOT

ENVIRONMENT = {
    "WANDB_MODE": "offline",
    "WANDB_SILENT": "true",
    "HF_HUB_OFFLINE": "1",
    "OMP_NUM_THREADS": "1",
}
Process = subprocess.Popen[bytes]

if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"  # read when Triton is first imported, by whatever test


class Ended(NamedTuple):
    """A command that has run to its end."""

    code: int
    out: str
    err: str


class Said(NamedTuple):
    """How a program ended: its exit code, and what it said on stderr."""

    code: int
    message: str


@pytest.fixture(scope="session")
def composer() -> Callable[..., DictConfig]:
    """compose(*overrides, command="train"): a configuration as the command would get it."""
    register_configs()

    def composed(*overrides: str, command: str = "train") -> DictConfig:
        with hydra.initialize_config_dir(str(conf_folder()), version_base="1.3"):
            return hydra.compose(command, overrides=list(overrides))

    return composed


@pytest.fixture(scope="session")
def check(composer: Callable[..., DictConfig]) -> Callable[..., Said]:
    """check(*overrides, command="train"): how that command takes its configuration."""

    def checked(*overrides: str, command: str = "train") -> Said:
        def application() -> None:
            config = composer(*overrides, command=command)
            (validate_keys if command in ("compare", "translate") else load)(config)

        with contextlib.redirect_stderr(io.StringIO()) as stderr:
            code = exit_code(application, command, overrides)
        return Said(code, stderr.getvalue())

    return checked


class Program:
    """The commands as they are typed, in a folder that is not the project's."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def start(self, command: str, *typed: str, stdin: int | None = None) -> Process:
        """The command in a process of its own; its streams are pipes."""
        path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
        return subprocess.Popen(
            [sys.executable, "-m", f"nmt.{command}", *typed],
            cwd=self.folder,
            env={**os.environ, **ENVIRONMENT, "PYTHONPATH": path},
            stdin=stdin or subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def process(self, command: str, *typed: str) -> Ended:
        """The command in a process of its own, run to its end."""
        process = self.start(command, *typed)
        out, err = process.communicate()
        return Ended(process.returncode, out.decode(), err.decode())

    def __call__(self, command: str, *typed: str, stdin: bytes = b"") -> Ended:
        """The command in this process, which spares the seconds of importing its libraries."""
        main = importlib.import_module(f"nmt.{command}").main
        out, err = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.StringIO()
        with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stderr(err):
            patch.chdir(self.folder)
            for name, value in ENVIRONMENT.items():
                patch.setenv(name, value)
            patch.setattr(sys, "argv", [f"nmt.{command}", *typed])
            patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), "utf-8"))
            patch.setattr(sys, "stdout", out)
            with pytest.raises(SystemExit) as ended:
                main()
        out.flush()
        return Ended(ended.value.code, out.buffer.getvalue().decode(), err.getvalue())


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Program:
    """The commands, typed in an empty folder in which prepared text gathers."""
    return Program(tmp_path_factory.mktemp("somewhere"))


@pytest.fixture(scope="session")
def rnnsearch(program: Program) -> Path:
    """The run folder of an RNNsearch, trained as a user trains one."""
    typed = ("+experiment=rnnsearch50", "regime=tiny", "report.figures=[png,svg]")
    ended = program.process("train", *typed, "hydra.run.dir=rnnsearch", "seed=3")
    assert ended.code == 0, ended.err
    assert ended.out == ""
    return program.folder / "rnnsearch"


@pytest.fixture(scope="session")
def rnnencdec(program: Program) -> Path:
    """The run folder of an RNNencdec."""
    typed = ("+experiment=rnnencdec30", "regime=tiny", "logger=csv", "report.heatmaps=0")
    ended = program("train", *typed, "hydra.run.dir=rnnencdec", "trainer.progress=false")
    assert ended.code == 0, ended.err
    return program.folder / "rnnencdec"
