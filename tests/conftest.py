"""Fixtures that compose configurations, run commands, and train two runs for all tests."""

from __future__ import annotations

import contextlib
import gc
import io
import os
import shutil
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock
from omegaconf import DictConfig

from nmt.cli.composition import with_plus
from nmt.cli.errors import exiting, explaining
from nmt.config.commands import SCHEMAS
from nmt.config.loading import load
from tests.helpers.composition import composing, share_compositions
from tests.helpers.processes import TINY, Ended, run, start
from tests.helpers.produced import RNNSEARCH

LONGEST = [
    "tests/commands/test_train.py",
    "tests/evaluation/test_constant_error.py",  # needs no server, which has not started yet
    "tests/promises/test_3_resume.py",
    "tests/training/test_ranks.py",
    "tests/promises/test_5_devices.py",
    "tests/commands/test_compare.py",
    "tests/test_how_tos.py",
    "tests/launcher/test_process.py",
]
SLOW_SECONDS = 1200  # timeout of a slow test, long enough for a busy machine


def pytest_configure(config: pytest.Config) -> None:
    """Sets up bytecode caching and, except in xdist's controller, threads, Triton and Hydra, before test imports."""
    os.environ.pop("UV", None)  # printed commands begin with `uv run` if uv starts the tests
    if sys.dont_write_bytecode and (cache := getattr(config, "cache", None)):
        # A test run starts about ten interpreters. Without stored bytecode each interpreter compiles
        # torch and Lightning again, which doubles the time of the imports.
        with contextlib.suppress(OSError):
            sys.pycache_prefix = os.environ["PYTHONPYCACHEPREFIX"] = str(cache.mkdir("bytecode"))
            sys.dont_write_bytecode = False
            os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    if hasattr(config, "workerinput") or not config.getoption("numprocesses", None):
        import torch

        torch.set_num_threads(1)  # the workers of a test run share the cores
        if not torch.cuda.is_available():
            os.environ["TRITON_INTERPRET"] = "1"  # read when Triton is first imported
        share_compositions()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Gives slow tests more time. Runs the longest files first, so that no worker idles at the end."""
    for item in items:
        if item.get_closest_marker("slow") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(SLOW_SECONDS))
    items.sort(key=lambda item: [not item.nodeid.startswith(file) for file in LONGEST])


def pytest_collection_finish() -> None:
    """Excludes the objects of imported libraries from garbage collection, which makes it a third faster."""
    gc.collect()
    gc.freeze()


def pytest_unconfigure() -> None:
    """Undoes `gc.freeze`. Otherwise Triton's bindings report objects that are never freed as leaks."""
    gc.unfreeze()


@pytest.fixture(scope="session")
def composer() -> Callable[..., DictConfig]:
    """Returns a function that composes the configuration of a command with some overrides."""

    def compose(*overrides: str, command: str = "train") -> DictConfig:
        with composing(command, overrides) as config:
            return config

    return compose


@pytest.fixture(scope="session")
def check(composer: Callable[..., DictConfig]) -> Callable[..., tuple[int, str]]:
    """Returns a function that checks overrides as a command does, and returns the exit code and message."""

    def checked(*overrides: str, command: str = "train") -> tuple[int, str]:
        code = 0
        with contextlib.redirect_stderr(io.StringIO()) as stderr:
            try:
                with exiting(), explaining(SCHEMAS[command]):
                    load(composer(*with_plus(overrides), command=command))
            except SystemExit as ended:
                code = int(ended.code or 0)
        return code, stderr.getvalue()

    return checked


class Program:
    """Runs commands as users type them, in a folder outside the project."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.start = partial(start, cwd=folder)

    def __call__(self, command: str, *typed: str, figures: bool = True, **options: Any) -> Ended:
        """Runs the command to its end; `figures=False` skips figures and page to save time."""
        return run(command, *typed, cwd=self.folder, figures=figures, **options)


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns the folder where all commands of a worker find and prepare their text."""
    return tmp_path_factory.mktemp("data")


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory, prepared: Path) -> Program:
    """Returns a `Program` with a new folder for each file of tests, so that names of runs cannot clash."""
    folder = tmp_path_factory.mktemp("somewhere")
    (folder / "data").symlink_to(prepared)
    return Program(folder)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory, program: Program) -> Callable[..., Path]:
    """Returns a function that trains a run once for all workers, and returns a copy of its folder."""
    base = tmp_path_factory.getbasetemp()
    shared = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "trained"

    def train_once(name: str, *typed: str, figures: bool = True) -> Path:
        made = shared / name
        made.mkdir(parents=True, exist_ok=True)
        with FileLock(f"{made}.lock"):
            if not (made / "done").exists():
                typed = (*typed, f"hydra.run.dir={name}")
                ended = run("train", *typed, cwd=made, figures=figures)
                assert ended.code == 0, ended.err
                assert ended.out == ""
                (made / "done").touch()
        for part in (name, "data"):
            shutil.copytree(
                made / part, program.folder / part, symlinks=True, dirs_exist_ok=part == "data"
            )
        return program.folder / name

    return train_once


@pytest.fixture(scope="module")
def rnnsearch(trained: Callable[..., Path]) -> Path:
    """Returns the run folder of an RNNsearch, with all files that `nmt.train` writes."""
    return trained("rnnsearch", *RNNSEARCH)


@pytest.fixture(scope="module")
def rnnencdec(trained: Callable[..., Path]) -> Path:
    """Returns the run folder of an RNNencdec, without figures and page."""
    typed = ("+experiment=rnnencdec30", *TINY, "logger=csv")
    return trained("rnnencdec", *typed, figures=False)
