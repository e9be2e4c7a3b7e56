"""Checks that other files call by themselves, besides those of a whole configuration."""

from __future__ import annotations

import pytest

from nmt.config import DataConfig, TextConfig, TokenizerConfig
from nmt.config.validation import check_set_name, check_text
from nmt.utils.errors import InputError


@pytest.mark.parametrize("name", ["a=b", "a/b", "..", "", "a b", ".hidden", "a\\b", "a\n"])
def test_set_names_that_cannot_be_file_names(name):
    with pytest.raises(InputError, match="a test set's name is part of file names; use letters"):
        check_set_name(name)


def test_a_set_with_a_name_too_long_for_a_file():
    check_set_name("x" * 100)
    with pytest.raises(InputError, match="it has 300 bytes, of at most 100"):
        check_set_name("x" * 300)


def test_a_set_cannot_take_the_name_of_another_ones_file():
    with pytest.raises(InputError, match=r"^data\.test\.x\.detok: .* cannot end in \.detok$"):
        check_set_name("x.detok")


@pytest.mark.parametrize("name", ["newstest2014", "by_length", "news-joined20", "été", "a.b+c"])
def test_set_names(name):
    assert check_set_name(name) == name


@pytest.mark.parametrize(
    ("data", "tokenizer", "message"),
    [
        ({"languages": ["en"]}, {}, r"data\.languages=\[en\]: must be a source and a target"),
        ({}, {"joint": True}, r"tokenizer\.joint=true: only with tokenizer=bpe"),
        (
            {},
            {"kind": "bpe", "joint": True, "source_size": 70, "target_size": 80},
            "one set of subwords has one size, but source_size is 70 and target_size 80",
        ),
        (
            {"languages": ["fr", "en"], "valid": TextConfig(source="a/v.en.xz", target="v.fr")},
            {},
            r"data\.valid: source=a/v\.en\.xz and target=v\.fr, but data\.languages=\[fr,en\]; swap",
        ),
        (
            {"test": {"t": TextConfig(source="t.fr", target="t.en", alignment="t.align")}},
            {},
            r"data\.test\.t: .* swap them, and gold alignments, or .* set out: ~data\.test\.t$",
        ),
    ],
)
def test_text_and_tokenizer(data, tokenizer, message):
    check_text(DataConfig(), TokenizerConfig())
    with pytest.raises(InputError, match=message):
        check_text(DataConfig(**data), TokenizerConfig(**tokenizer))
