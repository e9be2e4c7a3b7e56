"""Runs the blocks that the documentation marks as quick, in order and with tiny sizes.

Each page runs in its own folder. The folder contains the files that the page shows, and made-up files in
place of the user's own.
"""

from __future__ import annotations

import contextlib
import io
from pathlib import Path
from typing import Any

import pytest

from nmt.grammar import draw
from tests.helpers.documentation import PAGES, Command, blocks, commands, files
from tests.helpers.processes import run
from tests.helpers.run_folders import make_run

QUICK = [page for page in PAGES if "<!-- quick -->" in page.read_text()]
LINES = {"train": 60, "valid": 12, "test": 8, "some": 3}  # sentence pairs in each made-up file
SMALL = (
    "trainer.enable_progress_bar=false",
    "logger=none",
    "evaluation.resamples=20",
)
TINY = {
    "prepare": ("regime=tiny", "trainer.enable_progress_bar=false"),
    "train": (
        "regime=tiny",
        "trainer=cpu",
        *SMALL,
        "trainer.max_steps=2",
        "trainer.val_check_interval=2",
        "search.max_ratio=0.5",
        "evaluation.train_sample=4",
        "data.train.pairs=64",
        "data.valid.pairs=8",
    ),
    "evaluate": SMALL,
    "compare": ("resamples=20",),
}


def prepare_folder(folder: Path, page: str) -> None:
    """Writes the files that the page shows, and made-up files in place of the user's own."""
    for name, content in files(page).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)
    for name, count in LINES.items():
        split = "test:some" if name == "some" else name
        pairs = [draw(1, split, k, mean_length=8) for k in range(count)]
        for language, sentences in (
            ("en", [pair.source for pair in pairs]),
            ("fr", [pair.target for pair in pairs]),
        ):
            text = "".join(" ".join(words) + "\n" for words in sentences)
            (folder / f"{name}.{language}").write_text(text)
    for name in ("moses.txt", "outputs/Moses.fr", "outputs/GPT-4.fr"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text((folder / "test.fr").read_text())
    if "first-hour.md#train-two-models" in page:
        for name, model in (("search", "RNNsearch"), ("encdec", "RNNencdec")):
            make_run(folder / "runs" / name, model=model, pairs=40, kept=3, sets=("by_length",))


def type_command(folder: Path, command: Command) -> None:
    """Runs a command of the page, with smaller sizes."""
    tiny = TINY.get(command.name, ())
    smaller = {word.partition("=")[0] for word in tiny}
    words = [word for word in command.words if word.partition("=")[0] not in smaller]
    text = (folder / command.stdin).read_bytes() if command.stdin else b""
    path = {"PYTHONPATH": str(folder)}  # lets `python -m` find the page's modules
    ended = run(command.name, *words, *tiny, cwd=folder, env=path, stdin=text)
    assert ended.code == 0, f"{command}\n{ended.err}"
    if command.stdout:
        assert ended.out
        (folder / command.stdout).write_text(ended.out)


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, id=page.name, marks=() if page.name == "README.md" else pytest.mark.slow)
        for page in QUICK
    ],
)
def test_quick_blocks_run(page: Path, tmp_path: Path):
    text = page.read_text()
    prepare_folder(tmp_path, text)
    names: dict[str, Any] = {}
    for block in blocks(text):
        if block.mark != "quick":
            continue
        if block.language == "python":
            with contextlib.chdir(tmp_path), contextlib.redirect_stdout(io.StringIO()):
                exec(block.text, names)
        else:
            for command in commands(block):
                type_command(tmp_path, command)
