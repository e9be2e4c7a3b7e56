"""Builds Lightning's Trainer and its callbacks from the configuration."""

from __future__ import annotations

import difflib
import inspect
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import pytorch_lightning as pl
import torch
from hydra.utils import get_object, instantiate
from pytorch_lightning.callbacks import Checkpoint, ModelCheckpoint
from pytorch_lightning.loggers import Logger
from pytorch_lightning.plugins.environments import LightningEnvironment, SLURMEnvironment
from pytorch_lightning.strategies import DDPStrategy
from pytorch_lightning.strategies.launchers import _SubprocessScriptLauncher
from pytorch_lightning.utilities.exceptions import MisconfigurationException
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import bf16_compress_hook

from nmt.config.code import errors_naming
from nmt.evaluation.scores import REGISTERED
from nmt.training.checkpoint_io import AtomicCheckpointIO
from nmt.training.ranks import RankLauncher
from nmt.utils.devices import resolve_accelerator, resolve_precision
from nmt.utils.environment import is_srun_task
from nmt.utils.errors import InputError, first_line

# Defaults that differ from Lightning's
DEFAULTS: dict[str, Any] = {
    "max_epochs": -1,
    "check_val_every_n_epoch": None,  # `val_check_interval` counts batches across epochs
    "num_sanity_val_steps": 1,  # `CheckMonitors` reads the metrics that this validation logs
    "use_distributed_sampler": False,  # the data module gives each rank its share of the data
    "enable_model_summary": False,
    "accumulate_grad_batches": 1,
    "strategy": "auto",
}


def make_trainer(
    arguments: Mapping[str, Any],
    folder: Path,
    callbacks: Sequence[pl.Callback] = (),
    loggers: Sequence[Logger] = (),
) -> pl.Trainer:
    """Builds Lightning's Trainer.

    Args:
        arguments: the section `trainer` of the configuration, with the arguments of Lightning's Trainer.
        folder: the run's folder.
        callbacks: the callbacks. On a terminal, Lightning adds its progress bar.

    Raises:
        InputError: if an argument is unknown or has the wrong type, or if Lightning refuses it.
    """
    check_arguments("trainer", pl.Trainer, arguments)
    given = DEFAULTS | {"default_root_dir": str(folder)} | dict(arguments)
    for name in ("max_steps", "val_check_interval", "accumulate_grad_batches", "log_every_n_steps"):
        if given[name] == 0:
            raise InputError(f"trainer.{name}=0: must be at least 1")
    interval, accumulated = given["val_check_interval"], given["accumulate_grad_batches"]
    if isinstance(interval, int) and interval % accumulated:
        raise InputError(
            f"trainer.val_check_interval={interval}: must be a multiple of "
            f"trainer.accumulate_grad_batches={accumulated}"
        )
    given["accelerator"] = resolve_accelerator(given["accelerator"])
    given["precision"] = resolve_precision(given["precision"], given["accelerator"])
    given["strategy"] = make_strategy(given["strategy"])
    given["enable_progress_bar"] &= sys.stdout is not None and sys.stdout.isatty()
    plugins: list[Any] = [AtomicCheckpointIO()]
    try:
        if is_srun_task():
            plugins.append(SLURMEnvironment(auto_requeue=False))  # the job script requeues it
        elif "SLURM_JOB_ID" in os.environ and "TORCHELASTIC_RUN_ID" not in os.environ:
            plugins.append(LightningEnvironment())  # without srun, nmt launches the ranks
        trainer = pl.Trainer(
            **given, callbacks=list(callbacks), logger=list(loggers), plugins=plugins
        )
    except (RuntimeError, ValueError, TypeError, MisconfigurationException) as error:
        raise InputError(f"trainer: {first_line(error)}") from error
    if isinstance(trainer.strategy.launcher, _SubprocessScriptLauncher):
        trainer.strategy._launcher = RankLauncher(trainer.strategy)
    # Signals keep their default action. Lightning's SIGTERM handler can deadlock, because it calls
    # `broadcast` while another rank calls `all_reduce`.
    trainer._signal_connector.register_signal_handlers = lambda: None  # type: ignore[method-assign]
    # Lightning also broadcasts SIGTERM, which would synchronize the GPU at each batch.
    trainer.fit_loop.epoch_loop._broadcast_sigterm_tensor = lambda: None  # type: ignore[method-assign]
    return trainer


