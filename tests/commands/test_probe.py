"""`nmt.probe`: the files it leaves behind, and what it refuses."""

from __future__ import annotations

import json

import pytest

from tests.helpers.produced import BEST, files, last_line, lines

FEW = ("sentences=120", "positions=4", "epochs=2", "evaluation.resamples=20")
QUIET = ("trainer.progress=false", "report.figures=[svg]")


@pytest.mark.parametrize(
    ("model", "kinds"),
    [
        ("rnnencdec", [("fixed vector", "from_start"), ("fixed vector", "from_end")]),
        (
            "rnnsearch",
            [("s_0", "from_start"), ("s_0", "from_end"), ("annotations", "from_start")],
        ),
    ],
)
def test_a_run_folder_of_its_own(program, request, model, kinds):
    run = request.getfixturevalue(model)
    named, folder = BEST.replace("rnnsearch", model), f"{model}-probe"
    typed = ("sets=[by_length]", f"hydra.run.dir={folder}", *FEW, *QUIET)
    ended = program("probe", named, *typed)
    assert ended.code == 0, ended.err
    made = program.folder / folder
    assert files(made) >= {"probe.json", "probe.md", "figures/by_length-probe.svg", "probe.log"}
    assert "results.json" not in files(made)
    found = json.loads((made / "probe.json").read_text())
    assert [(row["vectors"], row["order"]) for row in found["readings"]] == kinds
    records = lines(run / "translations/by_length.jsonl")
    for row in found["readings"]:
        assert row["set"] == "by_length"
        assert row["words"] == sum(min(4, len(record["source"])) for record in records)
        assert sum(each["words"] for each in row["by_length"]) == row["words"]
        assert [each["position"] for each in row["by_position"]] == [1, 2, 3, 4]
        assert 0 < row["chance"]["score"] < 1
    table = (made / "probe.md").read_text()
    assert table.startswith("### Source words read from the vectors of RNN")
    assert f"| by_length | {kinds[0][0]} | from the start | all |" in table
    again = program("probe", named, *typed)
    assert (again.code, "holds a run already (probe.json)" in last_line(again.err)) == (2, True)


def test_what_is_refused(program, rnnsearch):
    ended = program("probe", BEST, "sets=[none]", "hydra.run.dir=refused")
    assert ended.code == 2
    assert "sets: no test set none" in last_line(ended.err)
    assert not (program.folder / "refused").exists()
    ended = program("probe", BEST, "model.dropout=0.5", "hydra.run.dir=refused")
    assert ended.code == 2
    assert "model.dropout: belongs to the training run" in last_line(ended.err)
    ended = program("probe", BEST, "evaluation.attention=uniform", "hydra.run.dir=refused")
    said = "nmt: evaluation.attention: not used by this command; type it to nmt.evaluate"
    assert (ended.code, last_line(ended.err)) == (2, said)


def test_what_is_gained_over_another_model(program, rnnsearch):
    typed = ("sets=[by_length]", "hydra.run.dir=gain", *FEW, *QUIET)
    ended = program("probe", BEST, f"against={BEST.partition('=')[2]}", *typed)
    assert ended.code == 0, ended.err
    made = program.folder / "gain"
    assert "figures/by_length-gain.svg" in files(made)
    found = json.loads((made / "probe.json").read_text())
    assert found["against"] == "RNNsearch-50"
    first, _ = found["gains"]
    assert first["positions"] == "source"
    assert (first["gain"]["score"], first["gain"]["high"]) == (0.0, 0.0)  # over itself
    assert "| by_length | all | " in (made / "probe.md").read_text()
    assert (
        "### Nats a word that RNNsearch-50 gains over RNNsearch-50"
        in (made / "probe.md").read_text()
    )
    ended = program("probe", BEST, "against=none.ckpt", "hydra.run.dir=refused")
    assert ended.code == 2
    assert "against=none.ckpt" in last_line(ended.err)
