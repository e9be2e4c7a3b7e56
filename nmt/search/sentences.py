"""Search over many sentences: sorted by length, cut into batches, handed back in their order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch

from nmt.config import SearchConfig
from nmt.data.batch import pad
from nmt.data.batches import evaluation_batches
from nmt.search.beam import Searchable, beam_search
from nmt.search.hypothesis import Hypothesis
from nmt.utils.workers import map_batches


def search_sentences(
    model: Searchable,
    sources: Sequence[Sequence[int]],
    settings: SearchConfig,
    device: torch.device | str = "cpu",
    workers: int = 1,
) -> Iterator[tuple[int, list[Hypothesis]]]:
    """Searches translations of encoded sentences, `settings.batch_size` of them together.

    Sentences of like length share a batch, the longest first, so that running out of memory shows
    at once. Results come as they are made, each with its place in `sources`; `dict(...)` or a list
    indexed by that place restores the order.

    Args:
        sources: ids of each sentence, ending with `</s>`.
        workers: batches that are searched at a time, on a CPU.

    Yields:
        Place of a sentence, its hypotheses, best first.

    Raises:
        InputError, RunError: as `beam_search`.
    """
    if not sources:
        return

    def search(places: list[int]) -> list[list[Hypothesis]]:
        source, mask = pad([sources[place] for place in places])
        return beam_search(model, source.to(device), mask.to(device), settings)

    lengths = [len(source) for source in sources]
    batches = [batch.tolist() for batch in evaluation_batches(lengths, settings.batch_size)]
    found = map_batches(search, batches, workers, torch.device(device))
    for places, hypotheses in zip(batches, found, strict=True):
        yield from zip(places, hypotheses, strict=True)
