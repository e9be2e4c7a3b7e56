"""The start of a command: its imports, its help, and its run folder."""

from __future__ import annotations

import re
import resource
import signal
import subprocess
import sys

import pytest

import nmt.__main__ as dispatcher
from nmt.cli import composition
from nmt.cli.composition import run_folder, with_plus
from nmt.utils.environment import rank
from tests.helpers import ROOT
from tests.test_budget import BUDGET

COMMANDS = {
    "train": ("resume: ", "experiment: rnnencdec30, rnnencdec50"),
    "evaluate": ("sets: ", "search: beam, greedy"),
    "translate": ("tokenised: ", "search: beam, greedy"),
    "score": ("target: ", "checkpoint: "),
    "compare": ("runs: ", "output: "),
    "prepare": ("data.…: the text", "tokenizer: bpe, words"),
}
HEAVY = "torch pytorch_lightning torchmetrics datasets wandb pandas numpy matplotlib sacrebleu"


def python(*arguments: str, cwd=ROOT) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, *arguments], cwd=cwd, capture_output=True, text=True, timeout=100
    )


def test_commands_import_no_heavy_library_at_start():
    modules = "nmt.train, nmt.translate, hydra_plugins.nmt_process_launcher.launcher"
    check = f"print([name for name in '{HEAVY}'.split() if name in sys.modules])"
    ended = python("-c", f"import sys, {modules}; {check}")
    assert ended.stdout == "[]\n", ended.stderr


@pytest.mark.parametrize(
    "command",
    [pytest.param(name, marks=() if name == "train" else pytest.mark.slow) for name in COMMANDS],
)
def test_help_lists_examples_keys_and_groups(program, command):
    ended = program(command, "--help")
    assert ended.code == 0, ended.err
    assert ended.out.startswith(f"python -m nmt.{command}: ")
    assert len(re.findall(rf"^ *python -m nmt\.{command} ", ended.out, re.MULTILINE)) > 1
    for part in COMMANDS[command]:
        assert part in ended.out


def test_composed_configuration_stays_within_its_budget():
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    ended = python("-m", "nmt.train", "experiment=rnnsearch50", "--cfg", "job")
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before < 3  # seconds
    assert ended.returncode == 0, ended.stderr
    assert "experiment: rnnsearch50" in ended.stdout
    assert ended.stdout.count("\n") <= BUDGET["composed"]


def test_nmt_without_a_command_lists_the_commands(monkeypatch):
    # In this process, the list would change what SIGPIPE does, and a closed pipe of a later test would end it.
    listed = re.findall(r"^  (\w+)  +\S.*\.$", python("-m", "nmt").stdout, re.MULTILINE)
    files = {path.stem for path in (ROOT / "nmt").glob("*.py")}
    assert set(listed) == files - {"__init__", "__main__", "api"}
    monkeypatch.setattr(sys, "argv", ["nmt", "trian"])
    with pytest.raises(SystemExit) as ended:
        dispatcher.main()
    assert ended.value.code == 2


def test_list_of_commands_may_be_cut_short_by_a_pipe():
    process = subprocess.Popen(
        [sys.executable, "-m", "nmt", "--help"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=ROOT,
    )
    process.stdout.close()  # as `| head -1` does
    assert process.stderr.read() == b""
    assert process.wait() == -signal.SIGPIPE


SLURM = {"SLURM_JOB_ID": "77", "SLURM_NTASKS": "2"}


@pytest.mark.parametrize(
    ("environment", "command", "folder"),
    [
        ({"TORCHELASTIC_RUN_ID": "a"}, "train", "outputs/torchrun-a"),
        ({"TORCHELASTIC_RUN_ID": "a"}, "evaluate", "outputs/torchrun-a-evaluate"),
        ({**SLURM, "SLURM_STEP_ID": "2"}, "train", "outputs/slurm-77.2"),
        ({**SLURM, "SLURM_STEP_ID": "2"}, "evaluate", "outputs/slurm-77.2-evaluate"),
    ],
)
def test_run_folder_is_the_same_for_all_ranks_of_a_job(monkeypatch, environment, command, folder):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert run_folder(command) == folder
    assert run_folder(command, "conf") == "conf"


@pytest.mark.parametrize(
    "outside",
    [
        {},
        {"SLURM_STEP_ID": "4294967290"},
        {"SLURM_STEP_ID": "0", "SLURM_JOB_NAME": "interactive"},
    ],
)
def test_run_folder_is_new_for_a_training_without_srun(monkeypatch, tmp_path, outside):
    monkeypatch.chdir(tmp_path)
    for name, value in {**SLURM, "SLURM_PROCID": "0", "LOCAL_RANK": "1", **outside}.items():
        monkeypatch.setenv(name, value)
    composition._make_new_folder.cache_clear()
    assert "slurm" not in run_folder("train")
    assert run_folder("train", "auto") == "outputs/slurm-77"
    assert rank() == 1  # the value of LOCAL_RANK


def test_run_folder_is_new_for_each_command_of_one_second(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    folders = []
    for _ in range(3):
        composition._make_new_folder.cache_clear()
        folders += [run_folder("train"), run_folder("train")]
    composition._make_new_folder.cache_clear()
    assert folders[::2] == folders[1::2]
    assert folders[2] == f"{folders[0]}-1"
    assert folders[4] == f"{folders[0]}-2"


def test_tilde_at_the_start_of_a_value_is_expanded(monkeypatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    words = [
        "runs=[~/a,~/b]",
        'output="~/c"',
        "+systems={x: ~/d}",
        "data.root=~",
        "~search",
        "a=b~/c",
    ]
    typed = ["trainer.max_epochs=2", "trainer.max_steps=-1"]
    for plus in ("", "+", "++"):
        assert with_plus([f"{plus}trainer.max_epochs=2"]) == typed
    for off in ("null", "-1"):
        assert with_plus([f"trainer.max_steps={off}", "trainer.max_epochs=2"]) == typed
    for other in ("~data.batch_size", "data.batch_size=null"):
        assert with_plus([other]) == [other]
    assert with_plus(words) == [
        "runs=[/home/me/a,/home/me/b]",
        'output="/home/me/c"',
        "+systems={x: /home/me/d}",
        "data.root=/home/me",
        "~search",
        "a=b~/c",
    ]
