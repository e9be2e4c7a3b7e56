"""Words in place of `<unk>`: the attended source word, or its translation (Luong et al., 2015).

The dictionary of translations is learnt from the model's own attention over the training pairs.

B batch, S source length, T target length.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from nmt.config import SearchConfig
from nmt.data.batch import Batch
from nmt.data.batches import Rows
from nmt.data.splits import Split
from nmt.data.vocabulary import written_words
from nmt.evaluation.alignment import Link, attended_words, hard_links
from nmt.inference.force_decoding import ForcedDecoding, weights_between_words
from nmt.inference.trained import Codec, TrainedModel
from nmt.layers import Network
from nmt.utils.environment import gather
from nmt.utils.progress import unseen
from nmt.utils.workers import map_batches

# so often a word's link is counted, at least; more often hardly changes which target word wins
OCCURRENCES = 10

Aligned = tuple[Sequence[str], Sequence[str], list[Link]]


def learn_dictionary(
    trained: TrainedModel,
    pairs: Split,
    batches: Iterable[Batch],
    done: Callable[[int], object] = unseen,
) -> dict[str, str]:
    """The dictionary learnt from a model's attention, the same on every rank.

    Each pair is force-decoded, and the words that attention links are counted; words are those of
    the text, the ones outside the shortlists among them.

    Args:
        trained: a model with attention; its device and its precision are the caller's.
        pairs: the split that the batches' `rows` are numbers of.
        batches: this rank's share.
        done: is given the number of pairs of each batch that is finished.

    Returns:
        Source word to the target word that it is most often linked to.
    """
    model, null = trained.model, trained.config.evaluation.alignment.null
    assert isinstance(model, Network)  # learnt at the end of a training

    def aligned_pairs(batch: Batch) -> list[Aligned]:
        batch = batch.to(model.device)
        # Not model(batch): the probabilities of words, most of the work, are not asked for.
        memory = model.encode(batch.source, batch.source_mask)
        forced = model.decoder(batch.target, batch.target_mask, memory)
        assert forced.weights is not None
        weights = forced.weights.float().cpu().numpy()  # (B, T, S)
        sources = batch.source_mask.sum(1).tolist()
        targets = batch.target_mask.sum(1).tolist()
        aligned: list[Aligned] = []
        for place, row in enumerate(batch.rows.tolist()):
            pair = pairs[row]
            between = weights_between_words(
                weights[place, : targets[place], : sources[place]],
                trained.codec,
                pair["source"],
                pair["target_ids"].tolist(),
            )
            aligned.append((pair["source"], pair["target"], hard_links(between, null)))
        return aligned

    filled = [batch for batch in batches if len(batch)]
    found = map_batches(aligned_pairs, filled, trained.workers, model.device)
    aligned: list[Aligned] = []
    for made in found:
        aligned += made
        done(len(made))
    parts: list[list[Aligned]] = gather(aligned)
    return count_links(pair for part in parts for pair in part)


def pairs_of_rare_words(pairs: Split, rows: Rows, occurrences: int = OCCURRENCES) -> Rows:
    """Those of the rows that teach something, gone through in their order.

    A pair is passed over when each of its source words stands in `occurrences` of the pairs taken
    before it: links of frequent words are then known, and most of a corpus is frequent words.

    Args:
        pairs: the split that `rows` are numbers of.
        rows: (N,) numbers of pairs.
        occurrences: pairs in which a word is wanted.
    """
    seen: Counter[str] = Counter()
    taken = []
    for row in rows.tolist():
        words = set(pairs.text(row)[0].split(" "))
        if any(seen[word] < occurrences for word in words):
            seen.update(words)
            taken.append(row)
    return np.array(taken, np.int64)


def count_links(
    pairs: Iterable[tuple[Sequence[str], Sequence[str], Iterable[Link]]],
) -> dict[str, str]:
    """The target word that each source word is most often linked to.

    Args:
        pairs: (source tokens, target tokens, links (source word, target word)) of each sentence.

    Returns:
        Source word to target word; of equally frequent ones the first in the order of characters.

    >>> count_links([(["red", "cat"], ["chat", "rouge"], [(0, 1), (1, 0)])])
    {'red': 'rouge', 'cat': 'chat'}
    """
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for source, target, links in pairs:
        for j, i in links:
            counts[source[j]][target[i]] += 1
    return {
        word: min(seen, key=lambda translation: (-seen[translation], translation))
        for word, seen in counts.items()
    }


def replace_unknown(
    hypothesis: Sequence[str | None],
    attended: Sequence[int],
    source: Sequence[str],
    dictionary: Mapping[str, str],
) -> list[str | None]:
    """Writes a word where the model wrote `<unk>`: a translation of the attended word, or that word.

    Args:
        hypothesis: (I,) words, without `</s>`; None for `<unk>`, and in what is returned for one
            that stays. A word of the text that is spelt so is a word.
        attended: (I,) source word of largest weight (`alignment.attended_words`), -1 for none.
        source: tokens of the source, without `</s>`, as they were before the shortlist.
        dictionary: of `learn_dictionary`; names and numbers have no translation in it.

    >>> replace_unknown(["le", None], [0, 1], ["the", "cat"], {})
    ['le', 'cat']
    """
    return [
        dictionary.get(source[j], source[j]) if word is None and j >= 0 else word
        for word, j in zip(hypothesis, attended, strict=True)
    ]


def replace_unknown_words(
    decoding: ForcedDecoding,
    codec: Codec,
    source: Sequence[str],
    search: SearchConfig,
    dictionary: Mapping[str, str] | None = None,
) -> list[str | None]:
    """The words of a translation, with others in place of `<unk>` as `search.replace_unk` says.

    Without attention nothing says which source word to take, and `<unk>`, None, stays.
    """
    words = written_words(codec.target, decoding.ids)
    if search.replace_unk == "none" or decoding.weights is None or None not in words:
        return words
    attended = attended_words(decoding.weights[: len(words)])
    known = dictionary if dictionary and search.replace_unk == "dictionary" else {}
    return replace_unknown(words, attended.tolist(), source, known)
