"""Keys of training: the optimizer, and the arguments of Lightning's Trainer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from nmt.config.keys import key

# Arguments of `pytorch_lightning.Trainer`, under its names and with its values; more of them are typed
# as +trainer.NAME=. `precision: auto` alone is not Lightning's: bf16-mixed where the device multiplies
# bf16 faster, otherwise 32-true.
TRAINER: dict[str, Any] = {
    "_target_": "pytorch_lightning.Trainer",
    "max_steps": 1000,
    "max_epochs": -1,
    "val_check_interval": 200,  # batches between two validations
    "check_val_every_n_epoch": None,  # so that the interval is counted across epochs
    "log_every_n_steps": 20,
    "accumulate_grad_batches": 1,  # each device has an equal share of the sentences of each
    "gradient_clip_val": 1.0,  # largest L2 norm of the gradient (appendix B.2); null: no clipping
    "accelerator": "auto",
    "devices": 1,
    "num_nodes": 1,
    "strategy": "auto",
    "precision": "32-true",
    "deterministic": False,
    "num_sanity_val_steps": 0,
    "use_distributed_sampler": False,  # the data module gives each rank its own share
    "enable_progress_bar": True,
    "enable_model_summary": False,
}

# Arguments that change neither what a run learns nor how it is scored.
RUNTIME_ARGUMENTS = tuple(
    f"trainer.{name}"
    for name in (
        *("accelerator", "devices", "num_nodes", "strategy", "log_every_n_steps"),
        *("enable_progress_bar", "enable_model_summary", "profiler", "deterministic", "benchmark"),
    )
)
# Arguments that may also change when a run is resumed: how long it goes on.
RESUMABLE_ARGUMENTS = ("trainer.max_steps", "trainer.max_epochs", "trainer.max_time")


@dataclass
class OptimizerConfig:
    """The optimizer and its learning rate."""

    _target_: str = key("torch.optim.Adadelta", "class of the optimizer")
    lr: float = key(1.0, "learning rate (1 for Adadelta, about 1e-3 for Adam)", above=0)
    options: dict[str, Any] = key({}, "other arguments of the class, by name")
    schedule: dict[str, Any] = key(
        {"_target_": "nmt.models.optimizer.constant"},
        "schedule of the learning rate; type schedule=linear",
    )
    warmup: int = key(0, "updates over which the learning rate rises from 0", minimum=0)
    decay_from: float = key(
        0.0, "linear: share of the updates after which the decay begins", minimum=0, below=1
    )
