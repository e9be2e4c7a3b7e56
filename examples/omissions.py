"""Lists the source words that a model leaves untranslated, because no target word attends to them.

    python examples/omissions.py RUN < source.txt
    python examples/omissions.py RUN --least 0.3 < source.txt

The coverage of a source word is the sum of its attention weights over all target words. It is near 1
for a word that is translated once (Tu et al., 2016).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import NamedTuple

import nmt


class Omissions(NamedTuple):
    """A translation, and the source words that it leaves out."""

    translation: str
    omitted: list[str]
    words: int


def find_omissions(run: str, sentences: Sequence[str], least: float = 0.2) -> list[Omissions]:
    """Returns, for each sentence, the translation and the words with a coverage below `least`.

    Args:
        run: a run folder or a checkpoint of a model with attention.
        sentences: ordinary text.
        least: words with a smaller coverage count as untranslated.
    """
    results = []
    for result in nmt.load(run).translate(sentences):
        omitted = []
        if result.weights is not None:
            coverage = result.weights[:-1, :-1].sum(0)  # without the `</s>` of source and target
            pairs = zip(result.source, coverage, strict=True)
            omitted = [word for word, covered in pairs if covered < least]
        results.append(Omissions(result.text, omitted, len(result.source)))
    return results


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", help="a run folder or a checkpoint")
    parser.add_argument("--least", type=float, default=0.2, help="coverage of a translated word")
    arguments = parser.parse_args()
    results = find_omissions(arguments.run, sys.stdin.read().splitlines(), arguments.least)
    for each in results:
        print(f"{each.translation}\t{' '.join(each.omitted)}")
    omitted, words = sum(len(each.omitted) for each in results), sum(each.words for each in results)
    print(f"{omitted} of {words} source words have no translation", file=sys.stderr)
