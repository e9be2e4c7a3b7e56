"""Every registered score of any part of a set, against the library or by hand; and what is chosen."""

import math
import sys

import numpy as np
import pytest
from sacrebleu.metrics import BLEU, CHRF, TER

from nmt.config import EvaluationConfig
from nmt.evaluation.bleu import sentence_statistics
from nmt.evaluation.scores import REGISTERED, Score, choose_scores, modules_of_scores
from nmt.evaluation.summary import keep_statistics
from nmt.utils.errors import InputError

HYPOTHESES = [
    "Le chat est assis.",
    "Un chien court, vite",
    "",
    "l'homme  (grand) dit : « non » !",
    "a",
    "Il pleut sur la ville comme il pleure dans mon cœur",
]
REFERENCES = [
    "Le chat était assis.",
    "Un chien court vite.",
    "Rien",
    "L'homme dit: «non»!",
    "x",
    "Il pleure dans mon cœur comme il pleut sur la ville",
]


def text_records():
    return [
        {"id": n, "detokenised": h, "raw_reference": r}
        for n, (h, r) in enumerate(zip(HYPOTHESES, REFERENCES, strict=True))
    ]


def value(key, records):
    score = REGISTERED[key]
    rows = score.table(records)
    return float(score.combine(rows[~np.isnan(rows[:, 0])].sum(axis=0)))


@pytest.mark.parametrize(
    ("key", "metric"), [("sacrebleu", BLEU(force=True)), ("chrf", CHRF()), ("ter", TER())]
)
@pytest.mark.parametrize("chosen", [range(6), [0, 1], [2], [4], [2, 4], [0, 3, 5], [5]])
def test_of_any_part_of_a_set_sacrebleus_scores_are_its_own(key, metric, chosen):
    records = [text_records()[n] for n in chosen]
    hypotheses = [HYPOTHESES[n] for n in chosen]
    expected = metric.corpus_score(hypotheses, [[REFERENCES[n] for n in chosen]])
    assert value(key, records) == pytest.approx(expected.score, abs=1e-9)
    assert REGISTERED[key].signature == str(metric.get_signature())


def test_random_parts_of_a_larger_set(corpus):
    records = [
        {"detokenised": " ".join(h), "raw_reference": " ".join(r)}
        for h, r in corpus(60, seed=4, longest=14)
    ]
    generator = np.random.default_rng(0)
    for key, metric in (("sacrebleu", BLEU(force=True)), ("chrf", CHRF()), ("ter", TER())):
        table = REGISTERED[key].table(records)
        drawn = generator.integers(60, size=(3, 41))
        found = REGISTERED[key].combine(table[drawn].sum(axis=1))
        for picks, score in zip(drawn, found, strict=True):
            hypotheses = [records[n]["detokenised"] for n in picks]
            references = [records[n]["raw_reference"] for n in picks]
            expected = metric.corpus_score(hypotheses, [references]).score
            assert score == pytest.approx(expected, abs=1e-9)


def test_sentences_without_a_reference_in_its_file_have_no_score_of_text():
    records = [*text_records()[:2], {"detokenised": "x", "raw_reference": None}]
    table = REGISTERED["chrf"].table(records)
    assert table.shape == (3, 18)
    assert np.isnan(table).any(axis=1).tolist() == [False, False, True]
    assert value("chrf", records) == value("chrf", records[:2])


def test_ter_of_an_empty_reference():
    assert REGISTERED["ter"].combine(np.array([[3.0, 0.0], [0.0, 0.0]])).tolist() == [100, 0]


def test_statistics_in_a_record_are_taken_from_there():
    kept = {"detokenised": "x", "raw_reference": "y", "statistics": {"ter": [3, 12]}}
    assert value("ter", [kept]) == 25.0
    assert np.isnan(REGISTERED["ter"].table([text_records()[0]], compute=False)).all()
    assert REGISTERED["ter"].table([kept], compute=False).tolist() == [[3, 12]]


