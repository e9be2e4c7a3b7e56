"""Kills and full disks at every file operation of what writes a run: nothing that was whole is lost."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from matplotlib.figure import Figure

from nmt.data.cache import build_once
from nmt.data.checksums import damage
from nmt.evaluation.records import write_translations
from nmt.models.checkpoint import write_checkpoint
from nmt.report.comparison import compare_set
from nmt.report.finding import read_run as read_finished
from nmt.report.style import save_figure, style
from nmt.report.tables import write_tables
from nmt.run.folder import RunFolder
from nmt.training.checkpoint_folder import CheckpointFolder
from nmt.utils import files
from nmt.utils.errors import RunError
from nmt.utils.locks import locked
from tests.helpers.faults import counted, full_from, killed_at
from tests.helpers.run_folders import make_run
from tests.run.test_resume import Work


@dataclass
class Writer:
    """Something that is written again and again.

    Attributes:
        write: writes version `n` into a folder, over version `n - 1`.
        read: the version that is found there as a later start finds it, or None; it must be whole.
    """

    write: Callable[[Path, int], Any]
    read: Callable[[Path], int | None]


def read_json(path: Path) -> int | None:
    return int(json.loads(path.read_text())["n"]) if path.exists() else None


def write_best(folder: Path, n: int) -> None:
    """As a validation does that has improved the score."""
    checkpoints = CheckpointFolder(folder / "checkpoints")
    checkpoints.make_room()
    write_checkpoint(
        {"global_step": n, "state_dict": {"a": torch.full((100,), n)}}, checkpoints.last
    )
    checkpoints.keep_best()


def read_best(folder: Path) -> int | None:
    checkpoints = CheckpointFolder(folder / "checkpoints")
    if checkpoints.best.exists():
        files.verify(checkpoints.best)
        assert torch.load(checkpoints.best, weights_only=True)["global_step"] in (0, 1, 2)
    newest = checkpoints.newest()
    if newest is None:
        return None
    content = torch.load(newest, weights_only=True)
    assert bool((content["state_dict"]["a"] == content["global_step"]).all())
    return int(content["global_step"])


def write_text(folder: Path, n: int) -> None:
    def build(made: Path) -> None:
        for name in ("text.arrow", "lengths.npy"):
            (made / name).write_text(f"{name} " * 100)

    if n == 2:  # it is found damaged, and made anew
        (folder / "text-1/text.arrow").write_text("not what it was")
    build_once(folder, "text-1", build)


def read_text(folder: Path) -> int | None:
    """What a later start uses is whole, whatever lies there."""
    write_text(folder, 0)
    assert damage(folder / "text-1") is None
    return 1


def work_in(folder: Path, n: int) -> None:
    with locked(folder / "run", "hydra.run.dir"):
        files.write_json(folder / "run/results.json", {"n": n})


def read_run(folder: Path) -> int | None:
    with locked(folder / "run", "hydra.run.dir"):
        return read_json(folder / "run/results.json")


def go_on(folder: Path, n: int) -> None:
    """As a run that is gone on with: its results are set aside before there are others."""
    run = RunFolder(folder)
    run.remove_partial()
    run.set_results_aside()
    files.write_json(run.results, {"n": n})


def read_either(folder: Path) -> int | None:
    found = (read_json(folder / f"results{part}.json") for part in ("", ".earlier"))
    return max((n for n in found if n is not None), default=None)


def write_run(folder: Path, n: int) -> None:
    """As the tests at the end of a run do."""
    row = {"id": 0, "hypothesis": [str(n)] * 9, "detokenised": f"{n} " * 9}
    write_translations(folder, "test", [row])
    with style():
        save_figure(Figure((1, 1)), folder / "figures/a", ["png"])


def read_translated(folder: Path) -> int | None:
    """The version of the hypotheses, each file of which is whole, as is the figure."""
    stem = folder / "translations/test"
    row = json.loads(Path(f"{stem}.jsonl").read_text())
    found = {int(text) for text in row["hypothesis"]}
    for text in (
        row["detokenised"],
        *(Path(f"{stem}{end}.txt").read_text() for end in ("", ".detok")),
    ):
        found |= {int(word) for word in text.split()}
        assert len(text.split()) == 9
    assert (folder / "figures/a.png").read_bytes().endswith(b"IEND\xaeB`\x82")
    return min(found)


WRITERS = {
    "a file": Writer(lambda f, n: files.write_json(f / "a.json", {"n": n}), lambda f: read_json(f / "a.json")),
    "checkpoints": Writer(write_best, read_best),
    "prepared text": Writer(write_text, read_text),
    "a run folder": Writer(work_in, read_run),
    "results": Writer(go_on, read_either),
    "translations": Writer(write_run, read_translated),
}  # fmt: skip
KILLS = {
    "a file": 14,
    "checkpoints": 116,
    "prepared text": 20,
    "a run folder": 20,
    "results": 16,
    "translations": 58,
}
assert sum(KILLS.values()) >= 100


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing waits for the disk: it is processes that are killed, not the machine."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


def twice(writer: Writer, folder: Path) -> None:
    writer.write(folder, 1)
    writer.write(folder, 2)


def attempts(
    name: str, tmp_path: Path, step: int = 1
) -> Iterator[tuple[int, Path, Callable[[], None], int]]:
    """A number of an operation, a folder with version 0, what is done there, and how far it gets.

    The last is the version that is written for good before the operation begins.
    """
    writer, whole = WRITERS[name], tmp_path / "whole"

    def prepared(folder: Path) -> Path:
        folder.mkdir()
        writer.write(folder, 0)
        return folder

    first = len(counted(partial(writer.write, prepared(whole), 1), tmp_path))
    total = len(counted(partial(twice, writer, prepared(tmp_path / "all")), tmp_path))
    assert total >= KILLS[name], total
    for number in range(1, total + 1, step):
        folder = prepared(tmp_path / str(number))
        yield number, folder, partial(twice, writer, folder), int(number > first)


@pytest.mark.parametrize(
    ("name", "step"),
    [
        *((name, 3 if name == "checkpoints" else 1) for name in WRITERS),
        pytest.param("checkpoints", 1, marks=pytest.mark.slow),
    ],
)
def test_killed_at_every_file_operation(name, step, tmp_path, quick):
    """What was written for good is found, whole, and writing goes on; at one operation in `step`."""
    writer = WRITERS[name]
    for number, folder, action, written in attempts(name, tmp_path, step):
        killed_at(number, action, tmp_path)
        found = writer.read(folder)
        assert found is not None, number
        assert found >= written, number
        writer.write(folder, 2)
        assert writer.read(folder) in (1, 2)  # of prepared text there is one version
        for inside in (folder, *filter(Path.is_dir, folder.iterdir())):
            RunFolder(inside).remove_partial()
        assert not list(folder.rglob("*.partial"))
        shutil.rmtree(folder)


def test_what_others_have_left_in_a_folder_that_was_typed_stays(tmp_path):
    """Such as a person's own: what is removed lies where a run writes."""
    ours = (".results.json.x", "checkpoints/.last.ckpt.x", "translations/.a.txt.x", "figures/.a.x")
    for name in (*(f"{name}.partial" for name in ours), "mine/.a.partial"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    RunFolder(tmp_path).remove_partial()
    assert [path.name for path in tmp_path.rglob("*.partial")] == [".a.partial"]


SLOWLY = [pytest.param(n, marks=pytest.mark.slow if n == "checkpoints" else ()) for n in WRITERS]


@pytest.mark.parametrize("name", SLOWLY)
def test_a_disk_that_is_full_from_any_file_operation_on(name, tmp_path, quick):
    """It is said to be full; what was written for good is found, and nothing half written stays."""
    writer = WRITERS[name]
    for number, folder, action, written in attempts(name, tmp_path):
        error = full_from(number, action, tmp_path)
        if error is None:  # what was left to do needed no room
            continue
        assert isinstance(error, OSError | RunError), (number, error)
        assert "No space left on device" in str(error) or "no space left for" in str(error), error
        assert not list(folder.rglob("*.partial"))
        found = writer.read(folder)
        assert found is not None, number
        assert found >= written, number
        shutil.rmtree(folder)


@pytest.mark.slow
def test_a_comparison_killed_at_every_file_operation(tmp_path, quick):
    """Each table is whole or not there; the same command again makes all of them."""
    runs = [read_finished(make_run(tmp_path / "run", pairs=12, kept=2))]
    comparisons = [compare_set(runs, "newstest", resamples=10)]

    def tables(folder: Path) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in folder.glob("[!.]*")}

    def make(folder: Path) -> None:
        write_tables(runs, comparisons, folder)

    total = len(counted(partial(make, tmp_path / "all"), tmp_path))
    assert total >= 30
    make(tmp_path / "whole")
    whole = tables(tmp_path / "whole")
    for number in range(1, total + 1):
        folder = tmp_path / str(number)
        killed_at(number, partial(make, folder), tmp_path)
        assert tables(folder).items() <= whole.items(), number
        make(folder)
        assert tables(folder) == whole, number


