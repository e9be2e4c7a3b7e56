"""The W&B workspace, built with the real client library, without an account."""

from __future__ import annotations

from pathlib import Path

import pytest

from nmt.report import workspace
from nmt.report.comparison import Comparison
from nmt.utils.errors import InputError, RunError


def test_panels_show_logged_values(comparison: Comparison) -> None:
    pytest.importorskip("wandb_workspaces.workspaces")
    built = workspace.build_workspace("team/nmt", comparison)
    panels = {section.name: section.panels for section in built.sections}
    curves = {key: panel.x for panel in panels["By length"] for key in panel.y}
    assert {"length/newstest/bleu", "length/mine/bleu_no_unk"} <= set(curves)
    assert set(curves.values()) == {"length/words"}
    bars = [str(panel.metrics[0]) for panel in panels["Scores"][:-1]]
    assert "test/newstest/alignment_error_rate" in bars
    assert ["valid/eos_weight"] in [panel.y for panel in panels["Training"]]
    assert [panel.media_keys for panel in panels["Alignments"]] == [["valid/alignment"]]
    built._to_model()  # builds the request that `save` would send


def test_wandb_errors_are_one_line(
    comparison: Comparison, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*arguments: object) -> None:
        raise ConnectionError("no route\nto host")

    monkeypatch.setattr(workspace, "build_workspace", refuse)
    with pytest.raises(RunError, match=r"wandb=team/nmt: not saved .*no route"):
        workspace.save_workspace("team/nmt", comparison, tmp_path)


def test_project_and_login_are_checked_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workspace, "need", lambda *names: None)
    monkeypatch.setattr(workspace, "has_wandb_key", lambda: False)
    for text in ("nmt", "a/b/c"):
        with pytest.raises(InputError, match="ENTITY/PROJECT"):
            workspace.check_project(text)
    with pytest.raises(InputError, match="wandb login"):
        workspace.check_project("team/nmt")
