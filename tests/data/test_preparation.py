"""Text becomes encoded pairs: which pairs are kept, their counts, and when the cache is reused."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nmt.config.schema import Config, TextConfig
from nmt.data.pairs import held_out_pairs
from nmt.data.preparation import Prepared, prepare, tokenise_text
from nmt.data.vocabulary import Vocabularies, load_vocabulary
from nmt.utils.errors import InputError

Write = Callable[[str, list[str]], str]


def prepared(config: Config, given: Vocabularies | None = None) -> Prepared:
    return prepare(config.data, config.tokenizer, given)


def folders(config: Config, kind: str) -> set[str]:
    return {path.name for path in Path(config.data.cache).glob(f"{kind}-*")}


def lengths(split: Iterable[dict[str, Any]]) -> list[int]:
    return [len(row[side]) for row in split for side in ("source", "target")]


def raw_text(config: Config, write: Write, *pairs: tuple[str, str], **options: Any) -> None:
    """Replaces the training text by the given pairs."""
    sources, targets = (list(side) for side in zip(*pairs, strict=True))
    config.data.train = TextConfig(write("raw.en", sources), write("raw.fr", targets), **options)


def test_pairs_are_encoded_and_counted(config: Config, write: Write) -> None:
    raw_text(
        config,
        write,
        ("The cat sleeps.", "Le chat dort."),
        ("", "Rien."),
        ("The end", "\u200b \u00a0"),
        ("a b c d e f", "trop long"),
        ("The dog", "Le chien d'à côté court, non ?"),
        ("The cat eats.", "Le chat mange."),
    )
    config.data.max_length = 5
    config.tokenizer.source_size, config.tokenizer.target_size = 3, 4
    text = prepared(config)
    assert len(text.train) == 2
    row = text.train[1]
    assert row["line"] == 5
    assert row["source"] == ["The", "cat", "eats", "."]
    assert text.vocabularies[0].state()["words"] == ["The", ".", "cat"]
    assert row["source_ids"].tolist() == [2, 4, 1, 3, 0]
    assert text.train.sizes.tolist() == [[5, 5], [5, 5]]
    counts = text.train.counts
    assert (counts["pairs"], counts["empty"], counts["too_long"]) == (2, 2, 2)
    assert counts["source_words"] == 4 + 6 + 2 + 4
    assert counts["source_unknown"] == pytest.approx(9 / 16)
    assert (counts["source_types"], counts["target_types"]) == (12, 15)
    batch = text.train.batch([1, 0])
    assert batch.source.tolist()[0] == [2, 4, 1, 3, 0]
    assert batch.rows.tolist() == [1, 0]


def test_held_out_pairs_of_any_length_are_kept(config: Config) -> None:
    config.data.max_length = 6
    text = prepared(config)
    assert max(lengths(text.train)) == 6
    assert len(text.valid) == 7
    assert text.valid.words.max() > 6
    assert len(text.train) + text.train.counts["too_long"] == 57
    test = text.test["mine"]
    assert [row["line"] for row in test] == [0, 1, 2, 3, 4]
    row = test[2]
    assert row["target_text"] == " ".join(row["target"])
    assert row["source_ids"].tolist() == text.vocabularies[0].encode(row["source"])
    assert len(row["target_ids"]) == len(row["target"]) + 1 == test.sizes[2, 1]


def test_cache_is_reused_for_unchanged_settings(config: Config) -> None:
    first = prepared(config)
    texts, pairs = folders(config, "text"), folders(config, "pairs")
    assert (len(texts), len(pairs)) == (3, 1)

    config.data.max_length = 7
    config.data.test = {}
    shorter = prepared(config)
    assert len(shorter.train) < len(first.train)
    assert shorter.fingerprint == first.fingerprint
    assert (folders(config, "text"), folders(config, "pairs")) == (texts, pairs)

    config.tokenizer.source_size = 6
    assert prepared(config).fingerprint != first.fingerprint
    assert folders(config, "text") == texts
    assert len(folders(config, "pairs")) == 2

    source = Path(config.data.train.source)
    source.write_text(source.read_text().replace("chat", "chien", 1))
    prepared(config)
    assert len(folders(config, "text")) == 4


@pytest.mark.parametrize("kind", ["words", "bpe"])
def test_text_is_encoded_with_given_vocabularies(config: Config, write: Write, kind: str) -> None:
    """The given vocabularies come from a different text.

    Restoring them from their state must not change the fingerprint of the prepared text.
    """
    config.tokenizer.kind = kind
    config.tokenizer.source_size = config.tokenizer.target_size = 7 if kind == "words" else 270
    first = prepared(config)
    given = first.vocabularies
    raw_text(config, write, ("le chat est un chat", "un chien"), ("le chien", "table noir"))
    alone, other = prepared(config), prepared(config, given)
    assert other.vocabularies[0].state() == given[0].state() != alone.vocabularies[0].state()
    pair = other.train[0]
    assert pair["source_ids"].tolist() == given[0].encode(["le", "chat", "est", "un", "chat"])
    assert pair["target_ids"].tolist() == given[1].encode(["un", "chien"])
    assert other.valid[0]["source_ids"].tolist() == first.valid[0]["source_ids"].tolist()
    assert "source_types" not in other.train.counts
    if kind == "words":
        assert other.train.counts["source_unknown"] == pytest.approx(3 / 7)
    read = load_vocabulary(given[0].state()), load_vocabulary(given[1].state())
    assert prepared(config, read).fingerprint == other.fingerprint
    swapped = prepared(config, (read[1], read[0]))
    assert len({each.fingerprint for each in (first, alone, other, swapped)}) == 4


def test_subwords(config: Config) -> None:
    config.tokenizer.kind = "bpe"
    config.tokenizer.source_size = config.tokenizer.target_size = 270
    config.data.max_length = 9
    text = prepared(config)
    row = text.train[3]
    assert text.vocabularies[0].decode(row["source_ids"]) == row["source"]
    assert text.vocabularies[1].decode(row["target_ids"]) == row["target"]
    assert text.vocabularies[0].state() != text.vocabularies[1].state()
    # `data.max_length` limits words, but `sizes` counts subwords.
    assert max(lengths(text.train)) == 9
    assert text.train.sizes[3].tolist() == [len(row["source_ids"]), len(row["target_ids"])]
    assert text.train.sizes.max() > 10
    assert text.train.counts["source_unknown"] == 0
    # The NLL per word is divided by the number of words (with `</s>`), not of subwords.
    for split in (text.train, text.valid):
        batch = split.batch([3, 0, 2])
        assert batch.words == sum(len(split[number]["target"]) + 1 for number in (3, 0, 2))
        assert batch.words < batch.target_mask.sum()


def test_held_out_text_uses_the_models_vocabulary(config: Config, write: Write) -> None:
    text = prepared(config)
    section = TextConfig(source=write("s", ["Le Chat dort."]), target=write("t", ["Le chat."]))
    known = text.vocabularies
    rows = tokenise_text(section, config.data, "data.test.other")
    split = held_out_pairs("other", rows, known)
    assert split.name == "other"
    assert split[0]["target_text"] == "Le chat."
    assert known[0].decode(split[0]["source_ids"])[:2] == ["<unk>", "<unk>"]


def test_refuses_bad_text_and_leaves_no_files(config: Config, write: Write) -> None:
    cases = {
        r"raw\.fr:2: not UTF-8": (b"a\n\n", b"b\n\xff\n"),
        r"raw\.en has 2, .*raw\.fr has 1 lines": (b"a\n\n", b"b\n"),
        r"data\.train: empty corpus; none of 2 pairs": (b"\na\n", b"b\n \n"),
        r"data\.train: empty corpus; none of 0 pairs": (b"", b""),
    }
    for message, (source, target) in cases.items():
        raw_text(config, write, ("", ""))
        Path(config.data.train.source).write_bytes(source)
        Path(config.data.train.target).write_bytes(target)
        with pytest.raises(InputError, match=message):
            prepared(config)
    assert {path.suffix for path in Path(config.data.cache).iterdir()} == {".lock"}


def test_refuses_a_max_length_that_drops_all_pairs(config: Config) -> None:
    config.data.max_length = 1
    with pytest.raises(InputError, match=r"data\.max_length=1: no training pair"):
        prepared(config)


def test_language_without_rules_is_tokenised_as_english_with_a_warning(
    config: Config, write: Write, caplog: Any
) -> None:
    config.data.languages = ["en", "vi"]
    prepared(config)
    assert not caplog.messages  # no warning: the text is already tokenised
    raw_text(config, write, ("The cat.", "Con mèo."))
    text = prepared(config)
    [message] = caplog.messages  # one for all texts
    assert "data.languages: Moses has no rules for 'vi'" in message
    assert text.train[0]["target"] == ["Con", "mèo", "."]


@pytest.mark.slow
def test_each_chinese_character_is_a_token(config: Config, write: Write) -> None:
    raw_text(config, write, ("The cat.", "黑猫在睡觉。"), ("The dog.", "e\u0301 OK，狗"))
    config.data.languages = ["en", "zh"]
    train = prepared(config).train
    assert train[0]["target"] == list("黑猫在睡觉。")
    assert train[1]["target"] == ["é", "OK", "，", "狗"]


def test_encoded_text_is_the_same_for_any_number_of_processes(
    config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    def encoded() -> list[list[Any]]:
        train = prepared(config).train
        ids = [np.concatenate(train.ids(number)).tolist() for number in range(len(train))]
        return [ids, train.sizes.tolist(), [[pair["line"], pair["source"]] for pair in train]]

    alone = encoded()
    shutil.rmtree(config.data.cache)
    monkeypatch.setattr("nmt.data.sources.CHUNK", 5)
    monkeypatch.setattr("nmt.data.preparation.CHUNK", 5)
    monkeypatch.setattr("nmt.data.preparation.MANY", 2)
    monkeypatch.setattr("nmt.data.preparation.shared_cores", lambda: 2)
    assert encoded() == alone


def test_files_that_were_mistaken_for_one_another_are_reported(
    config: Config, write: Write
) -> None:
    same = ["The cat sleeps .", "The dog eats .", "A man sees"]
    raw_text(config, write, *zip(same, same, strict=True))
    config.data.valid = TextConfig(write("few.en", ["Le chat dort"]), write("few.fr", ["The cat"]))
    doubts = list(prepared(config).doubts())
    assert [doubt.partition(":")[0] for doubt in doubts] == [
        "data.train",
        "data.valid.source",
        "data.valid",
    ]
    assert "3 of the first 3 pairs have identical sides" in doubts[0]
    assert "100% of the words are unknown" in doubts[1]
    assert "only 1 pair to" in doubts[2]
