"""Small networks, and batches with sentences of different lengths. Every axis has a different size."""

import pytest
import torch
from torch import nn

from nmt.fused import backend_of, fuse
from nmt.layers import (
    Additive,
    Attention,
    BidirectionalEncoder,
    Cosine,
    Decoder,
    Dot,
    FixedContext,
    ForwardEncoder,
    GatedUnit,
    General,
    Network,
    Output,
    ScaledDot,
    initialise,
)
from nmt.layers.scoring import query_and_key_sizes

GPU_MARKS = (
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
)
ON_GPU = pytest.param("cuda", marks=GPU_MARKS)
SCORINGS = {
    "additive": Additive,
    "dot": Dot,
    "scaled_dot": ScaledDot,
    "general": General,
    "cosine": Cosine,
}
KINDS = [(s, i) for s in ("additive", "dot", "none") for i in ("previous", "current")]
KINDS += [("scaled_dot", "previous"), ("general", "current"), ("cosine", "previous")]
SIZES = {"source": 11, "target": 13, "embedding": 4, "hidden": 5, "alignment": 7, "maxout": 3}


class Net(Network):
    """RNNsearch; with `scoring="none"`, RNNencdec."""

    def __init__(
        self, scoring="additive", state_input="previous", *, kind=Attention, unit=GatedUnit, **sizes
    ):
        size = SIZES | sizes
        e, h, n = size["embedding"], size["hidden"], size["alignment"]
        if scoring == "none":
            encoder = ForwardEncoder(size["source"], e, h, unit=unit)
            context = FixedContext(h)
        else:
            encoder = BidirectionalEncoder(size["source"], e, h, unit=unit)
            scorer = SCORINGS.get(scoring, scoring)
            context = kind(h, 2 * h, n, scorer(*query_and_key_sizes(scorer, h, 2 * h, n)))
        decoder = Decoder(
            size["target"], e, h, size["maxout"], context, state_input=state_input, unit=unit
        )
        super().__init__(encoder, decoder, Output(size["maxout"], size["target"]))
        self.scoring = scoring


def make(
    scoring="additive",
    state_input="previous",
    recurrence="plain",
    *,
    dtype=None,
    kernels=True,
    steps=None,
    **options,
):
    """Makes a network with large weights and nonzero biases; they are the same for each `recurrence`.

    Args:
        steps: module that computes the steps of a fused network on any device.
    """
    torch.manual_seed(3)
    net = Net(scoring, state_input, **options)
    initialise(net, "glorot")
    for name, parameter in net.named_parameters():
        if "bias" in name:
            nn.init.normal_(parameter, std=0.3)
        else:
            parameter.data *= 1.5
    net = net.to(dtype or torch.float64)
    if recurrence == "fused":
        fuse(net, kernels=kernels and steps is None)
    if steps is not None:
        backend_of(net).steps = steps
    return net


def batch(source_lengths=(6, 1, 4), target_lengths=(2, 5, 3), sizes=None, seed=5):
    """Returns (source, source_mask, target, target_mask) of random words, padded with END = 0."""
    size = SIZES | (sizes or {})
    generator = torch.Generator().manual_seed(seed)
    parts = []
    for side, lengths in (("source", source_lengths), ("target", target_lengths)):
        mask = torch.arange(max(lengths)) < torch.tensor(lengths).unsqueeze(1)
        words = torch.randint(1, size[side], mask.shape, generator=generator)
        last = torch.tensor(lengths).unsqueeze(1) - 1
        words.scatter_(1, last, 0)  # each sentence ends with </s>
        parts += [words * mask, mask]
    return tuple(parts)


def gradients(net):
    return {name: parameter.grad for name, parameter in net.named_parameters()}


def sentences(words, mask):
    """Returns the ids of each sentence, without padding."""
    return [row[real].tolist() for row, real in zip(words, mask, strict=True)]


def leaf(*shape):
    """Returns a random float64 tensor that requires a gradient."""
    return torch.randn(*shape, dtype=torch.float64, requires_grad=True)


def mixed_precision():
    return torch.autocast("cpu", torch.bfloat16)


def output_example(dtype=torch.float64, scale=1.0, kind=Output):
    """Returns an output layer, readouts (3 sentences, 4 words, 5 units), and the target words and mask (3, 4)."""
    torch.manual_seed(0)
    output = kind(5, 17).to(dtype)
    torch.nn.init.normal_(output.W_o, std=scale)
    torch.nn.init.normal_(output.bias)
    readout = torch.randn(3, 4, 5, dtype=dtype, requires_grad=True)
    target = torch.randint(0, 17, (3, 4))
    mask = torch.arange(4) < torch.tensor([[4], [1], [3]])
    return output, readout, target, mask
