"""Files of strangers with every field made wrong: each is used or refused in a line, and nothing of it is run."""

from __future__ import annotations

import zipfile
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
from nmt.utils.errors import InputError
from tests.helpers.hostile import Attack, attacks, copied, nested, outcomes, spread
from tests.helpers.models import small_config

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


def try_checkpoint(path: Path) -> None:
    checkpoint = read_checkpoint(path, resumed=True)
    checkpoint.translator()
    assert checkpoint.update >= 0


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


def test_a_good_checkpoint_is_used(content, tmp_path):
    write_checkpoint(content, tmp_path / "good.ckpt")
    try_checkpoint(tmp_path / "good.ckpt")


@pytest.mark.parametrize(
    ("counts", "least"), [((8, 120), 60), pytest.param((300, 10_000), 600, marks=SLOW)]
)
def test_checkpoints_with_a_wrong_field(content, tmp_path, counts, least):
    found = of_checkpoint(content, tmp_path, counts)
    assert found["raised"] == []
    assert len(found["refused"]) >= least


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
