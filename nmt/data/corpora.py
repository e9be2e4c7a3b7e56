"""Where parallel text comes from: files, published data sets, or the built-in grammar.

Each is a `Corpus` that is read row by row; nothing here holds one in memory.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass

from nmt.config import DataConfig, GrammarConfig, TextConfig
from nmt.data.corpus import PART, Corpus, LineAligned, Row, content, digest
from nmt.data.lines import check_file
from nmt.data.published import from_hub, from_sacrebleu
from nmt.errors import Refusal


def open_corpus(text: TextConfig, data: DataConfig, key: str, split: str) -> Corpus:
    """The corpus that a section of the configuration describes.

    Args:
        text: the section.
        data: the whole description of the text, for languages and grammar.
        key: name of the section, such as `data.test.mine`, for messages.
        split: `train`, `valid` or `test`: the split of the grammar that is drawn from.

    Raises:
        Refusal: where the section names no text, two of them, or one that cannot be had.
    """
    ways = [way for way in ("source", "hub", "sacrebleu", "grammar") if getattr(text, way)]
    if not ways:
        raise Refusal(
            f"{key}.source: missing; name line-aligned files ({key}.source, {key}.target)"
            " or choose another data=…"
        )
    if len(ways) > 1:
        raise Refusal(f"{key}: both {ways[0]} and {ways[1]} are given; one of them says all")
    if text.alignment and ways[0] != "source":
        raise Refusal(f"{key}.alignment: only for text from files, not with {key}.{ways[0]}")
    if ways[0] == "source":
        return _from_files(text, key)
    if ways[0] == "hub":
        return from_hub(text, data, key)
    if ways[0] == "sacrebleu":
        return from_sacrebleu(text, data, key)
    return _from_grammar(text, data.grammar, key, split)


def _from_files(text: TextConfig, key: str) -> Corpus:
    for side in ("source", "target"):
        if not getattr(text, side):
            raise Refusal(f"{key}.{side}: missing; name the file of the other side's translations")
    if text.alignment and not text.tokenised:
        raise Refusal(
            f"{key}.alignment numbers the words of tokenised files;"
            f" give such files and {key}.tokenised=true"
        )
    named = [
        (side, value)
        for side in ("source", "target", "alignment")
        if (value := getattr(text, side))
    ]
    paths = tuple(check_file(path, f"{key}.{side}") for side, path in named)
    identity = digest("files", [content(path) for path in paths], text.tokenised, text.pairs)
    return Corpus(key, identity, text.tokenised, (LineAligned(paths, text.pairs),))


@dataclass(frozen=True)
class _Draws:
    seed: int
    split: str
    edges: tuple[int, ...] | None
    mean_length: float
    max_length: int
    start: int
    stop: int

    def __iter__(self) -> Iterator[Row]:
        from nmt.data import grammar

        draw = functools.partial(grammar.draw, self.seed, self.split, mean_length=self.mean_length)
        if self.edges is not None:
            draw = functools.partial(
                grammar.draw_by_length, self.seed, self.split, edges=list(self.edges)
            )
        for number in range(self.start, self.stop):
            pair = draw(k=number, max_length=self.max_length)
            links = " ".join(f"{i}-{j}" for i, j in pair.alignment)
            yield Row(" ".join(pair.source), " ".join(pair.target), links)


def _from_grammar(text: TextConfig, grammar: GrammarConfig, key: str, split: str) -> Corpus:
    from nmt.data.grammar import VERSION

    if text.pairs is None:
        raise Refusal(f"{key}.pairs: missing; say how many pairs are drawn from the grammar")
    edges = tuple(grammar.edges) if text.grammar == "by_length" else None
    settings = (grammar.seed, split, edges, grammar.mean_length, grammar.max_length)
    identity = digest("grammar", VERSION, settings, text.pairs)
    parts = tuple(
        _Draws(*settings, start, min(start + PART, text.pairs))
        for start in range(0, text.pairs, PART)
    )
    return Corpus(key, identity, True, parts)
