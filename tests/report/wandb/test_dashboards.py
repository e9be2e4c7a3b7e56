"""The W&B workspace and report: what they show, and that it is what runs log."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from nmt.report.finding import find_runs
from nmt.report.wandb import dashboards
from nmt.report.wandb.dashboards import (
    OVER_UPDATES,
    Project,
    build_report,
    build_workspace,
    check_project,
    parts,
)
from nmt.report.wandb.panels import log_test
from nmt.utils.errors import InputError, RunError
from tests.helpers import ROOT
from tests.helpers.processes import start
from tests.helpers.run_folders import make_run

needs_extra = pytest.mark.skipif(
    importlib.util.find_spec("wandb_workspaces") is None, reason="the extra 'wandb' is missing"
)
PROJECT = Project("team", "nmt")


@pytest.fixture
def no_key(monkeypatch, tmp_path):
    monkeypatch.setenv("NETRC", str(tmp_path / "none"))
    monkeypatch.delenv("WANDB_API_KEY", raising=False)


@pytest.mark.parametrize("text", ["nmt", "team/", "/nmt", "team/nmt/run", "team/a b", ""])
def test_what_is_no_project_is_refused(text):
    with pytest.raises(InputError, match=r"wandb=.*: must be ENTITY/PROJECT"):
        check_project(text)


def test_without_the_extra_it_is_refused_by_name(monkeypatch):
    monkeypatch.setitem(sys.modules, "wandb_workspaces", None)
    monkeypatch.delitem(sys.modules, "wandb_workspaces.workspaces", raising=False)
    with pytest.raises(InputError, match=r"the extra 'wandb'.*\n.*pip install 'nmt\[wandb\]'"):
        check_project("team/nmt")


def test_without_a_login_it_is_refused_in_a_line(monkeypatch, no_key):
    monkeypatch.setattr(dashboards, "_libraries", lambda: None)
    with pytest.raises(InputError) as refused:
        check_project("team/nmt")
    assert str(refused.value).count("\n") == 0
    assert "run `wandb login` or set WANDB_API_KEY" in str(refused.value)
    monkeypatch.setenv("WANDB_API_KEY", "k" * 40)
    assert check_project("team/nmt") == PROJECT


def test_a_key_for_another_server_is_none_for_this_one(monkeypatch, no_key, tmp_path):
    (tmp_path / "none").write_text("machine api.wandb.ai login user password secret\n")
    monkeypatch.setattr(dashboards, "_libraries", lambda: None)
    assert check_project("team/nmt") == PROJECT
    (tmp_path / "none").write_text("machine api.forge.coreweave.com login user password secret\n")
    assert check_project("team/nmt") == PROJECT
    monkeypatch.setenv("WANDB_BASE_URL", "https://wandb.example.org")
    with pytest.raises(InputError, match="no key here"):
        check_project("team/nmt")


def test_the_command_refuses_before_it_reads_a_run(monkeypatch, tmp_path):
    monkeypatch.delenv("WANDB_API_KEY", raising=False)
    typed, none = ("runs=[nowhere]", "wandb=team/nmt"), {"NETRC": str(tmp_path / "none")}
    ended = start("nmt.compare", *typed, cwd=tmp_path, env=none).wait()
    assert ended.code == 2
    assert ended.err.startswith("nmt: wandb=")
    assert ended.err.count("\n") <= 2
    assert not list(tmp_path.iterdir())


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    """A run of each model; W&B knows the second, on two test sets."""
    folder = tmp_path_factory.mktemp("pair")
    make_run(folder / "0", model="RNNencdec", pairs=40, kept=6)
    searched = make_run(folder / "1", pairs=40, kept=6, sets=("newstest", "mine"))
    (searched / "wandb").mkdir()
    (searched / "wandb" / "id").write_text("abc123\n")
    return find_runs([folder]).runs


class Recorder:
    """A W&B run that keeps the names of what is logged."""

    def __init__(self):
        self.names, self.summary = set(), {}

    def log(self, row):
        self.names |= set(row)

    def define_metric(self, name, **options):
        pass


def drawn(panels):
    """The names that panels ask W&B for."""
    lists = [
        getattr(panel, kind, []) for panel in panels for kind in ("y", "metrics", "media_keys")
    ]
    return {str(name) for names in lists for name in names}


@needs_extra
def test_panels_show_what_runs_log(pair, tmp_path):
    logged = Recorder()
    for run in pair:
        figures = [tmp_path / f"{name}-four.png" for name in run.sets]
        for file in figures:
            from PIL import Image

            Image.new("L", (2, 2)).save(file)
        page = tmp_path / "report.html"
        page.write_text("<!doctype html>")
        log_test(logged, run.results, figures, page)
    found = {part.title: part.panels for part in parts(pair)}
    assert list(found) == [
        "By length: newstest",
        "By length: mine",
        "Validation",
        "Scores",
        "Translations",
        "Alignments",
        "Pages",
    ]
    by_length = found["By length: newstest"]
    assert {panel.x for panel in by_length} == {"length/words"}
    scores = ["bleu", "bleu_no_unk", "sacrebleu", "chrf", "nll_per_word", "length_ratio"]
    scores += ["brevity_penalty", "attention_entropy", "eos_weight", "alignment_error_rate"]
    scores += ["precision", "recall", "eos_share"]
    assert [panel.y for panel in by_length] == [[f"length/newstest/{score}"] for score in scores]
    assert drawn(by_length + found["By length: mine"]) <= logged.names
    assert {panel.x for panel in found["Validation"]} == {"trainer/global_step"}
    assert [panel.y for panel in found["Validation"]] == [[name] for name in OVER_UPDATES]
    bars = found["Scores"][:-2]
    assert drawn(bars) <= set(logged.summary)
    assert {"test/newstest/bleu", "test/mine/alignment_error_rate"} <= drawn(bars)
    assert found["Scores"][-2].table_name == "test/by_length"
    assert "test/by_length" in logged.names
    assert [panel.table_name for panel in found["Translations"]] == ["test/translations"]
    pictures = drawn(found["Alignments"])
    assert {f"valid/alignment/{place}" for place in range(1, 5)} < pictures
    assert {name for name in pictures if name.startswith("figures/")} <= logged.names
    assert drawn(found["Pages"]) == {"comparison/page", "test/page"}
    assert "test/page" in logged.names


@needs_extra
def test_without_attention_nothing_is_asked_of_it(pair):
    found = {part.title: part.panels for part in parts(pair[:1])}
    assert "Alignments" not in found
    everything = drawn([panel for panels in found.values() for panel in panels])
    assert not [name for name in everything if "entropy" in name or "alignment" in name]


@needs_extra
def test_the_workspace_as_it_is_saved(pair):
    workspace = build_workspace(PROJECT, pair)
    spec = json.loads(workspace._to_model().spec.model_dump_json(by_alias=True, exclude_none=True))
    sections = spec["section"]["panelBankConfig"]["sections"]
    assert [each["name"] for each in sections][:3] == [
        "By length: newstest",
        "By length: mine",
        "Validation",
    ]
    columns = workspace.runset_settings.pinned_columns
    assert {"config:model.value.title", "summary:test/mine/bleu"} < set(columns)
    first = sections[0]["panels"][0]
    assert first["viewType"] == "Run History Line Plot"
    assert first["config"]["xAxis"] == "length/words"
    assert first["config"]["metrics"] == ["length/newstest/bleu"]
    for section in sections:
        corners = [(p["layout"]["x"], p["layout"]["y"]) for p in section["panels"]]
        assert len(set(corners)) == len(corners)
        assert all(p["layout"]["x"] + p["layout"]["w"] <= 24 for p in section["panels"])


@needs_extra
def test_the_report_shows_the_runs_that_were_compared(pair):
    report = build_report(PROJECT, pair, "page77")
    assert (report.entity, report.project) == ("team", "nmt")
    grids = [block for block in report.blocks if type(block).__name__ == "PanelGrid"]
    assert len(grids) == 7
    [runset] = grids[0].runsets
    assert (runset.entity, runset.project) == ("team", "nmt")
    assert "abc123" in runset.filters
    assert "page77" in runset.filters
    unknown = build_report(PROJECT, pair[:1], "page77")
    [runset] = next(b for b in unknown.blocks if type(b).__name__ == "PanelGrid").runsets
    assert runset.filters == ""
    assert pair[0].label in report.blocks[1].text


@needs_extra
def test_what_wandb_refuses_fails_in_a_line(pair, tmp_path, monkeypatch):
    def refuse(*arguments):
        raise ConnectionError("no route\nto host")

    monkeypatch.setattr(dashboards, "log_comparison", refuse)
    page = tmp_path / "comparison.html"
    with pytest.raises(RunError) as failed:
        dashboards.save_dashboards(PROJECT, pair, page)
    assert str(failed.value) == f"wandb=team/nmt: not saved (no route); the page is {page}"


@pytest.mark.slow
def test_a_training_logs_every_curve_and_picture(tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "WANDB_MODE": "offline"}
    typed = ["+experiment=rnnsearch30", "regime=tiny", "hydra.run.dir=run", "logger=wandb"]
    command = [sys.executable, "-m", "nmt.train", *typed]
    subprocess.run(command, cwd=tmp_path, env=environment, check=True, capture_output=True)
    [file] = (tmp_path / "run").glob("wandb/offline-run-*/*.wandb")
    tool = str(Path(sys.executable).with_name("wandb"))
    said = subprocess.run(
        [tool, "leet", "inspect", "--json", str(file)], capture_output=True, text=True, check=True
    )
    records = [json.loads(line) for line in said.stdout.splitlines()]
    rows = [record["history"]["item"] for record in records if record["type"] == "history"]
    logged = {name.removesuffix("._type") for row in rows for name in row}
    wanted = {*OVER_UPDATES, "test/page", "test/by_length", "length/by_length/bleu"}
    wanted |= {f"valid/alignment/{place}" for place in range(1, 5)}
    wanted |= {"figures/test-four", "figures/by_length-bleu-by-length"}
    assert wanted <= logged
    [page] = file.parent.glob("files/media/html/test/page_*.html")
    assert page.read_bytes() == (tmp_path / "run" / "report.html").read_bytes()
    assert dashboards.wandb_id(find_runs([tmp_path / "run"]).runs[0]) == file.stem[4:]
