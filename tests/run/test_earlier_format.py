"""A checkpoint of format 1 evaluates and translates as it did when it was made."""

from __future__ import annotations

import json

import pytest

from nmt.evaluation import results
from nmt.models.checkpoint import read_checkpoint
from tests.helpers import ROOT

EARLIER = ROOT / "tests/checkpoints/format-1.ckpt"


def test_its_progress_is_read():
    stored = read_checkpoint(EARLIER)
    expected = json.loads(EARLIER.with_name("format-1.results.json").read_text())
    assert stored.update == expected["valid"]["update"] == 300
    assert stored.progress.best == expected["valid"]
    assert stored.progress.history[0]["update"] == expected["history"][0]["update"]


@pytest.mark.parametrize("sentence_set", ["test", "by_length"])
def test_it_evaluates_to_the_same_scores(program, earlier, sentence_set):
    expected = results.read(EARLIER.with_name("format-1.results.json"))
    before, after = expected["test"][sentence_set], earlier["test"][sentence_set]
    assert after["bleu"]["all"] == pytest.approx(before["bleu"]["all"], rel=1e-9)
    for row, other in zip(before["by_length"], after["by_length"], strict=True):
        assert other["score"] == pytest.approx(row["score"], rel=1e-9)
        nll = row["nll_per_word"]["score"]
        assert other["nll_per_word"]["score"] == pytest.approx(nll, rel=1e-5)
    rate = before["alignment"]["alignment_error_rate"]["score"]
    assert after["alignment"]["alignment_error_rate"]["score"] == pytest.approx(rate, rel=1e-9)


@pytest.fixture(scope="module")
def earlier(program):
    """results.json of an evaluation of the earlier format's checkpoint."""
    typed = (f"checkpoint={EARLIER}", "hydra.run.dir=earlier", "logger=none", "report.heatmaps=0")
    typed += ("trainer.progress=false", "trainer.accelerator=cpu")
    ended = program("evaluate", *typed, figures=False)
    assert ended.code == 0, ended.err
    return json.loads((program.folder / "earlier/results.json").read_text())


def test_it_translates_as_it_did(program, earlier):
    del earlier
    rows = (program.folder / "earlier/translations/by_length.jsonl").read_text().splitlines()
    source = "".join(" ".join(json.loads(row)["source"]) + "\n" for row in rows)
    typed = (f"checkpoint={EARLIER}", "tokenised=true", "detokenise=false")
    ended = program("translate", *typed, "trainer.accelerator=cpu", stdin=source.encode())
    assert ended.code == 0, ended.err
    assert ended.out == EARLIER.with_name("format-1.by_length.txt").read_text()