def make_strategy(name: str) -> Any:
    """Returns a DDP strategy for `ddp` and `ddp_bf16`, and any other name unchanged.

    The gradients are views of DDP's communication buckets, so they are not copied. With `ddp_bf16`,
    the ranks exchange gradients in bf16.
    """
    if name not in ("ddp", "ddp_bf16"):
        return name
    # Hide a warning about different CUDA streams. Here it is harmless: CUDA graphs synchronize their stream.
    torch.autograd.graph.set_warn_on_accumulate_grad_stream_mismatch(False)
    hook = bf16_compress_hook if name == "ddp_bf16" else None
    return DDPStrategy(gradient_as_bucket_view=True, ddp_comm_hook=hook)


def make_callbacks(named: Mapping[str, Any], folder: Path) -> list[pl.Callback]:
    """Creates the callbacks of the section `callbacks`.

    Adds defaults for missing arguments: `dirpath`, `filename` and `enable_version_counter` of a
    ModelCheckpoint, and `mode` of a callback that monitors a score. If a ModelCheckpoint keeps several files, their
    names include the number of the update.

    Raises:
        InputError: if a section is not a callback or cannot be instantiated. The message names the key.
    """
    callbacks: list[pl.Callback] = []
    for name, settings in named.items():
        given = dict(settings)
        if given.get("monitor"):
            given.setdefault("mode", mode(given["monitor"]))
        code = target_of(f"callbacks.{name}", given, named)
        if isinstance(code, type) and issubclass(code, ModelCheckpoint):
            several = given.get("save_top_k", 1) != 1
            given = (
                {
                    "dirpath": str(folder / "checkpoints"),
                    "filename": f"{name}-{{step}}" if several else name,
                    "auto_insert_metric_name": False,  # `best-40.ckpt`; Hydra would not read `best-step=40.ckpt`
                    "enable_version_counter": False,
                }
                | given
            )
        callbacks.append(make_object(f"callbacks.{name}", given, pl.Callback))
    # ModelCheckpoints with a monitor run first, so that last.ckpt stores their state.
    callbacks.sort(
        key=lambda each: isinstance(each, Checkpoint) and not getattr(each, "monitor", None)
    )
    return callbacks


def mode(metric: str) -> str:
    """Returns `max` for a registered score that should be high, otherwise `min` (Lightning's default).

    >>> mode("valid/bleu_by_length/11-20"), mode("valid/nll_per_word")
    ('max', 'min')
    """
    name = metric.removeprefix("valid/").partition("/")[0].removesuffix("_by_length")
    return "max" if name in REGISTERED and REGISTERED[name].higher_is_better else "min"


def target_of(key: str, settings: Mapping[str, Any], others: Iterable[str] = ()) -> Any:
    """Returns the class or function that a section of the configuration names in `_target_`.

    Args:
        key: dotted key of the section.
        settings: the section.
        others: names of all entries of the section's parent, if users may add entries.

    Raises:
        InputError: if `_target_` is missing or names an object that does not exist.
    """
    target = settings.get("_target_")
    group, _, name = key.rpartition(".")
    if not target and (known := [f"{group}.{other}" for other in others if other != name]):
        raise InputError(
            f"{key}: there are {' and '.join(known)}; to add {name}, type {group}={name} if --help lists "
            f"it, or +{key}._target_=CLASS"
        )
    if not target:
        raise InputError(f"{key}: `_target_` is missing; add +{key}._target_=…")
    with errors_naming(f"{key}._target_={target}"):
        return get_object(str(target))


def make_object(key: str, settings: Mapping[str, Any], kind: type) -> Any:
    """Instantiates the class that a section names in `_target_`, with the other keys as arguments.

    Raises:
        InputError: if the object cannot be created or is not an instance of `kind`. The message names `key`.
    """
    target_of(key, settings)
    with errors_naming(f"{key}._target_={settings['_target_']}"):
        instance = instantiate(dict(settings), _convert_="all")
    if not isinstance(instance, kind):
        raise InputError(f"{key}._target_={settings['_target_']}: not a {kind.__name__}")
    return instance


def check_arguments(key: str, code: Any, given: Mapping[str, Any]) -> None:
    """Refuses arguments that the class `code` does not have.

    Also refuses values of the wrong type for arguments that `code` declares as number, string or bool.

    Raises:
        InputError: for such an argument or value. The message names its key.
    """
    known = inspect.signature(code).parameters
    hints = get_type_hints(code.__init__)
    for name, value in given.items():
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            meant = f"; did you mean {key}.{near[0]}?" if near else ""
            raise InputError(f"{key}.{name}: not an argument of {code.__qualname__}{meant}")
        hint = hints.get(name)
        types = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
        is_checked = {*types} <= {bool, int, float, str, NoneType}
        accepted = (*types, int) if float in types else types
        if is_checked and type(value) not in accepted:
            names = " or ".join(each.__name__ for each in types if each is not NoneType)
            raise InputError(f"{key}.{name}={value}: must be {names}")
