"""The probing protocol: which vectors and words are probed, and the chance levels.

N sentences, P positions, C classes of words.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nmt.evaluation.positions import at_positions
from nmt.inference.probing.classifier import LinearProbe, fit_probe
from nmt.inference.probing.vectors import Vectors, source_vectors
from nmt.inference.trained import TrainedModel
from nmt.utils.progress import unseen

FEWEST = 100  # training sentences with a word at a position that is probed
WORDS = 5  # annotations of a training sentence that the probe of annotations learns from

SourceIds = Sequence[Sequence[int]]  # ids of each sentence, without END


@dataclass(frozen=True)
class ProbeSettings:
    """Of the probes: `sentences`, `positions`, `classes`, `epochs` at most, the seed of their draws."""

    sentences: int
    positions: int
    classes: int
    epochs: int
    seed: int


@dataclass(frozen=True)
class Probing:
    """What one kind of vectors was read as.

    Attributes:
        vectors: their kind.
        order: `from_start`, position 1 being the first word, or `from_end`, the last.
        read: by test set and reader (`probe`, `shuffled`, `chance`) a table of
            `nmt.evaluation.positions`, (N, P).
    """

    vectors: str
    order: str
    read: Mapping[str, Mapping[str, np.ndarray]]


def probe_vectors(
    trained: TrainedModel,
    training: SourceIds,
    tests: Mapping[str, SourceIds],
    settings: ProbeSettings,
    done: Callable[[int], object] = unseen,
) -> Iterator[Probing]:
    """Fits probes to the vectors of training sentences, and reads those of each test set.

    Args:
        trained: the model.
        training: sentences that probes learn from.
        tests: sentences they are tested on, by name of the set.
        settings: of the probes.
        done: is given the number of sentences of each batch that is encoded.

    Raises:
        InputError: as `source_vectors`.
    """
    trained.place()
    generator = torch.Generator().manual_seed(settings.seed)
    some = [torch.randperm(len(s), generator=generator)[:WORDS].sort().values for s in training]
    learnt = source_vectors(trained, training, some, done)
    found = {
        name: source_vectors(trained, sources, [torch.arange(len(s)) for s in sources], done)
        for name, sources in tests.items()
    }
    for place, vectors in enumerate(learnt):
        held_out = {name: each[place] for name, each in found.items()}
        for order in ("from_start",) if vectors.of_words else ("from_start", "from_end"):
            task = ReadingTask(training, order == "from_end", settings)
            if vectors.of_words:
                read = task.of_words(vectors, held_out, tests, some)
            else:
                read = task.of_sentences(vectors, held_out, tests)
            yield Probing(vectors.kind, order, read)


class ReadingTask:
    """The words at each position of training sentences, as classes, and how frequent they are.

    A word that is not among the classes is counted, and never read. Positions that fewer than
    `FEWEST` training sentences have are left out.

    Args:
        training: N sentences.
        from_end: whether positions are counted from the last word.
        settings: of the probes.
    """

    def __init__(self, training: SourceIds, from_end: bool, settings: ProbeSettings) -> None:
        self.settings, self.from_end = settings, from_end
        counts = Counter(symbol for sentence in training for symbol in sentence)
        known = [symbol for symbol, _ in counts.most_common(settings.classes)]
        self.classes = len(known)
        self.class_of = np.full(max(counts, default=0) + 1, self.classes)
        self.class_of[known] = np.arange(self.classes)
        words = self.words(training)
        self.positions = int(((words >= 0).sum(0) >= min(FEWEST, len(words))).sum())
        self.training = words[:, : self.positions]  # (N, P)
        seen = np.ones((self.positions, self.classes))
        for position, row in enumerate(seen):
            symbols = self.training[:, position]
            known_here = symbols[(symbols >= 0) & (symbols < self.classes)]
            row += np.bincount(known_here, minlength=self.classes)
        self.prior = np.log(seen / seen.sum(1, keepdims=True))  # (P, C)

    def words(self, sentences: SourceIds) -> np.ndarray:
        """(N, P) the class of the word at each position; C without a class, -1 without a word."""
        symbols = at_positions(sentences, self.settings.positions, from_end=self.from_end)
        classes = self.class_of[np.minimum(symbols, len(self.class_of) - 1)]
        classes[symbols >= len(self.class_of)] = self.classes
        return np.where(symbols < 0, -1, classes)

    def of_sentences(
        self,
        learnt: Vectors,
        tests: Mapping[str, Vectors],
        sources: Mapping[str, SourceIds],
    ) -> dict[str, dict[str, np.ndarray]]:
        """Reads vectors of whole sentences: a probe of its own for each position."""
        read = self._chance(sources)
        prior = torch.tensor(self.prior, dtype=torch.float32, device=learnt.rows.device)
        for position in range(self.positions):
            words = self.training[:, position]
            rows = self._readable(words)
            at = np.full(len(rows), position)
            probes = self._fit(
                learnt.rows[torch.from_numpy(rows)], words[rows], at, prior[position]
            )
            for reader, probe in probes.items():
                for name, vectors in tests.items():
                    truth = self.words(sources[name])[:, position]
                    guessed = probe.read(vectors.rows, prior[position]).cpu().numpy()
                    read[name][reader][:, position] = _hits(guessed, truth)
        return read

    def of_words(
        self,
        learnt: Vectors,
        tests: Mapping[str, Vectors],
        sources: Mapping[str, SourceIds],
        places: Sequence[Tensor],
    ) -> dict[str, dict[str, np.ndarray]]:
        """Reads the annotation of each word: one probe, whose prior alone knows the position.

        Args:
            places: of the training sentences' annotations that `learnt` has.
        """
        read = self._chance(sources)
        prior = torch.tensor(self.prior, dtype=torch.float32, device=learnt.rows.device)
        at = np.concatenate([each.numpy() for each in places])
        sentence = np.repeat(np.arange(len(places)), [len(each) for each in places])
        inside = at < self.positions
        words = np.full(len(at), -1)
        words[inside] = self.training[sentence[inside], at[inside]]
        rows = self._readable(words)
        vectors, words, at = learnt.rows[torch.from_numpy(rows)], words[rows], at[rows]
        probes = self._fit(vectors, words, at, prior[torch.from_numpy(at)])
        for reader, probe in probes.items():
            for name, tested in tests.items():
                truth = self.words(sources[name])[:, : self.positions]
                ends = np.cumsum([len(source) for source in sources[name]])
                for row, (source, end) in enumerate(zip(sources[name], ends, strict=True)):
                    count = min(len(source), self.positions)
                    start = int(end) - len(source)
                    guessed = probe.read(tested.rows[start : start + count], prior[:count])
                    read[name][reader][row, :count] = _hits(
                        guessed.cpu().numpy(), truth[row, :count]
                    )
        return read

    def _readable(self, words: np.ndarray) -> np.ndarray:
        """Where there is a word that has a class."""
        return np.flatnonzero((words >= 0) & (words < self.classes))

    def _fit(
        self, vectors: Tensor, words: np.ndarray, positions: np.ndarray, prior: Tensor
    ) -> dict[str, LinearProbe]:
        """A probe of vectors (N, D), words (N,) at positions (N,), and one of shuffled words."""
        epochs, seed = self.settings.epochs, self.settings.seed
        readers = {"probe": words, "shuffled": _shuffled(words, positions, seed)}
        return {
            reader: fit_probe(
                vectors,
                torch.from_numpy(labels).to(vectors.device),
                prior,
                epochs=epochs,
                seed=seed,
            )
            for reader, labels in readers.items()
        }

    def _chance(self, sources: Mapping[str, SourceIds]) -> dict[str, dict[str, np.ndarray]]:
        """Tables of each test set: that of the most frequent word at a position, others empty."""
        frequent = self.prior.argmax(1)
        found = {}
        for name, sentences in sources.items():
            truth = self.words(sentences)[:, : self.positions]
            empty: Any = np.full(truth.shape, np.nan)
            found[name] = {
                "probe": empty.copy(),
                "shuffled": empty.copy(),
                "chance": _hits(np.broadcast_to(frequent, truth.shape), truth),
            }
        return found


def _hits(guessed: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """1 where a guess is right, 0 where not, NaN where there is no word."""
    return np.where(truth < 0, np.nan, guessed == truth)


def _shuffled(words: np.ndarray, positions: np.ndarray, seed: int) -> np.ndarray:
    """Words that have changed places with others at the same position."""
    generator, shuffled = np.random.default_rng(seed), words.copy()
    for position in np.unique(positions):
        rows = np.flatnonzero(positions == position)
        shuffled[rows] = words[generator.permutation(rows)]
    return shuffled
