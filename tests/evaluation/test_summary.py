import json
import math
import random
import time
from dataclasses import dataclass, field

import numpy as np
import pytest
from sacrebleu.metrics import BLEU

from nmt.evaluation.bleu import sentence_statistics
from nmt.evaluation.results import as_json, bucket_score, score_of
from nmt.evaluation.scores import REGISTERED
from nmt.evaluation.summary import keep_statistics, summarise


@dataclass
class Settings:
    edges: list[int] = field(default_factory=lambda: [10, 25, 40])
    bucket_by: str = "source"
    resamples: int = 100
    confidence: float = 0.95
    scores: list[str] | None = None


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
            "score": -generator.uniform(1, 30),
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


def sacrebleu(records, key="hypothesis"):
    return (
        BLEU(tokenize="none", force=True)
        .corpus_score(
            [" ".join(record[key]) for record in records],
            [[" ".join(record["reference"]) for record in records]],
        )
        .score
    )


@pytest.fixture
def records(corpus):
    return records_of(corpus(70, longest=40))


def test_whole_set(records):
    scores = summarise(records, Settings(), search={"beam_size": 12})
    assert scores["pairs"] == 70
    assert scores["search"] == {"beam_size": 12}
    whole = scores["bleu"]["all"]
    assert whole["score"] == pytest.approx(sacrebleu(records), abs=1e-9)
    assert whole["low"] < whole["score"] < whole["high"]
    free = [record for record in records if record["no_unk"]]
    assert scores["bleu"]["no_unk"]["sentences"] == len(free) > 20
    assert scores["bleu"]["no_unk"]["score"] == pytest.approx(
        sacrebleu(free, "hypothesis_no_unk"), abs=1e-9
    )
    nll = sum(record["nll"] for record in records)
    words = sum(len(record["reference"]) + 1 for record in records)
    assert scores["nll_per_sentence"]["score"] == pytest.approx(nll / 70)
    assert scores["perplexity"]["score"] == pytest.approx(math.exp(nll / words))
    interval = (scores["nll_per_word"][end] for end in ("low", "high"))
    assert [scores["perplexity"][end] for end in ("low", "high")] == pytest.approx(
        list(map(math.exp, interval)),
        rel=1e-3,  # quantiles lie between two resamples
    )
    hypothesis = sum(len(record["hypothesis"]) for record in records)
    ratio = hypothesis / (words - 70)
    assert scores["length_ratio"]["score"] == pytest.approx(ratio)
    assert scores["brevity_penalty"]["score"] == pytest.approx(math.exp(1 - 1 / ratio))
    assert "tok:13a" in scores["sacrebleu"]["signature"]
    assert scores["chrf"]["low"] < scores["chrf"]["score"] < scores["chrf"]["high"]
    assert list(scores) == [
        *("pairs", "search", "bucket_by", "confidence", "bleu", "sacrebleu", "chrf"),
        *("nll_per_sentence", "nll_per_word", "perplexity", "length_ratio", "brevity_penalty"),
        *("attention_entropy", "eos_weight", "alignment", "by_length"),
    ]


