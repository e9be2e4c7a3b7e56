"""Keys of training: the optimizer, the loop, its logger and checkpoints."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from nmt.config.keys import key


@dataclass
class OptimizerConfig:
    """The optimizer, gradient clipping and learning rate."""

    _target_: str = key("torch.optim.Adadelta", "class of the optimizer")
    lr: float = key(1.0, "learning rate (1 for Adadelta, about 1e-3 for Adam)", above=0)
    clip_norm: float = key(1.0, "largest L2 norm of the gradient; 0: no clipping", minimum=0)
    options: dict[str, Any] = key({}, "other arguments of the class, by name")
    schedule: dict[str, Any] = key(
        {"_target_": "nmt.models.optimizer.constant"},
        "schedule of the learning rate; type schedule=linear",
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
        "score that selects the best checkpoint: NLL per word, or BLEU of the translated sentences",
        choices=("nll", "bleu"),
    )
    accelerator: str = key(
        "auto", "kind of device", choices=("auto", "cpu", "gpu", "cuda"), runtime=True
    )
    devices: int = key(1, "devices per machine", minimum=1, maximum=1024, runtime=True)
    num_nodes: int = key(1, "machines", minimum=1, maximum=10_000, runtime=True)
    strategy: str = key(
        "auto",
        "Lightning strategy; ddp for several devices",
        choices=("auto", "ddp"),
        runtime=True,
    )
    precision: str = key(
        "32",
        "32, bf16-mixed, or auto: bf16-mixed if the device multiplies bf16 faster, otherwise 32",
        choices=("32", "bf16-mixed", "auto"),
    )
    accumulate: int = key(
        1,
        "micro-batches per update; each device has an equal share of the sentences of each",
        minimum=1,
    )
    threads: int | str = key(
        "auto",
        "threads of one process on a CPU; auto: by the cores it may use and the size of the layers, "
        "of a resumed run what it has had",
        minimum=1,
        maximum=1024,
        word="auto",
        runtime=True,
    )
    progress: bool = key(
        True, "show progress bars and progress lines, when preparing and testing too", runtime=True
    )
    log_every: int = key(
        20, "updates between two log entries of training scores", minimum=1, runtime=True
    )
    lightning: dict[str, Any] = key(
        {},
        "other arguments of Lightning's Trainer, by name: +trainer.lightning.profiler=simple",
    )


@dataclass
class LoggerConfig:
    """Where training scores are logged."""

    name: str = key(
        "wandb", "logger of the training scores", choices=("wandb", "csv", "tensorboard", "none")
    )
    mode: str = key(
        "offline",
        "wandb: stored locally for `wandb sync` (no account), uploaded at once, or off",
        choices=("offline", "online", "disabled"),
    )
    project: str = key("nmt", "wandb: project")
    entity: str | None = key(None, "wandb: user or team")
    run_name: str | None = key(
        None, "wandb: name of the run; null: `name`, the seed, and what was typed for the model"
    )
    group: str | None = key(None, "wandb: group; in a sweep the sweep's folder by default")
    tags: list[str] = key([], "wandb: tags, besides the experiment and the regime")
    notes: str | None = key(None, "wandb: notes")
    log_checkpoints: bool = key(
        True, "wandb: log best.ckpt and last.ckpt as artifacts when a training has finished"
    )


@dataclass
class CheckpointConfig:
    """When checkpoints are written."""

    minutes: float = key(
        10.0, "minutes between two checkpoints, in addition to one at each validation", above=0
    )
