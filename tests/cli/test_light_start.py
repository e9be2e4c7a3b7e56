"""What a command imports before there is work to do: nothing that takes seconds."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from typing import NamedTuple

import pytest

from tests.helpers import ROOT

HEAVY = (
    "torch",
    "pytorch_lightning",
    "lightning_fabric",
    "torchmetrics",
    "datasets",
    "wandb",
    "transformers",
    "tokenizers",
    "huggingface_hub",
    "pandas",
    "pyarrow",
)
FOR_REPORTS = ("numpy", "matplotlib", "sacrebleu", "vl_convert", "PIL")

MODULES = [  # that every start imports, and those that must be as light
    "nmt",
    "nmt.cli.command",
    "nmt.cli.sweep",
    "nmt.cli.reference",
    "nmt.config.validation",
    "nmt.config.overrides",
    *(f"nmt.utils.{name}" for name in ("cores", "environment", "errors", "files", "optional")),
    "nmt.training.signals",
    "hydra_plugins.nmt_process_launcher.launcher",
]

# Runs modules as `python -m` does, each in a fork of its own, and lists what each has imported when
# it ends. What every start imports and composes is shared, and would be in each list if it imported
# them.
RUN = f"""
import atexit, importlib, json, os, runpy, sys, traceback
from hydra.core.plugins import Plugins
from nmt.config.schema import SCHEMAS
from tests.helpers.composition import compose, share_compositions
for name in {MODULES}:
    importlib.import_module(name)
    for heavy in {HEAVY + FOR_REPORTS}:
        assert heavy not in sys.modules, f"{{name}} imports {{heavy}}"
Plugins.instance()
share_compositions()
for command in SCHEMAS:
    compose(command, [])
programs = json.loads(sys.argv[1])
found = lambda: [name for name in {HEAVY + FOR_REPORTS} if name in sys.modules]
for number, (module, *typed) in enumerate(programs):
    process = os.fork()
    if process:
        os.waitpid(process, 0)
        continue
    output, code = os.open(f"{{number}}.out", os.O_CREAT | os.O_WRONLY), 0
    os.dup2(output, 1)
    os.dup2(output, 2)
    sys.argv[1:] = typed
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as ended:
        code = ended.code
    except BaseException:
        traceback.print_exc()
        code = 1
    atexit._run_exitfuncs()
    sys.stdout.flush()
    with open(f"{{number}}.json", "w") as listing:
        json.dump([code, found()], listing)
    os._exit(0)
"""

HELPS = {
    "train": ("Trains a model", "experiment: rnnencdec30, rnnencdec50, rnnsearch30"),
    "evaluate": ("Runs the whole test protocol", "stress: lengths"),
    "translate": ("Translates standard input", "search: beam, greedy"),
    "score": ("Scores given translations", "search: beam, greedy"),
    "compare": ("Compares runs", "resamples: 1000"),
    "prepare": ("Tokenises, filters and encodes text", "tokenizer: bpe, words"),
    "baseline": ("Trains a phrase-based system", "data: europarl, grammar, multi30k, text"),
}
WRONG = [
    ("train trainer.max_steps=many", "trainer.max_steps takes: whole number"),
    ("train model=seq2seq", "model=seq2seq: no such; available: rnnencdec, rnnsearch"),
    ("train data.batch_size=0", "data.batch_size=0: must be at least 1"),
    ("train model=rnnencdec scoring=dot", "RNNencdec has no attention"),
    ("train data.batch_size=81 trainer.devices=2", "data.batch_size=81: must be a multiple"),
    ("baseline data.languages=[en]", "data.languages=[en]: must be a source and a target"),
    ("evaluate", "checkpoint: must be given"),
    ("evaluate checkpoint=f search.beam_size=0", "search.beam_size=0: must be at least 1"),
    ("translate checkpoint=f nbest=0", "nbest=0: must be at least 1"),
    ("compare runs=[a] figures=gif", "figures=gif: must be one of png, svg, pdf"),
]
SWEEP = "nmt.train -m data.batch_size=-1 hydra.sweep.dir=s hydra.launcher.n_jobs=2"
PROGRAMS = [
    "tests.helpers",
    "nmt.evaluation.buckets",
    *(f"nmt {command} --help" for command in HELPS),
    *(f"nmt.{command} seeed=1" for command in HELPS),
    *(f"nmt.{command} --cfg job" for command in HELPS),
    *(f"nmt.{typed}" for typed, _ in WRONG),
    SWEEP,
]


class Started(NamedTuple):
    """How a program ended: its exit code, what it printed, and the libraries that it imported."""

    code: int
    output: str
    imported: set[str]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("start")


@pytest.fixture(scope="module")
def started(folder) -> dict[str, Started]:
    """How each of PROGRAMS ended."""
    subprocess.run(
        [sys.executable, "-c", RUN, json.dumps([program.split() for program in PROGRAMS])],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=True,
        timeout=300,
    )
    found = {}
    for number, program in enumerate(PROGRAMS):
        code, imported = json.loads((folder / f"{number}.json").read_text())
        found[program] = Started(code, (folder / f"{number}.out").read_text(), set(imported))
    return found


def test_what_is_imported_is_seen(started):
    assert started["tests.helpers"].imported == set()
    assert started["nmt.evaluation.buckets"].imported == {"numpy"}


@pytest.mark.parametrize("command", HELPS)
def test_help(started, command):
    """What it does, three examples or more, what can be chosen, and where the keys are."""
    code, said, imported = started[f"nmt {command} --help"]
    does, shown = HELPS[command]
    assert (code, imported) == (0, set()), said
    assert said.startswith(f"python -m nmt.{command}: {does}")
    examples = re.findall(rf"^ *python -m nmt\.{command}\b", said, re.MULTILINE)
    assert len(examples) > 3  # the first line is the title
    assert shown in said
    assert "docs/configuration.md" in said


@pytest.mark.parametrize("command", HELPS)
def test_a_misspelt_key(started, folder, command):
    code, said, imported = started[f"nmt.{command} seeed=1"]
    assert (code, imported) == (2, set()), said
    assert said.startswith("nmt: seeed: no such key")
    assert said.count("\n") == 1
    assert not [path for path in (folder / "outputs").rglob("*") if path.is_file()]


@pytest.mark.parametrize("command", HELPS)
def test_the_configuration_is_shown(started, command):
    code, said, imported = started[f"nmt.{command} --cfg job"]
    assert (code, imported) == (0, set()), said
    assert re.search("^(seed|runs):", said, re.MULTILINE)
    assert ("max_steps: ${updates.${experiment}}" in said) == (command != "compare")


@pytest.mark.parametrize(("typed", "said"), WRONG)
def test_what_is_wrong_is_known_without_libraries(started, typed, said):
    code, output, imported = started[f"nmt.{typed}"]
    assert (code, imported) == (2, set()), output
    assert said in output


def test_the_parent_of_a_sweep_starts_no_library(started, folder):
    """The job is refused; the page of none is not made, but what makes it is looked for."""
    code, output, imported = started[SWEEP]
    assert code == 1
    assert "job 0 refused (exit code 2)" in output
    assert imported & set(HEAVY) == set(), output
    said = (folder / "s/0/console.log").read_text().splitlines()
    assert said[1:] == ["nmt: data.batch_size=-1: must be at least 1"]
