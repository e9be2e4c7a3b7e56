"""The cross-entropy in chunks of rows."""

import pytest
import torch

from nmt.fused import steps
from nmt.fused.cross_entropy import chunked_nll, chunks
from tests.layers.nets import output_example


@pytest.mark.parametrize("chunk", [1, 2, 3, 8, 100])
def test_chunks_do_not_change_the_sum(chunk):
    output, readout, target, mask = output_example()
    inputs = (readout[mask], output.W_o, output.bias, target[mask], torch.float64)
    weight = torch.rand(8, dtype=torch.float64)
    with torch.no_grad():
        nll, grads = chunked_nll(*inputs, with_gradients=True, weight=weight, chunk=chunk)
        whole_nll, whole = chunked_nll(*inputs, with_gradients=True, weight=weight)
    torch.testing.assert_close(nll, whole_nll)
    torch.testing.assert_close(tuple(grads), tuple(whole))


def test_rows_of_weight_0_are_as_good_as_left_out():
    """What a GPU does, to which the number of real positions is unknown."""
    output, readout, target, mask = output_example()
    parameters = output.W_o, output.bias
    with torch.no_grad():
        nll, grads = chunked_nll(
            readout.flatten(0, 1), *parameters, target.flatten(), torch.float64,
            with_gradients=True, weight=mask.flatten().double(),
        )  # fmt: skip
        chosen, chosen_grads = chunked_nll(
            readout[mask], *parameters, target[mask], torch.float64, with_gradients=True
        )
    torch.testing.assert_close(nll[mask.flatten()], chosen)
    assert not nll[~mask.flatten()].any()
    torch.testing.assert_close(grads.rows[mask.flatten()], chosen_grads.rows)
    assert not grads.rows[~mask.flatten()].any()
    torch.testing.assert_close(grads[1:], chosen_grads[1:])


@pytest.mark.parametrize(
    ("rows", "most", "sizes"),
    [(2400, 2236, [1200, 1200]), (7, 3, [2, 2, 3]), (3, 3, [3]), (0, 3, [])],
)
def test_chunks_are_as_good_as_equal(rows, most, sizes):
    parts = list(chunks(rows, most))
    whole = list(chunks(4 * rows, 4 * most + 3, 4))
    assert [(4 * part.start, 4 * part.stop) for part in parts] == [(x.start, x.stop) for x in whole]
    assert [part.stop - part.start for part in parts] == sizes
    assert [i for part in parts for i in range(rows)[part]] == list(range(rows))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("count", [1, 31, 32, 77])
def test_products_of_16_bits_have_few_numbers_of_rows(count, weighted, monkeypatch):
    """All in multiples of 32; what is added to get there changes neither NLL nor gradients."""
    torch.manual_seed(count)
    rows, W_o = torch.randn(count, 6).bfloat16(), torch.randn(11, 6)
    bias, words = torch.randn(11), torch.randint(11, (count,))
    weight = torch.rand(count) if weighted else None
    seen = []
    word_nll = steps.word_nll
    monkeypatch.setattr(
        steps,
        "word_nll",
        lambda rows, *rest, **how: seen.append(len(rows)) or word_nll(rows, *rest, **how),
    )
    nll, grads = chunked_nll(
        rows, W_o, bias, words, torch.bfloat16, with_gradients=True, weight=weight, chunk=50
    )
    assert {size % 32 for size in seen} == {0}
    assert sum(seen) - count < 32
    expected, whole = chunked_nll(
        rows.float(), W_o, bias, words, torch.float32, with_gradients=True, weight=weight
    )
    assert nll.shape == (count,)
    torch.testing.assert_close(nll, expected, rtol=0.05, atol=0.05)
    for found, gradient in zip(grads, whole, strict=True):
        assert found.shape == gradient.shape
        assert (found.float() - gradient).norm() < 0.02 * gradient.norm()


def test_no_rows():
    output, readout, target, _ = output_example()
    nll, grads = chunked_nll(
        readout[0, :0], output.W_o.detach(), output.bias.detach(), target[0, :0], torch.float64,
        with_gradients=True,
    )  # fmt: skip
    assert nll.shape == (0,)
    assert not any(grad.any() for grad in grads)
