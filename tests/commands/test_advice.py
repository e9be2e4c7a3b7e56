"""What a refusal says to type works when it is typed."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tests.helpers.processes import run

FILES = tuple(
    f"data.{part}.{side}={end}"
    for part in ("train", "valid")
    for side, end in (("source", "a.en"), ("target", "a.fr"))
)
WMT14 = ("train", "newstest2012", "newstest2013", "newstest2014")


def follow(words: list[str], message: str) -> list[str]:
    """The words of a command line after the advice of its refusal."""
    wrong = message.removeprefix("nmt: ").partition(":")[0].partition("=")[0]
    if near := re.search(r"did you mean ([\w.]+)", message):
        return [word.replace(wrong, near[1]) for word in words]
    if quoted := re.search(r"twice: '(.+)'", message):
        return [quoted[1] if quoted[1].startswith(f"{wrong}=") else word for word in words]
    if without := re.search(r"leave out ([\w.]+)", message):
        return [word for word in words if not word.startswith(f"{without[1]}=")]
    if before := re.search(r"was started with ([\w.]+)=(\S+);", message):
        return [
            *(word for word in words if not word.startswith(before[1])),
            before.expand(r"\1=\2"),
        ]
    advice = re.search(r"type (.+)", message)
    assert advice, message
    typed = re.findall(r"\+?[\w.]+=[^\s;,…]+", advice[1])
    assert typed, message
    keys = tuple(f"{word.partition('=')[0].lstrip('+')}=" for word in typed)
    return [word for word in words if not word.lstrip("+").startswith(keys)] + typed


@pytest.mark.parametrize(
    "typed",
    [
        ("data=text", *FILES, "data.batch_sise=4"),
        ("data=text", *FILES, "name=a=b"),
        ("data=text", *FILES, "model=rnnencdec", "scoring=dot"),
        ("data=text", "data.train.source=a.en", *FILES[2:]),
        ("data=text", *FILES, "data.valid.alignment=a.align"),
        ("data=wmt14",),
        ("data.languages=[en,de]", *FILES),
    ],
)
def test_advice_is_followed_to_the_end(typed: tuple[str, ...], tmp_path: Path) -> None:
    """A message may stand for FILE and FOLDER of the user's own; the next one says what is missing."""
    (tmp_path / "folder").mkdir()
    for name in ("a", *(f"folder/{name}" for name in WMT14)):
        for language in ("en", "fr"):
            (tmp_path / f"{name}.{language}").write_text("a b\n")
    (tmp_path / "a.align").write_text("0-0\n")
    words, refusals = list(typed), 0
    while (ended := run("prepare", *words, cwd=tmp_path)).code:
        refusals += 1
        assert ended.code == 2, ended.err
        assert refusals < 5, ended.err
        words = follow(words, "\n".join(ended.err.splitlines()[-2:]))
        words = [word.replace("FOLDER", "folder") for word in words]
        words = [word.replace("FILE", "a.en" if ".source=" in word else "a.fr") for word in words]
    assert refusals


def test_a_missing_file_is_named_with_its_folder(tmp_path: Path) -> None:
    for name in ("a.en", "a.fr"):
        (tmp_path / name).write_text("a b\n")
    (tmp_path / "other").mkdir()
    ended = run("prepare", "data=text", *FILES, cwd=tmp_path / "other")
    assert ended.code == 2
    assert f"data.train.source: no such file: {tmp_path / 'other/a.en'}" in ended.err
    absolute = [f"{key}={tmp_path / name}" for key, name in (word.split("=") for word in FILES)]
    assert run("prepare", "data=text", *absolute, cwd=tmp_path / "other").code == 0


def test_a_run_goes_on_as_its_message_says(program, rnnsearch) -> None:
    shutil.copytree(rnnsearch, program.folder / "copied", symlinks=True)
    words = ["resume=copied", "data.max_length=20"]
    ended = program("train", *words)
    assert ended.code == 2
    words = follow(words, ended.err.splitlines()[-1])
    assert "data.max_length=50" in words
    assert program("train", *words).code == 0
