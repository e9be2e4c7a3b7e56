"""From the configuration to Lightning's Trainer, and to the device and precision it runs with."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from typing import Any

import pytorch_lightning as pl
import torch
from pytorch_lightning.loggers import CSVLogger, Logger, TensorBoardLogger, WandbLogger

from nmt.config import Config, TrainerConfig, plain
from nmt.errors import Refusal
from nmt.report.wandb_panels import carry_on
from nmt.sweep import sweep_folder
from nmt.training.checkpoints import AtomicCheckpointIO


def make_trainer(
    config: Config, folder: Path, callbacks: list[pl.Callback], logger: Logger | None
) -> pl.Trainer:
    """The Trainer of a run, for updates and for tests.

    Raises:
        Refusal: when the devices asked for are not there.
    """
    options = config.trainer
    use_threads(options)
    plugins: list[Any] = [AtomicCheckpointIO()]
    if "SLURM_JOB_ID" in os.environ and "SLURM_NTASKS" in os.environ:
        from pytorch_lightning.plugins.environments import SLURMEnvironment

        plugins.append(SLURMEnvironment(auto_requeue=True))
    try:
        return pl.Trainer(
            default_root_dir=folder,
            accelerator=options.accelerator,
            devices=options.devices,
            num_nodes=options.num_nodes,
            strategy=options.strategy,
            precision=precision(options),  # type: ignore[arg-type]
            max_steps=options.max_steps,
            max_epochs=-1,
            val_check_interval=options.valid_every * options.accumulate,
            check_val_every_n_epoch=None,
            accumulate_grad_batches=options.accumulate,
            log_every_n_steps=options.log_every,
            logger=logger or False,
            callbacks=callbacks,
            plugins=plugins,
            deterministic=config.deterministic or None,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            use_distributed_sampler=False,
            num_sanity_val_steps=0,
        )
    except (RuntimeError, ValueError, TypeError) as error:
        first = str(error).strip().splitlines()[0]
        raise Refusal(
            f"trainer (accelerator={options.accelerator}, devices={options.devices}, "
            f"strategy={options.strategy}): {first}"
        ) from error
    except pl.utilities.exceptions.MisconfigurationException as error:
        raise Refusal(
            f"trainer.accelerator={options.accelerator}, trainer.devices={options.devices}: "
            f"{str(error).strip().splitlines()[0]}"
        ) from error


def precision(options: TrainerConfig) -> str:
    """`32-true` or `bf16-mixed`; `auto` takes bf16 where the device has matrix units for it."""
    if options.precision != "auto":
        return "32-true" if options.precision == "32" else options.precision
    gpu = options.accelerator in ("auto", "gpu", "cuda") and torch.cuda.is_available()
    if gpu:
        return "bf16-mixed" if torch.cuda.is_bf16_supported() else "32-true"
    return "bf16-mixed" if cpu_has_bf16_matrix_units() else "32-true"


def cpu_has_bf16_matrix_units() -> bool:
    """Whether the processor multiplies bf16 matrices in tiles (Intel AMX)."""
    supported = getattr(torch.cpu, "_is_amx_tile_supported", None)
    return bool(supported and supported())


def use_threads(options: TrainerConfig) -> None:
    """Sets the threads of this process.

    One is the default: the products of a step are small, and threads that wait for one another on a
    busy machine have cost more than ten times what they gain on an idle one.
    """
    torch.set_num_threads(options.threads)


def make_logger(config: Config, folder: Path) -> Logger | None:
    """The logger of a run, or None.

    Raises:
        Refusal: when an extra that the logger needs is missing.
    """
    options = config.logger
    if options.name == "csv":
        return CSVLogger(folder, name="", version="", prefix="")
    if options.name == "tensorboard":
        if importlib.util.find_spec("tensorboard") is None:
            raise Refusal("logger=tensorboard: needs the extra: pip install 'nmt[tensorboard]'")
        return TensorBoardLogger(folder, name="", version="tensorboard")
    if options.name == "wandb" and options.mode != "disabled":
        return make_wandb_logger(config, folder)
    return None


class PatientWandbLogger(WandbLogger):
    """W&B that fails (no network, a full disk) is reported once and never stops a training."""

    def log_metrics(self, metrics: Any, step: int | None = None) -> None:
        with carry_on("logging scores"):
            super().log_metrics(metrics, step)

    def finalize(self, status: str) -> None:
        with carry_on("closing the run"):
            super().finalize(status)


def make_wandb_logger(config: Config, folder: Path) -> WandbLogger:
    """A W&B logger whose run id is kept in the run folder, so that a resumed run goes on in it."""
    os.environ.setdefault("WANDB_SILENT", "true")
    options = config.logger
    if options.mode == "online" and not _wandb_key():
        raise Refusal(
            "logger.mode=online: W&B has no key here; run `wandb login` or set WANDB_API_KEY, "
            "or take logger.mode=offline"
        )
    identity = folder / "wandb" / "id"
    if identity.is_file():
        run_id = identity.read_text().strip()
    else:
        import wandb

        run_id = wandb.sdk.lib.runid.generate_id()
        identity.parent.mkdir(parents=True, exist_ok=True)
        identity.write_text(run_id)
    return PatientWandbLogger(
        name=config.name,
        save_dir=folder,
        id=run_id,
        project=options.project,
        entity=options.entity,
        group=options.group or sweep_folder(),
        tags=[*options.tags, config.experiment, config.regime],
        offline=options.mode == "offline",
        config=plain(config),
        resume=None if options.mode == "offline" else "allow",
        settings={"console": "off", "silent": True},
    )


def _wandb_key() -> bool:
    if os.environ.get("WANDB_API_KEY"):
        return True
    import netrc

    try:
        path = os.environ.get("NETRC", str(Path.home() / ".netrc"))
        return netrc.netrc(path).authenticators("api.wandb.ai") is not None
    except (OSError, netrc.NetrcParseError):
        return False
