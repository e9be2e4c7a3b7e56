"""Text to encoded pairs: what is kept, what is counted, what is made anew."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nmt.config import Config, TextConfig
from nmt.data.prepare import prepare, prepare_test_set
from nmt.data.vocabulary import load_vocabulary
from nmt.utils.errors import InputError

Write = Callable[[str, list[str]], str]


def folders(config: Config, kind: str) -> set[str]:
    return {path.name for path in Path(config.data.cache).glob(f"{kind}-*")}


def lengths(split: Iterable[dict[str, Any]]) -> list[int]:
    return [len(row[side]) for row in split for side in ("source", "target")]


def raw_text(config: Config, write: Write, pairs: list[tuple[str, str]]) -> None:
    """Replaces the training text by raw pairs."""
    sources, targets = zip(*pairs, strict=True)
    config.data.train = TextConfig(
        source=write("raw.en", list(sources)), target=write("raw.fr", list(targets))
    )


def test_pairs_are_encoded_and_counted(config: Config, write: Write) -> None:
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
    counts = prepared.counts["train"]
    assert counts["lines"] == 6
    assert counts["empty"] == 2
    assert counts["too_long"] == 2
    assert counts["source_words"] == 4 + 6 + 2 + 4
    assert counts["source_unknown"] == pytest.approx(9 / 16)
    assert prepared.types == (12, 15)
    batch = prepared.train.batch([1, 0])
    assert batch.source.tolist()[0] == [2, 4, 1, 3, 0]
    assert batch.rows.tolist() == [1, 0]


def test_held_out_pairs_are_never_left_out_for_their_length(config: Config) -> None:
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


def test_only_what_changed_is_made_anew(config: Config, write: Write) -> None:
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
def test_text_is_encoded_with_given_vocabularies(config: Config, write: Write, kind: str) -> None:
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
    assert found.types == (None, None)
    if kind == "words":
        assert found.counts["train"]["source_unknown"] == pytest.approx(3 / 7)
    assert len({each.fingerprint for each in (first, alone, found)}) == 3
    assert found.fingerprints == alone.fingerprints

    pairs = folders(config, "pairs")
    read = load_vocabulary(given[0].state()), load_vocabulary(given[1].state())
    again = prepare(config.data, config.tokenizer, False, read)
    assert again.fingerprint == found.fingerprint
    swapped = prepare(config.data, config.tokenizer, False, (read[1], read[0]))
    assert swapped.fingerprint != found.fingerprint
    assert len(folders(config, "pairs") - pairs) == 1


@pytest.mark.parametrize("joint", [False, True])
def test_subwords(config: Config, joint: bool) -> None:
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
    assert prepared.counts["train"]["source_unknown"] == 0
    # The NLL per word is divided by words, each sentence's END counted as one.
    for split in (prepared.train, prepared.valid):
        batch = split.batch([3, 0, 2])
        assert batch.words == sum(len(split[number]["target"]) + 1 for number in (3, 0, 2))
        assert batch.words < batch.target_mask.sum()


def test_other_text_is_encoded_with_a_models_vocabulary(config: Config, write: Write) -> None:
    prepared = prepare(config.data, config.tokenizer, progress=False)
    text = TextConfig(source=write("s", ["Le Chat dort."]), target=write("t", ["le chat"]))
    vocabularies = prepared.source_vocabulary, prepared.target_vocabulary
    split = prepare_test_set(
        text, config.data, "data.test.other", vocabularies, config.tokenizer, progress=False
    )
    assert split.name == "other"
    assert split[0]["source_text"] == "Le Chat dort."
    assert prepared.source_vocabulary.decode(split[0]["source_ids"])[:2] == ["<unk>", "<unk>"]


def test_bad_text_is_refused_and_leaves_nothing(config: Config, write: Write) -> None:
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


def test_settings_that_leave_nothing_are_refused(config: Config) -> None:
    config.data.max_length = 1
    with pytest.raises(InputError, match=r"data\.max_length=1: no training pair"):
        prepare(config.data, config.tokenizer, progress=False)
    config.data.languages = ["en"]
    with pytest.raises(InputError, match=r"data\.languages=\[en\]"):
        prepare(config.data, config.tokenizer, progress=False)


@pytest.mark.parametrize(
    ("lines", "tokenised", "warning"),
    [
        (["l&apos; homme dit"], True, "holds &apos; (XML escapes of Moses"),
        (["un chi@@ en"], True, "holds i@@ (subwords of subword-nmt)"),
        (["▁un ▁chien"], True, "(subwords of SentencePiece)"),
        (["un ￭, chien"], True, "(joiners of OpenNMT"),
        (["我们认为这个问题非常重要。"], False, "type tokenizer.characters=true to count"),
        (["我们 认为 这个 问题"], True, None),
        (["un chien"], False, None),
    ],
)
def test_tokens_that_are_no_words_are_noticed(
    config: Config, write: Write, caplog: Any, lines: list[str], tokenised: bool, warning: str
) -> None:
    config.data.languages = ["en", "zh"]
    config.data.train = TextConfig(
        source=write("a", ["a b"]), target=write("b", lines), tokenised=tokenised
    )
    prepare(config.data, config.tokenizer, progress=False)
    assert len(caplog.messages) == (warning is not None)
    assert not warning or warning in caplog.messages[0]


def test_languages_without_rules_are_tokenised_as_english_with_a_warning(
    config: Config, write: Write, caplog: Any
) -> None:
    config.data.languages = ["en", "vi"]
    prepare(config.data, config.tokenizer, progress=False)
    assert not caplog.messages  # tokenised text needs no rules
    raw_text(config, write, [("The cat.", "Con mèo.")])
    prepared = prepare(config.data, config.tokenizer, progress=False)
    assert "data.train (target): Moses has no rules for 'vi'" in caplog.messages[0]
    assert prepared.train[0]["target"] == ["Con", "mèo", "."]


def test_each_character_is_a_token(config: Config, write: Write) -> None:
    raw_text(config, write, [("The cat.", "黑猫在睡觉。"), ("The dog.", "e\u0301 OK，狗")])
    config.tokenizer.characters = True
    train = prepare(config.data, config.tokenizer, progress=False).train
    assert train[0]["target"] == list("黑猫在睡觉。")
    assert train[1]["target"] == ["é", "OK", "，", "狗"]


def test_encoded_text_does_not_depend_on_the_number_of_processes(
    config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    def encoded() -> list[list[int]]:
        train = prepare(config.data, config.tokenizer, progress=False).train
        return [np.concatenate(train.ids(number)).tolist() for number in range(len(train))]

    alone = encoded()
    shutil.rmtree(config.data.cache)
    monkeypatch.setattr("nmt.data.tokenised.processes", lambda rows: 3)
    assert encoded() == alone
