"""Keys of training: the optimizer, the loop, its logger and checkpoints."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from nmt.config.keys import key


@dataclass
class OptimizerConfig:
    """The step that follows a gradient."""

    _target_: str = key("torch.optim.Adadelta", "class of the optimizer")
    lr: float = key(1.0, "learning rate (1 for Adadelta, about 1e-3 for Adam)", above=0)
    clip_norm: float = key(1.0, "largest L2 norm of the gradient; 0: no clipping", minimum=0)
    options: dict[str, Any] = key({}, "the class' other arguments, by name")
    schedule: dict[str, Any] = key(
        {"_target_": "nmt.models.optimizer.constant"},
        "how the learning rate moves over the updates; type schedule=linear",
    )
    warmup: int = key(0, "updates over which the learning rate rises from 0", minimum=0)
    decay_from: float = key(
        0.0, "linear: share of the updates after which the decay begins", minimum=0, below=1
    )


@dataclass
class TrainerConfig:
    """How long and on what a model is trained."""

    max_steps: int = key(1000, "updates of the weights", minimum=1, resumable=True)
    valid_every: int = key(200, "updates between two validations", minimum=1)
    valid_translate: int = key(
        200, "development sentences translated (greedily) for BLEU at each validation", minimum=0
    )
    patience: int = key(
        0, "stop after this many validations without a better score; 0: never", minimum=0
    )
    monitor: str = key(
        "nll",
        "score that names the best checkpoint: NLL a word, or BLEU of the translated sentences",
        choices=("nll", "bleu"),
    )
    accelerator: str = key(
        "auto", "device kind", choices=("auto", "cpu", "gpu", "cuda"), runtime=True
    )
    devices: int = key(1, "devices of a machine", minimum=1, runtime=True)
    num_nodes: int = key(1, "machines", minimum=1, runtime=True)
    strategy: str = key("auto", "Lightning strategy; ddp for several devices", runtime=True)
    precision: str = key(
        "32",
        "32, bf16-mixed, or auto: bf16-mixed where the device multiplies bf16 faster, else 32",
        choices=("32", "bf16-mixed", "auto"),
    )
    accumulate: int = key(
        1,
        "micro-batches an update; each device has an equal share of its sentences in each",
        minimum=1,
    )
    threads: int = key(
        1,
        "threads of one process on a CPU; more pay only on an idle machine with large layers",
        minimum=1,
        runtime=True,
    )
    progress: bool = key(
        True, "show bars and the lines between them, in preparing and testing too", runtime=True
    )
    log_every: int = key(
        20, "updates between two lines of training scores", minimum=1, runtime=True
    )
    lightning: dict[str, Any] = key(
        {},
        "other arguments of Lightning's Trainer, by name: +trainer.lightning.profiler=simple",
    )


@dataclass
class LoggerConfig:
    """Where training scores go while they are made."""

    name: str = key(
        "wandb", "where the scores of training go", choices=("wandb", "csv", "tensorboard", "none")
    )
    mode: str = key(
        "offline",
        "wandb: kept here for `wandb sync` (no account), sent at once, or nothing at all",
        choices=("offline", "online", "disabled"),
    )
    project: str = key("nmt", "wandb: project")
    entity: str | None = key(None, "wandb: user or team")
    group: str | None = key(None, "wandb: group; a sweep names its folder here")
    tags: list[str] = key([], "wandb: tags")


@dataclass
class CheckpointConfig:
    """When the state of training is written."""

    minutes: float = key(
        10.0, "minutes between two checkpoints, besides the one at each validation", above=0
    )
