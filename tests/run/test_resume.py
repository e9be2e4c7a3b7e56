"""Runs that are killed and resumed end as if they had never stopped."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.helpers.processes import TINY, Ended, run

# dropout and micro-batches, so that seeds and the place in an update matter; a patience that ends
# nothing, so that its state is kept; checkpoints every few updates beside those of validations
OPTIONS = (
    *TINY,
    "model.dropout=0.2",
    "trainer.accumulate=2",
    "trainer.max_steps=14",
    "trainer.valid_every=4",
    "trainer.valid_translate=2",
    "trainer.patience=9",
    "schedule=constant",
    "checkpoint.minutes=0.000001",
)
TIMES = {"hours", "sentences_per_second", "target_words_per_second", "peak_memory"}


class Work:
    """A folder of runs that share their prepared text."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def train(self, name: str, *arguments: str, **keywords: Any) -> Ended:
        options = (*OPTIONS, f"hydra.run.dir={name}", "data.cache=cache")
        return run("train", *options, *arguments, cwd=self.folder, **keywords)

    def measured(self, name: str) -> dict[str, Any]:
        """What results.json says that another run of the same must say, too."""
        found = json.loads((self.folder / name / "results.json").read_text())
        train = {key: value for key, value in found["train"].items() if key not in TIMES}
        return {"train": train, **{key: found[key] for key in ("test", "valid", "history")}}

    def checkpoint(self, name: str, file: str = "last") -> dict[str, Any]:
        path = self.folder / name / "checkpoints" / f"{file}.ckpt"
        content: dict[str, Any] = torch.load(path, weights_only=True)
        return content

    def same(self, one: str, other: str) -> None:
        for file in ("last", "best"):
            first, second = self.checkpoint(one, file), self.checkpoint(other, file)
            assert first["global_step"] == second["global_step"]
            for key, value in first["state_dict"].items():
                assert torch.equal(value, second["state_dict"][key]), (file, key)
        assert self.measured(one) == self.measured(other)


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Work:
    """With a run `whole` that was never stopped."""
    work = Work(tmp_path_factory.mktemp("resume"))
    assert work.train("whole").code == 0
    history = work.measured("whole")["history"]
    assert [entry["update"] for entry in history] == [4, 8, 12, 14]
    return work


def test_the_same_seed_gives_the_same_weights_whatever_the_workers(work):
    assert work.train("again", "data.workers=2", "deterministic=true").code == 0
    work.same("whole", "again")


@pytest.mark.slow
def test_an_epoch_of_limited_length_is_resumed_inside(work):
    """Six micro-batches an epoch, three updates; stopped after the second update of the third."""
    limit = "+trainer.lightning.limit_train_batches=6"
    assert work.train("limited", limit).code == 0
    hook = "fail('nmt.models.base:Translator.training_step', 17, ValueError('broken'))"
    assert work.train("limited-broken", limit, hook=hook).code == 1
    assert work.checkpoint("limited-broken")["global_step"] == 8
    assert work.train("limited-broken", limit, "resume=auto").code == 0
    work.same("limited", "limited-broken")
    assert work.measured("limited") != work.measured("whole")


@pytest.mark.slow
@pytest.mark.parametrize("average", ["swa", "ema"])
def test_averaged_weights_are_resumed_exactly(work, average):
    """Killed in update 14, and resumed from update 12, when the mean is of three updates."""
    typed = (f"callbacks={average}",)
    assert work.train(average, *typed).code == 0
    mean = work.checkpoint(average)
    current = work.checkpoint("whole")["state_dict"]
    for name, weights in mean["current_model_state"].items():
        assert torch.equal(weights, current[name]), name
    assert any(
        not torch.equal(weights, current[name]) for name, weights in mean["state_dict"].items()
    )
    hook = "kill('nmt.models.base:Translator.training_step', 27)"
    assert work.train(f"{average}-killed", *typed, hook=hook).code == -9
    assert work.checkpoint(f"{average}-killed")["global_step"] == 12
    assert work.train(f"{average}-killed", *typed, "resume=auto").code == 0
    work.same(average, f"{average}-killed")


