"""Word alignments of other systems, read from files for the pairs of a test set."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from nmt.config import TextConfig
from nmt.data.sources.lines import check_file, read_lines
from nmt.data.sources.open import under_root
from nmt.evaluation.alignment import Link, parse_links
from nmt.utils.errors import InputError


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
    skip = text.skip or 0
    stop = skip + text.pairs if text.pairs else None
    if text.grammar:  # of which `pairs` is all that there is
        stop = None
    for system, path in text.links.items():
        name = f"{key}.links.{system}"
        if pairs and not any(pair["alignment"] is not None for pair in pairs):
            raise InputError(f"{name}: there are no gold links to score them against")
        file = check_file(under_root(root, path), name)
        read = list(itertools.islice(read_lines(file), skip, stop))
        if len(read) != lines:
            raise InputError(f"{name}={path}: {len(read)} lines; the test set's text has {lines}")
        for links, pair in zip(found, pairs, strict=True):
            lengths = len(pair["source"]), len(pair["target"])
            where = f"{name}={path}:{skip + pair['line'] + 1}"
            links[system] = parse_links(
                read[pair["line"]], base=text.alignment_base, where=where, lengths=lengths
            ).possible
    return found
