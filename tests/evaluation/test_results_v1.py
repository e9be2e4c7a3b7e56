"""A run folder of schema 1, as nmt wrote it, read as one of schema 2."""

import json
import shutil

import pytest

from nmt.config.keys import flatten
from nmt.config.renamed import upgrade
from nmt.evaluation import records, results, results_v1
from nmt.evaluation.results import bucket_score, score_of
from nmt.utils.errors import InputError
from tests.helpers.run_folders import RUN_OF_SCHEMA_1


@pytest.fixture(scope="module")
def old():
    return json.loads((RUN_OF_SCHEMA_1 / "results.json").read_text())


@pytest.fixture(scope="module")
def read():
    return results.read(RUN_OF_SCHEMA_1)


def test_what_stays(old, read):
    assert (old["schema"], read["schema"]) == (1, 2)
    changed = {"schema", "config", "test", "history", "valid", "scores"}
    assert {key: old[key] for key in old if key not in changed} == {
        key: read[key] for key in read if key not in changed
    }
    for name, result in old["test"].items():
        for key in ("pairs", "search", "bucket_by", "confidence", "bleu"):
            assert read["test"][name][key] == result[key]


def test_the_configuration_has_the_present_keys(old, read):
    upgraded = upgrade(old["config"])
    flat, before = flatten(read["config"]), flatten(upgraded)
    assert {key: flat[key] for key in before} == before
    assert read["config"]["optimizer"]["_target_"] == "torch.optim.Adam"
    assert "name" not in read["config"]["optimizer"]


def test_keys_that_came_later_have_the_values_that_the_run_had(old, read):
    config, before = read["config"], old["config"]
    assert "callbacks" not in before
    assert (config["callbacks"], config["report"]["own"]) == ({}, {})
    assert config["trainer"]["lightning"] == {}
    assert config["evaluation"]["scores"] is None
    assert "source_shortlist" not in config["data"]  # the text's, which was not stored
    assert config["optimizer"]["options"] == {"betas": [0.9, 0.999], "eps": 1e-08}
    assert results_v1.convert(old | {"config": {}})["config"] == {}


def test_scores_of_a_set(old, read):
    before, now = old["test"]["test"], read["test"]["test"]
    for key in ("nll_per_sentence", "perplexity", "length_ratio", "brevity_penalty"):
        assert now[key] == {"score": before[key], "low": None, "high": None}
    assert now["attention_entropy"]["score"] == before["spread"] > 0
    assert now["chrf"] == before["chrf"] | {"low": None, "high": None}
    aligned = before["alignment"]
    assert now["alignment"] == {
        "sentences": aligned["sentences"],
        "alignment_error_rate": {
            "score": aligned["error_rate"],
            "low": aligned["low"],
            "high": aligned["high"],
        },
        "precision": {"score": aligned["precision"], "low": None, "high": None},
        "recall": {"score": aligned["recall"], "low": None, "high": None},
        "eos_share": {"score": aligned["on_end_of_sentence"], "low": None, "high": None},
    }
    assert score_of(now, "eos_weight")["score"] == aligned["weight_on_end"]
    assert score_of(now, "recall")["score"] == aligned["recall"]


def test_buckets(old, read):
    before, now = old["test"]["by_length"], read["test"]["by_length"]
    assert len(now["by_length"]) == len(before["by_length"]) == 7
    for row, was, aligned in zip(
        now["by_length"], before["by_length"], before["alignment"]["by_length"], strict=True
    ):
        for key in ("from", "to", "sentences", "score", "low", "high", "no_unk"):
            assert row[key] == was[key]
        assert row["nll_per_word"]["score"] == was["nll_per_word"]
        assert row["attention_entropy"]["score"] == was["spread"]
        assert bucket_score(row, "alignment_error_rate") == {
            "score": aligned["error_rate"],
            "low": aligned["low"],
            "high": aligned["high"],
            "sentences": was["sentences"],
        }
        assert row["eos_weight"]["score"] == aligned["weight_on_end"]


def test_scores_are_described(read):
    assert read["scores"]["alignment_error_rate"]["higher_is_better"] is False
    assert read["scores"]["nll_per_word"]["unit"] == "nats"
    assert list(read["scores"])[:3] == ["bleu", "sacrebleu", "chrf"]
    assert "ter" not in read["scores"]


def test_validations(old, read):
    before, now = old["history"][1], read["history"][1]
    assert now["train_nll_per_word"] == before["nll"]
    assert now["eos_weight"] == before["attention_on_end"]
    assert now["last_word_weight"] == before["attention_on_last_word"]
    assert now["attention_entropy"] == before["attention_spread"]
    assert now["nll_per_word"] == before["nll_per_word"]
    assert read["valid"] == results_v1.renamed(old["valid"], results_v1.HISTORY_KEYS)
    assert "attention_spread" not in read["valid"]


def test_statistical_aligners(old, tmp_path):
    """Under the key that was theirs at first."""
    aligner = {"sentences": 9, "error_rate": 0.25, "low": 0.2, "high": 0.3}
    aligner |= {"precision": 0.8, "recall": 0.7}
    content = json.loads(json.dumps(old))
    content["test"]["test"]["alignment"]["yardstick"] = {"training_pairs": 40, "hmm": aligner}
    (tmp_path / "results.json").write_text(json.dumps(content))
    found = results.read(tmp_path)["test"]["test"]["alignment"]["statistical_aligners"]
    assert found == {
        "training_pairs": 40,
        "hmm": {
            "sentences": 9,
            "alignment_error_rate": {"score": 0.25, "low": 0.2, "high": 0.3},
            "precision": {"score": 0.8, "low": None, "high": None},
            "recall": {"score": 0.7, "low": None, "high": None},
        },
    }


def test_records_and_alignments():
    first = records.read_translations(RUN_OF_SCHEMA_1, "test")[0]
    was = json.loads((RUN_OF_SCHEMA_1 / "translations/test.jsonl").read_text().splitlines()[0])
    assert first["attention_entropy"] == was["spread"]
    assert first["eos_weight"] == was["end_weight"]
    assert not {"spread", "end_weight"} & set(first)
    row = records.read_alignments(RUN_OF_SCHEMA_1, "test")[0]
    assert len(row["attention_entropy"]) == len(row["target"])


def test_a_damaged_file_is_refused_by_key(tmp_path):
    shutil.copytree(RUN_OF_SCHEMA_1, tmp_path / "run")
    path = tmp_path / "run" / "results.json"
    content = json.loads(path.read_text())
    del content["test"]["test"]["bleu"]
    path.write_text(json.dumps(content))
    with pytest.raises(InputError, match=r"key 'test\.test\.bleu' is missing"):
        results.read(path)
