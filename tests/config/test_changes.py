"""The command that resumes a run."""

from __future__ import annotations

from nmt.config.changes import outside, resume_command
from nmt.config.loading import load


def test_resume_command_has_the_trust_of_the_run(composer, tmp_path):
    command = resume_command(load(composer()), tmp_path, ["mine.scores", "other"])
    assert command == f"python -m nmt.train resume={tmp_path} 'trust=[mine.scores,other]'"


def test_resume_command_has_folders_outside_the_run(composer, tmp_path):
    config = load(composer())
    assert outside(config, tmp_path) == {}
    config.callbacks["mine"] = {"dirpath": "/elsewhere", "filename": "../../x"}
    assert outside(config, tmp_path) == {
        "callbacks.mine.dirpath": "/elsewhere",
        "callbacks.mine.filename": "../../x",
    }
    command = resume_command(config, tmp_path, [])
    assert command == (
        f"python -m nmt.train resume={tmp_path} callbacks.mine.dirpath=/elsewhere "
        "callbacks.mine.filename=../../x"
    )
