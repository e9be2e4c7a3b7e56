"""Text to encoded pairs: what is kept, what is counted, what is made anew."""

from __future__ import annotations

import errno
import multiprocessing
import os
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from omegaconf import DictConfig

from nmt.config import TextConfig
from nmt.data.cache import build_once
from nmt.data.load_vocabulary import load_vocabulary
from nmt.data.prepare import prepare, prepare_held_out
from nmt.utils.errors import InputError, RunError

Write = Callable[[str, list[str]], str]


def folders(config: DictConfig, kind: str) -> set[str]:
    return {path.name for path in Path(config.data.cache).glob(f"{kind}-*")}


def lengths(split: Iterable[dict[str, Any]]) -> list[int]:
    return [len(row[side]) for row in split for side in ("source", "target")]


def raw_text(config: DictConfig, write: Write, pairs: list[tuple[str, str]]) -> None:
    """Replaces the training text by raw pairs."""
    sources, targets = zip(*pairs, strict=True)
    config.data.train = TextConfig(
        source=write("raw.en", list(sources)), target=write("raw.fr", list(targets))
    )


def test_pairs_are_encoded_and_counted(config: DictConfig, write: Write) -> None:
    raw_text(
        config,
        write,
        [
            ("The cat sleeps.", "Le chat dort."),
            ("", "Rien."),
            ("The end", "\u200b \u00a0"),
            ("a b c d e f", "trop long"),
            ("The dog", "Le chien d'à côté court, non ?"),
            ("The cat eats.", "Le chat mange."),
        ],
    )
    config.data.max_length = 5
    config.tokenizer.source_size, config.tokenizer.target_size = 3, 4
    prepared = prepare(config.data, config.tokenizer, progress=False)
    assert len(prepared.train) == 2
    row = prepared.train[1]
    assert row["line"] == 5
    assert row["source"] == ["The", "cat", "eats", "."]
    assert prepared.source_vocabulary.state()["words"] == ["The", ".", "cat"]
    assert row["source_ids"].tolist() == [2, 4, 1, 3, 0]
    assert prepared.train.sizes.tolist() == [[5, 5], [5, 5]]
    counts = prepared.manifest["splits"]["train"]
    assert counts["lines"] == 6
    assert counts["empty"] == 2
    assert counts["too_long"] == 2
    assert counts["source_words"] == 4 + 6 + 2 + 4
    assert counts["source_unknown"] == pytest.approx(9 / 16)
    assert prepared.manifest["vocabulary"]["source"] == {"kind": "words", "size": 3, "types": 12}
    batch = prepared.train.batch([1, 0])
    assert batch.source.tolist()[0] == [2, 4, 1, 3, 0]
    assert batch.rows.tolist() == [1, 0]


def test_held_out_pairs_are_never_left_out_for_their_length(config: DictConfig) -> None:
    config.data.max_length = 6
    prepared = prepare(config.data, config.tokenizer, progress=False)
    assert max(lengths(prepared.train)) == 6
    assert len(prepared.valid) == 7
    assert prepared.valid.words.max() > 6
    test = prepared.test["mine"]
    assert [row["line"] for row in test] == [0, 1, 2, 3, 4]
    row = test[2]
    assert row["source_text"] == " ".join(row["source"])
    assert row["source_ids"].tolist() == prepared.source_vocabulary.encode(row["source"])
    assert len(row["target_ids"]) == len(row["target"]) + 1 == test.sizes[2, 1]


def test_table_of_counts(config: DictConfig) -> None:
    table = prepare(config.data, config.tokenizer, progress=False).summary().splitlines()
    assert table[1].split()[:4] == ["train", "57", "0", "0"]
    assert table[3].split()[:2] == ["test.mine", "5"]
    assert table[4] == "source vocabulary: 7 words of 10 types, </s> and <unk>"


