"""Whatever is typed or read: a translation or a clear refusal, never a traceback."""

from __future__ import annotations

import random
import unicodedata
from pathlib import Path

import pytest
import torch
from omegaconf import OmegaConf

from nmt.config import Config, TextConfig
from nmt.config.validation import load
from nmt.data.prepare import prepare
from nmt.inference.stream import batches_of_lines
from nmt.inference.trained import TrainedModel, make_codec
from nmt.inference.translation import LineTranslator
from nmt.models import build_model
from nmt.utils.errors import InputError

AWKWARD = (
    "",
    " ",
    "\t",
    "\x00\x01\x1b[31mred\x07",
    "\u200b\u200d\ufeff",
    "\u202eright to left\u202c مرحبا بالعالم שלום",
    "e\u0301\u0327 \u1100\u1161 🏳️\u200d🌈",
    "<unk> </s> <s> &lt;unk&gt; &amp;&#0;",
    "$\\frac{ ${oc.env:HOME} {0} %s",
    "\ud7ff\ue000\uffff\U0010ffff",
    "\u2028\u2029\x85\x0b\x0c",
    "x" * 5000,
    "a'b''c ... -- @-@ ||| \\ \"",
)


def draw_text(draw: random.Random) -> str:
    """A line that a text file can hold: one with a NUL is refused."""
    return draw_line(draw).replace("\0", "")


def draw_line(draw: random.Random) -> str:
    """A line of awkward pieces and of any characters at all."""
    pieces = []
    for _ in range(draw.randint(0, 6)):
        if draw.random() < 0.5:
            pieces.append(draw.choice(AWKWARD))
        else:
            points = (draw.randrange(0x110000) for _ in range(draw.randint(1, 12)))
            pieces.append("".join(chr(p) for p in points if not 0xD800 <= p <= 0xDFFF))
    line = draw.choice(("", " ")).join(pieces)
    return line.replace("\n", " ")


@pytest.fixture(scope="module")
def translations(tmp_path_factory: pytest.TempPathFactory) -> LineTranslator:
    """An untrained model over the words of some awkward lines."""
    folder = tmp_path_factory.mktemp("fuzz")
    draw = random.Random(0)
    lines = [draw_text(draw) or "x" for _ in range(50)]
    config = configuration(folder, lines, lines)
    prepared = prepare(config.data, config.tokenizer, progress=False)
    torch.manual_seed(1)
    model = build_model(
        config, len(prepared.source_vocabulary), len(prepared.target_vocabulary)
    ).eval()
    codec = make_codec(config, prepared.source_vocabulary, prepared.target_vocabulary)
    return LineTranslator(TrainedModel(model.network, codec, config), attention=True)


def configuration(folder: Path, source: list[str], target: list[str]) -> Config:
    """A tiny model over a text of these lines."""
    config = OmegaConf.structured(Config)
    text = TextConfig(source=str(folder / "source"), target=str(folder / "target"))
    for name, lines in (("source", source), ("target", target)):
        (folder / name).write_bytes("".join(f"{line}\n" for line in lines).encode())
    config.data.train = config.data.valid = text
    config.data.cache = str(folder / "cache")
    config.model.scoring = {"_target_": "nmt.layers.Additive"}
    config.model.init = "glorot"
    config.model.hidden = config.model.alignment = 6
    config.model.embedding = config.model.maxout = 4
    config.search.beam_size, config.search.max_ratio = 2, 0.5
    config.trainer["accelerator"] = "cpu"
    config.threads = 1
    return load(config)


def translate(translations: LineTranslator, count: int, seed: int) -> None:
    draw = random.Random(seed)
    lines = [draw_line(draw) for _ in range(count)]
    before = translations.lines
    for start in range(0, count, 50):
        batch = lines[start : start + 50]
        found = translations.translate(batch)
        assert [sentence.number for sentence in found] == [
            before + start + place + 1 for place in range(len(batch))
        ]
        for line, sentence in zip(batch, found, strict=True):
            if line.isascii() and line.isalpha():
                assert len(sentence.translations) == 1
            for translation in sentence.translations:
                assert translation.score < 0
                assert "\n" not in translation.text
                translation.text.encode()
                assert unicodedata.normalize("NFC", translation.text) is not None


def test_fuzzed_lines_are_translated(translations):
    translate(translations, 50, seed=1)


@pytest.mark.slow
def test_a_thousand_fuzzed_lines_are_translated(translations):
    translate(translations, 1000, seed=2)


@pytest.mark.slow
def test_a_line_of_ten_thousand_words(translations, monkeypatch):
    monkeypatch.setattr(translations, "attention", False)  # 50 million weights
    monkeypatch.setattr(translations.config.search, "max_ratio", 0.02)
    (sentence,) = translations.of(["word " * 10_000])
    assert len(sentence.words) == 10_000
    assert len(sentence.translations) == 1


def test_bytes_that_are_not_text(tmp_path):
    """A stream of any bytes has as many lines as newlines, and one more if it ends without."""
    draw = random.Random(3)
    content = bytes(draw.randrange(256) for _ in range(5000))
    path = tmp_path / "bytes"
    path.write_bytes(content)
    with path.open("rb") as stream:
        lines = [line for batch in batches_of_lines(stream, 16) for line in batch]
    assert len(lines) == content.count(b"\n") + (not content.endswith(b"\n"))


@pytest.mark.parametrize("seed", [4, *(pytest.param(n, marks=pytest.mark.slow) for n in (5, 6, 7))])
def test_fuzzed_texts_are_prepared_or_refused(tmp_path, seed):
    """Every pair that is kept comes back from its ids as the words that are in the shortlists."""
    draw = random.Random(seed)
    source, target = ([draw_text(draw) for _ in range(60)] for _ in range(2))
    config = configuration(tmp_path, source, target)
    try:
        prepared = prepare(config.data, config.tokenizer, progress=False)
    except InputError:
        return
    splits = prepared.manifest["splits"]["train"]
    assert splits["lines"] == 60
    assert splits["pairs"] + splits["empty"] + splits["too_long"] == 60
    for number in range(len(prepared.train)):
        pair = prepared.train[number]
        ids = pair["source_ids"].tolist()
        assert prepared.source_vocabulary.decode(ids) == list(pair["source"])
