"""The whole network: source ids to the likelihood of target ids, or step by step for a search.

B batch, S source length, T target length, K hypotheses a sentence, M maxout, V vocabulary.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from nmt.layers.attention import AttentionOutput
from nmt.layers.decoder import Decoder, DecoderState
from nmt.layers.encoder import Encoder
from nmt.layers.memory import Memory
from nmt.layers.output import Output


class Likelihood(NamedTuple):
    """The likelihood of given target sentences, with what the decoder computed on the way."""

    nll: Tensor  # (B, T) -log p(y_i) in nats, 0 at padded positions
    readout: Tensor  # (B, T, M) t_i
    weights: Tensor | None  # (B, T, S) α_ij, rows sum to 1; None for a fixed context
    log_normaliser: Tensor | None  # (B, T) log Z_i, with e_ij = log α_ij + log Z_i


class Network(nn.Module):
    """p(y | x) by an encoder, a decoder and an output layer; all that translating needs.

    Given translations::

        likelihood = network(source, source_mask, target, target_mask)
        loss = network.loss(source, source_mask, target, target_mask)

    A search, which writes one word a step for K hypotheses of each sentence::

        memory, state = network.begin(source, mask)  # K = 1
        logits, attended = network.step(state, memory)  # (B, K, V)
        state = network.advance(state, attended, word)  # word (B, K)

    Between two steps `select` and `reorder` (`nmt.layers.memory`) pick sentences and hypotheses of
    memory, state and attention. A sentence ends with `</s>`; masks are True at real positions, which
    come first in a row.

    With `reverse_source` the encoder reads the words of a sentence backwards. The annotations are
    put back to the order of the text, in which everything else sees them.
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
        """Whether the decoder has attention: only then it has a scoring function, and weights."""
        return self.decoder.context.scoring is not None

    @property
    def device(self) -> torch.device:
        return self.output.W_o.device

    def encode(self, source: Tensor, mask: Tensor) -> Memory:
        """Source ids (B, S) and mask (B, S) to what the decoder attends to."""
        if not self.reverse_source:
            annotations, summary = self.encoder(source, mask)
            return self.decoder.memory(annotations, summary, mask)
        order = reversed_words(mask)
        annotations, summary = self.encoder(source.gather(1, order), mask)
        annotations = annotations.gather(1, order.unsqueeze(2).expand_as(annotations))
        return self.decoder.memory(annotations, summary, mask)

    def begin(self, source: Tensor, mask: Tensor) -> tuple[Memory, DecoderState]:
        """The encoded sentences and the first state of a search, with one hypothesis each."""
        return self.decoder.begin(self.encode(source, mask))

    def step(self, state: DecoderState, memory: Memory) -> tuple[Tensor, AttentionOutput]:
        """Logits (B, K, V) of the next word, and the attention that they were made with."""
        readout, attended = self.decoder.step(state, memory)
        return self.output.logits(readout), attended

    def advance(self, state: DecoderState, attended: AttentionOutput, word: Tensor) -> DecoderState:
        """The state after `word` (B, K) was written, with the attention of the same step."""
        return self.decoder.advance(state, attended, word)

    def logits(self, readout: Tensor) -> Tensor:
        """Unnormalised log-probabilities (B, T, V) of all words, given a `Likelihood`'s readout."""
        return self.output.logits(readout)

    def forward(
        self, source: Tensor, source_mask: Tensor, target: Tensor, target_mask: Tensor
    ) -> Likelihood:
        """The likelihood of the target ids (B, T), given the source ids (B, S)."""
        readout, *attention = self.decoder(target, target_mask, self.encode(source, source_mask))
        nll = self.output.nll(readout, target, target_mask)
        return Likelihood(nll, readout, *attention)

    def loss(
        self, source: Tensor, source_mask: Tensor, target: Tensor, target_mask: Tensor
    ) -> Tensor:
        """Σ -log p(y_i) over all words of the batch, () in nats: what training minimises."""
        readout, *_ = self.decoder(target, target_mask, self.encode(source, source_mask))
        return self.output.loss(readout, target, target_mask)


def reversed_words(mask: Tensor) -> Tensor:
    """(B, S): the positions of each sentence, the words backwards, `</s>` and padding in place.

    Applied twice, it is the order of the text.

    >>> reversed_words(torch.tensor([[True, True, True, True, False]])).tolist()
    [[2, 1, 0, 3, 4]]
    """
    place = torch.arange(mask.shape[1], device=mask.device).expand(mask.shape)
    words = mask.sum(1, keepdim=True) - 1
    return torch.where(place < words, words - 1 - place, place)