def model_records():
    """Three sentences of 2, 5 and 3 words; the last one has no attention and no gold links."""
    references = [["a", "b"], ["a", "b", "c", "d", "e"], ["a", "b", "c"]]
    hypotheses = [["a"], ["a", "b", "c", "x"], ["b", "c"]]
    records = [
        {"reference": r, "bleu_stats": sentence_statistics(h, r).tolist(), "nll": nll}
        for h, r, nll in zip(hypotheses, references, [4.5, 9.0, 7.5], strict=True)
    ]
    records[0] |= {"attention_entropy": 0.5, "eos_weight": 0.25}
    records[1] |= {"attention_entropy": 1.0, "eos_weight": 0.75}
    records[0]["alignment_counts"] = [2, 2, 1, 2, 2, 3]
    records[1]["alignment_counts"] = [5, 4, 4, 4, 0, 6]
    return records


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("bleu", BLEU(tokenize="none", force=True)),
        ("nll_per_sentence", (4.5 + 9 + 7.5) / 3),
        ("nll_per_word", 21 / (3 + 6 + 4)),
        ("perplexity", math.exp(21 / 13)),
        ("length_ratio", 7 / 10),
        ("brevity_penalty", math.exp(1 - 10 / 7)),
        ("attention_entropy", 0.75),
        ("eos_weight", 0.5),
        ("alignment_error_rate", 1 - (5 + 6) / (7 + 6)),
        ("precision", 6 / 7),
        ("recall", 5 / 6),
        ("eos_share", 2 / 9),
    ],
)
def test_by_hand(key, expected):
    if isinstance(expected, BLEU):
        lines = ["a", "a b c x", "b c"], [["a b", "a b c d e", "a b c"]]
        expected = expected.corpus_score(*lines).score
    assert value(key, model_records()) == pytest.approx(expected)
    score = REGISTERED[key]
    table = score.table(model_records())
    several = np.nan_to_num(table)[None, :2].repeat(4, axis=0).sum(axis=1)
    assert score.combine(several).shape == (4,)


def test_a_perplexity_beyond_every_float_is_undefined():
    assert np.isnan(value("perplexity", [{"nll": 1e6, "reference": ["a"] * 9}]))


CLOSER = (
    *("aer_shift_minus_1", "aer_shift_plus_1", "aer_function", "aer_content", "aer_punctuation"),
    *("unread_words", "repeated_ngrams"),
)


def test_all_are_registered_and_ter_is_off():
    assert list(REGISTERED) == [
        *("bleu", "sacrebleu", "chrf", "ter", "nll_per_sentence", "nll_per_word", "perplexity"),
        *("length_ratio", "brevity_penalty", "attention_entropy", "eos_weight"),
        *("alignment_error_rate", "precision", "recall", "eos_share"),
        *CLOSER,
    ]
    off = {"ter", *CLOSER}
    assert [s.key for s in choose_scores(None)] == [key for key in REGISTERED if key not in off]
    assert [s.key for s in choose_scores(["ter", "chrf"])] == ["bleu", "ter", "chrf"]
    assert [s.key for s in choose_scores([])] == ["bleu"]
    assert [s.key for s in choose_scores(["default", "ter"])][-2:] == ["eos_share", "ter"]


OWN = """
from nmt.evaluation.scores import Score

class ExactMatch(Score):
    key = "exact_match"
    title = "Exact match"
    def statistics(self, record):
        return [record["hypothesis"] == record["reference"], 1]
    def combine(self, sums):
        return 100 * sums[..., 0] / sums[..., 1]

class Taken(ExactMatch):
    key = "chrf"

class Same(ExactMatch):
    pass

class Reserved(ExactMatch):
    key = "by_length"

class NumberKey(ExactMatch):
    key = 3

class NoKey(Score):
    statistics = ExactMatch.statistics
    combine = ExactMatch.combine

class Raises(ExactMatch):
    key = "raises"
    def statistics(self, record):
        return [len(record["hypothesis"]) / 0, 1]

class SlowRaises(Raises):
    slow = True

class SlowToMake(ExactMatch):
    slow = True
    made = 0
    def __init__(self):
        type(self).made += 1

class Words(ExactMatch):
    key = "words"
    def statistics(self, record):
        return record["hypothesis"]

class Single(ExactMatch):
    key = "single"
    def statistics(self, record):
        return 3.0

class OneValue(ExactMatch):
    key = "one_value"
    def combine(self, sums):
        return 1.0

class Ragged(ExactMatch):
    key = "ragged"
    def statistics(self, record):
        return [1.0] * (2 + record["id"] % 3)

class Late(ExactMatch):
    key = "late"
    def statistics(self, record):
        return [1.0 / (record["id"] - 2), 1]

class LateAndSlow(Late):
    slow = True

match = ExactMatch()
number = 3
"""


