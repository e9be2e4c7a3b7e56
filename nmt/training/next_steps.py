"""Suggests what to do after a training run, with the commands to type."""

from __future__ import annotations

from pathlib import Path

from nmt.training.outcome import rerun_command
from nmt.training.publish import PAGE
from nmt.training.run import Run
from nmt.utils.environment import sweep_folder
from nmt.utils.quoting import as_typed, command_line, override_key, quoted

COUNTERPARTS = {  # the experiment to compare with each experiment
    "rnnsearch30": "rnnencdec30",
    "rnnsearch50": "rnnencdec50",
    "rnnsearch50_long": "rnnencdec50",
    "rnnencdec30": "rnnsearch30",
    "rnnencdec50": "rnnsearch50",
}


def next_steps(run: Run) -> str:
    """Returns a list of commands for a finished training run; empty for a job of a sweep."""
    if sweep_folder():
        return ""
    folder = _short(run.folder.path)
    steps = {
        "translate your own sentences": _command("translate", [f"checkpoint={quoted(folder)}"])
    }
    other = COUNTERPARTS.get(run.config.experiment)
    if other and run.initial is None:
        words = [word for word in run.overrides if override_key(word) != "experiment"]
        beside = f"{folder}-{other}"
        train = rerun_command([f"+experiment={other}", *words, f"hydra.run.dir={quoted(beside)}"])
        runs = f"runs=[{quoted(folder)},{quoted(beside)}]"
        steps[f"compare with {other}"] = f"{as_typed(train)} && {_command('compare', [runs])}"
    if (page := run.folder.path / PAGE).is_file():
        steps["open the page in a browser"] = page.resolve().as_uri()
    return "\n".join(
        ["what to do next:", *(f"  {what}:\n    {how}" for what, how in steps.items())]
    )


def _command(name: str, overrides: list[str]) -> str:
    return as_typed(command_line(name, overrides))


def _short(folder: Path) -> str:
    """Returns the folder relative to the current one, if it is inside."""
    return str(folder.relative_to(Path.cwd()) if folder.is_relative_to(Path.cwd()) else folder)
