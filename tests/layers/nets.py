"""Small models and batches of mixed lengths, a different size on every axis."""

import torch
from torch import nn

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
    LocalAttention,
    Network,
    Output,
    ScaledDot,
    initialise,
)
from nmt.layers.scoring import compared_sizes

SCORINGS = {
    "additive": Additive,
    "dot": Dot,
    "scaled_dot": ScaledDot,
    "general": General,
    "cosine": Cosine,
}
KINDS = [(s, i) for s in ("additive", "dot", "scaled_dot", "none") for i in ("previous", "current")]
KINDS += [("general", "current"), ("cosine", "previous")]
SIZES = {"source": 11, "target": 13, "embedding": 4, "hidden": 5, "alignment": 7, "maxout": 3}


class Net(Network):
    """Encoder, decoder and output of RNNsearch, or of RNNencdec with scoring "none"."""

    def __init__(
        self,
        scoring="additive",
        state_input="previous",
        recurrence="plain",
        scorer=None,
        graphs=False,
        unit=GatedUnit,
        **sizes,
    ):
        options = {"recurrence": recurrence, "graphs": graphs, "unit": unit}
        size = SIZES | sizes
        e, h, n = size["embedding"], size["hidden"], size["alignment"]
        if scoring == "none":
            encoder = ForwardEncoder(size["source"], e, h, **options)
            context = FixedContext(h)
        else:
            encoder = BidirectionalEncoder(size["source"], e, h, **options)
            scorer = scorer or SCORINGS[scoring]
            context = Attention(h, 2 * h, n, scorer(*compared_sizes(scorer, h, 2 * h, n)))
        decoder = Decoder(
            size["target"],
            e,
            h,
            size["maxout"],
            context,
            state_input=state_input,
            **options,
        )
        super().__init__(encoder, decoder, Output(size["maxout"], size["target"]))
        self.scoring = scoring


def make(scoring="additive", state_input="previous", recurrence="plain", *, dtype=None, **options):
    """A net with large weights and biases that are not 0, the same for both recurrences."""
    torch.manual_seed(3)
    net = Net(scoring, state_input, recurrence, **options)
    initialise(net, "glorot")
    for name, parameter in net.named_parameters():
        if "bias" in name:
            nn.init.normal_(parameter, std=0.3)
        else:
            parameter.data *= 1.5
    return net.to(dtype or torch.float64)


def make_local(window=2, recurrence="plain"):
    """The net with attention in a window, whose weights do not sum to 1."""
    net = make(recurrence=recurrence)
    torch.manual_seed(2)
    context = LocalAttention(5, 10, 7, net.decoder.context.scoring, window=window).double()
    initialise(context, "glorot")
    decoder = Decoder(13, 4, 5, 3, context, recurrence=recurrence).double()
    initialise(decoder, "glorot")
    net.decoder = decoder
    return net


def batch(source_lengths=(6, 1, 4), target_lengths=(2, 5, 3), sizes=None, seed=5):
    """(source, source_mask, target, target_mask) with random words; padding holds END = 0."""
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


def both_recurrences(
    scoring, state_input="previous", lengths=((6, 1, 4), (2, 5, 3)), *, autocast=None, **options
):
    """For plain and fused: (nll, likelihood, gradients), each sentence with another weight.

    With `autocast` given (on or off) the maxout units stay on one half.
    """
    results = []
    for recurrence in ("plain", "fused"):
        net = make(scoring, state_input, recurrence, **options)
        if autocast is not None:
            net.decoder.readout.bias.data[0::2] += 3
        words = batch(*lengths, sizes=options)
        with torch.autocast("cpu", torch.bfloat16, enabled=bool(autocast)):
            found = net(*words)
        weight = torch.arange(1, len(found.nll) + 1).unsqueeze(1) / len(found.nll)
        (found.nll * weight).sum().backward()
        grads = {
            # a part that a one-word target never uses: no gradient in plain, 0 in fused
            name: torch.zeros_like(p) if p.grad is None else p.grad
            for name, p in net.named_parameters()
        }
        results.append((found.nll, found, grads))
    return results


def sentences(words, mask):
    """The ids of each row, without padding."""
    return [row[real].tolist() for row, real in zip(words, mask, strict=True)]


def leaf(*shape):
    """A float64 tensor whose gradient is asked for."""
    return torch.randn(*shape, dtype=torch.float64, requires_grad=True)


def mixed_precision():
    return torch.autocast("cpu", torch.bfloat16)


def output_example(dtype=torch.float64, scale=1.0):
    """An output layer, readouts (3, 4, 5), their words and mask."""
    torch.manual_seed(0)
    output = Output(5, 17).to(dtype)
    torch.nn.init.normal_(output.W_o, std=scale)
    torch.nn.init.normal_(output.bias)
    readout = torch.randn(3, 4, 5, dtype=dtype, requires_grad=True)
    target = torch.randint(0, 17, (3, 4))
    mask = torch.arange(4) < torch.tensor([[4], [1], [3]])
    return output, readout, target, mask
