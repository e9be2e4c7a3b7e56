"""Links that no attention has made, scored against gold links: of files, and of two models."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from nmt.config import TextConfig
from nmt.data.sources.lines import check_file, read_lines
from nmt.data.sources.open import under_root
from nmt.evaluation.alignment import Gold, Link, link_counts, parse_links
from nmt.evaluation.resampling import scored
from nmt.evaluation.scores import REGISTERED
from nmt.utils.errors import InputError


def alignment_scores(
    pairs: Iterable[tuple[Iterable[Link], Gold, int]], resamples: int, confidence: float
) -> dict[str, Any]:
    """`sentences`, and AER, precision and recall, each `score`, `low` and `high`.

    Args:
        pairs: links, gold links and number of target words of each sentence.
        resamples, confidence: of the bootstrap intervals.
    """
    counts = [link_counts(links, gold, words=words) for links, gold, words in pairs]
    rows = np.array(counts, np.int64)
    keys = ("alignment_error_rate", "precision", "recall")
    return {"sentences": len(rows)} | {
        key: scored(rows, REGISTERED[key].combine, resamples, confidence) for key in keys
    }


def read_links(
    text: TextConfig, root: str | None, key: str, pairs: Sequence[dict[str, Any]], lines: int
) -> list[dict[str, frozenset[Link]]]:
    """The links of `links.<system>` for each prepared pair, by system.

    Args:
        text: section of the configuration that names the files.
        root: `data.root`.
        key: name of that section, for messages.
        pairs: of a split (`nmt.data.splits`), whose `line` counts in the file.
        lines: of the text that the pairs are of, those of pairs that it leaves out included.

    Raises:
        InputError: where a file cannot be read, has not as many lines as the text (of which those
            behind `pairs` are not read), or has what is no link of the pair; and where the set has
            no gold links.
    """
    found: list[dict[str, frozenset[Link]]] = [{} for _ in pairs]
    limit = None if text.grammar else text.pairs  # of a grammar `pairs` is all that there is
    for system, path in text.links.items():
        name = f"{key}.links.{system}"
        if pairs and not any(pair["alignment"] is not None for pair in pairs):
            raise InputError(f"{name}: there are no gold links to score them against")
        file = check_file(under_root(root, path), name)
        read = list(itertools.islice(read_lines(file), limit))
        if len(read) != lines:
            raise InputError(f"{name}={path}: {len(read)} lines; the test set's text has {lines}")
        for links, pair in zip(found, pairs, strict=True):
            lengths = len(pair["source"]), len(pair["target"])
            where = f"{name}={path}:{pair['line'] + 1}"
            links[system] = parse_links(
                read[pair["line"]], base=text.alignment_base, where=where, lengths=lengths
            ).possible
    return found
