"""Small models that can be searched, and a simple beam search for one sentence."""

from __future__ import annotations

import dataclasses

import torch
from torch import Tensor

from nmt.config.schema import SearchConfig
from nmt.layers import AttentionOutput, DecoderState, Memory
from nmt.search import Hypothesis, Searchable
from tests.layers.nets import Net

END, UNKNOWN = 0, 1


def settings(**changes) -> SearchConfig:
    return dataclasses.replace(SearchConfig(), **changes)


class TinyModel:
    """A recurrent model with attention and random weights, in float64."""

    def __init__(self, vocabulary: int = 11, size: int = 6, seed: int = 0, sharpness: float = 2.0):
        draw = torch.Generator().manual_seed(seed)

        def matrix(*shape: int) -> Tensor:
            return torch.randn(*shape, generator=draw, dtype=torch.float64)

        self.embedding = matrix(vocabulary, size)
        self.recurrent = matrix(size, size)
        self.vocabulary = matrix(vocabulary, size) * sharpness
        self.sentences: list[int] = []  # number of sentences in each call of `step`
        self.hypotheses: list[int] = []  # hypotheses per sentence in each call

    def encode(self, source: Tensor, mask: Tensor) -> Memory:
        annotations = self.embedding[source] * mask.unsqueeze(2)
        return Memory(annotations, None, mask, annotations.sum(1).tanh())

    def begin(self, source: Tensor, mask: Tensor) -> tuple[Memory, DecoderState]:
        memory = self.encode(source, mask)
        hidden = memory.summary.unsqueeze(1)
        return memory, DecoderState(hidden, torch.zeros_like(hidden))

    def step(self, state: DecoderState, memory: Memory) -> tuple[Tensor, AttentionOutput]:
        self.sentences.append(state.hidden.shape[0])
        self.hypotheses.append(state.hidden.shape[1])
        assert memory.annotations.shape[0] == state.hidden.shape[0]
        scores = torch.einsum("bkh,bsh->bks", state.hidden, memory.annotations)
        weights = scores.masked_fill(~memory.mask.unsqueeze(1), -torch.inf).softmax(2)
        context = weights @ memory.annotations
        readout = (state.hidden + context + 0.5 * state.embedding).tanh()
        return readout @ self.vocabulary.T, AttentionOutput(context, weights, None)

    def advance(self, state: DecoderState, attended: AttentionOutput, word: Tensor) -> DecoderState:
        embedded = self.embedding[word]
        hidden = (state.hidden @ self.recurrent + attended.context + embedded).tanh()
        return DecoderState(hidden, embedded)


def layered_model(attentive: bool, state_input: str, vocabulary: int = 19) -> Net:
    """Returns a network of `nmt.layers` with random float64 weights, with or without attention."""
    torch.manual_seed(3)
    sizes = {"embedding": 4, "hidden": 6, "alignment": 5, "maxout": 7}
    scoring = "additive" if attentive else "none"
    net = Net(scoring, state_input, source=vocabulary, target=vocabulary, **sizes).double().eval()
    for weight in net.parameters():
        torch.nn.init.normal_(weight)
    return net


class TableModel(TinyModel):
    """A model whose logits after word i are row i of a table."""

    def __init__(self, table: Tensor):
        super().__init__(len(table), len(table))
        self.table = table
        self.embedding = torch.eye(len(table), dtype=torch.float64)

    def step(self, state: DecoderState, memory: Memory) -> tuple[Tensor, AttentionOutput]:
        super().step(state, memory)
        previous = state.embedding
        readout = torch.where(previous.any(2, keepdim=True), previous, self.embedding[END])
        logits = (readout @ self.table.double()).to(self.table.dtype)
        return logits, AttentionOutput(state.hidden, None, None)


@torch.no_grad()
def reference_search(
    model: Searchable, sentence: Tensor, options: SearchConfig, forbid_unknown: bool = False
) -> list[Hypothesis]:
    """Searches one sentence. Each step sorts all continuations: each hypothesis with each word."""
    source = sentence.unsqueeze(0)
    memory, start = model.begin(source, torch.ones_like(source, dtype=torch.bool))
    limit = int(options.max_ratio * len(sentence) + 1e-9)
    minimum = min(int(options.min_ratio * len(sentence) + 1e-9), max(1, limit) - 1)
    beam = [([], 0.0, start)]
    finished = []
    for _ in range(max(1, limit)):
        continuations = []
        for place, (tokens, total, state) in enumerate(beam):
            logits, attended = model.step(state, memory)
            logits = logits[0, 0]
            logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
            log_p = logits - logits.logsumexp(0)
            for word, value in enumerate(log_p.tolist()):
                if word == END and len(tokens) < minimum:
                    continue
                if word == UNKNOWN and forbid_unknown:
                    continue
                continuations.append((-total - value, word, place, attended))
        continuations.sort(key=lambda each: each[:3])
        following = []
        for loss, word, place, attended in continuations[: options.beam_size - len(finished)]:
            tokens, _, state = beam[place]
            written = ([*tokens, word], -loss)
            if word == END:
                finished.append((*written, True))
            else:
                state = model.advance(state, attended, torch.tensor([[word]]))
                following.append((*written, state))
        beam = following
        if not beam or len(finished) == options.beam_size:
            break
    found = [
        Hypothesis(tokens, total, ended)
        for tokens, total, ended in [*finished, *((*kept, False) for *kept, _ in beam)]
    ]

    def rank(each: Hypothesis) -> float:
        return each.log_probability / len(each.tokens) ** options.length_penalty

    found.sort(key=lambda each: (not each.finished, -rank(each), each.tokens))
    return found[: options.nbest]
