"""The decorator `command`: composes the configuration, runs `main`, turns errors into exit codes.

Exit codes: 0 done; 1 failed; 2 refused because configuration or input is wrong; 128 + signal when
stopped by one.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import inspect
import logging
import os
import sys
import traceback
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import hydra
from hydra._internal.utils import get_args_parser
from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf

from nmt.cli.claim import Claim, claimed, claims
from nmt.cli.composition import conf_folder, register_configs
from nmt.cli.explain import COMPOSING, UNCLASSED, explain
from nmt.cli.sweep import pages
from nmt.config import Config
from nmt.config.schema import SCHEMAS
from nmt.config.validation import validate, validate_keys
from nmt.training.ranks import STARTER, watch_ranks
from nmt.utils.commands import override_key
from nmt.utils.cores import set_up_libraries
from nmt.utils.environment import output_folder, rank
from nmt.utils.errors import InputError, Interrupted, RunError, first_line
from nmt.utils.standard_output import open_output, print_whole, say, write_output
from nmt.utils.startup import obey_signals

log = logging.getLogger(__name__)

# errors of files and folders that the user can remedy
UNUSABLE = {
    errno.EACCES,
    errno.EPERM,
    errno.EROFS,
    errno.EIO,
    errno.ENOSPC,
    errno.EDQUOT,
    errno.EFBIG,
    errno.ENOTDIR,
    errno.EEXIST,
    errno.EISDIR,
    errno.ENAMETOOLONG,
    errno.ELOOP,
}


# a sweep would have to make a folder for each
WITHOUT_FOLDER = ("prepare", "translate", "score", "compare")
# what has Hydra print and end
PRINTING = {"-h", "--help", "--hydra-help", "-c", "--cfg", "-i", "--info"}

# errors of the input: the message of an InputError is printed, those of libraries are reworded
REFUSALS = (InputError, *COMPOSING)


def command(name: str) -> Callable[[Callable[[DictConfig], Any]], Callable[[], None]]:
    """Turns `main(config)` into a command line program composed from `conf/<name>.yaml`.

    A refusal (exit code 2) or a failure (1) prints its one or two lines without a traceback; so do
    Hydra's own errors of composition, grammar and type. Anything else is a defect and shows its
    traceback. In a sweep the sweeper gets what `main` returns.
    """

    def decorate(main: Callable[[DictConfig], Any]) -> Callable[[], None]:
        @functools.wraps(main)
        def program() -> None:
            set_up_libraries()  # before anything imports torch
            if STARTER in os.environ:  # from before the imports that take seconds
                watch_ranks()
            register_configs([name])
            about = inspect.getdoc(sys.modules[main.__module__]) or ""
            OmegaConf.register_new_resolver("about", lambda: about, replace=True)  # for --help
            OmegaConf.register_new_resolver("command", lambda: name, replace=True)
            os.environ["HYDRA_FULL_ERROR"] = "1"  # errors come to us instead of being printed
            logging.raiseExceptions = False  # a log that the disk has no room for stops nothing
            failed: list[Exception] = []

            @functools.wraps(main)
            def job(config: DictConfig) -> Any:
                single = HydraConfig.get().mode is RunMode.RUN
                try:
                    if name in WITHOUT_FOLDER:
                        return run_job(main, config)
                    with claimed(output_folder()) as claim:
                        return run_job(main, config, claim if single else None)
                except Exception as error:
                    if not single:
                        raise  # a launcher in this process counts the job as failed
                    failed.append(error)  # past Hydra, which would print its own lines about it
                    return None

            def application() -> None:
                if is_sweep(read_line(name, sys.argv[1:])):
                    obey_signals()  # the launcher has handlers of its own
                entry = hydra.main(
                    version_base="1.3", config_path=str(conf_folder()), config_name=name
                )
                with claims(), pages():
                    entry(job)()
                if failed:
                    raise failed[0]

            sys.exit(exit_code(application, name, sys.argv[1:]))

        return program

    return decorate


def read_line(name: str, words: Sequence[str]) -> Namespace:
    """What is typed to a command, as Hydra reads it; prints the versions and ends for `--version`.

    Raises:
        InputError: for what Hydra would refuse in other words, or would do and must not.
    """
    try:
        os.getcwd()
    except OSError as gone:
        raise InputError(
            f"the working folder cannot be used ({gone.strerror}); change to another"
        ) from gone
    keys = [word.partition("=")[0] for word in words]
    if "--version" in keys:
        sys.exit(print_versions())
    if PRINTING & set(keys):
        open_output()
    typed, unread = get_args_parser().parse_known_args(words)
    if unread and not unread[0].startswith("-"):
        raise InputError(
            f"{unread[0]}: stands apart from the other overrides; "
            "options, such as -m, come before or after all of them"
        )
    if unread:
        raise InputError(f"{unread[0]}: no such option; --help lists all")
    if name in WITHOUT_FOLDER and name != "prepare":  # which takes a training's line
        _refuse_folder(name, typed.overrides)
    if is_sweep(typed) and name in WITHOUT_FOLDER:
        raise InputError(f"-m: nmt.{name} cannot be swept; run it once for each value")
    return typed


def print_versions() -> int:
    """Prints the versions of this program and of what its results may depend on; an exit code."""
    import nmt
    from nmt.evaluation.results import versions

    found = {"nmt": nmt.__version__} | versions()
    return print_whole("".join(f"{name} {version}\n" for name, version in found.items()))


def _refuse_folder(name: str, typed: Sequence[str]) -> None:
    """Refuses a run folder that would stay empty; raises InputError."""
    for word in typed:
        if override_key(word) == "hydra.run.dir":
            raise InputError(f"{word}: nmt.{name} has no run folder; --help lists its keys")


def is_sweep(typed: Namespace) -> bool:
    """Whether the command line asks for several runs; Hydra takes abbreviations, and `hydra.mode`."""
    modes = [word for word in typed.overrides if override_key(word) == "hydra.mode"]
    return typed.multirun or any(not word.upper().endswith("=RUN") for word in modes)


def run_job(
    main: Callable[[DictConfig], Any],
    config: DictConfig,
    claim: Claim | None = None,
) -> Any:
    """Checks a configuration and runs `main`; returns its value, and logs an error that ends it.

    If a command is refused before its work has begun, what Hydra has written to the folder of `claim`
    is removed, the log included.
    """
    try:
        check_composed(config)
        with no_early_exit():
            return main(config)
    except REFUSALS as refusal:
        if getattr(refusal, "at_work", False):
            log_ending(refusal)
        elif claim is not None:
            claim.undo(HydraConfig.get().job.name)
        raise
    except (Exception, Interrupted) as error:
        log_ending(error)
        raise


@contextlib.contextmanager
def no_early_exit() -> Iterator[None]:
    """Inside, code that calls `sys.exit` fails a command, which has not done its work then.

    Lightning calls it where a callback raises KeyboardInterrupt.

    Raises:
        RunError: naming the line.
    """
    try:
        yield
    except SystemExit as ended:
        inner = ended.__context__
        cause = inner if isinstance(inner, KeyboardInterrupt) else ended
        last = traceback.extract_tb(cause.__traceback__)[-1]
        raise RunError(f"ended early by {last.filename}:{last.lineno}, {cause!r}") from ended


def check_composed(config: DictConfig) -> None:
    """Checks the composed configuration before `main` imports any library.

    Where a checkpoint gives the rest of the configuration, only single keys are checked here.

    Raises:
        InputError: as `nmt.config.validation.validate`.
        MissingMandatoryValue: for a key that must be given.
    """
    for key in OmegaConf.missing_keys(config):
        OmegaConf.select(config, key, throw_on_missing=True)
    schema = OmegaConf.get_type(config)
    complete = isinstance(schema, type) and issubclass(schema, Config) and not schema.overridable
    (validate if complete and not config.get("resume") else validate_keys)(config)


def log_ending(error: BaseException) -> None:
    """Writes the error that ends a command to its log file; standard error gets it from `exit_code`."""
    told = isinstance(error, (RunError, Interrupted, *REFUSALS))
    trace = None if told else sys.exc_info()
    record = log.makeRecord(log.name, logging.ERROR, __file__, 0, "%s", (error,), trace)
    for handler in logging.getLogger().handlers:
        if isinstance(handler, logging.FileHandler):
            handler.handle(record)


def exit_code(application: Callable[[], None], name: str, typed: Sequence[str]) -> int:
    """Runs a program; prints the message of an error that ends it, and returns the exit code.

    Args:
        application: the program.
        name: of the command.
        typed: its arguments.
    """
    try:
        try:
            application()
        except SystemExit as ended:
            if ended.code:
                raise
        write_output()  # what Hydra has printed, after which it ends the process
    except InputError as refusal:
        _say(str(refusal))
        return 2
    except REFUSALS as error:
        _say(explain(error, SCHEMAS[name], typed))
        return 2
    except RunError as failure:
        _say(str(failure), everywhere=True)
        return 1
    except Interrupted as stopped:
        _say(str(stopped))
        # what started the other ranks takes a code above 0 for a crash, and kills the first one
        return 0 if rank() else 128 + stopped.signal
    except BrokenPipeError:  # whoever read our output has had enough: `… | head`
        with contextlib.suppress(BrokenPipeError, RunError):
            write_output()
        return 0
    except KeyboardInterrupt:
        _say("stopped by Ctrl-C")
        return 130
    except Exception as error:
        if str(error).startswith(UNCLASSED):
            _say(explain(error, SCHEMAS[name], typed))
            return 2
        cause = error.__cause__
        if cause and str(error).startswith("Unable to configure "):  # Python's words of a log
            if not (isinstance(cause, OSError) and cause.errno in UNUSABLE):
                _say(f"hydra.job_logging or hydra.hydra_logging: {error}: {first_line(cause)}")
                return 2
            error = cause
        if isinstance(error, OSError) and error.errno in UNUSABLE:
            file = error.filename2 or error.filename  # of a rename the name that was to be had
            where = f"{file}: " if file else ""
            _say(f"{where}cannot be read or written: {error.strerror}", everywhere=True)
            return 2 if error.errno == errno.ENAMETOOLONG else 1  # such a name was typed
        traceback.print_exc()
        return 1
    return 0


def _say(message: str, everywhere: bool = False) -> None:
    """Prints a message on standard error, on rank 0 or, with the rank, on every rank."""
    if rank() == 0:
        say(message)
    elif everywhere:
        say(f"rank {rank()}: {message}")
