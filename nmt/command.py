"""What all commands share: where `conf/` is, how errors end a program, how the run folder is named.

Exit codes: 0 done; 1 failed; 2 refused because configuration or input is wrong; 128 + signal when
stopped by one.
"""

from __future__ import annotations

import difflib
import functools
import logging
import os
import re
import sys
import traceback
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import hydra
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from hydra.errors import HydraException
from hydra.types import RunMode
from hydra.utils import get_original_cwd
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from nmt.config import keys, register
from nmt.errors import Failure, Refusal

log = logging.getLogger(__name__)


def conf_folder() -> Path:
    """The folder `conf/`: beside the package in a checkout, inside it in an installed wheel."""
    package = Path(__file__).resolve().parent
    inside = package / "conf"
    return inside if inside.is_dir() else package.parent / "conf"


def job_id() -> str | None:
    """Name that all ranks of a job started by torchrun or SLURM agree on, or None elsewhere."""
    if "TORCHELASTIC_RUN_ID" in os.environ:
        return f"torchrun-{os.environ['TORCHELASTIC_RUN_ID']}"
    if "SLURM_JOB_ID" in os.environ and "SLURM_NTASKS" in os.environ:
        return f"slurm-{os.environ['SLURM_JOB_ID']}"
    return None


def rank() -> int:
    """Rank of this process before any process group exists: 0 where nothing says otherwise."""
    for name in ("RANK", "SLURM_PROCID", "LOCAL_RANK"):
        if os.environ.get(name, "").isdigit():
            return int(os.environ[name])
    return 0


def run_folder(resume: str | None = None) -> str:
    """Name of a run's folder: the run gone on with, the job's id, or the time of the start."""
    if resume not in (None, "auto"):
        return str(resume)
    return f"outputs/{job_id() or datetime.now().strftime('%Y-%m-%d/%H-%M-%S')}"


def config_subfolder(resume: str | None = None) -> str | None:
    """Where Hydra writes the composed configuration: going on with a run keeps the original one."""
    if rank() > 0:
        return None
    return (
        ".hydra" if resume in (None, "auto") else f".hydra/resumed-{datetime.now():%Y%m%d-%H%M%S}"
    )


def log_file(folder: str, name: str) -> str:
    """The log file of a command; only rank 0 has one."""
    return os.devnull if rank() > 0 else str(Path(folder) / f"{name}.log")


def original_path(path: str | Path) -> Path:
    """`path` as the person meant it: relative to the folder the command was typed in."""
    expanded = Path(path).expanduser()
    base = Path(get_original_cwd()) if GlobalHydra.instance().is_initialized() else Path.cwd()
    return expanded if expanded.is_absolute() else base / expanded


def command(name: str) -> Callable[[Callable[[DictConfig], None]], Callable[[], None]]:
    """Turns `main(config)` into a command line program composed from `conf/<name>.yaml`.

    A refusal (exit code 2) or a failure (1) prints its one or two lines without a traceback; so do
    Hydra's own errors of composition, grammar and type. Anything else is a defect and shows its
    traceback.
    """

    def decorate(main: Callable[[DictConfig], None]) -> Callable[[], None]:
        @functools.wraps(main)
        def program() -> None:
            register()
            for resolver in (run_folder, config_subfolder, log_file):
                OmegaConf.register_new_resolver(resolver.__name__, resolver, replace=True)
            os.environ["HYDRA_FULL_ERROR"] = "1"  # errors come to us instead of being printed
            failed: list[Exception] = []

            @functools.wraps(main)
            def job(config: DictConfig) -> None:
                try:
                    main(config)
                except Exception as error:
                    if HydraConfig.get().mode is not RunMode.RUN:
                        raise  # a launcher in this process counts the job as failed
                    failed.append(error)  # past Hydra, which would print its own lines about it

            def application() -> None:
                hydra.main(version_base="1.3", config_path=str(conf_folder()), config_name=name)(
                    job
                )()
                if failed:
                    raise failed[0]

            sys.exit(_exit_code(application))

        return program

    return decorate


def _exit_code(application: Callable[[], None]) -> int:
    try:
        application()
    except Refusal as refusal:
        _say(str(refusal))
        return 2
    except (HydraException, OmegaConfBaseException) as error:
        _say(_two_lines(error))
        return 2
    except Failure as failure:
        _say(str(failure))
        return 1
    except KeyboardInterrupt:
        _say("stopped by Ctrl-C")
        return 130
    except Exception:
        traceback.print_exc()
        return 1
    return 0


def _say(message: str) -> None:
    if rank() == 0:
        print(f"nmt: {message}", file=sys.stderr)


def _two_lines(error: BaseException) -> str:
    """Hydra's and OmegaConf's messages in two lines: what is wrong, and what would be right."""
    texts = [str(error)]
    cause = error.__cause__
    while cause is not None:
        texts.append(str(cause))
        cause = cause.__cause__
    lines = [line.strip() for text in texts for line in text.splitlines() if line.strip()]
    for at, line in enumerate(lines):
        if line.startswith("Available options"):
            until = next(
                (n for n in range(at, len(lines)) if lines[n].startswith("Config search")), None
            )
            return f"{lines[at - 1]}\navailable: {', '.join(lines[at + 1 : until])}"
    unknown = re.match(r"Could not override '([^']+)'", lines[0])
    if unknown:
        near = difflib.get_close_matches(unknown[1], list(keys()), n=3, cutoff=0.6)
        hint = f"did you mean {' or '.join(near)}?" if near else "see docs/configuration.md"
        return f"{unknown[1]}: no such key; {hint}"
    noise = ("object_type=", "full_key:", "reference_type=")
    kept = [line for line in dict.fromkeys(lines) if not line.startswith(noise)]
    return "\n".join(kept[:2])
