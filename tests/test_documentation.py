"""Every command that the documentation shows can be typed, and every link leads somewhere."""

from __future__ import annotations

import argparse
import importlib
import re
import tomllib
from importlib.util import find_spec
from itertools import zip_longest
from pathlib import Path
from textwrap import indent

import pytest
from hydra._internal.utils import get_args_parser
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import IntervalSweep, Override
from hydra.errors import HydraException
from omegaconf.errors import OmegaConfBaseException

from nmt.cli.composition import conf_folder
from nmt.config.validation import load
from nmt.utils.errors import InputError
from tests.conftest import CHECKS
from tests.helpers import ROOT, composition
from tests.helpers.documentation import PAGES, Shown, blocks, commands, files, in_block, recipe

# what stands for a thing of the reader's own, and what the test takes for it
PLACEHOLDERS = {
    "$D": "multi30k",
    "$E": "europarl",
    "$G": "gold",
    "DIR": "here",
    "DATE/TIME": "2026-01-31/12-00-00",
    "ENTITY/PROJECT": "me/nmt",
    "FILE": "best.ckpt",
    "FOLDER": "folder",
    "HOST": "localhost",
}
PROGRAMS = {  # of the commands that are not composed: the module whose `main` reads the arguments
    "benchmarks": "benchmarks.__main__",
    "benchmarks.gpu": "benchmarks.gpu.__main__",
    "benchmarks.peers": "benchmarks.peers.__main__",
    "benchmarks.records": "benchmarks.records",
    "nmt.grammar": "nmt.grammar.__main__",
}
BROKEN = (
    HydraException,
    OmegaConfBaseException,
    InputError,
    SystemExit,
    ValueError,
    AssertionError,
)
SHOWN = sorted({(page, command) for page in PAGES for command in commands(page.read_text())})
# what several pages show is typed once, but for what names a page's own files
DISTINCT = sorted(
    {command if "--config-dir" not in command.words else (page, command): (page, command)
     for page, command in SHOWN}.values()
)  # fmt: skip


class Parsed(Exception):
    """A program has read its arguments."""


def filled(word: str) -> str:
    """The word with its placeholders filled in."""
    for name, value in PLACEHOLDERS.items():
        word = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", value, word)
    left = re.search(r"\$\{?[A-Z]\w*|…|\.\.\.|(?<![\w.])[A-Z]{3,}(?![\w-])", word)
    assert not left, f"{word}: the placeholder {left[0]} is not in the table of this test"
    return word


def check(command: Shown, folder: Path | None = None) -> None:
    """Raises one of BROKEN for a command that would be refused for the way it is typed.

    `folder` is where it is typed, for options of the reader's own.
    """
    words = [filled(word) for word in command.words]
    if command.launcher[0] == "torchrun":
        from torch.distributed.run import get_args_parser as torchrun

        torchrun().parse_args([*map(filled, command.launcher[1:]), "-m", command.module])
    if command.module in ("nmt", "nmt.cli.reference"):
        assert not words
    elif command.module in PROGRAMS:
        parses(PROGRAMS[command.module], words)
    else:
        compose(command.module.removeprefix("nmt."), words, folder or ROOT)


def parses(module: str, words: list[str]) -> None:
    """Has a program read its arguments and do nothing with them."""

    def parse(self: argparse.ArgumentParser, typed: object = None) -> None:
        real(self, words)
        raise Parsed

    real, main = argparse.ArgumentParser.parse_args, importlib.import_module(module).main
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(argparse.ArgumentParser, "parse_args", parse)
        with pytest.raises(Parsed):
            main()


def swept(override: Override) -> list[object]:
    """The values of a sweep's override, of an interval its ends; none where it is no sweep's."""
    if not override.is_sweep_override():
        return []
    if override.is_interval_sweep():
        interval = override.value()
        assert isinstance(interval, IntervalSweep)
        return [interval.start, interval.end]
    return list(override.sweep_string_iterator())


