"""Alignments symmetrised from two models, one per direction, and their error rates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hydra.core.hydra_config import HydraConfig

from nmt.config import EvaluateConfig
from nmt.config.keys import is_within
from nmt.config.overrides import typed_paths
from nmt.config.schema import REVERSE_CHECKPOINT
from nmt.evaluation.alignment import Link, hard_links
from nmt.evaluation.link_scores import alignment_scores
from nmt.evaluation.symmetrisation import grow_diag_final_and
from nmt.inference.force_decoding import force_decode_pairs, weights_between_words
from nmt.inference.trained import TrainedModel
from nmt.run.other_model import other_model
from nmt.run.run import Run
from nmt.run.test import Sets, add_links
from nmt.utils.environment import rank
from nmt.utils.errors import InputError


def reverse_model(run: Run) -> TrainedModel | None:
    """The model of the other direction that was typed; None without one.

    One that only a stored configuration names is not read: it may be a stranger's.

    Raises:
        InputError: for a file that is no checkpoint, or a model without attention or of other
            languages; and where the run's own has no attention.
    """
    file = run.config.evaluation.alignment.reverse_checkpoint
    typed = typed_paths(HydraConfig.get().overrides.task, EvaluateConfig)
    if file is None or not is_within(REVERSE_CHECKPOINT, typed):
        return None
    other = other_model(run, file, REVERSE_CHECKPOINT)
    config = other.config
    ours, theirs = list(run.config.data.languages), list(config.data.languages)
    if theirs != ours[::-1]:
        raise InputError(
            f"{REVERSE_CHECKPOINT}={file}: translates {theirs[0]} to {theirs[1]}, not {ours[1]} to {ours[0]}"
        )
    for each, name in ((run.config, "checkpoint"), (config, f"{REVERSE_CHECKPOINT}={file}")):
        if each.model.alignment is None:
            raise InputError(f"{name}: {each.model.title} has no attention to read links from")
    return other


def add_symmetrised(
    run: Run, trained: TrainedModel, reverse: TrainedModel, scores: dict[str, Any], sets: Sets
) -> None:
    """Adds the AER of the reverse model's links, and of symmetrised links, where gold links exist.

    Args:
        run: of the evaluation.
        trained: its model.
        reverse: of the other direction.
        scores: of each test set; `alignment.symmetrised` is added.
        sets: the test sets.
    """
    if rank():
        return
    settings = run.config.evaluation
    for name, examples in sets.items():
        aligned = [(example, example.gold) for example in examples if example.gold is not None]
        if not aligned or "alignment" not in scores.get(name, {}):
            continue
        pairs = [(example.source, example.target) for example, _ in aligned]
        back = [(target, source) for source, target in pairs]
        null = settings.alignment.null
        direct = model_links(trained, pairs, null)
        inverse = [{(j, i) for i, j in links} for links in model_links(reverse, back, null)]
        ways = {
            "reverse": inverse,
            "intersection": map(set.intersection, direct, inverse),
            "grow_diag_final_and": map(grow_diag_final_and, direct, inverse),
        }
        found = {
            way: alignment_scores(
                [
                    (each, gold, len(example.target))
                    for each, (example, gold) in zip(links, aligned, strict=True)
                ],
                settings.resamples,
                settings.confidence,
            )
            for way, links in ways.items()
        }
        add_links(name, scores[name], "symmetrised", found)


def model_links(
    trained: TrainedModel, pairs: Sequence[tuple[Sequence[str], Sequence[str]]], null: float
) -> list[set[Link]]:
    """The links of a model's attention, each pair force-decoded, source word first.

    Args:
        null: as for `hard_links`.
    """
    found = []
    for (source, _), decoding in zip(pairs, force_decode_pairs(trained, pairs), strict=True):
        assert decoding.weights is not None
        weights = weights_between_words(decoding.weights, trained.codec, source, decoding.ids)
        found.append(set(hard_links(weights, null)))
    return found
