"""The decorator `command`: a program that Hydra composes, with errors in one or two lines."""

from __future__ import annotations

import functools
import inspect
import io
import logging
import os
import sys
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import hydra
from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import DictConfig, MissingMandatoryValue, OmegaConf

from nmt.cli.composition import conf_folder, register_configs, with_plus
from nmt.cli.errors import COMPOSING, exit_code, explain
from nmt.cli.help import choices
from nmt.cli.sweep import pages
from nmt.config.schema import SCHEMAS
from nmt.config.validation import validate_keys
from nmt.utils.environment import output_folder, rank
from nmt.utils.errors import InputError
from nmt.utils.files import locked
from nmt.utils.startup import raise_at_interrupt
from nmt.utils.threads import set_up_threads

log = logging.getLogger(__name__)

WITHOUT_FOLDER = ("prepare", "translate", "score", "compare")


def command(name: str) -> Callable[[Callable[[DictConfig], Any]], Callable[[], None]]:
    """Turns `main(config)` into a command line program composed from `conf/<name>.yaml`.

    Its exit codes are those of `nmt.cli.errors.exit_code`. In a sweep the sweeper gets what `main`
    returns.
    """

    def decorate(main: Callable[[DictConfig], Any]) -> Callable[[], None]:
        @functools.wraps(main)
        def program() -> None:
            set_up_threads()  # before anything imports torch
            if isinstance(sys.stdout, io.TextIOWrapper):
                sys.stdout.reconfigure(encoding="utf-8")
            sys.argv[1:] = with_plus(sys.argv[1:])
            register_configs([name])
            about = inspect.getdoc(sys.modules[main.__module__]) or ""
            OmegaConf.register_new_resolver("about", lambda: about, replace=True)  # for --help
            OmegaConf.register_new_resolver("command", lambda: name, replace=True)
            OmegaConf.register_new_resolver("choices", choices, replace=True)
            os.environ["HYDRA_FULL_ERROR"] = "1"  # errors come to us instead of being printed
            sys.exit(exit_code(lambda: run_hydra(main, name)))

        return program

    return decorate


def run_hydra(main: Callable[[DictConfig], Any], name: str) -> None:
    """Composes the configuration and runs `main`, or the jobs of a sweep.

    Raises:
        InputError: what Hydra raises before `main` begins, in one or two lines; and those of `main`.
    """
    begun = False
    refused: list[InputError] = []

    @functools.wraps(main)
    def job(config: DictConfig) -> Any:
        nonlocal begun
        single = HydraConfig.get().mode is RunMode.RUN
        try:
            check_keys(name, config)
            own_folder = rank() == 0 and name not in WITHOUT_FOLDER
            with locked(output_folder(), "hydra.run.dir") if own_folder else nullcontext():
                begun = True
                raise_at_interrupt()
                if own_folder:  # the libraries take seconds to import
                    log.info("nmt.%s starts in %s", name, output_folder())
                return main(config)
        except InputError as error:
            if not single:
                raise
            refused.append(error)  # past Hydra, which would print lines of its own
            return None

    entry = hydra.main(version_base="1.3", config_path=str(conf_folder()), config_name=name)
    try:
        with pages():
            entry(job)()
    except (*COMPOSING, ValueError, OSError) as error:
        if begun:
            raise
        raise InputError(explain(error, SCHEMAS[name])) from error
    if refused:
        raise refused[0]


def check_keys(name: str, config: DictConfig) -> None:
    """Checks single keys before `main` imports any library; raises InputError."""
    if name in WITHOUT_FOLDER and HydraConfig.get().mode is RunMode.MULTIRUN:
        raise InputError(f"-m: nmt.{name} cannot be swept; run it once for each value")
    missing = sorted(OmegaConf.missing_keys(config))
    if missing:
        raise InputError(explain(MissingMandatoryValue(missing[0]), SCHEMAS[name]))
    validate_keys(config)
