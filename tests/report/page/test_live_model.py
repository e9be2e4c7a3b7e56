"""The page's model and search under Node, compared with torch on the same 8-bit weights."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from nmt.data.batch import pad
from nmt.data.vocabulary import mark_unknown, until_end
from nmt.inference.model import Model, replace_unknown_words
from nmt.search import Hypothesis
from nmt.search.beam import beam_search
from nmt.text.symbols import END
from tests.helpers.models import drawn_model, rounded, write_live
from tests.helpers.run_folders import ENGLISH
from tests.report.page.node import NODE, in_node

pytestmark = pytest.mark.skipif(NODE is None, reason="node is not installed")

TRANSLATE = """
import { readFileSync } from "node:fs";
import { inflateSync } from "node:zlib";
import { readModel } from "$JS/model/translation.mjs";
const run = (job) => { for (;;) { const { done, value } = job.next(); if (done) return value; } };
const told = ({ states, ...record }) => ({ ...record, filled: states && Array.from(states) });
console.log(JSON.stringify(given.jobs.map(({ model, settings }) => {
  const trained = readModel(new Uint8Array(inflateSync(readFileSync(model))));
  return given.texts.map((text) => told(run(trained.translate(text, settings))));
})));
"""

KINDS = [
    ("RNNsearch", "Additive", "previous", False),
    ("RNNsearch", "Dot", "current", False),
    ("RNNsearch", "ScaledDot", "previous", True),
    ("RNNencdec", "", "current", False),
]


def sentences(count: int, longest: int = 20) -> list[str]:
    draw = np.random.default_rng(5)
    words = [*ENGLISH, "zebra", "quagga"]
    lengths = np.linspace(1, longest, count).astype(int)
    return [" ".join(draw.choice(words, length)) for length in lengths]


def in_the_page(folder: Path, texts: list[str], *jobs: tuple[Model, dict[str, Any]]) -> list[Any]:
    """Translates all texts with the page's code, for each (model, settings) in `jobs`."""
    plain = {"beam_size": 1, "attention": "trained", "replace_unk": "none"}
    given = []
    for number, (trained, settings) in enumerate(jobs):
        (folder / str(number)).mkdir()
        model = str(write_live(trained, folder / str(number)))
        given.append({"model": model, "settings": plain | settings})
    return in_node(TRANSLATE, texts=texts, jobs=given)


def in_python(trained: Model, texts: list[str], beam: int) -> list[Hypothesis]:
    settings = dataclasses.replace(trained.config.search, beam_size=beam)
    source, mask = pad([trained.source.encode(text.split()) for text in texts])
    return [found[0] for found in beam_search(trained.network, source, mask, settings)]


@pytest.mark.parametrize(("model", "scoring", "state_input", "bpe"), KINDS)
def test_page_model_equals_torch(
    model: str, scoring: str, state_input: str, bpe: bool, tmp_path: Path
) -> None:
    trained = drawn_model(model, scoring=scoring, state_input=state_input, bpe=bpe)
    texts = sentences(3, 5) if bpe else sentences(4, 14)
    same = rounded(trained)
    jobs = [(trained, {"beam_size": beam}) for beam in (1, 12)]
    for beam, found in zip((1, 12), in_the_page(tmp_path, texts, *jobs), strict=True):
        hypotheses = in_python(same, texts, beam)
        encoded = [same.source.encode(text.split()) for text in texts]
        ids = [[*until_end(each.tokens), END] for each in hypotheses]
        forced = same.force_decode([text.split() for text in texts], ids, runners_up=True)
        for source, record, hypothesis, symbols, decoded in zip(
            encoded, found, hypotheses, ids, forced, strict=True
        ):
            row = decoded.row(0)
            assert record["ids"] == symbols
            assert record["finished"] is hypothesis.finished
            assert record["log_probability"] == pytest.approx(hypothesis.log_probability, abs=1e-3)
            assert record["source"] == row["source"]
            assert record["target"] == row["target"]
            assert record["text"] == same.detokenise(row["target"][:-1])
            assert record["word_log_probabilities"] == pytest.approx(
                row["word_log_probabilities"], abs=1e-3
            )
            for own, wanted in zip(record["runners_up"], row["runners_up"], strict=True):
                assert [word for word, _ in own] == [word for word, _ in wanted]
            if model == "RNNsearch":
                assert np.allclose(record["weights"], row["weights"], atol=1e-4)
                assert record["log_normaliser"] == pytest.approx(row["log_normaliser"], abs=1e-3)
            else:
                real = torch.ones(1, len(source), dtype=torch.bool)
                annotations, _ = same.network.encoder(torch.tensor([source]), real)
                filled = annotations[0].detach().flatten().tolist()
                assert record["filled"] == pytest.approx(filled, abs=1e-5)


def test_page_search_settings_equal_python(tmp_path: Path) -> None:
    trained = drawn_model(spread=1.0, seed=4)
    texts = sentences(5, 14)
    models = []
    for settings in (
        {"max_ratio": 0.29},
        {"min_ratio": 1.5},
        {"length_penalty": 1.0},
        {"max_ratio": 1.0, "min_ratio": 2.0, "length_penalty": 0.6},
    ):
        search = dataclasses.replace(trained.config.search, **settings)
        config = dataclasses.replace(trained.config, search=search)
        models.append(dataclasses.replace(trained, config=config))
    pages = in_the_page(tmp_path, texts, *((model, {"beam_size": 3}) for model in models))
    for model, found in zip(models, pages, strict=True):
        wanted = in_python(rounded(model), texts, 3)
        for record, hypothesis in zip(found, wanted, strict=True):
            assert [*record["ids"], 0][: len(hypothesis.tokens)] == hypothesis.tokens
            assert record["finished"] is hypothesis.finished
            assert record["log_probability"] == pytest.approx(hypothesis.log_probability, abs=1e-4)


def test_page_interventions_replace_each_step(tmp_path: Path) -> None:
    trained = drawn_model()
    (text,) = sentences(1)
    text = f"{text} of agreement"
    size = len(text.split()) + 1
    jobs = [(trained, {"attention": mode}) for mode in ("uniform", "argmax", "trained")]
    [uniform], [argmax], [own] = in_the_page(tmp_path, [text], *jobs)
    assert np.allclose(uniform["weights"], 1 / size)
    assert {value for row in argmax["weights"] for value in row} == {0, 1}
    assert all(sum(row) == 1 for row in argmax["weights"])
    assert own["log_probability"] != uniform["log_probability"] != argmax["log_probability"]


def test_page_replaces_unknown_words_as_python(tmp_path: Path) -> None:
    trained = drawn_model(dictionary={"zebra": "zèbre"}, seed=2)
    with torch.no_grad():
        trained.network.output.bias[1] = 9.0  # makes <unk> very probable
    text = "the zebra is constructor after the quagga"
    modes = ("none", "copy", "dictionary")
    same = rounded(trained)
    jobs = [(trained, {"replace_unk": mode}) for mode in modes]
    for mode, [record] in zip(modes, in_the_page(tmp_path, [text], *jobs), strict=True):
        assert 1 in record["ids"]
        (decoding,) = same.force_decode([text.split()], [record["ids"]])
        wanted = same.target.words_of(record["ids"])
        if mode != "none":
            dictionary = trained.dictionary if mode == "dictionary" else None
            wanted = replace_unknown_words(wanted, decoding.weights, text.split(), dictionary)
        assert record["target"] == [*mark_unknown(wanted), "</s>"]
        assert record["known"] == [word in ENGLISH for word in text.split()]
