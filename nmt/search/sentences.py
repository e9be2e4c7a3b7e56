"""Search over many sentences: sorted by length, cut into batches, handed back in their order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch

from nmt.config import SearchConfig
from nmt.data.batch import pad
from nmt.data.batches import evaluation_batches
from nmt.search.beam import Searchable, beam_search
from nmt.search.hypothesis import Hypothesis


def search_sentences(
    model: Searchable,
    sources: Sequence[Sequence[int]],
    settings: SearchConfig,
    device: torch.device | str = "cpu",
) -> Iterator[tuple[int, list[Hypothesis]]]:
    """Searches translations of encoded sentences, `settings.batch_size` of them together.

    Sentences of like length share a batch, the longest first, so that running out of memory shows
    at once. Results come as they are made, each with its place in `sources`; `dict(...)` or a list
    indexed by that place restores the order.

    Args:
        sources: ids of each sentence, ending with `</s>`.

    Yields:
        Place of a sentence, its hypotheses, best first.

    Raises:
        InputError, RunError: as `beam_search`.
    """
    if not sources:
        return
    for batch in evaluation_batches([len(source) for source in sources], settings.batch_size):
        places = batch.tolist()
        source, mask = pad([sources[place] for place in places])
        found = beam_search(model, source.to(device), mask.to(device), settings)
        yield from zip(places, found, strict=True)
