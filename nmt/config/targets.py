"""Code that a configuration names (`_target_`): what anyone's may name, and whose the rest is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

# What a stranger's checkpoint may name besides the models and scoring functions of `nmt`: classes
# that do nothing but what their names say, whatever their arguments are.
LISTED = frozenset(
    f"{module}.{name}"
    for module, names in {
        "torch.optim": "ASGD Adadelta Adagrad Adam AdamW Adamax NAdam RAdam RMSprop Rprop SGD",
        "torch.optim.lr_scheduler": "ConstantLR CosineAnnealingLR CosineAnnealingWarmRestarts "
        "ExponentialLR LinearLR MultiStepLR OneCycleLR PolynomialLR StepLR",
        "nmt.models.optimizer": "constant inverse_sqrt linear",
        "pytorch_lightning.callbacks": "DeviceStatsMonitor EMAWeightAveraging LearningRateMonitor",
    }.items()
    for name in names.split()
)


def own_modules(config: Any) -> list[str]:
    """Modules outside `nmt` of the code that a configuration names, but for what is `LISTED`.

    Whoever typed a configuration, or trained with it, trusts them.

    Args:
        config: as dictionaries and lists.
    """
    others = {target for target in _targets(config) if target not in LISTED}
    return sorted({name.rpartition(".")[0] for name in others if not name.startswith("nmt.")})


def _targets(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if node.get("_target_"):
            yield str(node["_target_"])
        for child in node.values():
            yield from _targets(child)
    elif isinstance(node, list):
        for child in node:
            yield from _targets(child)
