"""Multinomial logistic regression of a word on a vector, the probe of Alain and Bengio (2017).

N examples, D entries of a vector, C classes.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

BATCH = 256
RATE = 2e-2
PATIENCE = 2  # epochs without a better likelihood after which the fit ends
HELD_BACK = 10  # every tenth example chooses the epoch


@dataclass(frozen=True)
class LinearProbe:
    """log p(word | x) = log softmax(prior + b + W (x - mean) / deviation).

    Attributes:
        weight: (D, C) W.
        bias: (C,) b.
        mean, deviation: (D,) of the examples it was fitted to.
    """

    weight: Tensor
    bias: Tensor
    mean: Tensor
    deviation: Tensor

    def logits(self, vectors: Tensor, prior: Tensor) -> Tensor:
        """Vectors (N, D) and log-priors (N, C) or (C,) -> (N, C), not normalised."""
        standard = (vectors - self.mean) / self.deviation
        return prior + torch.addmm(self.bias, standard, self.weight)

    def read(self, vectors: Tensor, prior: Tensor) -> Tensor:
        """The most probable class of each vector: (N, D) -> (N,) int64."""
        parts = vectors.split(4096)
        priors = prior.split(4096) if prior.dim() == 2 else [prior] * len(parts)
        return torch.cat([self.logits(x, p).argmax(1) for x, p in zip(parts, priors, strict=True)])


def fit_probe(
    vectors: Tensor, words: Tensor, prior: Tensor, *, epochs: int, seed: int
) -> LinearProbe:
    """Fits a probe by Adam to all but each tenth example, which choose among the epochs.

    It starts from W = 0 and b = 0, the prior alone, which is chosen where no epoch predicts the
    examples held back better: vectors that say nothing are read as the prior.

    Args:
        vectors: (N, D).
        words: (N,) class of each.
        prior: (N, C) or (C,) log-probabilities before the vector is seen.
        epochs: passes over the examples, at most.
        seed: of their order.
    """
    device, (count, size), classes = vectors.device, vectors.shape, prior.shape[-1]
    if not count:  # the prior alone
        nothing = vectors.new_zeros(size)
        return LinearProbe(
            vectors.new_zeros(size, classes), prior.new_zeros(classes), nothing, nothing + 1
        )
    probe = LinearProbe(
        torch.zeros(size, classes, device=device, requires_grad=True),
        torch.zeros(classes, device=device, requires_grad=True),
        vectors.mean(0),
        vectors.std(0, correction=0).clamp_min(1e-6),
    )
    generator = torch.Generator().manual_seed(seed)
    order = torch.randperm(count, generator=generator)
    back, learnt = order[::HELD_BACK].to(device), order[torch.arange(count) % HELD_BACK != 0]

    def loss(rows: Tensor) -> Tensor:
        return cross_entropy(
            probe.logits(vectors[rows], prior[rows] if prior.dim() == 2 else prior), words[rows]
        )

    def held_back() -> float:
        with torch.no_grad():
            parts = [(float(loss(rows)), len(rows)) for rows in back.split(4096)]
        return sum(each * number for each, number in parts) / len(back)

    parameters = [probe.weight, probe.bias]
    optimizer = torch.optim.Adam(parameters, lr=RATE)
    best, chosen = held_back(), [each.detach().clone() for each in parameters]
    waited = 0
    for _ in range(epochs if len(learnt) else 0):
        shuffled = learnt[torch.randperm(len(learnt), generator=generator)].to(device)
        for rows in shuffled.split(BATCH):
            optimizer.zero_grad()
            loss(rows).backward()
            optimizer.step()
        found = held_back()
        waited += 1
        if found < best:
            best, chosen, waited = found, [each.detach().clone() for each in parameters], 0
        elif waited == PATIENCE:
            break
    return LinearProbe(chosen[0], chosen[1], probe.mean, probe.deviation)
