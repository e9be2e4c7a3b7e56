"""Models with random weights, their checkpoints and page files."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Sequence
from pathlib import Path

import torch
from omegaconf import OmegaConf

from nmt.config.loading import load
from nmt.config.schema import Config, to_containers
from nmt.data.vocabulary import BpeVocabulary, Vocabulary, WordVocabulary
from nmt.inference.live_export import export_live
from nmt.inference.model import Model
from nmt.models import build_model
from nmt.models.checkpoint import quantised
from nmt.report.page.payload import FILE
from tests.helpers import run_folders

ENGLISH = ("the", "red", "cat", "sees", "a", "bird", ".")
FRENCH = ("le", "chat", "rouge", "voit", "un", "oiseau", ".", "qui")


def drawn_model(
    model: str = "RNNsearch",
    *,
    scoring: str = "Additive",
    state_input: str = "previous",
    bpe: bool = False,
    seed: int = 0,
    spread: float = 0.4,
    words: Sequence[Sequence[str]] = (run_folders.ENGLISH, run_folders.FRENCH),
    dictionary: dict[str, str] | None = None,
) -> Model:
    """Returns a model in evaluation mode, with distinct sizes and random weights of standard deviation `spread`."""
    config = OmegaConf.structured(Config)
    config.model._target_ = f"nmt.models.{model}"
    config.model.state_input = state_input
    config.model.hidden, config.model.embedding, config.model.maxout = 11, 7, 6
    if model == "RNNsearch":
        config.model.scoring = {"_target_": f"nmt.layers.{scoring}"}
        config.model.alignment = 9
    config.trainer["accelerator"], config.trainer["precision"] = "cpu", "32-true"
    vocabularies: list[Vocabulary] = [
        BpeVocabulary.learn([" ".join(side)], 300) if bpe else WordVocabulary(dict.fromkeys(side))
        for side in words
    ]
    checked = load(config)
    torch.manual_seed(seed)
    network = build_model(checked, *map(len, vocabularies)).network.eval()
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.normal_(std=spread)
    return Model(network, *vocabularies, checked, dictionary)


def small_checkpoint(
    path: Path, seed: int = 1, *, attends: bool = True, french: Sequence[str] = FRENCH
) -> Path:
    """Writes the checkpoint of a model that knows a few words and translates with a beam of 3."""
    kind = "RNNsearch" if attends else "RNNencdec"
    model = drawn_model(kind, seed=seed, spread=0.7, words=(ENGLISH, french))
    model.config.search.beam_size = 3
    content = {
        "hyper_parameters": {
            "config": to_containers(model.config),
            "source_size": len(model.source),
            "target_size": len(model.target),
        },
        "nmt": {
            "source_vocabulary": model.source.state(),
            "target_vocabulary": model.target.state(),
            "fingerprint": "f",
            "overrides": [],
        },
        "pytorch-lightning_version": "2.6.6",
        "log_sums": [0.0, 0.0],
        "global_step": seed,
        "state_dict": {f"network.{k}": v for k, v in model.network.state_dict().items()},
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    torch.save(content, path)
    return path


def write_live(trained: Model, folder: Path) -> Path:
    """Writes the model file that a page embeds, and returns its path."""
    export_live(trained, folder)
    return folder / FILE


def rounded(trained: Model) -> Model:
    """Returns a copy of the model with its matrices rounded to 8 bits, as in a page."""
    network = copy.deepcopy(trained.network)
    with torch.no_grad():
        for weight in network.parameters():
            if weight.ndim == 2:
                codes, scale = quantised(weight.numpy())
                weight.copy_(torch.from_numpy(codes * scale[:, None]))
    return dataclasses.replace(trained, network=network)
