"""Words in place of `<unk>`: the attended source word, or its translation (Luong et al., 2015)."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from nmt.evaluation.alignment import Link


def learn_dictionary(
    pairs: Iterable[tuple[Sequence[str], Sequence[str], Iterable[Link]]],
) -> dict[str, str]:
    """The target word that each source word is most often linked to.

    Args:
        pairs: (source tokens, target tokens, links (source word, target word)) of each sentence.

    Returns:
        Source word to target word; of equally frequent ones the first in the order of characters.

    >>> learn_dictionary([(["red", "cat"], ["chat", "rouge"], [(0, 1), (1, 0)])])
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
    hypothesis: Sequence[str],
    unknown: Sequence[bool],
    attended: Sequence[int],
    source: Sequence[str],
    mode: str,
    dictionary: Mapping[str, str] | None = None,
) -> list[str]:
    """Writes a word where the model wrote `<unk>`.

    Args:
        hypothesis: (I,) tokens, without `</s>`.
        unknown: (I,) whether a token is the symbol `<unk>`; a text word `<unk>` is not.
        attended: (I,) source word of largest weight (`alignment.attended_words`), -1 for none.
        source: tokens of the source, without `</s>`, as they were before the shortlist.
        mode: `none`, `copy` (the attended word) or `dictionary` (its translation, and the word
            itself where there is none, as names and numbers have none).
        dictionary: of `learn_dictionary`; needed for `dictionary`.

    Raises:
        ValueError: for another mode, or a missing dictionary.

    >>> replace_unknown(["le", "<unk>"], [False, True], [0, 1], ["the", "cat"], "copy")
    ['le', 'cat']
    """
    if mode == "none":
        return list(hypothesis)
    if mode == "copy":
        dictionary = {}
    elif mode != "dictionary" or dictionary is None:
        raise ValueError(f"mode={mode}: none, copy, or dictionary with a dictionary expected")
    return [
        dictionary.get(source[j], source[j]) if is_unknown and j >= 0 else token
        for token, is_unknown, j in zip(hypothesis, unknown, attended, strict=True)
    ]
