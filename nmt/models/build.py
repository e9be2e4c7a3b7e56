"""Builds the LightningModule of a configuration; only classes of `nmt` and of trusted modules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hydra.utils import get_class

from nmt.config import Config
from nmt.config.schema import to_containers
from nmt.config.targets import named_by

if TYPE_CHECKING:
    from nmt.models.base import Translator


def build_model(config: Config, source_size: int, target_size: int) -> Translator:
    """The LightningModule of a configuration, freshly initialised (seed before calling).

    Raises:
        InputError: where a class that the configuration names cannot be found or built.
    """
    target = config.model._target_
    with named_by(f"model._target_={target}"):
        model_class: type[Translator] = get_class(target)
    return model_class(to_containers(config), source_size, target_size)
