"""How well unread words tell what a translation leaves out: omissions planted in the built-in corpus.

    python -m benchmarks.omissions FILE [--pairs 200]

Words that stand side by side are cut out of the reference of each pair, which a model of the
built-in corpus then force-decodes. To be found are the source words all of whose gold links are to
words that were cut out. Beside the attention mass of `nmt.evaluation.coverage` stands the plain sum
of the weights (the coverage of Tu et al., 2016).
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from nmt.config.validation import load
from nmt.evaluation.alignment import Link
from nmt.evaluation.coverage import attention_mass
from nmt.grammar import draw
from nmt.inference.force_decoding import expected_words, force_decode_pairs, weights_between_words
from nmt.inference.trained import TrainedModel, from_checkpoints, read_members

SPANS = (1, 2, 4, 8)  # words that are cut out
SEED = 1  # of the corpus, and of where is cut


@dataclass(frozen=True)
class Cut:
    """A pair whose target has lost some words.

    Attributes:
        source, whole, target: words; `target` is what is left of `whole`.
        start: first word of `whole` that is cut out.
        linked: source words with a gold link.
        lost: those of them whose links are all to words that were cut out.
    """

    source: list[str]
    whole: list[str]
    target: list[str]
    start: int
    linked: set[int]
    lost: set[int]


def cuts(pairs: int, span: int) -> Iterator[Cut]:
    """Test pairs of the built-in corpus, each cut from a word on that is linked with one word alone."""
    generator = np.random.default_rng(SEED)
    for number in range(pairs):
        pair = draw(SEED, "test", number)
        links: list[Link] = [*pair.sure, *pair.possible]
        alone = [
            i
            for j, i in links
            if sum(j == other for other, _ in links) == 1
            and sum(i == other for _, other in links) == 1
        ]
        if not alone:
            continue
        start = alone[generator.integers(len(alone))]
        end = start + span
        whole, linked = list(pair.target), {j for j, _ in links}
        kept = {j for j, i in links if not start <= i < end}
        left = whole[:start] + whole[end:]
        yield Cut(list(pair.source), whole, left, start, linked, linked - kept)


def masses(
    trained: TrainedModel, pairs: Sequence[tuple[list[str], list[str]]]
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Attention mass, and plain coverage, of the source words of each pair."""
    codec, found, plain = trained.codec, [], []
    decodings = force_decode_pairs(trained, pairs, runners_up=1)
    for (source, _), decoding in zip(pairs, decodings, strict=True):
        assert decoding.weights is not None
        between = weights_between_words(decoding.weights, codec, source, decoding.ids)
        found.append(attention_mass(between, expected_words(codec, decoding)))
        plain.append(between[:-1, :-1].sum(axis=0))
    return found, plain


def rates(
    whole: Sequence[np.ndarray], left: Sequence[np.ndarray], planted: Sequence[Cut], unread: float
) -> tuple[float, float, float]:
    """Shares, each of linked source words.

    Args:
        whole, left: attention of the source words of each pair, whole and cut.

    Returns:
        Of those of whole references the share that is unread; recall and precision of the words
        that were cut out.
    """
    alarms = [mass[sorted(cut.linked)] < unread for mass, cut in zip(whole, planted, strict=True)]
    flagged = hits = 0
    for mass, cut in zip(left, planted, strict=True):
        low = set(np.flatnonzero(mass < unread).tolist()) & cut.linked
        flagged, hits = flagged + len(low), hits + len(low & cut.lost)
    lost = sum(len(cut.lost) for cut in planted)
    return float(np.concatenate(alarms).mean()), hits / lost, hits / max(1, flagged)


def main() -> None:
    """Prints a row for each number of words, in Markdown."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("checkpoint")
    parser.add_argument("--pairs", type=int, default=200)
    arguments = parser.parse_args()
    members = read_members(arguments.checkpoint)
    config = load(members[0].config.copy(), training=False)
    config.trainer.threads = 1
    trained = from_checkpoints(members, config)
    if not members[0].config.model.alignment:
        raise SystemExit(f"{arguments.checkpoint}: {config.model.title} has no attention")
    print(
        "| words cut out | unread of whole references | found | precision "
        "| coverage alone: unread | found | precision |"
    )
    print("|---:|---:|---:|---:|---:|---:|---:|")
    for span in SPANS:
        planted = list(cuts(arguments.pairs, span))
        whole = masses(trained, [(cut.source, cut.whole) for cut in planted])
        left = masses(trained, [(cut.source, cut.target) for cut in planted])
        unread = config.evaluation.alignment.unread
        shares = [rates(a, b, planted, unread) for a, b in zip(whole, left, strict=True)]
        cells = [f"{100 * share:.0f}" for of in shares for share in of]
        print(f"| {span} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
