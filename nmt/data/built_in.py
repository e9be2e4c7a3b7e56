"""The built-in corpus as a `datasets.DatasetDict`, for other programs and for notebooks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nmt.config import DataConfig, GrammarConfig, TextConfig
from nmt.config.validation import section
from nmt.data.sources import open_corpus

if TYPE_CHECKING:
    import datasets


def built_in_corpus(**keys: Any) -> datasets.DatasetDict:
    """The pairs of `data=grammar`, with their gold links (docs/grammar.md).

    Args:
        keys: of the section `data.grammar`, such as `train_pairs=1000` or `seed=2`.

    Returns:
        The splits `train`, `valid`, `test` and `by_length`, with the columns `translation` (`en`
        and `fr`, tokens separated by spaces) and `alignment` (links i-j and ipj in Pharaoh format).

    Raises:
        InputError: for another key, a value out of bounds, or lengths that leave nothing.
    """
    import datasets

    grammar = section(GrammarConfig, **keys)
    data = DataConfig(languages=["en", "fr"], grammar=grammar)
    natural = {"train": grammar.train_pairs, "valid": grammar.valid_pairs}
    texts = {name: TextConfig(grammar="natural", pairs=pairs) for name, pairs in natural.items()}
    texts["test"] = TextConfig(grammar="natural", pairs=grammar.test_pairs)
    texts["by_length"] = TextConfig(grammar="by_length", pairs=grammar.by_length_pairs)
    features = datasets.Features(
        {
            "translation": datasets.Translation(languages=["en", "fr"]),
            "alignment": datasets.Value("string"),
        }
    )
    splits = {}
    for name, text in texts.items():
        drawn = open_corpus(text, data, name, "test" if name == "by_length" else name)
        rows = [
            {"translation": {"en": row.source, "fr": row.target}, "alignment": row.alignment}
            for row in drawn
        ]
        splits[name] = datasets.Dataset.from_list(rows, features=features)
    return datasets.DatasetDict(splits)