@pytest.mark.slow
@pytest.mark.parametrize(
    "typed",
    [
        ("scoring=rescaled_dot", "callbacks=ema", "optimizer=adadelta"),
        ("scoring=cosine", "encoder=forward", "unit=lstm", "data.reverse_source=true"),
        ("scoring=general", "attention=local", "model.attention.window=3"),
    ],
)
def test_options_beyond_the_paper_are_resumed_exactly(work, typed):
    """Two groups of parameters, states with a memory, a window: killed in update 14."""
    name = typed[0].partition("=")[2]
    assert work.train(name, *typed).code == 0
    hook = "kill('nmt.models.base:Translator.training_step', 27)"
    assert work.train(f"{name}-killed", *typed, hook=hook).code == -9
    assert work.checkpoint(f"{name}-killed")["global_step"] == 12
    assert work.train(f"{name}-killed", *typed, "resume=auto").code == 0
    work.same(name, f"{name}-killed")


@pytest.mark.slow
def test_threads_are_those_of_the_start(work):
    """Layers large enough for products that two threads share; typed once, then stored."""
    wide = ("model.hidden=64", "data.batch_size=32", "trainer.max_steps=4", "trainer.threads=2")
    assert work.train("two", *wide).code == 0
    hook = "kill('nmt.models.base:Translator.training_step', 7)"
    assert work.train("two-killed", *wide, hook=hook).code == -9
    ended = resume_by_folder(work, "two-killed")
    assert ended.code == 0, ended.err
    work.same("two", "two-killed")
    found = json.loads((work.folder / "two-killed/results.json").read_text())
    assert found["config"]["trainer"]["threads"] == 2
    assert found["train"]["device"] == "CPU, 2 threads"
    assert work.checkpoint("two-killed")["nmt"]["config"]["trainer"]["threads"] == 2
    whole = json.loads((work.folder / "whole/results.json").read_text())
    assert whole["config"]["trainer"]["threads"] == 1  # OMP_NUM_THREADS of these tests


KILLS = {
    "in a micro-batch": ("nmt.models.base:Translator.training_step", 20),
    "between last and previous": ("os:replace", 16),
    "while a checkpoint is written": ("torch:save", 5),
    "in a validation": ("nmt.training.validation:Validation._translate", 3),
    "before the best is copied": ("nmt.training.checkpoint_folder:CheckpointFolder.keep_best", 4),
    "in the tests": ("nmt.inference.test_loop:_Step.__call__", 2),
    "while results are written": ("nmt.evaluation.results:write", 1),
}
QUICK = "in a micro-batch"


@pytest.mark.parametrize(
    "moment", [pytest.param(m, marks=() if m == QUICK else pytest.mark.slow) for m in KILLS]
)
def test_killed(work, moment):
    place, count = KILLS[moment]
    name = moment.replace(" ", "-")
    assert work.train(name, hook=f"kill({place!r}, {count})").code == -9
    ended = work.train(name, "resume=auto") if "in" in moment else resume_by_folder(work, name)
    assert ended.code == 0, ended.err
    work.same("whole", name)


def resume_by_folder(work: Work, name: str) -> Ended:
    """Nothing typed but the folder: all else is in the checkpoint."""
    return run("train", f"resume={name}", cwd=work.folder)


@pytest.mark.slow
def test_killed_twenty_times_at_random(work):
    """Each run is killed at a random call of a random function until it is through."""
    places = [place for place, _ in KILLS.values()]
    most = {"training_step": 28, "replace": 60, "save": 12, "_translate": 4, "__call__": 2}
    draw, kills = random.Random(1), 0
    while kills < 20:
        name = f"random-{kills}"
        code = -9
        while code == -9:
            place = draw.choice(places)
            count = draw.randint(1, most.get(place.replace(":", ".").rpartition(".")[2], 3))
            ended = work.train(name, "resume=auto", hook=f"kill({place!r}, {count})")
            code = ended.code
            kills += code == -9
        assert code == 0, ended.err
        work.same("whole", name)


@pytest.mark.slow
def test_a_damaged_last_checkpoint_is_passed_by(work):
    assert work.train("damaged", hook="kill('os:replace', 40)").code == -9
    last = work.folder / "damaged/checkpoints/last.ckpt"
    last.write_bytes(last.read_bytes()[:-1000])
    ended = work.train("damaged", "resume=auto")
    assert ended.code == 0, ended.err
    assert "last.ckpt: damaged" in ended.err
    assert "resuming from damaged/checkpoints/previous.ckpt instead" in ended.err.replace(
        f"{work.folder}/", ""
    )
    work.same("whole", "damaged")


