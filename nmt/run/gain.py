"""Information gain of one model over another on the references, by position and by length."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from nmt.evaluation.examples import Example
from nmt.evaluation.positions import gains_at_positions, means
from nmt.inference.force_decoding import force_decode_pairs, word_log_probabilities
from nmt.inference.trained import TrainedModel
from nmt.run.run import Run
from nmt.run.test import Sets
from nmt.utils.errors import InputError
from nmt.utils.progress import Stage

log = logging.getLogger(__name__)


def measure_gains(
    run: Run, trained: TrainedModel, other: TrainedModel, sets: Sets, positions: int
) -> list[dict[str, Any]]:
    """The information gain of `trained` over `other` on each test set, by position from either end.

    Positions are those of the source words that gold links join a target word with, or where a set
    has none for all of its sentences, the target word's own.

    Raises:
        InputError: where the models have different target vocabularies.
    """
    if trained.codec.target.state() != other.codec.target.state():
        raise InputError("against: its vocabulary is another; take a model of the same text")
    evaluation = run.config.evaluation
    found: list[dict[str, Any]] = []
    total = 2 * sum(map(len, sets.values()))
    with Stage("force-decoding", total, "sentence", shown=run.config.trainer.progress) as stage:
        for name, examples in sets.items():
            ours, theirs = (word_likelihoods(each, examples, stage) for each in (trained, other))
            gains = [
                [a - b for a, b in zip(mine, yours, strict=True)]
                for mine, yours in zip(ours, theirs, strict=True)
            ]
            linked = all(example.gold is not None for example in examples)
            golds = [example.gold for example in examples if example.gold is not None]
            lengths = [len(e.source if linked else e.target) for e in examples]
            for order in ("from_start", "from_end"):
                table = gains_at_positions(
                    gains, lengths, golds if linked else None, from_end=order == "from_end"
                )
                measured = means(
                    {"gain": table},
                    [example.length(evaluation.bucket_by) for example in examples],
                    evaluation.edges,
                    resamples=evaluation.resamples,
                    confidence=evaluation.confidence,
                    positions=positions,
                )
                of = "source" if linked else "target"
                found.append({"set": name, "order": order, "positions": of, **measured})
            gained = found[-1]["gain"]["score"]
            if gained is not None:
                log.info("%s: gains %.3f nats a word over %s", name, gained, other.config.name)
    return found


def word_likelihoods(
    trained: TrainedModel, examples: Sequence[Example], stage: Stage
) -> list[list[float]]:
    """Log-probability in nats of each word of the references, `</s>` left out."""
    pairs = [(example.source, example.target) for example in examples]
    decodings = force_decode_pairs(trained, pairs, stage.advance)
    return [word_log_probabilities(trained.codec, decoding)[:-1] for decoding in decodings]
