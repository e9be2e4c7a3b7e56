"""Compares each registered score with its library or a known value, and tests the choice of scores."""

import math
import random
import sys
from importlib.util import find_spec

import numpy as np
import pytest
from sacrebleu.metrics import BLEU, CHRF, TER

from nmt.evaluation.scores import REGISTERED, choose_scores
from nmt.evaluation.scores.bleu import sentence_statistics
from nmt.evaluation.scores.text import (
    MATCHES_NOTHING,
    SacreBleu,
    missing_tokenizer,
    scored_text,
    tokenizer_of,
)
from nmt.utils.errors import InputError
from tests.helpers.bleu import corpus

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
RECORDS = [
    {"detokenised": h, "raw_reference": r} for h, r in zip(HYPOTHESES, REFERENCES, strict=True)
]
OF_TEXT = {"sacrebleu": BLEU(force=True), "chrf": CHRF(), "ter": TER()}


def value(key, records):
    score = REGISTERED[key]
    rows = score.table(records)
    return float(score.combine(rows[~np.isnan(rows[:, 0])].sum(axis=0)))


@pytest.mark.parametrize("key", OF_TEXT)
@pytest.mark.parametrize("chosen", [range(6), [0, 1], [2], [4], [2, 4], [0, 3, 5], [5]])
def test_scores_of_subsets_equal_sacrebleu(key, chosen):
    metric = OF_TEXT[key]
    expected = metric.corpus_score(
        [HYPOTHESES[n] for n in chosen], [[REFERENCES[n] for n in chosen]]
    )
    assert value(key, [RECORDS[n] for n in chosen]) == pytest.approx(expected.score, abs=1e-9)
    assert REGISTERED[key].signature == str(metric.get_signature())


@pytest.mark.parametrize("key", OF_TEXT)
def test_scores_of_random_subsets_equal_sacrebleu(key):
    texts = [[" ".join(side) for side in pair] for pair in corpus(60, seed=4, longest=14)]
    table = REGISTERED[key].table({"detokenised": h, "raw_reference": r} for h, r in texts)
    drawn = np.random.default_rng(0).integers(60, size=(3, 41))
    found = REGISTERED[key].combine(table[drawn].sum(axis=1))
    for picks, score in zip(drawn, found, strict=True):
        hypotheses, references = zip(*(texts[n] for n in picks), strict=True)
        expected = OF_TEXT[key].corpus_score(hypotheses, [references]).score
        assert score == pytest.approx(expected, abs=1e-9)


def test_scores_with_several_references_equal_sacrebleu():
    record = RECORDS[0] | {"more_raw_references": [REFERENCES[3]]}
    for key, metric in OF_TEXT.items():
        expected = metric.corpus_score(HYPOTHESES[:1], [REFERENCES[:1], [REFERENCES[3]]])
        score = choose_scores([key], language="en")[-1]
        assert score.combine(score.table([record])[0]) == pytest.approx(expected.score)
        score.count_references([record])
        assert "nrefs:2" in score.signature
        score.count_references([record, RECORDS[1]])
        assert "nrefs:var" in score.signature


def test_bleu_statistics_equal_sacrebleu():
    """Short texts over few words repeat n-grams, and several references have the closest length."""
    generator = random.Random(1)

    def words():
        return generator.choices("abcde", k=generator.randrange(9))

    metric = BLEU(tokenize="none")
    for _ in range(400):
        hypothesis, *references = (words() for _ in range(generator.randrange(2, 5)))
        given = metric._extract_reference_info(list(map(" ".join, references)))
        lengths, counts = np.split(
            metric._compute_segment_statistics(" ".join(hypothesis), given), [2]
        )
        assert sentence_statistics(hypothesis, *references).tolist() == [*counts, *lengths]


@pytest.mark.parametrize("key", ["chrf", "sacrebleu"])
def test_statistics_of_many_sentences_equal_sacrebleu(key, monkeypatch):
    """Short texts over few characters repeat n-grams, within a sentence and in the sentences beside it."""
    for module in ("text", "bleu"):
        monkeypatch.setattr(f"nmt.evaluation.scores.{module}.BLOCK", 150)
    generator = random.Random(1)

    def text():
        return "".join(generator.choices("abc d.中\u2009", k=generator.randrange(25)))

    references = [[text() for _ in range(generator.randrange(1, 4))] for _ in range(400)]
    records = [
        {"detokenised": text(), "raw_reference": first, "more_raw_references": more}
        for first, *more in references
    ]
    metric = OF_TEXT[key]
    for record, of_sentence, found in zip(
        records, references, REGISTERED[key].all_statistics(records), strict=True
    ):
        given = metric._extract_reference_info(list(map(metric._preprocess_segment, of_sentence)))
        own = metric._preprocess_segment(record["detokenised"])
        assert found == metric._compute_segment_statistics(own, given)


def test_statistics_of_a_users_metric_come_from_sacrebleu():
    class LowerCase(SacreBleu):
        key = "lower"

        def metric(self):
            return BLEU(force=True, lowercase=True)

    record = {"detokenised": "A b", "raw_reference": "a B", "hypothesis": ["A", "b"]}
    assert LowerCase().all_statistics([record]) == [[2, 2, 2, 1, 0, 0, 2, 1, 0, 0]]


def test_sentences_without_a_reference_have_no_text_score():
    records = [*RECORDS[:2], {"detokenised": "x", "raw_reference": None}]
    table = REGISTERED["chrf"].table(records)
    assert table.shape == (3, 18)
    assert np.isnan(table).any(axis=1).tolist() == [False, False, True]
    assert value("chrf", records) == value("chrf", records[:2])


def test_ter_of_an_empty_reference():
    assert REGISTERED["ter"].combine(np.array([[3.0, 0.0], [0.0, 0.0]])).tolist() == [100, 0]


