"""Alignment error rates of statistical aligners (HMM, FastAlign) on the same data.

Two models of Thot (extra `thot`), each trained in both directions and symmetrised by
grow-diag-final-and (Koehn et al., 2005): the HMM (Vogel et al., 1996), started from IBM model 1,
and FastAlign (Dyer et al., 2013). Unlike the translation model they see the test pairs while they
are trained, as aligners of a given text do; gold links are used only to score them. Words are
lower-cased for them, as is usual, so that they have fewer to learn.
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from nmt.config.keys import CONFIDENCE
from nmt.evaluation.alignment import Gold, Link
from nmt.evaluation.link_scores import alignment_scores
from nmt.utils.optional import need
from nmt.utils.progress import Stage

TokenPair = tuple[Sequence[str], Sequence[str]]
ITERATIONS = {"ibm1": 5, "hmm": 5, "fast_align": 5}
KEY = "evaluation.alignment.statistical_aligners=true"


def check_aligners() -> None:
    """Raises InputError where the aligners' package is missing."""
    need("thot.alignment", "thot", KEY)


def statistical_alignment_scores(
    training: Sequence[TokenPair],
    sets: Mapping[str, Sequence[tuple[Sequence[str], Sequence[str], Gold]]],
    *,
    resamples: int,
    confidence: float = CONFIDENCE,
    progress: bool = False,
) -> dict[str, dict[str, Any]]:
    """Alignment error rates of statistical aligners trained on `training` and the sets together.

    Args:
        training: (source words, target words) of each pair.
        sets: (source words, target words, gold links) of each pair, by name of the test set.
        resamples, confidence: of the bootstrap intervals.
        progress: show a progress bar.

    Returns:
        For each set `training_pairs`, and for each aligner (`hmm`, `fast_align`) `sentences`,
        `alignment_error_rate`, `precision` and `recall`, each `score`, `low` and `high`.
    """
    everything = [*training, *((s, t) for pairs in sets.values() for s, t, _ in pairs)]
    steps = 2 * sum(ITERATIONS.values())
    found: dict[str, dict[str, Any]] = {name: {"training_pairs": len(training)} for name in sets}
    with Stage("training statistical aligners", steps, "iteration", shown=progress) as stage:
        for aligner, train in (("hmm", _train_hmm), ("fast_align", _train_fast_align)):
            align = symmetrised(everything, functools.partial(train, done=stage.advance))
            for name, pairs in sets.items():
                made = [(align(s, t), gold, len(t)) for s, t, gold in pairs]
                found[name][aligner] = alignment_scores(made, resamples, confidence)
    return found


def symmetrised(
    pairs: Sequence[TokenPair], train: Callable[[Sequence[TokenPair]], Any]
) -> Callable[[Sequence[str], Sequence[str]], list[Link]]:
    """An aligner made of two, one a direction.

    Args:
        pairs: what both are trained on.
        train: trains a model of the target words given the source words.

    Returns:
        A function from the words of a pair to its links, source word first.
    """
    from thot.alignment import SymmetrizationHeuristic, SymmetrizedAligner

    direct, inverse = train(pairs), train([(target, source) for source, target in pairs])
    both = SymmetrizedAligner(direct, inverse)
    both.heuristic = SymmetrizationHeuristic.GROW_DIAG_FINAL_AND

    def align(source: Sequence[str], target: Sequence[str]) -> list[Link]:
        _, matrix = both.get_best_alignment(_lower(source), _lower(target))
        return [(int(j), int(i)) for j, i in np.argwhere(matrix.to_numpy())]

    return align


def _train_hmm(pairs: Sequence[TokenPair], done: Callable[[], Any]) -> Any:
    from thot.alignment import HmmAlignmentModel, Ibm1AlignmentModel

    ibm1 = _iterate(_filled(Ibm1AlignmentModel(), pairs), ITERATIONS["ibm1"], done)
    return _iterate(HmmAlignmentModel(ibm1), ITERATIONS["hmm"], done)


def _train_fast_align(pairs: Sequence[TokenPair], done: Callable[[], Any]) -> Any:
    from thot.alignment import FastAlignModel

    model = FastAlignModel()
    model.variational_bayes = True
    return _iterate(_filled(model, pairs), ITERATIONS["fast_align"], done)


def _filled(model: Any, pairs: Sequence[TokenPair]) -> Any:
    for source, target in pairs:
        model.add_sentence_pair(_lower(source), _lower(target), 1)
    return model


def _lower(words: Sequence[str]) -> list[str]:
    return [word.lower() for word in words]


def _iterate(model: Any, iterations: int, done: Callable[[], Any]) -> Any:
    model.start_training()
    for _ in range(iterations):
        model.train()
        done()
    model.end_training()
    return model
