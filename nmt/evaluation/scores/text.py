"""sacreBLEU, chrF and TER of detokenised text, computed from sacrebleu's sentence statistics.

This module calls three undocumented methods of sacrebleu: `_preprocess_segment`, `_extract_reference_info`
and `_compute_segment_statistics`.

The symbol `<unk>` in a hypothesis is replaced by a word that matches nothing. Otherwise, sacrebleu's
tokenisers would split `<unk>` into three words, and chrF would compare its letters.
"""

from __future__ import annotations

import functools
import itertools
import re
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from importlib.util import find_spec
from typing import Any, ClassVar, Self

import numpy as np
from sacrebleu.metrics import BLEU, CHRF, TER
from sacrebleu.metrics.base import Metric

from nmt.evaluation.scores.base import Score, Sentence, quotient
from nmt.evaluation.scores.bleu import bleu, enough_matches
from nmt.text.symbols import UNKNOWN_SYMBOL

# Indices that move the two lengths of sacrebleu's statistics from the start to the end, as `bleu` expects.
SACREBLEU_ORDER = [*range(2, 10), 0, 1]
REMEMBERED = 1 << 14  # number of references to cache for other runs on the same test set
BLOCK = 500  # sentences whose characters chrF compares at once, which limits memory
MULTIPLIER = np.uint64(
    0x9E3779B97F4A7C15
)  # odd, with irregular bits, so that hashes of n-grams differ
MATCHES_NOTHING = "\ue000"  # private-use character, which no tokeniser splits and no text contains

# language -> sacrebleu's tokeniser, and the Python package that it needs
MECAB = {"ja": ("ja-mecab", "MeCab"), "ko": ("ko-mecab", "mecab_ko")}
CHARACTERS = frozenset(["ja", "ko", "th", "lo", "km", "my", "bo"])


def tokenizer_of(language: str | None) -> str:
    """Returns the name of sacrebleu's tokeniser for a target language.

    For Japanese and Korean, the tokeniser is `char` if MeCab is not installed.

    >>> tokenizer_of("fr"), tokenizer_of("zh"), tokenizer_of("th")
    ('13a', 'zh', 'char')
    """
    if language == "zh":
        return "zh"
    if language in MECAB and find_spec(MECAB[language][1]):
        return MECAB[language][0]
    return "char" if language in CHARACTERS else "13a"


def missing_tokenizer(language: str | None) -> str:
    """Returns a message if the package of a language's tokeniser is missing, else an empty string."""
    if language not in MECAB or tokenizer_of(language) == MECAB[language][0]:
        return ""
    return (
        f"sacreBLEU splits {language} into characters, since {MECAB[language][1]} is not installed: "
        f"pip install 'sacrebleu[{language}]'."
    )


class TextScore(Score):
    """A metric of sacrebleu for a target language; sentences without a raw reference have no score."""

    unit = "points"
    best: ClassVar[float | None] = 100.0
    worst: ClassVar[float | None] = 0.0

    def __init__(self, language: str | None = None) -> None:
        self.language = language
        self._reference = functools.lru_cache(maxsize=REMEMBERED)(self._count)

    @abstractmethod
    def metric(self) -> Metric:
        """Returns sacrebleu's metric."""

    def for_language(self, language: str | None) -> Self:
        return self if language == self.language else type(self)(language)

    @functools.cached_property
    def _metric(self) -> Metric:
        metric = self.metric()
        metric.num_refs = 1  # the signature needs this; `count_references` changes it
        return metric

    def count_references(self, records: Iterable[Sentence]) -> None:
        """Writes the number of references per sentence into the signature; `var` if it varies."""
        counts = {1 + len(record.get("more_raw_references", ())) for record in records}
        self._metric.num_refs = counts.pop() if len(counts) == 1 else -1

    def _count(self, *references: str) -> dict[str, Any]:
        segments = [self._metric._preprocess_segment(reference) for reference in references]
        return self._metric._extract_reference_info(segments)

    def statistics(self, record: Sentence) -> Sequence[float] | None:
        reference = record.get("raw_reference")
        if reference is None:
            return None
        hypothesis = self._metric._preprocess_segment(scored_text(record))
        statistics: list[float] = self._metric._compute_segment_statistics(
            hypothesis, self._reference(reference, *record.get("more_raw_references", []))
        )
        return statistics

    @property
    def signature(self) -> str:
        return str(self._metric.get_signature())


def scored_text(record: Sentence) -> str:
    """Returns the detokenised hypothesis with each `<unk>` symbol replaced by `MATCHES_NOTHING`.

    The key `unknown` of a record has the positions of the symbols. Other words that are spelt `<unk>` are
    not replaced.

    >>> record = {"hypothesis": ["a", "<unk>"], "detokenised": "a <unk>", "unknown": [1]}
    >>> scored_text(record) == f"a {MATCHES_NOTHING}"
    True
    """
    text: str = record["detokenised"]
    unknown = set(record.get("unknown") or ())
    if not unknown:
        return text
    indices = [index for index, word in enumerate(record["hypothesis"]) if word == UNKNOWN_SYMBOL]
    is_symbol = itertools.chain((index in unknown for index in indices), itertools.repeat(True))
    return re.sub(
        re.escape(UNKNOWN_SYMBOL),
        lambda match: MATCHES_NOTHING if next(is_symbol) else match[0],
        text,
    )


class SacreBleu(TextScore):
    """BLEU of detokenised text (Post, 2018), with the tokeniser of the language."""

    key = "sacrebleu"
    title = "sacreBLEU"

    def metric(self) -> BLEU:
        return BLEU(force=True, tokenize=tokenizer_of(self.language))

    def combine(self, sums: np.ndarray) -> np.ndarray:
        return bleu(sums[..., SACREBLEU_ORDER])

    def enough(self, sums: np.ndarray) -> np.ndarray:
        return enough_matches(sums[..., SACREBLEU_ORDER])