def compose(name: str, words: list[str], folder: Path) -> None:
    """Composes a command's configuration; of a sweep, jobs in which every option occurs.

    Of numbers the first stands for all.
    """
    assert (conf_folder() / f"{name}.yaml").is_file(), f"no command {name}"
    typed = get_args_parser().parse_args(words)
    overrides = OverridesParser.create().parse_overrides(typed.overrides)
    values = [
        [f"{each.input_line.partition('=')[0]}={value}" for value in swept(each)]
        or [each.input_line]
        for each in overrides
    ]
    assert typed.multirun or all(len(each) == 1 for each in values), "a sweep without -m"
    numbers = r"[\w.]+=[\d.e-]+"
    values = [
        [first] if all(re.fullmatch(numbers, each) for each in (first, *more)) else [first, *more]
        for first, *more in values
    ]
    for option, plugin in (
        ("launcher=submitit_slurm", "submitit_launcher"),
        ("sweeper=optuna", "optuna_sweeper"),
    ):
        if f"hydra/{option}" in typed.overrides and not find_spec(f"hydra_plugins.hydra_{plugin}"):
            # of an extra: what it takes is known only where it is there
            kind = option.partition("=")[0]
            values = [each for each in values if not re.match(rf"hydra[/.]{kind}", each[0])]
    own = [f"hydra.searchpath=[file://{folder / typed.config_dir}]"] if typed.config_dir else []
    for job in zip_longest(*values):
        job = [value or first[0] for value, first in zip(job, values, strict=True)]
        CHECKS.get(name, load)(composition.compose(name, [*own, *job]))


@pytest.mark.parametrize(
    ("page", "command"),
    DISTINCT,
    ids=[f"{page.name}: {command}" for page, command in DISTINCT],
)
def test_what_is_shown_can_be_typed(tmp_path, page, command):
    for name, content in files(page.read_text()).items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content)
    check(command, tmp_path)


DEVELOPMENT = ("pytest", "ruff", "mypy")


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "justfile", ".ci/run"])
def test_what_only_tests_need_is_asked_for(name):
    """`uv run` alone installs no group, so that the first command does not wait for these."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert project["tool"]["uv"]["default-groups"] == []
    listed = [re.split(r"[\W]", need)[0] for need in project["dependency-groups"]["dev"]]
    assert set(DEVELOPMENT) <= set(listed)
    text = (ROOT / name).read_text()
    found = re.findall(r"uv run(?: --group (\w+))? (\w+)", text)
    assert {program for _, program in found} & set(DEVELOPMENT)
    for group, program in found:
        assert (group == "dev") == (program in DEVELOPMENT), program


def test_the_readme_shows_the_main_commands():
    shown = {command.module for page, command in SHOWN if page.name == "README.md"}
    assert shown >= {"nmt.train", "nmt.evaluate", "nmt.translate", "nmt.compare"}


def test_every_example_of_a_help_can_be_typed():
    """The docstrings of the commands are what `--help` shows."""
    found, typed_above = 0, {command for _, command in SHOWN}
    for name in (
        "train",
        "evaluate",
        "translate",
        "score",
        "compare",
        "prepare",
        "baseline",
    ):
        said = importlib.import_module(f"nmt.{name}").__doc__ or ""
        for command in commands(indent(said, "    ")):
            if command not in typed_above:
                check(command)
            found += 1
    assert found >= 14


PAGE = """
Inline `just train seed=2`, `python -m benchmarks --part memory` and `python -V`.

    pip install uv && uv run python -m nmt.train +experiment=rnnsearch50  # a comment
    D=a folder
    python -m nmt.translate checkpoint=$D/best.ckpt \\
        nbest=2 < some.en > some.fr

<!-- file: conf/a.yaml -->
```yaml
b: python -m nmt.no
```