def test_stored_statistics_are_used():
    kept = {"detokenised": "x", "raw_reference": "y", "statistics": {"ter": [3, 12]}}
    assert value("ter", [kept]) == 25.0
    assert np.isnan(REGISTERED["ter"].table(RECORDS[:1], compute=False)).all()
    assert REGISTERED["ter"].table([kept], compute=False).tolist() == [[3, 12]]


def model_records():
    """Returns records of three sentences; the last one has no attention and no gold links."""
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


OF_TOKENS = (
    BLEU(tokenize="none", force=True)
    .corpus_score(["a", "a b c x", "b c"], [["a b", "a b c d e", "a b c"]])
    .score
)


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("bleu", OF_TOKENS),
        ("bleu_precisions", OF_TOKENS / math.exp(1 - 10 / 7)),
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
def test_scores_computed_by_hand(key, expected):
    assert value(key, model_records()) == pytest.approx(expected)
    score = REGISTERED[key]
    several = np.nan_to_num(score.table(model_records()))[None, :2].repeat(4, axis=0).sum(axis=1)
    assert score.combine(several).shape == (4,)


def test_perplexity_overflow_is_undefined():
    assert np.isnan(value("perplexity", [{"nll": 1e6, "reference": ["a"] * 9}]))


def test_chosen_scores():
    on = [key for key in REGISTERED if key != "ter"]
    assert [s.key for s in choose_scores(None)] == on
    assert [s.key for s in choose_scores(["ter", "chrf"])] == ["bleu", "ter", "chrf"]
    assert [s.key for s in choose_scores(["default", "ter"])] == [*on, "ter"]


# A `<unk>` of the model counts as one word that matches nothing.
WITH_UNKNOWN = {
    "hypothesis": ["Le", "chat", "<unk>", "dort", "ici", "."],
    "detokenised": "Le chat <unk> dort ici.",
    "raw_reference": "Le chat noir dort ici.",
    "unknown": [2],
}


@pytest.mark.parametrize("key", OF_TEXT)
def test_unk_counts_as_a_wrong_word(key):
    texts = ["Le chat \ue001 dort ici."], [["Le chat noir dort ici."]]
    assert value(key, [WITH_UNKNOWN]) == pytest.approx(OF_TEXT[key].corpus_score(*texts).score)


def test_letters_of_unk_match_nothing():
    assert value("chrf", [WITH_UNKNOWN | {"raw_reference": "< unk > unk <unk>"}]) == 0.0
    assert REGISTERED["sacrebleu"].statistics(WITH_UNKNOWN)[0] == 6
    assert sentence_statistics(["a", None], ["a", "<unk>"]).tolist()[:2] == [1, 0]
    record = {"hypothesis": ["<unk>", "<unk>"], "detokenised": "<unk> <unk>", "unknown": [1]}
    assert scored_text(record) == f"<unk> {MATCHES_NOTHING}"  # only the second is an unknown word


@pytest.mark.parametrize(
    ("language", "tokenize", "text"),
    [
        ("zh", "zh", "今天早上，我喜欢北京的茶。"),
        ("th", "char", "ฉันชอบชาจากปักกิ่ง"),
        ("fr", "13a", "J'aime le thé de Pékin, le matin."),
    ],
)
def test_sacrebleu_tokeniser_follows_the_language(language, tokenize, text):
    score = choose_scores(["sacrebleu"], language=language)[1]
    assert f"tok:{tokenize}|" in score.signature
    assert score.description()["signature"] == score.signature
    record = {"hypothesis": [text], "detokenised": text, "raw_reference": text}
    assert score.combine(score.table([record])[0]) == 100.0
    other = record | {"detokenised": text[2:]}
    expected = BLEU(tokenize=tokenize, force=True).corpus_score([text[2:]], [[text]]).score
    assert score.combine(score.table([other])[0]) == pytest.approx(expected)
    assert "tok:13a" in REGISTERED["sacrebleu"].signature


def test_tokenizer_of_languages_without_spaces():
    installed = find_spec("MeCab") is not None
    assert tokenizer_of("ja") == ("ja-mecab" if installed else "char")
    assert bool(missing_tokenizer("ja")) is not installed
    assert missing_tokenizer("fr") == ""
    ter = choose_scores(["ter"], language="zh")[1]
    record = {"detokenised": "我喜欢茶", "raw_reference": "我喜爱茶", "hypothesis": []}
    assert ter.statistics(record) == [1, 4]


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

match = ExactMatch()
number = 3

class Other:
    def __init__(self):
        raise SystemError("a class that is no score was called")
"""


@pytest.fixture
def own_module(tmp_path, monkeypatch):
    (tmp_path / "own_scores_of_a_test.py").write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)
    yield "own_scores_of_a_test"
    sys.modules.pop("own_scores_of_a_test", None)


@pytest.mark.parametrize("name", ["ExactMatch", "match"])
def test_user_score_class_or_object(own_module, name):
    bleu, own = choose_scores(["bleu", f"{own_module}.{name}"])
    assert (bleu.key, own.key) == ("bleu", "exact_match")
    records = [{"hypothesis": ["a"], "reference": ["a"]}, {"hypothesis": [], "reference": ["a"]}]
    assert own.combine(own.table(records).sum(axis=0)) == 50.0


@pytest.mark.parametrize(
    "name",
    [
        "blue",
        "MODULE.Missing",
        "no_such_module.Score",
        "MODULE.number",
        "MODULE.Other",
        "MODULE.Taken",
    ],
)
def test_refuses_what_is_no_score(own_module, name):
    with pytest.raises(InputError, match=r"^scores: "):
        choose_scores([name.replace("MODULE", own_module)], "scores")