def test_only_what_changed_is_made_anew(config: DictConfig, write: Write) -> None:
    first = prepare(config.data, config.tokenizer, progress=False)
    texts, pairs = folders(config, "text"), folders(config, "pairs")
    assert (len(texts), len(pairs)) == (3, 1)

    config.data.max_length = 7
    config.data.test = {}
    shorter = prepare(config.data, config.tokenizer, progress=False)
    assert len(shorter.train) < len(first.train)
    assert shorter.fingerprint == first.fingerprint
    assert (folders(config, "text"), folders(config, "pairs")) == (texts, pairs)

    config.tokenizer.source_size = 6
    smaller = prepare(config.data, config.tokenizer, progress=False)
    assert smaller.fingerprint != first.fingerprint
    assert smaller.fingerprints["train"] == first.fingerprints["train"]
    assert folders(config, "text") == texts
    assert len(folders(config, "pairs")) == 2

    source = Path(config.data.train.source)
    source.write_text(source.read_text().replace("chat", "chien", 1))
    changed = prepare(config.data, config.tokenizer, progress=False)
    assert changed.fingerprints["train"] != first.fingerprints["train"]
    assert changed.fingerprints["valid"] == first.fingerprints["valid"]
    assert len(folders(config, "text")) == 4


@pytest.mark.parametrize("kind", ["words", "bpe"])
def test_text_is_encoded_with_given_vocabularies(
    config: DictConfig, write: Write, kind: str
) -> None:
    """Those of another text; read from a checkpoint again, they find the same folder of the cache."""
    config.tokenizer.kind = kind
    config.tokenizer.source_size = config.tokenizer.target_size = 7 if kind == "words" else 270
    first = prepare(config.data, config.tokenizer, progress=False)
    given = first.source_vocabulary, first.target_vocabulary
    raw_text(config, write, [("le chat est un chat", "un chien"), ("le chien", "table noir")])
    alone = prepare(config.data, config.tokenizer, progress=False)
    found = prepare(config.data, config.tokenizer, False, given)
    assert found.source_vocabulary.state() == given[0].state() != alone.source_vocabulary.state()
    assert found.train[0]["source_ids"].tolist() == given[0].encode(
        ["le", "chat", "est", "un", "chat"]
    )
    assert found.train[0]["target_ids"].tolist() == given[1].encode(["un", "chien"])
    assert found.valid[0]["source_ids"].tolist() == first.valid[0]["source_ids"].tolist()
    for side, size in (("source", len(given[0]) - 2), ("target", len(given[1]) - 2)):
        counts = {"kind": kind, "size": size, "types": None}
        assert found.manifest["vocabulary"][side] == counts
    if kind == "words":
        assert found.manifest["splits"]["train"]["source_unknown"] == pytest.approx(3 / 7)
    assert len({each.fingerprint for each in (first, alone, found)}) == 3
    assert found.fingerprints == alone.fingerprints

    pairs = folders(config, "pairs")
    read = load_vocabulary(given[0].state()), load_vocabulary(given[1].state())
    again = prepare(config.data, config.tokenizer, False, read)
    assert again.fingerprint == found.fingerprint
    swapped = prepare(config.data, config.tokenizer, False, (read[1], read[0]))
    assert swapped.fingerprint != found.fingerprint
    assert len(folders(config, "pairs") - pairs) == 1


def test_vocabulary_does_not_depend_on_the_cap(config: DictConfig) -> None:
    state = prepare(config.data, config.tokenizer, progress=False).source_vocabulary.state()
    config.data.max_length = 5
    again = prepare(config.data, config.tokenizer, progress=False).source_vocabulary.state()
    assert state == again


