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
from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from typing import Any, ClassVar, Self

import numpy as np
from sacrebleu.metrics import BLEU, CHRF, TER
from sacrebleu.metrics.base import Metric

from nmt.evaluation.scores.base import Score, Sentence, quotient
from nmt.evaluation.scores.bleu import all_statistics, bleu, enough_matches, padded
from nmt.evaluation.scores.ngrams import BLOCK, ReferenceNgrams, characters
from nmt.text.symbols import UNKNOWN_SYMBOL

# sacrebleu's statistics begin with the two lengths, and those of `bleu` end with them.
TO_BLEU, OF_SACREBLEU = [*range(2, 10), 0, 1], [8, 9, *range(8)]
REMEMBERED = 1 << 14  # number of references to cache for other runs on the same test set
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


class NgramScore(TextScore):
    """A score whose n-grams are counted for many sentences at once, which is faster than sacrebleu.

    The statistics equal sacrebleu's. Those of a user's subclass, which may have another metric, come from sacrebleu.
    """

    @abstractmethod
    def count(self, hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> np.ndarray:
        """Returns the statistics (N, F) of N hypotheses, which have one or more references each."""

    def all_statistics(self, records: Sequence[Sentence]) -> Sequence[Sequence[float] | None]:
        if type(self).__module__ != __name__:
            return super().all_statistics(records)
        known = [record for record in records if record.get("raw_reference") is not None]
        rows: list[Sequence[float]] = []
        for at in range(0, len(known), BLOCK):
            part = known[at : at + BLOCK]
            references = [[r["raw_reference"], *r.get("more_raw_references", ())] for r in part]
            rows += self.count(list(map(scored_text, part)), references).tolist()
        found = iter(rows)
        return [None if r.get("raw_reference") is None else next(found) for r in records]


class SacreBleu(NgramScore):
    """BLEU of detokenised text (Post, 2018), with the tokeniser of the language."""

    key = "sacrebleu"
    title = "sacreBLEU"

    def __init__(self, language: str | None = None) -> None:
        super().__init__(language)
        self._words = functools.lru_cache(maxsize=REMEMBERED)(self._split)

    def metric(self) -> BLEU:
        return BLEU(force=True, tokenize=tokenizer_of(self.language))

    def count(self, hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> np.ndarray:
        own = list(map(self._split, hypotheses))
        given = [list(map(self._words, texts)) for texts in references]
        return all_statistics(own, given)[:, OF_SACREBLEU]

    def _split(self, text: str) -> list[str]:
        words: list[str] = self._metric._preprocess_segment(text).split()
        return words

    def combine(self, sums: np.ndarray) -> np.ndarray:
        return bleu(sums[..., TO_BLEU])

    def enough(self, sums: np.ndarray) -> np.ndarray:
        return enough_matches(sums[..., TO_BLEU])


class ChrF(NgramScore):
    """chrF2 (Popović, 2015): F-score of character n-grams.

    The statistics are three counts for each order: n-grams in the hypothesis, in the reference, and in both. If a
    sentence has several references, the one with the highest chrF of the sentence counts.
    """

    key = "chrf"
    title = "chrF"
    slow = True

    def metric(self) -> CHRF:
        return CHRF()

    def count(self, hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> np.ndarray:
        own = characters(hypotheses)
        orders = np.arange(CHRF.CHAR_ORDER)
        tables = []
        for given in map(characters, zip(*padded(references), strict=True)):
            shared = ReferenceNgrams([given], CHRF.CHAR_ORDER).matches(own)
            sizes, wanted = (np.maximum(each.lengths[:, None] - orders, 0) for each in (own, given))
            table = np.stack([np.where(wanted > 0, sizes, 0), wanted, shared], axis=2)
            tables.append(table.reshape(len(table), -1))
        best = np.argmax([self.combine(table) for table in tables], axis=0)
        return np.stack(tables)[best, np.arange(len(best))]

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
