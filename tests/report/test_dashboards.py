"""Workspace and report as the real client libraries build them, without an account."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nmt.report import dashboards
from nmt.report.comparison import Comparison
from nmt.utils.errors import InputError, RunError

pytest.importorskip("wandb_workspaces.workspaces")


def test_panels_show_what_runs_log(comparison: Comparison) -> None:
    sections = dashboards.sections(comparison)
    panels = sections["By length"]
    curves = {key for panel in panels for key in panel.y}
    assert {"length/newstest/bleu", "length/mine/bleu_no_unk"} <= curves
    bars = [str(panel.metrics[0]) for panel in sections["Scores"][:-1]]
    assert "test/newstest/alignment_error_rate" in bars
    assert ["valid/eos_weight"] in [panel.y for panel in sections["Training"]]
    assert [panel.media_keys for panel in sections["Alignments"]] == [["valid/alignment"]]
    assert {panel.x for panel in panels} == {"length/words"}
    places = {(panel.layout.x, panel.layout.y) for panel in panels}
    assert len(places) == len(panels)


def test_the_preview_is_what_would_be_saved(comparison: Comparison, tmp_path: Path) -> None:
    files = dashboards.save_dashboards("preview", comparison, tmp_path / "comparison.html")
    assert [Path(file).name for file in files] == ["workspace.json", "preview.png"]
    content = (tmp_path / "wandb/workspace.json").read_text()
    json.loads(content)
    assert "length/newstest/bleu" in content
    assert (tmp_path / "wandb/preview.png").stat().st_size > 10_000


def test_only_the_compared_runs_are_in_the_report(comparison: Comparison) -> None:
    report = dashboards.build_report("team/nmt", comparison, ["abc", "def"])
    [runset] = next(block.runsets for block in report.blocks if hasattr(block, "runsets"))
    assert "abc" in runset.filters
    assert (runset.entity, runset.project) == ("team", "nmt")


@pytest.mark.parametrize("text", ["nmt", "a/b/c", "team/nm?t"])
def test_what_is_no_project_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="ENTITY/PROJECT"):
        dashboards.check_project(text)


def test_without_a_key_it_is_refused_at_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dashboards, "has_wandb_key", lambda: False)
    with pytest.raises(InputError, match="wandb login"):
        dashboards.check_project("team/nmt")
    dashboards.check_project("preview")


def test_what_wandb_does_not_take_is_one_line(
    comparison: Comparison, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*arguments: object) -> None:
        raise ConnectionError("no route\nto host")

    monkeypatch.setattr(dashboards, "build_workspace", refuse)
    monkeypatch.setattr(dashboards, "build_report", refuse)
    with pytest.raises(RunError, match="no route"):
        dashboards.save_dashboards("team/nmt", comparison, tmp_path / "page.html")
