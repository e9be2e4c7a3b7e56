"""A model small enough to be built in every test."""

from omegaconf import DictConfig, OmegaConf

from nmt.config import Config


def small_config() -> DictConfig:
    """RNNsearch with additive scoring, every size 4."""
    config = OmegaConf.structured(Config)
    config.model.scoring = {"_target_": "nmt.layers.Additive"}
    config.model.alignment = "${size.alignment}"
    for name in ("hidden", "embedding", "alignment", "maxout"):
        config.size[name] = 4
    return config
