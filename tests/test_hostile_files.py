"""Files of strangers with every field made wrong: each is used or refused in a line, and nothing of it is run."""

from __future__ import annotations

import json
import shutil
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from omegaconf import OmegaConf

from nmt.data.bpe_vocabulary import BpeVocabulary
from nmt.data.word_vocabulary import WordVocabulary
from nmt.models import build_model
from nmt.models.checkpoint import (
    ValidationProgress,
    description,
    read_checkpoint,
    store_progress,
    write_checkpoint,
)
from nmt.report.comparison import compare_set
from nmt.report.finding import find_runs, read_run
from nmt.report.page.builder import build_page
from nmt.report.tables import all_tables
from nmt.utils.errors import InputError
from tests.helpers.hostile import Attack, attacks, copied, nested, outcomes, spread
from tests.helpers.models import small_config
from tests.helpers.run_folders import make_run

SLOW = pytest.mark.slow
Found = dict[str, list[str]]


@pytest.fixture(scope="module")
def content() -> dict[str, Any]:
    """A checkpoint as a training writes it, of a model with every size 4."""
    config = small_config()
    config.data.test.mine = {"source": "s", "target": "t"}
    source, target = WordVocabulary(["the", "red", "cat"]), WordVocabulary(["le", "chat", "rouge"])
    model = build_model(OmegaConf.to_object(small_config()), len(source), len(target))
    files = {"data.test.mine": {"data.test.mine.source": "0" * 64}}
    content = {
        "nmt": description(OmegaConf.to_object(config), source, target, "f", text_files=files),
        "global_step": 7,
        "epoch": 0,
        "loops": {},
        "callbacks": {},
        "optimizer_states": [{"state": {}, "param_groups": []}],
        "lr_schedulers": [{}],
        "state_dict": dict(model.state_dict()),
    }
    entry = {"update": 5.0, "bleu": 3.5}
    store_progress(content, ValidationProgress([entry], entry, 71.5, False))
    content["nmt"] |= {"training": {"updates": 7, "hours": 0.1}, "dictionary": {"cat": "chat"}}
    return content


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_run(tmp_path_factory.mktemp("runs") / "run", pairs=12, kept=2)


def try_checkpoint(path: Path) -> None:
    checkpoint = read_checkpoint(path, resumed=True)
    checkpoint.translator()
    assert checkpoint.update >= 0


def try_run(folder: Path) -> None:
    """All that a comparison does but for drawing the page."""
    found = read_run(folder)
    comparisons = [compare_set([found], name, resamples=10) for name in found.sets]
    for table in all_tables([found], comparisons):
        assert table.markdown()
        assert table.csv()
    for name in found.sets:
        found.alignments(name)


DEEP = (
    b"\x80\x02}X\x03\x00\x00\x00nmt}X\x06\x00\x00\x00formatK\x02sX\x06\x00\x00\x00config"
    + b"]" * 100_000
    + b"a" * 99_999
    + b"ss."
)
"""A pickle of {"nmt": {"format": 2, "config": a list 100,000 deep}}."""


def of_checkpoint(content: dict[str, Any], folder: Path, counts: tuple[int, int]) -> Found:
    """Attacks on a checkpoint: so many on its configuration, and on its other fields."""
    path = folder / "hostile.ckpt"
    everything = [attack for attack in attacks(content) if attack.path]
    inside = [attack for attack in everything if attack.path[:2] == ("nmt", "config")]
    others = [attack for attack in everything if attack.path[:2] != ("nmt", "config")]

    def write(attack: Attack) -> None:
        torch.save(attack.of(content), path)

    chosen = [*spread(inside, counts[0]), *spread(others, counts[1])]
    return outcomes(chosen, write, lambda: try_checkpoint(path), path.name)


def test_a_good_checkpoint_and_a_good_run_are_used(content, run, tmp_path):
    write_checkpoint(content, tmp_path / "good.ckpt")
    try_checkpoint(tmp_path / "good.ckpt")
    try_run(run)


@pytest.mark.parametrize(
    ("counts", "least"), [((8, 120), 60), pytest.param((300, 10_000), 600, marks=SLOW)]
)
def test_checkpoints_with_a_wrong_field(content, tmp_path, counts, least):
    found = of_checkpoint(content, tmp_path, counts)
    assert found["raised"] == []
    assert len(found["refused"]) >= least


@pytest.mark.parametrize(
    "text",
    [
        b"{",
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b"\xff\xfe{}",
        b"\x00" * 100,
        b"null",
        b"[]",
    ],
)
@pytest.mark.parametrize("name", ["results.json", "translations/newstest.jsonl"])
def test_texts_that_are_no_such_json(run, name, text):
    path = run / name
    before = path.read_bytes()
    try:
        path.write_bytes(text if name == "results.json" else text + b"\n")
        with pytest.raises(InputError, match=path.name) as refused:
            try_run(run)
        assert "\n" not in str(refused.value)
    finally:
        path.write_bytes(before)


