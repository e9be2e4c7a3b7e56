import json
import re
from pathlib import Path

import numpy as np
import pytest

from nmt.evaluation import results, results_schema
from nmt.evaluation.scores import REGISTERED
from nmt.utils.errors import InputError

DOCUMENT = Path(__file__).parents[2] / "docs" / "results_schema.md"


def arguments():
    test = {
        "by_length": {
            "pairs": 2,
            "bucket_by": "source",
            "bleu": {"all": {"score": 31.5, "low": None, "high": None, "sentences": 2}},
            "by_length": [],
        }
    }
    return {
        "name": "rnnsearch50-50",
        "title": "RNNsearch-50",
        "experiment": "rnnsearch50",
        "regime": "laptop",
        "model": "RNNsearch",
        "scoring": "Additive",
        "max_length": 50,
        "seed": 1,
        "parameters": 1234,
        "config": {"data": {"max_length": 50}},
        "overrides": ["seed=1"],
        "command": "python -m nmt.train",
        "train": {"updates": np.int64(100), "nll_per_sentence": np.float32(2.5)},
        "valid": {"perplexity": float("nan")},
        "history": [{"update": 50, "nll_per_word": 2.0}],
        "test": test,
        "scores": [],
    }


def content(**more):
    return results.assemble(**(arguments() | more))


def test_there_and_back(tmp_path):
    path = results.write(tmp_path, content(sources={"checkpoint": Path("a/best.ckpt")}))
    assert path.name == "results.json"
    assert [entry.name for entry in tmp_path.iterdir()] == ["results.json"]
    for where in (tmp_path, path):
        found = results.read(where)
        assert found["schema"] == 2
        assert found["train"] == {"updates": 100, "nll_per_sentence": 2.5}
        assert found["valid"] == {"perplexity": None}
        assert found["sources"] == {"checkpoint": "a/best.ckpt"}
        assert found["versions"]["sacrebleu"].startswith("2.")


def test_validations_of_an_older_checkpoint_get_the_present_keys():
    before = {"update": 50, "nll": 2.5, "nll_per_word": 2.0, "attention_on_end": 0.25}
    found = results.assemble(**(arguments() | {"history": [before], "valid": before}))
    now = {"update": 50, "train_nll_per_word": 2.5, "nll_per_word": 2.0, "eos_weight": 0.25}
    assert found["history"] == [now]
    assert found["valid"] == now


def test_scores_that_a_set_has_are_described():
    found = content(scores=[REGISTERED["bleu"], REGISTERED["ter"]])
    assert list(found["scores"]) == ["bleu"]
    assert found["scores"]["bleu"]["digits"] == 2


def test_a_failed_write_leaves_the_old_file_whole(tmp_path, monkeypatch):
    results.write(tmp_path, content())
    before = (tmp_path / "results.json").read_bytes()

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(OSError, match="disk full"):
        results.write(tmp_path, content() | {"name": "other"})
    assert (tmp_path / "results.json").read_bytes() == before
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schema": 3}, "schema=3 is newer; this version of nmt reads 1 to 2"),
        ({"schema": "one"}, "schema='one' is unknown"),
        ({"parameters": "many"}, "parameters='many': should be a valid integer"),
        ({"seed": True}, "seed=True: should be a valid integer"),
        ({"test": {"a=b": {}}}, "data.test.a=b: a test set's name"),
        ({"test": {"a": 3}}, "test.a=3: should be a valid dictionary"),
        ({"test": {"a": {"pairs": 1, "bucket_by": "source"}}}, "key 'test.a.bleu' is missing"),
        (
            {"test": {"a": {"pairs": 1, "bucket_by": "source", "bleu": {"all": {}}}}},
            "key 'test.a.bleu.all.score' is missing",
        ),
    ],
)
def test_wrong_content_is_refused_by_key(tmp_path, change, message):
    path = tmp_path / "results.json"
    path.write_text(json.dumps(content() | change))
    with pytest.raises(InputError, match=re.escape(message)):
        results.read(tmp_path)


RATE = {"score": 0.2, "low": None, "high": None}


@pytest.mark.parametrize(
    ("section", "links", "message"),
    [
        ("systems", {"giza": {"sentences": -1}}, "systems.giza.sentences=-1"),
        ("systems", {"giza": 3}, "systems.giza=3: should be a valid dictionary"),
        ("systems", {"g" * 1001: {"sentences": 1}}, "systems."),
        (
            "symmetrised",
            {"reverse": {"sentences": 1, "precision": {**RATE, "low": "<b>"}}},
            "symmetrised.reverse.precision.low='<b>'",
        ),
        (
            "statistical_aligners",
            {"hmm": {"alignment_error_rate": RATE}},
            "statistical_aligners.hmm",
        ),
        ("statistical_aligners", {"training_pairs": "many"}, "statistical_aligners.training_pairs"),
        ("statistical_aligners", [], "statistical_aligners=[]"),
        (
            "statistical_aligners",
            {"a": {"sentences": 2, "recall": 3}},
            "statistical_aligners.a.recall=3",
        ),
    ],
)
def test_links_beside_the_models_own_are_checked(tmp_path, section, links, message):
    stored = content()
    stored["test"]["by_length"]["alignment"] = {
        "systems": {"a.b": {"sentences": 2, "alignment_error_rate": RATE}},
        "statistical_aligners": {"training_pairs": 4, "hmm": {"sentences": 2, "recall": RATE}},
        "symmetrised": None,
    }
    path = results.write(tmp_path, stored)
    assert results.read(path)["test"] == stored["test"]
    stored["test"]["by_length"]["alignment"][section] = links
    path.write_text(json.dumps(stored))
    with pytest.raises(InputError, match=re.escape(f"test.by_length.alignment.{message}")) as said:
        results.read(path)
    assert "\n" not in str(said.value)


def test_missing_and_damaged_files_are_refused(tmp_path):
    with pytest.raises(InputError, match="the run is not finished"):
        results.read(tmp_path)
    with pytest.raises(InputError, match="No such file"):
        results.read(tmp_path / "results.json")
    path = tmp_path / "results.json"
    path.write_text('{"schema": 1,')
    with pytest.raises(InputError, match="damaged, not JSON"):
        results.read(path)
    path.write_text('{"name": "other"}')
    with pytest.raises(InputError, match=r"not a results\.json of nmt"):
        results.read(path)
    whole = content()
    del whole["history"]
    with pytest.raises(InputError, match="key 'history' is missing"):
        results.write(tmp_path, whole)


def test_every_key_is_documented():
    text = DOCUMENT.read_text("utf-8")
    documented = set(re.findall(r"`([^`]+)`", text))
    used = set(results_schema.Results.__annotations__) | set(results_schema.TestSet.__annotations__)
    assert used <= documented