@pytest.mark.parametrize("joint", [False, True])
def test_subwords(config: DictConfig, joint: bool) -> None:
    config.tokenizer.kind, config.tokenizer.joint = "bpe", joint
    config.tokenizer.source_size = config.tokenizer.target_size = 270
    config.data.max_length = 9
    prepared = prepare(config.data, config.tokenizer, progress=False)
    row = prepared.train[3]
    assert prepared.source_vocabulary.decode(row["source_ids"]) == row["source"]
    assert prepared.target_vocabulary.decode(row["target_ids"]) == row["target"]
    same = prepared.source_vocabulary.state() == prepared.target_vocabulary.state()
    assert same == joint
    # The cap counts words; the length that batches are sorted by counts subwords.
    assert max(lengths(prepared.train)) == 9
    assert prepared.train.sizes[3].tolist() == [len(row["source_ids"]), len(row["target_ids"])]
    assert prepared.train.sizes.max() > 10
    assert prepared.manifest["splits"]["train"]["source_unknown"] == 0
    # NLL a word is divided by words, each sentence's END counted as one.
    for split in (prepared.train, prepared.valid):
        batch = split.batch([3, 0, 2])
        assert batch.words == sum(len(split[number]["target"]) + 1 for number in (3, 0, 2))
        assert batch.words < batch.target_mask.sum()


def test_other_text_is_encoded_with_a_models_vocabulary(config: DictConfig, write: Write) -> None:
    prepared = prepare(config.data, config.tokenizer, progress=False)
    text = TextConfig(source=write("s", ["Le Chat dort."]), target=write("t", ["le chat"]))
    split, _ = prepare_held_out(
        text,
        config.data,
        "data.test.other",
        prepared.source_vocabulary,
        prepared.target_vocabulary,
        progress=False,
    )
    assert split.name == "other"
    assert split[0]["source_text"] == "Le Chat dort."
    assert prepared.source_vocabulary.decode(split[0]["source_ids"])[:2] == ["<unk>", "<unk>"]


def test_bad_text_is_refused_and_leaves_nothing(config: DictConfig, write: Write) -> None:
    raw_text(config, write, [("a", "b"), ("", "c")])
    Path(config.data.train.target).write_bytes(b"b\n\xff\n")
    with pytest.raises(InputError, match=r"raw\.fr:2: not UTF-8"):
        prepare(config.data, config.tokenizer, progress=False)
    Path(config.data.train.target).write_bytes(b"b\n")
    with pytest.raises(InputError, match=r"raw\.en has 2, .*raw\.fr has 1 lines"):
        prepare(config.data, config.tokenizer, progress=False)
    raw_text(config, write, [("", "b"), ("a", " ")])
    with pytest.raises(InputError, match=r"data\.train: empty corpus; none of 2 pairs"):
        prepare(config.data, config.tokenizer, progress=False)
    Path(config.data.train.source).write_bytes(b"")
    Path(config.data.train.target).write_bytes(b"")
    with pytest.raises(InputError, match=r"data\.train: empty corpus; give at least one"):
        prepare(config.data, config.tokenizer, progress=False)
    assert [path.name for path in Path(config.data.cache).glob("[!.]*")] == []
    assert [path.name for path in Path(config.data.cache).glob(".*-*-*")] == []


def test_settings_that_cannot_be_are_refused(config: DictConfig) -> None:
    config.tokenizer.joint = True
    with pytest.raises(InputError, match=r"tokenizer\.joint=true: only with tokenizer=bpe"):
        prepare(config.data, config.tokenizer)
    config.tokenizer.kind = "bpe"
    with pytest.raises(InputError, match=r"source_size is 7 and target_size 8"):
        prepare(config.data, config.tokenizer)
    config.tokenizer.joint, config.tokenizer.kind = False, "words"
    config.data.max_length = 1
    with pytest.raises(InputError, match=r"data\.max_length=1: no training pair"):
        prepare(config.data, config.tokenizer, progress=False)
    config.data.languages = ["en", "xx"]
    with pytest.raises(InputError, match=r"data\.languages: no Moses rules for 'xx'"):
        prepare(config.data, config.tokenizer, progress=False)
    config.data.languages = ["en"]
    with pytest.raises(InputError, match=r"data\.languages=\[en\]"):
        prepare(config.data, config.tokenizer, progress=False)


