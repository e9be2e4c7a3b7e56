"""Compositions in this process, and two trained runs that all tests of commands look at."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable
from typing import NamedTuple

import hydra
import pytest
from omegaconf import DictConfig

from nmt.command import conf_folder, exit_code, introduce
from nmt.config import load, validate_keys


class Said(NamedTuple):
    """How a program ended: its exit code, and what it said on stderr."""

    code: int
    message: str


@pytest.fixture(scope="session")
def composer() -> Callable[..., DictConfig]:
    """compose(*overrides, command="train"): a configuration as the command would get it."""
    introduce()

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