@pytest.mark.parametrize(
    ("signal", "place", "count"),
    [
        ("SIGTERM", "nmt.models.base:Translator.training_step", 13),
        pytest.param(
            "SIGUSR1",
            "nmt.training.validation:Validation._translate",
            2,
            marks=pytest.mark.slow,
        ),
        pytest.param("SIGINT", "nmt.inference.test_loop:_Step.__call__", 1, marks=pytest.mark.slow),
    ],
)
def test_a_signal_stops_between_two_updates(work, signal, place, count):
    number = {"SIGTERM": 15, "SIGUSR1": 10, "SIGINT": 2}[signal]
    ended = work.train(signal, "checkpoint.minutes=10", hook=f"send({number}, {place!r}, {count})")
    assert ended.code == 128 + number, ended.err
    last = ended.err.strip().splitlines()[-1]
    assert last.startswith(f"nmt: stopped by {signal}; resume with: python -m nmt.train resume=")
    logged = (work.folder / signal / "train.log").read_text()
    assert f"ERROR nmt.cli.command: {last.removeprefix('nmt: ')}\n" in logged
    assert work.checkpoint(signal)["global_step"] == {15: 7, 10: 8, 2: 14}[number]
    assert work.train(signal, "resume=auto").code == 0
    work.same("whole", signal)


def test_early_stopping_goes_on_where_it_was(work):
    """Patience is used up at the validation after update 8, and the run is killed in its tests."""
    options = ("trainer.patience=1", "trainer.monitor=bleu", "trainer.valid_translate=1")
    hook = "kill('nmt.inference.test_loop:_Step.__call__', 1)"
    assert work.train("early", *options, hook=hook).code == -9
    stopped = work.checkpoint("early")
    assert stopped["nmt"]["progress"]["stopped_early"]
    assert stopped["global_step"] < 14
    assert work.train("early", *options, "resume=auto").code == 0
    assert work.checkpoint("early")["global_step"] == stopped["global_step"]
    ended = work.train("early", *options, "resume=auto", "trainer.max_steps=20")
    assert ended.code == 2
    assert "trainer.max_steps=20: the run has stopped early, at update" in ended.err


def test_a_finished_run_is_tested_otherwise_beside_its_earlier_results(work):
    """The command that results.json states is that of the start, with what was typed since."""
    begun = ("trainer.max_steps=2", "seed=3", "search.beam_size=2")
    assert work.train("tested", *begun).code == 0
    earlier = (work.folder / "tested/results.json").read_bytes()
    typed = ("search=greedy", "name=other", "stress.lengths=[]", "stress.pairs=4")
    ended = run("train", "resume=tested", *typed, cwd=work.folder)
    assert ended.code == 0, ended.err
    assert (work.folder / "tested/results.earlier.json").read_bytes() == earlier
    before, now = (
        json.loads(earlier),
        json.loads((work.folder / "tested/results.json").read_bytes()),
    )
    assert now["config"]["search"]["beam_size"] == 1
    # the group's option is in place of a key of it, but for what no resumed run changes
    started = [word for word in before["overrides"] if word != "search.beam_size=2"]
    assert "search.max_ratio=0.5" in started
    assert now["overrides"] == [*started, *typed]
    told = before["command"].replace(" search.beam_size=2", "")
    assert now["command"] == f"{told} search=greedy name=other 'stress.lengths=[]'"


def test_more_updates_can_be_asked_for(work):
    """A run of 6 updates that is gone on with to 14 is validated at 6, too; its weights agree."""
    assert work.train("short", "trainer.max_steps=6").code == 0
    ended = work.train("short", "resume=auto", "trainer.max_steps=5")
    assert ended.code == 2
    assert "trainer.max_steps=5: the run has made 6 updates already" in ended.err
    earlier = (work.folder / "short/results.json").read_bytes()
    hook = "from nmt.utils.errors import InputError\nfail({!r}, 1, InputError('not so'))"
    typed = ("resume=auto", "trainer.max_steps=14")
    ended = work.train("short", *typed, hook=hook.format("nmt.run.fit:make_trainer"))
    assert ended.code == 2, ended.err
    assert (work.folder / "short/results.json").read_bytes() == earlier
    logged = (work.folder / "short/train.log").read_text()
    assert logged.endswith("ERROR nmt.cli.command: not so\n")
    assert work.train("short", "resume=auto", "trainer.max_steps=14").code == 0
    assert (work.folder / "short/results.earlier.json").read_bytes() == earlier
    updates = [entry["update"] for entry in work.measured("short")["history"]]
    assert updates == [4, 6, 8, 12, 14]
    weights = work.checkpoint("whole")["state_dict"]
    for key, value in work.checkpoint("short")["state_dict"].items():
        assert torch.equal(value, weights[key]), key


