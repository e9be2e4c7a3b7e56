"""The complete network, which computes the likelihood of target ids and the steps of a beam search.

Sizes: B batch, S source length, T target length, K hypotheses per sentence, M maxout units, V vocabulary.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from nmt.layers.decoder import Decoder, DecoderState
from nmt.layers.encoder import Encoder
from nmt.layers.memory import Memory
from nmt.layers.output import Output


class Likelihood(NamedTuple):
    """The likelihood of given target sentences, and the decoder's outputs (see `AttentionOutput`)."""

    nll: Tensor  # (B, T) -log p(y_i) in nats, 0 at padded positions
    readout: Tensor  # (B, T, M) t_i
    weights: Tensor | None  # (B, T, S) α_ij; sums over S are 1, but 0 at padded target positions
    log_normaliser: Tensor | None  # (B, T) log Z_i of the softmax, 0 at padded positions


class Network(nn.Module):
    """Models p(y | x) with an encoder, a decoder and an output layer.

    To score given translations (teacher forcing)::

        likelihood = network(source, source_mask, target, target_mask)
        loss = network.loss(source, source_mask, target, target_mask)

    Beam search generates one word per step for K hypotheses of each sentence::

        memory, state = network.begin(source, mask)  # at first K is 1
        logits, attended = network.step(state, memory)  # (B, K, V)
        state = network.advance(state, attended, word)  # word (B, K)

    Between two steps, `nmt.layers.memory.select` can select sentences, and `nmt.layers.memory.reorder`
    can select and reorder hypotheses. A sentence ends with `</s>`. Masks are True at its words and `</s>`,
    and False at padding, which comes after `</s>`.

    With `reverse_source`, the encoder reads the words of a sentence backwards. `encode` then restores the
    original order of the annotations.
    """

    def __init__(
        self, encoder: Encoder, decoder: Decoder, output: Output, *, reverse_source: bool = False
    ) -> None:
        super().__init__()
        self.encoder = encoder
        self.decoder = decoder
        self.output = output
        self.reverse_source = reverse_source

    @property
    def attends(self) -> bool:
        """Whether the decoder has attention, and thus a scoring function and attention weights."""
        return self.decoder.context.scoring is not None

    @property
    def device(self) -> torch.device:
        return self.output.W_o.device

    def encode(self, source: Tensor, mask: Tensor) -> Memory:
        """Encodes source ids (B, S) with mask (B, S) into a `Memory`."""
        if not self.reverse_source:
            annotations, summary = self.encoder(source, mask)
            return self.decoder.memory(annotations, summary, mask)
        order = reversed_words(mask)
        annotations, summary = self.encoder(source.gather(1, order), mask)
        annotations = annotations.gather(1, order.unsqueeze(2).expand_as(annotations))
        return self.decoder.memory(annotations, summary, mask)

    def begin(self, source: Tensor, mask: Tensor) -> tuple[Any, DecoderState]:
        """Returns the encoded sentences, and the initial state of a search with one hypothesis per sentence."""
        return self.decoder.begin(self.encode(source, mask))

    def step(self, state: DecoderState, memory: Any) -> tuple[Tensor, Any]:
        """Returns the logits (B, K, V) of the next word and the attention output of this step."""
        readout, attended = self.decoder.step(state, memory)
        return self.output.logits(readout), attended

    def advance(self, state: DecoderState, attended: Any, word: Tensor) -> DecoderState:
        """Returns the state after `word` (B, K). `attended` is the attention output of the same step."""
        return self.decoder.advance(state, attended, word)

    def logits(self, readout: Tensor) -> Tensor:
        """Returns the logits (B, T, V) of all words, given `Likelihood.readout` (B, T, M)."""
        return self.output.logits(readout)

    def forward(
        self, source: Tensor, source_mask: Tensor, target: Tensor, target_mask: Tensor
    ) -> Likelihood:
        """Returns the likelihood of the target ids (B, T), given the source ids (B, S)."""
        readout, *attention = self.decoder(target, target_mask, self.encode(source, source_mask))
        nll = self.output.nll(readout, target, target_mask)
        return Likelihood(nll, readout, *attention)

    def loss(
        self, source: Tensor, source_mask: Tensor, target: Tensor, target_mask: Tensor
    ) -> Tensor:
        """Returns the sum of -log p(y_i) in nats over all target words of the batch."""
        readout, *_ = self.decoder(target, target_mask, self.encode(source, source_mask))
        return self.output.loss(readout, target, target_mask)


def reversed_words(mask: Tensor) -> Tensor:
    """Returns indices (B, S) that reverse the words of each sentence.

    `</s>` and padding keep their positions. The permutation is its own inverse.

    >>> reversed_words(torch.tensor([[True, True, True, True, False]])).tolist()
    [[2, 1, 0, 3, 4]]
    """
    place = torch.arange(mask.shape[1], device=mask.device).expand(mask.shape)
    words = mask.sum(1, keepdim=True) - 1
    return torch.where(place < words, words - 1 - place, place)