class ChrF(TextScore):
    """chrF2 (Popović, 2015): F-score of character n-grams.

    The statistics are three counts for each order: n-grams in the hypothesis, in the reference, and in both. They
    equal sacrebleu's, but are counted for many sentences at once, which takes a fifth of the time. If a sentence
    has several references, the one with the highest chrF of the sentence counts.
    """

    key = "chrf"
    title = "chrF"
    slow = True

    def metric(self) -> CHRF:
        return CHRF()

    def statistics(self, record: Sentence) -> Sequence[float] | None:
        return self._count_all([record])[0]

    def all_statistics(self, records: Sequence[Sentence]) -> Sequence[Sequence[float] | None]:
        if type(self).statistics is not ChrF.statistics:  # a user's subclass has its own
            return super().all_statistics(records)
        parts = (records[at : at + BLOCK] for at in range(0, len(records), BLOCK))
        return [row for part in parts for row in self._count_all(part)]

    def _count_all(self, records: Sequence[Sentence]) -> Sequence[Sequence[float] | None]:
        known = [record for record in records if record.get("raw_reference") is not None]
        references = [[r["raw_reference"], *r.get("more_raw_references", ())] for r in known]
        hypotheses = [scored_text(record) for record in known]
        tables = [
            _shared_ngrams(hypotheses, [each[min(n, len(each) - 1)] for each in references])
            for n in range(max(map(len, references), default=0))
        ]
        if not tables:
            return [None] * len(records)
        best = np.argmax([self.combine(table) for table in tables], axis=0)
        rows = iter(np.stack(tables)[best, np.arange(len(known))].tolist())
        return [None if r.get("raw_reference") is None else next(rows) for r in records]

    def combine(self, sums: np.ndarray) -> np.ndarray:
        hypothesis, reference, shared = sums[..., 0::3], sums[..., 1::3], sums[..., 2::3]
        both = (hypothesis > 0) & (reference > 0)  # other orders are ignored
        orders = both.sum(axis=-1)
        precision = np.where(both, quotient(shared, hypothesis), 0.0)
        recall = np.where(both, quotient(shared, reference), 0.0)
        p = precision.sum(axis=-1) / np.maximum(orders, 1)
        r = recall.sum(axis=-1) / np.maximum(orders, 1)
        weight = CHRF.BETA**2
        score = 100 * np.nan_to_num(quotient((1 + weight) * p * r, weight * p + r), nan=0.0)
        return np.minimum(score, 100.0)


def _shared_ngrams(hypotheses: Sequence[str], references: Sequence[str]) -> np.ndarray:
    """Counts the character n-grams of N sentences: (N, 18), in the order of the statistics of `ChrF`."""
    table = np.zeros((len(hypotheses), CHRF.CHAR_ORDER, 3), dtype=np.int64)
    shift = np.uint64(64 - len(hypotheses).bit_length())
    counted = zip(_ngrams(hypotheses, shift), _ngrams(references, shift), strict=True)
    for order, ((own, counts, sizes), (given, limits, wanted)) in enumerate(counted):
        table[:, order, 0] = np.where(wanted > 0, sizes, 0)
        table[:, order, 1] = wanted
        if len(given):
            places = np.minimum(np.searchsorted(given, own), len(given) - 1)
            found = given[places] == own
            shared = np.minimum(counts, limits[places])[found]
            sentence = (own[found] >> shift).astype(np.int64)
            table[:, order, 2] = np.bincount(sentence, shared, len(hypotheses))
    return table.reshape(len(hypotheses), -1)


def _ngrams(
    texts: Sequence[str], shift: np.uint64
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Yields, for each order, the distinct n-grams in N texts, how often each occurs, and the number in each text (N,).

    An n-gram is a number: in the upper bits, from bit `shift`, the index of its text; in the others, a hash.
    """
    dense = ["".join(text.split()) for text in texts]
    lengths = np.array(list(map(len, dense)))
    characters = np.frombuffer("".join(dense).encode("utf-32-le", "surrogatepass"), dtype="<u4")
    sentence = np.repeat(np.arange(len(texts), dtype=np.uint64), lengths)
    hashes = np.zeros(len(characters), dtype=np.uint64)
    for order in range(CHRF.CHAR_ORDER):
        first = sentence[: max(len(characters) - order, 0)]
        hashes = (hashes[: len(first)] + characters[order:] + np.uint64(1)) * MULTIPLIER
        hashes ^= hashes >> np.uint64(32)
        inside = first == sentence[order:]
        grams = (first << shift) | (hashes >> (np.uint64(64) - shift))
        yield *np.unique(grams[inside], return_counts=True), np.maximum(lengths - order, 0)


class Ter(TextScore):
    """TER (Snover et al., 2006): edits, including shifts of phrases, per word of the reference.

    The statistics are the numbers of edits and of reference words. In Chinese and Japanese, each character
    is a word. TER is slow on long, bad hypotheses, so it is off by default.
    """

    key = "ter"
    title = "TER"
    higher_is_better = False
    best = 0.0
    worst = None
    default = False
    slow = True

    def metric(self) -> TER:
        asian = self.language in ("zh", "ja")
        return TER(normalized=asian, asian_support=asian)

    def combine(self, sums: np.ndarray) -> np.ndarray:
        edits, words = sums[..., 0], sums[..., 1]
        without_words = np.where(edits > 0, 1.0, 0.0)
        return 100 * np.where(words > 0, edits / np.where(words > 0, words, 1), without_words)
