"""Length curves of single domains, and curves with the same mix of domains at every length.

If short and long sentences come from different domains, a curve over all sentences mixes the effects of
length and domain. The adjusted curve avoids this by direct standardisation: at every length, the weight of a
domain is its share of all sentences. The curve includes the domains with enough sentences at both the short
and the long length (`LengthScale`). It has a value at a length only if the effective sample size is at least
`FEWEST` in total, and at least `FEWEST_OF_DOMAIN` in each of these domains.
"""

from __future__ import annotations

import numpy as np

from nmt.evaluation.length_curve import FEWEST, Kernel, LengthScale, kernel
from nmt.evaluation.measured import CommonSentences

FEWEST_OF_DOMAIN = 5  # minimum effective sample size of a domain at a length


def kernel_of_domain(scale: LengthScale, sentences: CommonSentences, domain: str) -> Kernel:
    """Computes kernel weights for the sentences of one domain; all other sentences have weight 0."""
    inside = domains_of(sentences).get(domain)
    if inside is None:  # no sentence of this domain has the score
        return Kernel(np.empty(0), np.empty((0, len(sentences.ids))), np.empty(0), scale.short)
    own = scale.kernel(sentences.lengths[inside])
    weights = np.zeros((len(own.lengths), len(sentences.ids)))
    weights[:, inside] = own.weights
    return Kernel(own.lengths, weights, own.sentences, scale.short)


def adjusted_kernel(scale: LengthScale, sentences: CommonSentences) -> Kernel:
    """Computes a kernel in which the shares of the `comparable_domains` are the same at all lengths."""
    lengths = scale.kernel(sentences.lengths).lengths
    weights = np.zeros((len(lengths), len(sentences.ids)))
    known = np.ones(len(lengths), dtype=bool)
    for inside in comparable_domains(scale, sentences).values():
        own = scale.kernel(sentences.lengths[inside], lengths.tolist(), FEWEST_OF_DOMAIN)
        has = np.isin(lengths, own.lengths)
        known &= has
        shares = own.weights / own.weights.sum(axis=1, keepdims=True)
        weights[np.ix_(has, inside)] = inside.sum() * shares
    weights /= np.maximum(weights.sum(axis=1, keepdims=True), 1e-9)
    effective = 1 / np.maximum((weights**2).sum(axis=1), 1e-9)
    known &= (effective >= FEWEST) & weights.any(axis=1)
    weights *= effective[:, None]
    return Kernel(lengths[known], weights[known], effective[known], scale.short)


def comparable_domains(scale: LengthScale, sentences: CommonSentences) -> dict[str, np.ndarray]:
    """Returns the domains with enough sentences at both the short and the long length."""
    ends = scale.short, scale.long
    return {
        domain: inside
        for domain, inside in domains_of(sentences).items()
        if len(scale.kernel(sentences.lengths[inside], ends, FEWEST_OF_DOMAIN).lengths) == 2
    }


def domains_of(sentences: CommonSentences) -> dict[str, np.ndarray]:
    """Maps the name of each domain to a mask (N,) of its sentences."""
    assert sentences.domains is not None
    return {str(domain): sentences.domains == domain for domain in np.unique(sentences.domains)}


def shares_at(sentences: CommonSentences, length: float) -> dict[str, float]:
    """Returns the share of each domain among the sentences near a length."""
    [weights] = kernel(sentences.lengths, [length], fewest=0).weights
    return {
        domain: float(weights[inside].sum() / weights.sum())
        for domain, inside in domains_of(sentences).items()
    }