def test_a_checkpoint_whose_parts_are_not_what_they_seem(content, tmp_path):
    """Weights without bytes of their own, lists in themselves, subwords of no vocabulary."""
    cyclic: list[Any] = []
    cyclic.append(cyclic)
    doubled: list[Any] = []
    for _ in range(40):
        doubled = [doubled, doubled]
    name, weight = next(iter(content["state_dict"].items()))
    tall = torch.zeros(1).expand(10**6, 10**6)
    config = content["nmt"]["config"]
    bpe = BpeVocabulary.learn(["a b c"] * 5, 260).state()["model"]
    changes: dict[str, tuple[tuple[str, ...], Any]] = {
        "cyclic": (("nmt", "config", "data"), cyclic),
        "doubled": (("nmt", "config", "callbacks"), {"a": doubled}),
        "deep": (("nmt", "config", "callbacks"), {"a": nested(300)}),
        "expanded": (("state_dict", name), tall),
        "sparse": (("state_dict", name), weight.to_sparse()),
        "whole numbers": (("state_dict", name), torch.zeros(weight.shape, dtype=torch.int32)),
        "other shape": (("state_dict", name), torch.zeros(3, 3, 3)),
        "absurd layer": (("nmt", "config", "model"), config["model"] | {"hidden": 10**12}),
        "no subwords": (("nmt", "source_vocabulary"), {"kind": "bpe", "model": "{}"}),
        "other subwords": (
            ("nmt", "source_vocabulary"),
            {"kind": "bpe", "model": bpe.replace('"a":', '"世":')},
        ),
        "words twice": (("nmt", "source_vocabulary"), {"kind": "words", "words": ["a", "a"]}),
    }
    path = tmp_path / "odd.ckpt"

    def use() -> None:
        try_checkpoint(path)

    for case, ((*parents, last), value) in changes.items():
        changed = copied(content)
        inside = changed
        for parent in parents:
            inside = inside[parent]
        inside[last] = value
        torch.save(changed, path)
        found = outcomes([Attack((case,), "object")], lambda _: None, use, path.name)
        assert len(found["refused"]) == 1, found


def test_a_pickle_100000_levels_deep(content, tmp_path):
    torch.save(content, tmp_path / "good.ckpt")
    path = tmp_path / "deep.ckpt"
    with zipfile.ZipFile(tmp_path / "good.ckpt") as good, zipfile.ZipFile(path, "w") as made:
        for name in good.namelist():
            made.writestr(name, DEEP if name.endswith("data.pkl") else good.read(name))
    with pytest.raises(InputError, match=r"deep\.ckpt: "):
        try_checkpoint(path)


def test_a_checkpoint_that_would_take_more_memory_than_it_has_bytes(content, tmp_path):
    """Compressed a thousand times, and in an older format of torch's, which believes stated sizes."""
    torch.save(content | {"more": torch.zeros(10**6)}, tmp_path / "good.ckpt")
    path = tmp_path / "bomb.ckpt"
    with (
        zipfile.ZipFile(tmp_path / "good.ckpt") as good,
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made,
    ):
        for name in good.namelist():
            made.writestr(name, good.read(name))
    assert path.stat().st_size < 10**6
    assert torch.load(path, weights_only=True)["more"].numel() == 10**6  # torch would unpack it
    older = tmp_path / "older.ckpt"
    torch.save(content, older, _use_new_zipfile_serialization=False)
    for refused in (path, older):
        with pytest.raises(InputError, match=f"{refused.name}: not a checkpoint of nmt"):
            try_checkpoint(refused)


@pytest.mark.parametrize("listing", [b"\xff\xfe\x00", b"\x00" * 50, b"x" * 100_000, b"\n \n\xe9"])
def test_a_checksum_that_is_no_text(content, tmp_path, listing):
    write_checkpoint(content, tmp_path / "a.ckpt")
    (tmp_path / "a.ckpt.sha256").write_bytes(listing)
    with pytest.raises(InputError, match=r"a\.ckpt: damaged: its SHA-256"):
        read_checkpoint(tmp_path / "a.ckpt")


def test_a_folder_with_the_name_of_a_digit(run, tmp_path):
    (tmp_path / "\u00b2").mkdir()
    (tmp_path / "\u00b2/results.json").write_bytes((run / "results.json").read_bytes())
    (tmp_path / "10/.hydra").mkdir(parents=True)
    found = find_runs([tmp_path])
    assert [found.runs[0].folder.name, found.unfinished[0].name] == ["\u00b2", "10"]


def refusal(use: Callable[[], Any]) -> str:
    """The line that something was refused in; empty where it was used."""
    try:
        use()
    except InputError as refused:
        line = str(refused)
    else:
        return ""
    assert "\n" not in line
    return line


def shown(folder: Path) -> None:
    """A run's tables and page."""
    try_run(folder)
    build_page([read_run(folder)], folder.parent / "page.html", resamples=10)


@pytest.mark.parametrize(
    "name",
    ["../../x", "/etc/passwd", "x" * 300, "", "a\x00b", " ", "__proto__", "constructor", "a\nb"],
)
def test_a_test_set_of_an_odd_name(run, tmp_path, name):
    folder = tmp_path / "run"
    shutil.copytree(run, folder)
    content = json.loads((folder / "results.json").read_bytes())
    content["test"] = {name: content["test"]["newstest"]}
    (folder / "results.json").write_text(json.dumps(content))
    said = refusal(partial(shown, folder))
    assert not said or "results.json" in said or "test set's name" in said
    assert {path.name for path in tmp_path.iterdir()} <= {"run", "page.html"}


@pytest.mark.parametrize("name", ["x" * 100_000, "a\u202e\x1b[31m\nb|c`$\\", "\u0000", "../../x"])
def test_a_run_of_an_odd_name(run, tmp_path, name):
    folder = tmp_path / "run"
    shutil.copytree(run, folder)
    content = json.loads((folder / "results.json").read_bytes()) | {"name": name}
    (folder / "results.json").write_text(json.dumps(content))
    said = refusal(partial(shown, folder))
    assert not said or "results.json" in said or "test set's name" in said
    assert said or not set(read_run(folder).label) & set("\u202e\x1b\x00")
