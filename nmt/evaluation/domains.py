"""Length curves of single domains, and curves with the same mix of domains at every length.

If short and long sentences come from different domains, a curve over all sentences mixes the effects of
length and domain. The adjusted curve avoids this by direct standardisation: at every length, the weight of a
domain is its share of all sentences. The curve has a value at a length only if the effective sample size is at
least `FEWEST` in total, and at least `FEWEST_OF_DOMAIN` in each of the `comparable_domains`.
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
    """Computes a kernel in which the shares of the `comparable_domains` are the same at all lengths.

    It has no lengths if there are fewer than two such domains. If it starts beyond `scale.short`, retention is
    relative to its first length.
    """
    lengths = scale.kernel(sentences.lengths).lengths
    weights = np.zeros((len(lengths), len(sentences.ids)))
    domains = comparable_domains(scale, sentences)
    known = np.full(len(lengths), len(domains) > 1)
    for inside in domains.values():
        own = _kernel_inside(scale, sentences.lengths[inside], lengths)
        has = np.isin(lengths, own.lengths)
        known &= has
        shares = own.weights / own.weights.sum(axis=1, keepdims=True)
        weights[np.ix_(has, inside)] = inside.sum() * shares
    weights /= np.maximum(weights.sum(axis=1, keepdims=True), 1e-9)
    effective = 1 / np.maximum((weights**2).sum(axis=1), 1e-9)
    known &= (effective >= FEWEST) & weights.any(axis=1)
    weights *= effective[:, None]
    lengths = lengths[known]
    short = lengths[0] if len(lengths) and lengths[0] > scale.short * (1 + 1e-9) else scale.short
    return Kernel(lengths, weights[known], effective[known], short)


def comparable_domains(scale: LengthScale, sentences: CommonSentences) -> dict[str, np.ndarray]:
    """Selects the domains of adjusted curves, and maps their names to masks (N,) of their sentences.

    These are the domains with enough sentences at both the short and the long length. If fewer than two
    domains have enough there, it selects those with enough at half of the lengths in between, or more.
    """
    at = np.geomspace(scale.short, scale.long, 17)
    domains = domains_of(sentences)
    known = {}
    for domain, inside in domains.items():
        lengths = _kernel_inside(scale, sentences.lengths[inside], at).lengths
        known[domain] = np.isin(at.round(6), lengths.round(6))
    chosen = [domain for domain, has in known.items() if has[0] and has[-1]]
    if len(chosen) < 2:
        chosen = [domain for domain, has in known.items() if has.mean() >= 0.5]
    return {domain: domains[domain] for domain in chosen}


def _kernel_inside(scale: LengthScale, own: np.ndarray, at: np.ndarray) -> Kernel:
    """Computes the kernel of a domain at those lengths `at` that are within the lengths of its sentences."""
    within = (at >= own.min() * (1 - 1e-9)) & (at <= own.max() * (1 + 1e-9))
    return scale.kernel(own, at[within].tolist(), FEWEST_OF_DOMAIN)


def known_lengths(
    scale: LengthScale, sentences: CommonSentences
) -> dict[str, tuple[float, float] | None]:
    """Returns the first and the last length at which each domain has enough sentences for an adjusted curve."""
    ends = {}
    for domain, inside in domains_of(sentences).items():
        lengths = scale.kernel(sentences.lengths[inside], fewest=FEWEST_OF_DOMAIN).lengths
        ends[domain] = (float(lengths[0]), float(lengths[-1])) if len(lengths) else None
    return ends


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