def test_by_unknown_words(records):
    assert "by_unknown_words" not in summarise(records, Settings())  # not known of these
    for number, record in enumerate(records):
        record["unknown_words"] = [number % 2, number % 7 // 2]
    records[0]["unknown_words"] = None
    rows = summarise(records, Settings())["by_unknown_words"]
    assert [(row["from"], row["to"]) for row in rows] == [
        *((number, number) for number in range(4)),
        (4, None),
    ]
    assert sum(row["sentences"] for row in rows) == len(records) - 1
    two = [record for record in records[1:] if sum(record["unknown_words"]) == 2]
    assert rows[2]["sentences"] == len(two) > 5
    assert rows[2]["score"] == pytest.approx(sacrebleu(two), abs=1e-9)
    most = [record for record in records[1:] if sum(record["unknown_words"]) >= 4]
    assert rows[4]["score"] == pytest.approx(sacrebleu(most), abs=1e-9)
    few = [{**record, "unknown_words": [0, 3]} for record in records]
    (row,) = summarise(few, Settings())["by_unknown_words"]
    assert (row["from"], row["sentences"]) == (3, 70)


def test_by_length(records):
    rows = summarise(records, Settings())["by_length"]
    # sources have at most 38 words: the open bucket is absent
    assert [(row["from"], row["to"]) for row in rows] == [(1, 10), (11, 25), (26, 40)]
    assert sum(row["sentences"] for row in rows) == 70
    inside = [record for record in records if 11 <= record["length"] <= 25]
    free = [record for record in inside if record["no_unk"]]
    assert rows[1]["score"] == pytest.approx(sacrebleu(inside), abs=1e-9)
    assert rows[1]["low"] < rows[1]["score"] < rows[1]["high"]
    assert rows[1]["no_unk"]["score"] == pytest.approx(
        sacrebleu(free, "hypothesis_no_unk"), abs=1e-9
    )
    entropies = [record["attention_entropy"] for record in inside]
    assert rows[1]["attention_entropy"]["score"] == pytest.approx(np.mean(entropies))
    assert rows[1]["mean_length"] == np.mean([record["length"] for record in inside])
    assert rows[1]["nll_per_word"]["score"] == pytest.approx(
        sum(record["nll"] for record in inside)
        / sum(len(record["reference"]) + 1 for record in inside)
    )


@pytest.mark.parametrize("key", [key for key, s in REGISTERED.items() if s.by_length and s.default])
def test_a_score_of_a_bucket_is_that_of_its_sentences_alone(records, key):
    settings = Settings(scores=[key], edges=[25])
    short, long = summarise(records, settings)["by_length"]
    for row, inside in (
        (short, [record for record in records if record["length"] <= 25]),
        (long, [record for record in records if record["length"] > 25]),
    ):
        alone = score_of(summarise(inside, settings), key)
        found = bucket_score(row, key)
        assert [found[part] for part in ("score", "low", "high")] == pytest.approx(
            [alone[part] for part in ("score", "low", "high")]
        )
        assert found["low"] <= found["score"] <= found["high"]


def test_chosen_scores_alone_are_there(records):
    scores = summarise(records[:9], Settings(scores=["ter", "recall"]))
    assert list(scores)[4:] == ["bleu", "ter", "alignment", "by_length"]
    assert scores["alignment"].keys() == {"sentences", "recall"}
    assert list(scores["by_length"][0]) == [
        *("from", "to", "sentences", "score", "low", "high", "no_unk", "mean_length"),
        *("ter", "recall"),
    ]


def test_what_takes_long_is_computed_once(records, monkeypatch):
    settings = Settings(scores=["chrf", "sacrebleu"])
    expected = summarise(records, settings)
    keep_statistics(records, settings)
    assert {len(record["statistics"]["chrf"]) for record in records} == {18}
    monkeypatch.setattr(type(REGISTERED["chrf"]), "statistics", lambda *_: 1 / 0)
    assert summarise(records, settings) == expected


def test_alignment(records):
    result = summarise(records, Settings())
    scores = result["alignment"]
    aligned = [record for record in records if "alignment_counts" in record]
    assert scores["sentences"] == len(aligned) == 24
    assert scores["alignment_error_rate"]["score"] == pytest.approx(1 - (5 + 6) / (8 + 6))
    assert scores["precision"]["score"] == pytest.approx(6 / 8)
    assert scores["recall"]["score"] == pytest.approx(5 / 6)
    on_end = sum(record["alignment_counts"][4] for record in aligned)
    assert scores["eos_share"]["score"] == pytest.approx(on_end / (9 * 24))
    assert scores["eos_share"]["low"] < scores["eos_share"]["high"]
    weights = [record["eos_weight"] for record in records]
    assert result["eos_weight"]["score"] == pytest.approx(np.mean(weights))
    assert all(row["recall"]["score"] == pytest.approx(5 / 6) for row in result["by_length"])


def test_what_does_not_apply_is_absent_or_null(corpus):
    records = records_of(corpus(12), unknown=1.0, gold=False)
    for record in records:
        record |= {"no_unk": None}
        for key in ("nll", "score", "attention_entropy", "eos_weight", "raw_reference"):
            del record[key]
    scores = summarise(records, Settings(resamples=0))
    assert "no_unk" not in scores["bleu"]
    applying = ["bleu", "length_ratio", "brevity_penalty"]
    assert list(scores)[4:] == [*applying, "by_length"]
    assert scores["bleu"]["all"]["low"] is scores["bleu"]["all"]["high"] is None
    assert all(row["no_unk"] is None for row in scores["by_length"])
    assert all("nll_per_word" not in row for row in scores["by_length"])


def test_order_does_not_matter_and_the_result_is_json(records):
    expected = json.dumps(summarise(records, Settings()))
    random.Random(3).shuffle(records)
    assert json.dumps(summarise(records, Settings())) == expected
    assert json.loads(expected) == as_json(summarise(records, Settings()))


def test_no_or_repeated_sentences_are_an_error(records):
    with pytest.raises(ValueError, match="no sentences"):
        summarise([], Settings())
    with pytest.raises(ValueError, match="sentence 5 occurs twice"):
        summarise([*records, records[5]], Settings())


@pytest.mark.slow
def test_three_thousand_sentences_take_under_five_seconds(corpus):
    generator = random.Random(0)
    words = [
        "".join(generator.choices("abcdefghij", k=generator.randint(2, 9))) for _ in range(500)
    ]
    spoken = {f"w{number}": word for number, word in enumerate(words)}
    pairs = [
        tuple([spoken.get(token, token) for token in side] for side in pair)
        for pair in corpus(3000, longest=44)
    ]
    start = time.process_time()
    records = records_of(pairs)
    summarise(records, Settings(edges=[10, 20, 30, 40, 50, 60], resamples=1000))
    assert time.process_time() - start < 5.0