<!-- quick -->
```bash
torchrun --nproc-per-node=2 -m nmt.train trainer=ddp
sbatch --wrap "exec python -m nmt.train -m \\
    seed=1,2"
```
Not code: python -m nmt.train
<!-- quick -->
Text between a mark and a block takes the mark away.

    cat a.txt | python3 -m nmt.compare 'runs=[a b]'
"""


def test_commands_are_found_wherever_they_stand():
    a, b = ("+experiment=rnnsearch50",), ("checkpoint=$D/best.ckpt", "nbest=2")
    quick = [
        Shown("nmt.train", ("trainer=ddp",), ("torchrun", "--nproc-per-node=2")),
        Shown("nmt.train", ("-m", "seed=1,2")),
    ]
    assert commands(PAGE.replace("b: python -m nmt.no\n", "b: 1\n")) == [
        Shown("nmt.train", a),
        Shown("nmt.translate", b, stdin="some.en", stdout="some.fr"),
        *quick,
        Shown("nmt.compare", ("runs=[a b]",), ("python3",)),
        Shown("nmt.train", ("seed=2",)),
        Shown("benchmarks", ("--part", "memory")),
    ]
    marked = [block for block in blocks(PAGE) if block.mark == "quick"]
    assert [command for block in marked for command in in_block(block)] == quick
    assert files(PAGE) == {"conf/a.yaml": "b: python -m nmt.no\n"}
    assert [block.language for block in blocks(PAGE)] == ["", "yaml", "bash", ""]


@pytest.mark.parametrize(
    "line",
    [
        "uv run python -m nmt.train +experiment=rnnsearch50 optimiser.lr=1",
        "python -m nmt.train optimizer.lr=fast",
        "python -m nmt.train trainer.max_steps=0",
        "python -m nmt.train +experiment=rnnsearch51",
        "python -m nmt.train --multi-run seed=1,2",
        "python -m nmt.train seed=1,2",
        "python -m nmt.train -m scoring=additive,dott seed=1,2,3",
        "python -m nmt.train hydra.launcher.jobs=2",
        "python -m nmt.train data.train.source=$X/train.en",
        "python -m nmt.train resume=PLACE",
        "python -m nmt.evaluate checkpoint=FILE set=[test]",
        "python -m nmt.trian seed=1",
        "just train sead=2",
        "torchrun --nprok-per-node=2 -m nmt.train trainer=ddp",
        "python -m benchmarks --size latpop",
        "python -m benchmarks.peers --round 5 6",
        "python -m benchmarks.gpu --only kernel",
        "python -m nmt.grammar --count 5",
    ],
)
def test_a_wrong_command_is_found(line, capsys):
    """The test above can fail: a page with one of these would make it."""
    (command,) = commands(f"Try:\n\n    {line}\n")
    with pytest.raises(BROKEN):
        check(command)


def test_a_recipe_that_there_is_not():
    assert next(recipe("sweep", [])).words[0] == "-m"
    with pytest.raises(KeyError):
        commands("    just trian\n")


@pytest.mark.parametrize("page", PAGES, ids=[page.name for page in PAGES])
def test_links_lead_somewhere(page):
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    targets = re.findall(r"\]\(([^)\s]+)\)", text)
    for target in targets:
        path, _, part = target.partition("#")
        if ":" in target:
            continue
        linked = page.parent / path if path else page
        assert linked.exists(), target
        if part:
            heads = re.findall(r"^#+ (.*)$", linked.read_text(), re.MULTILINE)
            assert part in {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in heads}


def test_every_page_is_one_click_from_the_index():
    index = (ROOT / "docs/README.md").read_text()
    linked = set(re.findall(r"\]\(([\w-]+\.md)\)", index))
    assert linked == {page.name for page in (ROOT / "docs").glob("*.md")} - {"README.md"}
    readme = (ROOT / "README.md").read_text()
    assert "](docs/README.md)" in readme
    assert "](CONTRIBUTING.md)" in readme
    assert "](CHANGELOG.md)" in readme
