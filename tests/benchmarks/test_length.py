"""`python -m benchmarks --part length`: its tables, and that its operations grow as the models' equations say."""

from __future__ import annotations

import argparse

import pytest
import torch

from benchmarks.length import ATTENDING, LOCAL, MODELS, WITHOUT, by_length, flops_of, make_net
from benchmarks.work import Size, Trainer, rectangle
from nmt.config import SearchConfig
from nmt.layers import LocalAttention
from nmt.search import beam_search

TOY = Size("toy", 6, 5, 7, 3, 23, 4, "adam")
PAIRS = 2
LENGTHS = (4, 8, 16)


def training(model: str, length: int) -> int:
    """FLOPs of a sentence, forward and backward."""
    trainer = Trainer(make_net(TOY, model), TOY, False, "cpu")
    words = rectangle(TOY, PAIRS, length)
    return flops_of(lambda: trainer.gradient(words)) // PAIRS


def decoding(model: str, length: int) -> int:
    """FLOPs of a sentence in a beam of 2."""
    net = make_net(TOY, model).eval()
    source, mask, *_ = rectangle(TOY, PAIRS, length)
    search = SearchConfig(beam_size=2, min_ratio=1.0, max_ratio=1.0)
    with torch.no_grad():
        return flops_of(lambda: beam_search(net, source, mask, search)) // PAIRS


def of_each_pair_of_words(work, model: str) -> float:
    """The coefficient of length² in the operations of a sentence, a polynomial of degree 2."""
    short, middle, long = (work(model, length) for length in LENGTHS)
    first, second, third = LENGTHS
    return ((long - middle) / (third - second) - (middle - short) / (second - first)) / (
        third - first
    )


def test_local_attention_is_one_of_the_models():
    context = make_net(TOY, LOCAL).decoder.context
    assert isinstance(context, LocalAttention)
    assert context.W_p.std() > 0.1  # drawn as the others are, not as the paper's tiny matrices
    assert LOCAL in ATTENDING


@pytest.mark.parametrize("work", [training, decoding])
@pytest.mark.parametrize("model", MODELS)
def test_attention_alone_takes_operations_for_each_pair_of_words(model, work):
    found = of_each_pair_of_words(work, model)
    assert (found > 0) == (model in ATTENDING)
    if model not in ATTENDING:
        assert found == 0
    if (model, work) == (LOCAL, training):
        # c_i = sum_j α_ij h_j, and backward to α and h: three times 2 FLOPs for an entry of h_j
        assert found == 3 * 2 * 2 * TOY.hidden


def test_a_predicted_window_adds_its_own_product_to_the_additive_score():
    """W_p s of each hypothesis and step; the products over positions stay."""
    for length in LENGTHS:
        more = decoding(LOCAL, length) - decoding("additive", length)
        assert more > 0
        assert more % (2 * TOY.hidden * TOY.alignment) == 0


def test_the_tables(capsys):
    by_length(TOY, argparse.Namespace(lengths=[3, 6], rounds=1, device="cpu"))
    training_table, beam_table = capsys.readouterr().out.split("\nBeam of 12, ")
    names = [WITHOUT, *ATTENDING, "RNNencdec"]
    for table in (training_table, beam_table):
        rows = [
            [cell.strip() for cell in line.strip("|").split("|")]
            for line in table.splitlines()
            if line.startswith("|")
        ][2:]
        assert [row[:2] for row in rows] == [[n, name] for n in ("3", "6") for name in names]
        for _, name, milliseconds, share, millions, share_of_flops in rows:
            assert float(milliseconds) > 0
            assert float(millions) >= 0
            assert (share == "–", share_of_flops == "–") == (name not in ATTENDING,) * 2
            if name in ATTENDING:
                assert 0 < int(share_of_flops.removesuffix(" %")) < 100
