"""Printed commands, typed back: the shell and Hydra give the same text again."""

import shlex
from pathlib import Path

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser

from nmt.training.signals import Stop
from nmt.utils.commands import command_line, override, quoted

FOLDERS = [
    *("plain", "outputs/2026-01-31/12-00-00", "grün", "漢字", "a,b", "a=b", "a(b)", "a'b", "a&b"),
    *(
        "a#b",
        "a;b",
        "~",
        "a b",
        "[a]",
        "{a: 1}",
        'a"b',
        "a\\b",
        "a\\",
        "a\\'",
        "null",
        "true",
        "1e3",
    ),
    *("a:b", "a*?", "!x", "`id`", "$(id)", "-rf", "a|b", "<a>"),
]


def typed_back(line: str) -> list[str]:
    """The overrides that a shell hands on."""
    python, module, name, *overrides = shlex.split(line)
    assert (python, module, name[:4]) == ("python", "-m", "nmt.")
    return overrides


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_folder_comes_back_as_it_is(folder):
    (typed,) = typed_back(command_line("train", [override("resume", folder)]))
    (read,) = OverridesParser.create().parse_overrides([typed])
    assert (read.key_or_group, str(read.value())) == ("resume", folder)
    (listed,) = OverridesParser.create().parse_overrides([f"runs=[{quoted(folder)}]"])
    assert list(map(str, listed.value())) == [folder]


@pytest.mark.parametrize("name", ["grün 漢字", "a,b=(c)'&#;~"])
def test_a_stopped_run_says_how_to_resume_it(tmp_path, name):
    folder = tmp_path / name
    (folder / "checkpoints").mkdir(parents=True)
    (folder / "checkpoints/last.ckpt").touch()
    said = str(Stop(folder).interrupted(15))
    (typed,) = typed_back(said.partition("resume with: ")[2])
    (read,) = OverridesParser.create().parse_overrides([typed])
    assert Path(read.value()) == folder
