"""Compares the rows of scores.csv with sacrebleu and known sums, for whole sets and length buckets."""

import functools
import math
import os
import random

import numpy as np
import pytest

from nmt.config.schema import EvaluationConfig
from nmt.evaluation.measured import compute_statistics, keep_statistics, score_set
from nmt.evaluation.scores import REGISTERED
from nmt.evaluation.scores.bleu import sentence_statistics
from nmt.evaluation.scores_csv import score_table
from tests.helpers.bleu import corpus, sacrebleu

EDGES = [10, 25, 40]
Settings = functools.partial(EvaluationConfig, edges=EDGES, resamples=100)


def records_of(pairs, seed=0, unknown=0.5, gold=True):
    generator = random.Random(seed)
    records = []
    for number, (hypothesis, reference) in enumerate(pairs):
        record = {
            "id": number,
            "source": ["s"] * generator.randint(1, 38),
            "reference": reference,
            "raw_reference": " ".join(reference),
            "hypothesis": hypothesis,
            "detokenised": " ".join(hypothesis),
            "no_unk": generator.random() > unknown,
            "nll": generator.uniform(1, 3) * (len(reference) + 1),
            "log_probability": -generator.uniform(1, 30),
            "bleu_stats": sentence_statistics(hypothesis, reference).tolist(),
            "attention_entropy": generator.uniform(0, 2),
            "eos_weight": generator.random(),
        }
        record["length"] = len(record["source"])
        if record["no_unk"]:
            record["hypothesis_no_unk"] = reference[: len(hypothesis)]
            statistics = sentence_statistics(record["hypothesis_no_unk"], reference)
            record["bleu_stats_no_unk"] = statistics.tolist()
        if gold and number % 3 == 0:
            record["alignment_counts"] = [8, 6, 5, 6, generator.randint(0, 2), 9]
        records.append(record)
    return records


def bleu_of(records, key="hypothesis"):
    return sacrebleu([(record[key], record["reference"]) for record in records]).score


def rows_of(records, settings=None, **options):
    """Returns rows by (score, subset, first length of the bucket or None for the whole set)."""
    rows = score_set("mine", records, settings or Settings(), **options)
    assert {row["set"] for row in rows} == {"mine"}
    return {(row["score"], row["subset"], row.get("from")): row for row in rows}


@pytest.fixture
def records():
    return records_of(corpus(70, longest=40))


def test_scores_of_a_whole_set(records):
    rows = rows_of(records)
    bleu = rows["bleu", "all", None]
    assert bleu["value"] == pytest.approx(bleu_of(records), abs=1e-9)
    assert bleu["low"] < bleu["value"] < bleu["high"]
    assert (bleu["sentences"], bleu["interval"]) == (70, "sentences")
    free = [record for record in records if record["no_unk"]]
    no_unk = rows["bleu", "no_unk", None]
    assert no_unk["sentences"] == len(free) > 20
    assert no_unk["value"] == pytest.approx(bleu_of(free, "hypothesis_no_unk"), abs=1e-9)
    words = sum(len(record["reference"]) + 1 for record in records)
    nll = sum(record["nll"] for record in records) / words
    assert rows["perplexity", "all", None]["value"] == pytest.approx(math.exp(nll))
    recall = rows["recall", "all", None]
    assert (recall["value"], recall["sentences"]) == (pytest.approx(5 / 6), 24)
    keys = list(dict.fromkeys(score for score, _, _ in rows))
    assert keys == [key for key, score in REGISTERED.items() if score.default]


def test_scores_by_length(records):
    rows = rows_of(records)
    found = [row for (key, subset, first), row in rows.items() if (key, subset) == ("bleu", "all")]
    # No source has more than 38 words, so there is no bucket "41+".
    assert [(r["from"], r["to"]) for r in found[1:]] == [(1, 10), (11, 25), (26, 40)]
    assert sum(row["sentences"] for row in found[1:]) == 70
    inside = [record for record in records if 11 <= record["length"] <= 25]
    free = [record for record in inside if record["no_unk"]]
    assert rows["bleu", "all", 11]["value"] == pytest.approx(bleu_of(inside), abs=1e-9)
    expected = bleu_of(free, "hypothesis_no_unk")
    assert rows["bleu", "no_unk", 11]["value"] == pytest.approx(expected, abs=1e-9)
    entropies = [record["attention_entropy"] for record in inside]
    assert rows["attention_entropy", "all", 11]["value"] == pytest.approx(np.mean(entropies))
    assert ("perplexity", "all", 11) not in rows


