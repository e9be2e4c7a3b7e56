"""Lets Hydra compose each choice of options only once in a test run.

Composing takes 0.2 seconds, and a program composes twice. So the composition of the chosen options is
stored. Later, Hydra copies it and applies the overrides of values to the copy.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import functools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import hydra
from hydra._internal import config_loader_impl
from hydra._internal.defaults_list import DefaultsList
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.types import Override
from omegaconf import DictConfig, open_dict

from nmt.cli.composition import conf_folder, register_configs
from nmt.config.changes import apply_overrides
from nmt.config.commands import TrainConfig
from nmt.config.loading import load

create_list = config_loader_impl.create_defaults_list
compose_list = config_loader_impl.ConfigLoaderImpl._compose_config_from_defaults_list
register_once = functools.cache(register_configs)
lists: dict[Any, DefaultsList] = {}
composed: dict[Any, DictConfig] = {}


@contextlib.contextmanager
def composing(command: str, overrides: Sequence[str], **options: bool) -> Iterator[DictConfig]:
    """Yields the configuration of a command, with Hydra initialised as inside the command."""
    register_once()
    with hydra.initialize_config_dir(str(conf_folder()), version_base="1.3"):
        yield hydra.compose(command, overrides=list(overrides), **options)


def applied(
    command: str,
    stored: TrainConfig,
    history: Sequence[str],
    overrides: Sequence[str],
) -> tuple[TrainConfig, list[str]]:
    """Returns the configuration of a command that starts from a checkpoint, and the overrides to record."""
    with composing(command, overrides, return_hydra_config=True) as whole:
        HydraConfig.instance().set_config(whole)
        with open_dict(whole):
            del whole["hydra"]
        task = [word for word in overrides if not word.startswith("hydra.")]
        try:
            return apply_overrides(stored, history, load(whole), task)
        finally:
            HydraConfig.instance().cfg = None


def share_compositions() -> None:
    """Makes Hydra store each composition, in this process and in its forks."""

    def shared_list(
        repo: Any, config_name: str, overrides_list: list[Override], **options: bool
    ) -> DefaultsList:
        """Replaces the function of Hydra that finds the files of the chosen options."""
        overrides = [each for each in overrides_list if not each.is_sweep_override()]
        choices = [
            each
            for each in overrides
            if repo.group_exists(each.key_or_group) and not isinstance(each.value(), dict)
        ]
        # To find out whether a command sweeps, Hydra composes with other `options`. The result differs
        # only if a choice is missing.
        missing = any(each.value() == "???" for each in choices) and str(options)
        key = _sources(repo), config_name, tuple(each.input_line for each in choices), missing
        if key not in lists:
            lists[key] = create_list(repo, config_name, choices, **options)
        values = [each for each in overrides if each not in choices]
        return dataclasses.replace(lists[key], config_overrides=values)

    def shared_config(self: Any, defaults: list[Any], repo: Any) -> DictConfig:
        """Replaces Hydra's method that merges the files in `defaults`."""
        key = _sources(repo), repr(defaults)
        if key not in composed:
            composed[key] = compose_list(self, defaults, repo)
        return copy.deepcopy(composed[key])

    config_loader_impl.create_defaults_list = shared_list
    config_loader_impl.ConfigLoaderImpl._compose_config_from_defaults_list = shared_config


def _sources(repo: Any) -> str:
    """Returns a cache key: the option folders other than `conf`, and the modification times of their files."""
    sources = [source for source in repo.get_sources() if source.path != str(conf_folder())]
    folders = [Path(source.path) for source in sources if source.scheme() == "file"]
    files = [file for folder in folders for file in sorted(folder.rglob("*.yaml"))]
    return str([each.full_path() for each in sources] + [(x, x.stat().st_mtime) for x in files])
