"""The probed vectors: everything that the decoder is given of a source sentence.

N sentences, H state, A annotation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from nmt.data.batch import collate
from nmt.data.batches import evaluation_batches
from nmt.data.vocabulary import END
from nmt.inference.trained import TrainedModel
from nmt.layers import Network
from nmt.utils.errors import InputError, RunError
from nmt.utils.progress import unseen

FIXED, START, ANNOTATIONS = "fixed vector", "s_0", "annotations"


@dataclass(frozen=True)
class Vectors:
    """Vectors of one kind, of N sentences.

    Attributes:
        kind: `fixed vector` or `s_0`, one a sentence, or `annotations`, one a symbol.
        rows: (N, H), or the annotations asked for, sentence after sentence.
    """

    kind: str
    rows: Tensor

    @property
    def of_words(self) -> bool:
        """Whether each symbol has a vector of its own."""
        return self.kind == ANNOTATIONS


@torch.no_grad()
def source_vectors(
    trained: TrainedModel,
    sources: Sequence[Sequence[int]],
    places: Sequence[Tensor],
    done: Callable[[int], object] = unseen,
) -> list[Vectors]:
    """The fixed vector of a model without attention; s_0 and annotations of one with attention.

    Args:
        trained: the model, on the device where the vectors are to be.
        sources: ids of each sentence, without END.
        places: of the annotations that are kept of each sentence, from 0.
        done: is given the number of sentences of each batch.

    Raises:
        InputError: for an ensemble, which has no vectors in common.
        RunError: for vectors that are not finite.
    """
    model = trained.model
    if not isinstance(model, Network):
        raise InputError("checkpoint: an ensemble has no vectors of its own; name one file")
    whole: list[Tensor] = [torch.empty(0)] * len(sources)
    words: list[Tensor] = [torch.empty(0)] * len(sources)
    for numbers in evaluation_batches([len(s) for s in sources], trained.config.search.batch_size):
        ids = [[*sources[number], END] for number in numbers]
        batch = collate(ids, ids).to(model.device)
        with trained.autocast():
            memory = model.encode(batch.source, batch.source_mask)
            vectors = memory.summary
            if model.attends:
                vectors = model.decoder.unit.output(model.decoder.initial(memory).hidden)[:, 0]
        for place, number in enumerate(numbers.tolist()):
            whole[number] = vectors[place].float()
            if model.attends:
                kept = places[number].to(model.device)
                words[number] = memory.annotations[place, kept].float()
        done(len(numbers))
    found = [Vectors(START if model.attends else FIXED, torch.stack(whole))]
    if model.attends:
        found.append(Vectors(ANNOTATIONS, torch.cat(words)))
    if not all(vectors.rows.isfinite().all() for vectors in found):
        raise RunError("the model's vectors are not finite; its weights are damaged")
    return found