@pytest.mark.parametrize("key", ["bleu", "chrf", "nll_per_word", "recall"])
def test_bucket_score_equals_that_of_its_sentences(records, key):
    settings = Settings(scores=[key], edges=[25])
    rows = rows_of(records, settings)
    for first, inside in (
        (1, [record for record in records if record["length"] <= 25]),
        (26, [record for record in records if record["length"] > 25]),
    ):
        alone = rows_of(inside, settings)[key, "all", None]
        found = rows[key, "all", first]
        columns = ("value", "low", "high", "sentences")
        assert [found[c] for c in columns] == pytest.approx([alone[c] for c in columns])
        assert found["low"] <= found["value"] <= found["high"]


def test_stored_statistics_are_computed_once(records, monkeypatch):
    settings = Settings(scores=["chrf", "sacrebleu"])
    keep_statistics(records, settings, language="zh")
    expected = rows_of(records, settings, language="zh")
    assert {len(record["statistics"]["chrf"]) for record in records} == {18}
    monkeypatch.setattr(type(REGISTERED["chrf"]), "statistics", lambda *_: 1 / 0)
    assert rows_of(records, settings) == expected


def test_statistics_are_the_same_in_processes(records, monkeypatch, caplog):
    """Statistics that are known are not computed again."""
    caplog.set_level("INFO")
    monkeypatch.setattr("nmt.utils.processes.shared_cores", lambda: 2)
    monkeypatch.setattr("nmt.utils.processes.FEWEST_SENTENCES", 1)
    score = REGISTERED["chrf"]
    expected = score.table(records)
    compute_statistics({"mine": records[:21], "other": records[21:]}, score, shown=True)
    stored = [record["statistics"]["chrf"] for record in records]
    np.testing.assert_array_equal(stored, expected)
    assert f"chrF of 2 systems: {len(records)} sentences" in caplog.text
    caplog.clear()
    compute_statistics({"mine": records}, score, shown=True)
    assert not caplog.text


def test_user_scores_run_in_this_process(records, monkeypatch):
    """A score of a user may need threads (such as those of torch), which a forked process does not have."""
    monkeypatch.setattr("nmt.utils.processes.shared_cores", lambda: 2)
    monkeypatch.setattr("nmt.utils.processes.FEWEST_SENTENCES", 1)

    class Own(type(REGISTERED["chrf"])):
        key = "own"

        def statistics(self, record):
            return [os.getpid()]

    compute_statistics({"mine": records}, Own())
    assert {record["statistics"]["own"][0] for record in records} == {os.getpid()}


def test_scores_that_do_not_apply_are_absent():
    records = records_of(corpus(12), unknown=1.0, gold=False)
    for record in records:
        record |= {"no_unk": None}
        for key in ("nll", "log_probability", "attention_entropy", "eos_weight", "raw_reference"):
            del record[key]
    rows = rows_of(records, Settings(resamples=0))
    assert {score for score, _, _ in rows} == {
        "bleu",
        "length_ratio",
        "brevity_penalty",
        "bleu_precisions",
    }
    assert {subset for _, subset, _ in rows} == {"all"}
    assert all(row["low"] is row["high"] is None for row in rows.values())
    assert {row["interval"] for row in rows.values()} == {""}
    assert score_table(rows.values())["low"].isna().all()


def test_order_has_no_effect_and_sentences_count_once(records):
    del records[8:]  # TER takes long
    settings = Settings(scores=["ter", "recall"])
    expected = rows_of(records, settings)
    assert {score for score, _, _ in expected} == {"bleu", "ter", "recall"}
    random.Random(3).shuffle(records)
    assert rows_of(records, settings) == expected
    with pytest.raises(ValueError, match="sentence 5 occurs twice"):
        rows_of([*records, *[row for row in records if row["id"] == 5]])


def test_one_sentence_has_no_interval(records):
    row = rows_of(records[:1])["bleu", "all", None]
    assert (row["sentences"], row["low"], row["interval"]) == (1, None, "")
