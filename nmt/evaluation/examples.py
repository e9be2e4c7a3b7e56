"""The sentence pairs of a test set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nmt.evaluation.alignment import Gold


@dataclass(frozen=True)
class Example:
    """A sentence pair of a test set.

    Attributes:
        id: number of the sentence in its set.
        source, target: words, without `</s>`.
        text: the reference as the file has it, for scores of detokenised text.
        gold: its gold alignment, where there is one.
        parts: the sentences that it was joined from, whose translations are cut apart again.
        line: number of its line in the source file, from 1.
    """

    id: int
    source: Sequence[str]
    target: Sequence[str]
    text: str | None = None
    gold: Gold | None = None
    parts: tuple[Example, ...] = ()
    line: int | None = None

    def __add__(self, other: Example) -> Example:
        """This pair followed by another, under this one's id.

        Gold links move with their words. Gold links and text are those of both pairs or None.
        """
        gold = text = None
        if self.gold is not None and other.gold is not None:
            gold = self.gold | other.gold.shifted(len(self.source), len(self.target))
        if self.text is not None and other.text is not None:
            text = f"{self.text} {other.text}"
        source, target = [*self.source, *other.source], [*self.target, *other.target]
        return Example(self.id, source, target, text, gold)
