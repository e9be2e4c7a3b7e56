"""Keys of training: the optimizer, and the arguments of Lightning's Trainer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from nmt.config.keys import key

# Arguments of `pytorch_lightning.Trainer`, under its names and with its values, of which any other can
# be typed. `precision: auto` alone is not Lightning's: bf16-mixed where the device multiplies bf16
# faster, otherwise 32-true.
TRAINER: dict[str, Any] = {
    "max_steps": 1000,
    "val_check_interval": 200,  # batches between two validations
    "log_every_n_steps": 20,
    "gradient_clip_val": 1.0,  # largest L2 norm of the gradient (appendix B.2); null: no clipping
    "accelerator": "auto",
    "devices": 1,
    "precision": "32-true",
    "enable_progress_bar": True,
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
        "schedule of the learning rate (group `schedule`), with its arguments",
    )
