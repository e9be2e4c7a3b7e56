"""`Hypothesis`, the result of a search, and the trellis that a search fills."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True)
class Hypothesis:
    """One translation of a sentence.

    Attributes:
        tokens: ids of the words written; the last is `END` if and only if `finished`.
        score: the sum of log p(y_i | y_<i, x) in nats, divided by len(tokens) ** length_penalty.
        finished: whether `</s>` was written before the search had to stop.
    """

    tokens: list[int]
    score: float
    finished: bool


def normalised(total: float, length: int, length_penalty: float) -> float:
    """A summed log-probability as it is ranked: total / length^p (p = 0: the sum itself).

    `length` counts the symbols that were predicted, `</s>` included.
    """
    return float(total) / length**length_penalty


@dataclass
class Trellis:
    """Every word that any beam has held, each knowing the word before it.

    A node is an int; nodes of one step are added together, so that a whole batch takes a few array
    operations. Node `ROOT` is the empty hypothesis.
    """

    ROOT = -1
    _parents: list[np.ndarray] = field(default_factory=list)
    _words: list[np.ndarray] = field(default_factory=list)
    _starts: list[int] = field(default_factory=lambda: [0])

    def add(self, parents: np.ndarray, words: np.ndarray) -> np.ndarray:
        """Adds a step's nodes (two arrays of one shape) and returns their numbers."""
        start = self._starts[-1]
        self._parents.append(parents.ravel())
        self._words.append(words.ravel())
        self._starts.append(start + parents.size)
        return np.arange(start, start + parents.size).reshape(parents.shape)

    def backtrace(self, node: int) -> list[int]:
        """Words from the first word to `node`."""
        words: list[int] = []
        step = int(np.searchsorted(self._starts, node, side="right")) - 1
        while node != self.ROOT:
            place = node - self._starts[step]
            words.append(int(self._words[step][place]))
            node = int(self._parents[step][place])
            step -= 1
        return words[::-1]