@pytest.fixture(scope="module")
def small_disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A file system of 4 MB."""
    folder = tmp_path_factory.mktemp("disk")
    mount = ["mount", "-t", "tmpfs", "-o", "size=4m", "none", str(folder)]
    if subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("no file system can be mounted here")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.mark.slow
@pytest.mark.parametrize("free", [0, 20, 100, 300, 600, 1000, 1500])
def test_a_training_on_a_full_disk(small_disk, tmp_path, free):
    """KiB that are free for the run folder: a line that says so, and what was whole stays whole."""
    for path in small_disk.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    room = shutil.disk_usage(small_disk).free - 1024 * free
    (small_disk / "filling").write_bytes(bytes(room))
    work = Work(tmp_path)
    ended = work.train("x", f"hydra.run.dir={small_disk}/run", "logger=csv", figures=True)
    assert "Traceback" not in ended.err
    if ended.code:
        assert ended.code == 1, ended.err
        said = ended.err[ended.err.rindex("nmt: ") :]
        assert "No space left on device" in said, ended.err
        assert said.count("\n") <= 2
    checkpoints = CheckpointFolder(small_disk / "run/checkpoints")
    for path in checkpoints.found():
        files.verify(path)
    (small_disk / "filling").unlink()
    assert work.train("x", f"hydra.run.dir={small_disk}/run", "resume=auto").code in (0, 2)


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Work:
    """With a run `whole` that was never stopped."""
    work = Work(tmp_path_factory.mktemp("faults"))
    assert work.train("whole", "logger=csv").code == 0
    return work


@pytest.mark.slow
def test_whole_trainings_killed_at_file_operations(work):
    """Twenty kills at any of the operations of a run, each resumed to the same end."""
    draw, kills, most = random.Random(5), 0, 400
    while kills < 20:
        name, code = f"run-{kills}", -9
        while code == -9:
            number = draw.randint(1, most)
            hook = (
                "from pathlib import Path; from tests.helpers.faults import hook as at_operation\n"
                f"at_operation(Path({str(work.folder / name)!r}), {number}, None, lambda name: None)"
            )
            ended = work.train(name, "resume=auto", "logger=csv", hook=hook)
            code = ended.code
            kills += code == -9
        assert code == 0, ended.err
        work.same("whole", name)
        assert not list((work.folder / name).rglob("*.partial"))
