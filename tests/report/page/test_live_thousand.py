"""A thousand sentences through the page's model and through torch's with the same rounded weights, under Node.

The model is one of `regime=tiny`; LIVE_RUN names the folder of another run, such as one of `regime=laptop`, and
LIVE_SENTENCES how many sentences are tried.
"""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

import pytest
import torch

from nmt.config import SearchConfig
from nmt.config.validation import load
from nmt.data.tokenise import tokeniser
from nmt.evaluation.bleu import bleu, sentence_statistics
from nmt.grammar import draw_by_length
from nmt.inference.force_decoding import force_decode
from nmt.inference.load import from_checkpoints
from nmt.inference.model import Model
from nmt.models.checkpoint import read_checkpoint
from nmt.search import Hypothesis
from tests.helpers.live import NODE, in_node, rounded
from tests.report.page.test_live_model import in_the_page

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(NODE is None, reason="node is not installed"),
]
COUNT = int(os.environ.get("LIVE_SENTENCES", "1000"))
EDGES = (10, 20, 30, 40, 50, 60)


@pytest.fixture(scope="module")
def trained(request: pytest.FixtureRequest) -> Model:
    folder = os.environ.get("LIVE_RUN") or request.getfixturevalue("rnnsearch")
    checkpoint = read_checkpoint(Path(folder) / "checkpoints" / "best.ckpt")
    return from_checkpoints([checkpoint], load(checkpoint.config.copy()))


@pytest.fixture(scope="module")
def pairs() -> list[tuple[list[str], list[str]]]:
    drawn = (draw_by_length(1, "test:live", k, edges=EDGES) for k in range(COUNT))
    return [(list(pair.source), list(pair.target)) for pair in drawn]


@pytest.fixture(scope="module")
def texts(pairs: list[tuple[list[str], list[str]]]) -> list[str]:
    moses = tokeniser("en")
    return [moses.detokenise(source) for source, _ in pairs]


def corpus_bleu(hypotheses: list[list[str]], references: list[list[str]]) -> float:
    statistics = map(sentence_statistics, hypotheses, references)
    return bleu(sum(statistics))  # type: ignore[arg-type]


def searched(trained: Model, texts: list[str], beam: int) -> list[Hypothesis]:
    moses = tokeniser(trained.config.data.languages[0])
    encoded = [trained.codec.source.encode(moses.tokenise(text)) for text in texts]
    settings: SearchConfig = dataclasses.replace(trained.config.search, beam_size=beam, nbest=1)
    config = dataclasses.replace(trained.config, search=settings)
    changed = dataclasses.replace(trained, config=config)
    lengths = [len(sentence) for sentence in encoded]
    found = dict(
        changed.in_batches(lengths, lambda places: changed.search([encoded[p] for p in places]))
    )
    return [found[place][0] for place in range(len(texts))]


@pytest.mark.parametrize(
    ("bits", "beam", "least"), [(16, 1, 0.999), (8, 1, 0.999), (16, 12, 0.995)]
)
def test_translations_are_the_same(
    trained: Model, texts: list[str], bits: int, beam: int, least: float, tmp_path: Path
) -> None:
    same = rounded(trained, bits)
    wanted = searched(same, texts, beam)
    found = in_the_page(trained, bits, tmp_path, texts=texts, beam=beam, brief=True)
    moses = tokeniser(trained.config.data.languages[0])
    others, furthest = [], 0.0
    for start in range(0, len(texts), 50):
        part = slice(start, start + 50)
        sources = [trained.codec.source.encode(moses.tokenise(text)) for text in texts[part]]
        with torch.no_grad():
            forced = force_decode(same.network, sources, [one["ids"] for one in found[part]])
        for decoding, one, hypothesis in zip(forced, found[part], wanted[part], strict=True):
            differences = (a - b for a, b in zip(decoding.log_probabilities, one["p"], strict=True))
            furthest = max(furthest, *map(abs, differences))
            if [*one["ids"], 0][: len(hypothesis.tokens)] != hypothesis.tokens:
                others.append(abs(one["score"] - hypothesis.score))
    print(
        f"{bits} bits, beam {beam}: {len(texts) - len(others)} of {len(texts)} the same, "
        f"log-probability a word within {furthest:.1e}, others within {max(others, default=0):.1e}"
    )
    assert furthest < 1e-3
    assert len(others) <= (1 - least) * len(texts) + 1e-9
    assert max(others, default=0.0) < 1e-5


def test_bleu_is_that_of_python(
    trained: Model,
    pairs: list[tuple[list[str], list[str]]],
    texts: list[str],
    tmp_path: Path,
) -> None:
    references = [target for _, target in pairs]
    target = trained.codec.target
    own = [target.decode(one.tokens) for one in searched(trained, texts, 1)]
    wanted = corpus_bleu(own, references)
    for bits, within in ((16, 0.1), (8, 0.5)):
        found = in_the_page(trained, bits, tmp_path, texts=texts, brief=True)
        written = [one["written"][:-1] for one in found]
        measured = corpus_bleu(written, references)
        print(f"{bits} bits: BLEU {measured:.2f}, Python's {wanted:.2f}")
        assert measured == pytest.approx(wanted, abs=within)


def test_every_line_falls_into_the_same_words(texts: list[str], tmp_path: Path) -> None:
    moses = tokeniser("en")
    found = in_node(
        tmp_path,
        """
        import { tokeniser } from "$JS/data/tokenise.mjs";
        console.log(JSON.stringify(given.texts.map(tokeniser(given.rules))));
        """,
        rules=moses.rules(),
        texts=texts,
    )
    assert found == [moses.tokenise(text) for text in texts]