def test_cache_that_cannot_be_written_is_refused(config: DictConfig, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for name in ("file/cache", "x" * 300):
        config.data.cache = str(tmp_path / name)
        with pytest.raises(InputError, match=r"data\.cache=.*: cannot be written \([^\[]+\)$"):
            prepare(config.data, config.tokenizer, progress=False)
    config.data.cache = str(tmp_path / os.fsdecode(b"\xff"))  # which Arrow cannot open
    with pytest.raises(InputError, match=r"data\.cache=.*: a name that is no UTF-8"):
        prepare(config.data, config.tokenizer, progress=False)


def test_a_text_that_cannot_be_read_is_not_taken_for_the_cache(tmp_path: Path) -> None:
    def build(folder: Path) -> None:
        raise OSError(errno.EIO, "Input/output error", str(tmp_path / "text/train.arrow"))

    with pytest.raises(InputError, match=r"text/train\.arrow: Input/output error$"):
        build_once(tmp_path / "cache", "pairs-1", build)
    with pytest.raises(InputError, match=r"data\.cache=.*: cannot be written"):
        build_once(tmp_path / "cache", "pairs-1", lambda folder: (folder / "a/b").touch())


def test_a_cache_that_is_made_twice_is_the_same_byte_for_byte(
    config: DictConfig, tmp_path: Path
) -> None:
    config.data.filters.duplicates = "pair"
    made = []
    for name in ("one", "other"):
        config.data.cache = str(tmp_path / name)
        prepare(config.data, config.tokenizer, progress=False)
        paths = (tmp_path / name).glob("*/*")
        made.append({path.relative_to(tmp_path / name): path.read_bytes() for path in paths})
    assert {path.parent.name.partition("-")[0] for path in made[0]} == {"text", "filtered", "pairs"}
    assert made[0] == made[1]


@pytest.mark.parametrize(
    "error", [OSError(errno.ENOSPC, "No space"), OSError("Not enough disk space. Needed: 1 GiB")]
)
def test_a_full_disk_is_called_one(tmp_path: Path, error: OSError) -> None:
    """The second is that of `datasets`, which has no number."""

    def fill(folder: Path) -> None:
        raise error

    with pytest.raises(RunError, match=r"data\.cache=.*: no space left for prepared text"):
        build_once(tmp_path, "thing", fill)
    assert [path.name for path in tmp_path.iterdir()] == [".thing.lock"]


def _build(cache: Path, built: str) -> None:
    def fill(folder: Path) -> None:
        with Path(built).open("a") as log:
            log.write("x")
        (folder / "content").write_text("whole")

    assert (build_once(cache, "thing", fill) / "content").read_text() == "whole"


def test_processes_build_a_folder_once(tmp_path: Path) -> None:
    abandoned = tmp_path / "cache" / ".thing-killed"
    abandoned.mkdir(parents=True)
    built = tmp_path / "built"
    context = multiprocessing.get_context("fork")
    arguments = (tmp_path / "cache", str(built))
    builders = [context.Process(target=_build, args=arguments) for _ in range(4)]
    for builder in builders:
        builder.start()
    for builder in builders:
        builder.join()
    assert [builder.exitcode for builder in builders] == [0] * 4
    assert built.read_text() == "x"
    assert not abandoned.exists()


def test_encoded_text_does_not_depend_on_the_number_of_processes(
    config: DictConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    def encoded() -> list[list[int]]:
        train = prepare(config.data, config.tokenizer, progress=False).train
        return [np.concatenate(train.ids(number)).tolist() for number in range(len(train))]

    alone = encoded()
    shutil.rmtree(config.data.cache)
    monkeypatch.setattr("nmt.data.tokenised.processes", lambda rows: 3)
    monkeypatch.setattr("nmt.data.encode.processes", lambda rows: 2)
    assert encoded() == alone
