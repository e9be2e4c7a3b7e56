"""Models small enough to be built in every test, and their checkpoints."""

from pathlib import Path

import torch
from omegaconf import DictConfig, OmegaConf

from nmt.config.loading import load
from nmt.config.schema import Config, to_containers
from nmt.data.vocabulary import WordVocabulary
from nmt.models import build_model

ENGLISH = ("the", "red", "cat", "sees", "a", "bird", ".")
FRENCH = ("le", "chat", "rouge", "voit", "un", "oiseau", ".", "qui")


def small_config() -> DictConfig:
    """RNNsearch with additive scoring, every size 4."""
    config = OmegaConf.structured(Config)
    config.model.scoring = {"_target_": "nmt.layers.Additive"}
    for name in ("hidden", "embedding", "alignment", "maxout"):
        config.model[name] = 4
    return config


def small_checkpoint(
    path: Path, seed: int = 1, *, attends: bool = True, french: tuple[str, ...] = FRENCH
) -> Path:
    """Writes the checkpoint of a model that was never trained, and whose weights are wide."""
    config = small_config()
    config.model.init = "glorot"
    config.trainer["accelerator"], config.trainer["precision"] = "cpu", "32-true"
    config.search.beam_size = 3
    if not attends:
        config.model._target_ = "nmt.models.RNNencdec"
        config.model.scoring = config.model.alignment = None
    source, target = WordVocabulary(list(ENGLISH)), WordVocabulary(list(french))
    torch.manual_seed(seed)
    checked = load(config)
    model = build_model(checked, len(source), len(target))
    content = {
        "hyper_parameters": {
            "config": to_containers(checked),
            "source_size": len(source),
            "target_size": len(target),
        },
        "nmt": {
            "source_vocabulary": source.state(),
            "target_vocabulary": target.state(),
            "fingerprint": "f",
            "overrides": [],
        },
        "pytorch-lightning_version": "2.6.6",
        "log_sums": [0.0, 0.0],
        "global_step": seed,
        "state_dict": {name: 2 * value for name, value in model.state_dict().items()},
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    torch.save(content, path)
    return path
