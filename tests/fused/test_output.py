"""The cross-entropy in chunks of rows."""

import pytest
import torch

from nmt.fused import output as fused_output
from nmt.fused import steps
from nmt.fused.output import chunked_nll, chunks
from tests.layers.nets import output_example


def computed(rows, output, words, weight=None, dtype=torch.float64):
    parameters = output.W_o.detach(), output.bias.detach()
    with torch.no_grad():
        nll, grads = chunked_nll(
            steps, rows, *parameters, words, dtype, weight=weight, with_gradients=True
        )
    return nll, *grads


@pytest.mark.parametrize("chunk", [1, 2, 3, 8])
def test_nll_is_the_same_for_any_chunk_size(chunk, monkeypatch):
    output, readout, target, mask = output_example()
    inputs = readout[mask], output, target[mask], torch.rand(8).double()
    expected = computed(*inputs)
    monkeypatch.setattr(fused_output, "LOGITS_BYTES", chunk * len(output.bias) * 8)
    torch.testing.assert_close(computed(*inputs), expected)


def test_rows_of_weight_0_have_no_effect():
    """On a GPU, padding words get weight 0, because removing them would make the CPU wait for the mask."""
    output, readout, target, mask = output_example()
    nll, grads, *rest = computed(
        readout.flatten(0, 1), output, target.flatten(), mask.flatten().double()
    )
    expected = computed(readout[mask], output, target[mask])
    torch.testing.assert_close((nll[mask.flatten()], grads[mask.flatten()], *rest), expected)
    assert not nll[~mask.flatten()].any()
    assert not grads[~mask.flatten()].any()


@pytest.mark.parametrize(
    ("rows", "most", "sizes"),
    [(2400, 2236, [1200, 1200]), (7, 3, [2, 2, 3]), (3, 3, [3]), (0, 3, [])],
)
def test_chunk_sizes_differ_by_at_most_one(rows, most, sizes):
    parts = list(chunks(rows, most))
    assert [part.stop - part.start for part in parts] == sizes
    assert [i for part in parts for i in range(rows)[part]] == list(range(rows))
    coarse = [slice(4 * part.start, 4 * part.stop) for part in parts]
    assert list(chunks(4 * rows, 4 * most + 3, 4)) == coarse


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("count", [1, 31, 32, 77])
def test_bf16_products_use_few_row_counts(count, weighted, monkeypatch):
    """The number of rows of a chunk is padded to a multiple of 32. NLLs and gradients do not change."""
    output, *_ = output_example(torch.float32)
    rows = torch.randn(count, 5).bfloat16()
    words = torch.randint(17, (count,))
    weight = torch.rand(count) if weighted else None
    expected = computed(rows.float(), output, words, weight, torch.float32)
    word_nll = steps.word_nll
    sizes = []

    def seen(rows, *rest, **how):
        sizes.append(len(rows))
        return word_nll(rows, *rest, **how)

    monkeypatch.setattr(steps, "word_nll", seen)
    monkeypatch.setattr(fused_output, "LOGITS_BYTES", 50 * 17 * 2)
    found = computed(rows, output, words, weight, torch.bfloat16)
    assert {size % 32 for size in sizes} == {0}
    assert sum(sizes) - count < 32
    torch.testing.assert_close(found[0], expected[0], rtol=0.05, atol=0.05)
    for value, wanted in zip(found, expected, strict=True):
        assert value.shape == wanted.shape
        assert (value.float() - wanted).norm() < 0.02 * wanted.norm()


def test_nll_of_no_rows_is_empty():
    output, readout, target, _ = output_example()
    nll, *grads = computed(readout[0, :0], output, target[0, :0])
    assert nll.shape == (0,)
    assert not any(grad.any() for grad in grads)