def test_what_would_change_the_result_is_refused(work):
    folder = work.folder / "whole"
    for arguments, said in {
        ("hydra.run.dir=whole", *TINY): "holds the checkpoints of a run; resume=auto",
        ("resume=whole", "optimizer.lr=0.5"): "optimizer.lr=0.5: the run was started with",
        ("resume=nowhere",): "resume=nowhere: no checkpoint in",
        (
            "resume=whole",
            "trainer.max_steps=15",
            "evaluation.scores=[nonsense]",
        ): "evaluation.scores: no score 'nonsense'",
    }.items():
        ended = run("train", *arguments, cwd=work.folder)
        assert ended.code == 2
        assert said in ended.err.strip().splitlines()[-1]
    assert (folder / "results.json").is_file()


@pytest.mark.slow
def test_two_processes_killed(work):
    ddp = ("trainer=ddp", "trainer.accelerator=cpu", "trainer.devices=2")
    assert work.train("ranks", *ddp, ranks=2).codes == [0, 0]
    hook = "kill('nmt.models.base:Translator.training_step', 20)"
    codes = work.train("ranks-killed", *ddp, ranks=2, hook=hook).codes
    assert codes == [-9, -9]
    assert work.train("ranks-killed", *ddp, "resume=auto", ranks=2).codes == [0, 0]
    work.same("ranks", "ranks-killed")
    # the launcher of a sweep, and Lightning's ranks, have it that only the first is signalled
    hook = (
        "import os\nif os.environ['LOCAL_RANK'] == '0':"
        " send(15, 'nmt.models.base:Translator.training_step', 17)"
    )
    ended = work.train("ranks-stopped", *ddp, ranks=2, hook=hook)
    assert ended.codes == [143, 0], ended.err
    assert work.train("ranks-stopped", *ddp, "resume=auto", ranks=2).codes == [0, 0]
    work.same("ranks", "ranks-stopped")


@pytest.mark.slow
def test_offline_wandb_files_hold_each_row_once(work):
    """Killed in update 11, half a second after its last row; and again at once, as soon as it can be."""
    options = (
        "logger=wandb",
        "logger.mode=offline",
        "checkpoint.minutes=10",
        "callbacks=learning_rate_monitor",
    )
    step = "nmt.models.base:Translator.training_step"
    wait = f"before({step!r}, 22, lambda: time.sleep(0.5))"  # W&B writes every 0.1 s
    assert work.train("wandb", *options, hook=f"import time; kill({step!r}, 22); {wait}").code == -9
    assert work.checkpoint("wandb")["global_step"] == 8
    again = work.train("wandb", *options, "resume=auto", hook=f"kill({step!r}, 12)")
    assert again.code == -9, again.err
    assert work.checkpoint("wandb")["global_step"] == 12
    assert work.train("wandb", *options, "resume=auto").code == 0
    work.same("whole", "wandb")
    parts = sorted((work.folder / "wandb/wandb").glob("offline-run-*/run-*.wandb"))
    assert len({part.name for part in parts}) == 1
    logged = [records(part) for part in parts]
    begun = [record["run"] for record in logged[2] if "run" in record]
    assert [each["job_type"] for each in begun] == ["train"]
    assert begun[0]["display_name"].startswith("RNNsearch-50, seed 1 (")
    found = [history(part) for part in logged]
    assert len(found) == 3
    assert found[0][-1]["trainer/global_step"] >= 9
    rows = [row for part in found for row in part]
    for key, updates in {
        "train/nll_per_word": [2, 4, 6, 8, 10, 12, 14],
        "valid/nll_per_word": [4, 8, 12, 14],
        "valid/alignment/1.caption": [4, 8, 12, 14],
    }.items():
        assert [row["trainer/global_step"] for row in rows if key in row] == updates, key
    rates = [row for row in rows if any(key.startswith("lr-") for key in row)]
    updates = [row["trainer/global_step"] for row in rates]
    assert updates == [update for update in range(1, 14, 2) for _micro_batch in range(2)]
    steps = [row["_step"] for row in rows]
    assert steps == sorted(set(steps))


def history(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows among the records of an offline W&B file."""
    items = [(record.get("history") or {}).get("item") for record in records]
    return [each for each in items if each]


def records(file: Path) -> list[dict[str, Any]]:
    """What an offline W&B file holds."""
    import subprocess
    import sys

    command = [sys.executable, "-m", "wandb", "leet", "inspect", "--json", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]
