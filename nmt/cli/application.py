"""The decorator `command` makes a Hydra application that reports errors in one or two lines."""

from __future__ import annotations

import functools
import inspect
import io
import logging
import os
import sys
from collections.abc import Callable
from contextlib import nullcontext
from importlib.util import find_spec
from typing import Any

import hydra
from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf

from nmt.cli.composition import (
    conf_folder,
    keeping_folder,
    options_first,
    register_configs,
    with_plus,
)
from nmt.cli.errors import COMPOSING, exiting, explain, explaining
from nmt.config.code import append_current_folder, find_own_code
from nmt.config.commands import SCHEMAS
from nmt.config.loading import load
from nmt.utils.environment import need, output_folder, rank
from nmt.utils.errors import InputError
from nmt.utils.files import locked
from nmt.utils.processes import follow_parent
from nmt.utils.startup import end_on_signals, set_up_process

log = logging.getLogger(__name__)

WITH_FOLDER = ("train", "evaluate")


def command(name: str) -> Callable[[Callable[[Any], Any]], Callable[[], None]]:
    """Turns `main(config)` into a command line program, configured by `conf/<name>.yaml`.

    `main` receives the checked configuration. A sweeper can optimise the value that `main` returns.
    `nmt.cli.errors.exiting` lists the exit codes.
    """

    def decorate(main: Callable[[Any], Any]) -> Callable[[], None]:
        @functools.wraps(main)
        def program() -> None:
            end_on_signals()
            set_up_process()  # must run before the first import of torch
            if isinstance(sys.stdout, io.TextIOWrapper):
                sys.stdout.reconfigure(encoding="utf-8")
            sys.argv[1:] = with_plus(options_first(sys.argv[1:]))
            # `hydra.searchpath` may name a package of the user that has options
            if any("pkg://" in word for word in sys.argv):
                append_current_folder()
            register_configs([name])
            about = inspect.getdoc(sys.modules[main.__module__]) or ""
            OmegaConf.register_new_resolver("about", lambda: about, replace=True)  # for --help
            OmegaConf.register_new_resolver("command", lambda: name, replace=True)
            os.environ["HYDRA_FULL_ERROR"] = "1"  # Hydra raises errors instead of printing them
            with exiting():
                run_hydra(main, name)

        return program

    return decorate


def run_hydra(main: Callable[[Any], Any], name: str) -> None:
    """Composes the configuration and runs `main`, or the jobs of a sweep.

    Raises:
        InputError: if Hydra fails before `main` starts; the message has one or two lines.
    """
    started = False
    program = os.getpid()

    @functools.wraps(main)
    def job(composed: DictConfig) -> Any:
        nonlocal started
        # Handle the errors of a single run here, before Hydra adds its own lines to the message.
        single = HydraConfig.get().mode is RunMode.RUN
        if os.getpid() != program:  # a job in a worker process, with `hydra/launcher=joblib`
            follow_parent()
        own_folder = rank() == 0 and name in WITH_FOLDER
        kept = keeping_folder(output_folder()) if own_folder else nullcontext()
        with exiting() if single else nullcontext(), kept:
            if name != "compare" and find_spec("torch") is None:
                need("torch", "train", f"nmt.{name}")
            with explaining(SCHEMAS[name]):
                config = load(composed)
            find_own_code(config)
            with locked(output_folder(), "hydra.run.dir") if own_folder else nullcontext():
                started = True
                # Log the start here, since `main` first spends seconds on imports. If the folder holds
                # a finished run, log nothing, since `main` may reject the folder.
                if own_folder and not (output_folder() / "results.json").exists():
                    log.info("nmt.%s starts in %s", name, output_folder())
                return main(config)

    entry = hydra.main(version_base="1.3", config_path=str(conf_folder()), config_name=name)
    try:
        entry(job)()
    except COMPOSING as error:
        if started:
            raise
        raise InputError(explain(error, SCHEMAS[name])) from error