@pytest.fixture
def own_module(tmp_path, monkeypatch):
    (tmp_path / "own_scores_of_a_test.py").write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)
    yield "own_scores_of_a_test"
    sys.modules.pop("own_scores_of_a_test", None)


def test_a_class_or_an_object_of_ones_own(own_module):
    for name in ("ExactMatch", "match"):
        bleu, own = choose_scores(["bleu", f"{own_module}.{name}"])
        assert isinstance(own, Score)
        assert (bleu.key, own.key) == ("bleu", "exact_match")
    assert own.description() == {
        **{"title": "Exact match", "unit": "", "digits": 2},
        **{"higher_is_better": True, "by_length": True},
    }
    assert modules_of_scores(["chrf", f"{own_module}.match"]) == [own_module]
    assert modules_of_scores(None) == []


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["blue"], "no score 'blue'; there are bleu, sacrebleu, chrf, ter, nll_per_sentence"),
        (["MODULE.Missing"], "MODULE.Missing: module"),
        (["no_such_module.Score"], "no_such_module.Score: No module named 'no_such_module'"),
        (["MODULE.number"], "MODULE.number: not an nmt.evaluation.scores.Score"),
        (["MODULE.NumberKey"], "MODULE.NumberKey: its `key` must be a name"),
        (["MODULE.NoKey"], "MODULE.NoKey: its `key` must be a name"),
        (
            ["MODULE.Raises"],
            "MODULE.Raises: statistics of a made-up sentence: ZeroDivisionError: division by zero",
        ),
        (
            ["MODULE.SlowRaises"],
            "MODULE.SlowRaises: statistics of a made-up sentence: ZeroDivision",
        ),
        (["MODULE.Words"], "MODULE.Words: statistics of a made-up sentence: ValueError: could not"),
        (["MODULE.Single"], "MODULE.Single: statistics of a made-up sentence: its statistics are"),
        (["MODULE.OneValue"], "MODULE.OneValue: combine: values of shape (), not (2,)"),
        (["MODULE.Taken"], "the key 'chrf' is taken"),
        (["MODULE.Reserved"], "the key 'by_length' is taken"),
        (["MODULE.ExactMatch", "MODULE.Same"], "two scores have the key 'exact_match'"),
    ],
)
def test_what_is_no_score_is_refused(own_module, names, message):
    with pytest.raises(InputError) as refusal:
        choose_scores([name.replace("MODULE", own_module) for name in names], "scores")
    assert message.replace("MODULE", own_module) in str(refusal.value)
    assert str(refusal.value).startswith("scores: ")


def test_a_score_of_ones_own_is_made_once(own_module):
    name = f"{own_module}.SlowToMake"
    first, again = (choose_scores([name])[1] for _ in range(2))
    assert first is again
    assert first.made == 1


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("Ragged", "sentence 1: 3 statistics, where other sentences have 2"),
        ("Late", "sentence 2: ZeroDivisionError: float division by zero"),
        ("LateAndSlow", "sentence 2: ZeroDivisionError: float division by zero"),
    ],
)
def test_what_fails_on_a_sentence_names_score_and_sentence(own_module, name, said):
    records = [{"id": number, "hypothesis": ["a"], "reference": ["a"]} for number in range(4)]
    score = choose_scores([f"{own_module}.{name}"])[1]
    with pytest.raises(InputError) as refusal:
        score.table(records)
    assert str(refusal.value) == f"scores: {own_module}.{name}: {said}"
    if score.slow:
        settings = EvaluationConfig(scores=[f"{own_module}.{name}"])
        with pytest.raises(InputError, match="sentence 2: ZeroDivisionError"):
            keep_statistics(records, settings)
