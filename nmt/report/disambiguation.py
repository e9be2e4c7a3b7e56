"""Gives test sets that share a name but differ in text names of their own."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterator, Sequence
from dataclasses import replace

from nmt.report.comparison import scored_sets
from nmt.report.runs import FinishedRun
from nmt.utils.progress import Stage

log = logging.getLogger(__name__)


def disambiguate_test_sets(
    runs: Sequence[FinishedRun], *, shown: bool = False
) -> list[FinishedRun]:
    """The same runs, the name of a test set standing for one text in all of them.

    Runs of several corpora may all have a set `test`. The first run's text keeps the name; runs
    that have other sentences under it get them as `test-2` and so on, so that nothing pairs them.
    A run whose sentences were not kept is taken to have the first text.

    Args:
        shown: show progress.

    Raises:
        InputError: naming the file of sentences that cannot be read.
    """
    apart = list(runs)
    taken = set(scored_sets(runs))
    for name in scored_sets(runs):
        texts: list[str] = []
        names = [name]
        for place, text in _digests(runs, name, shown):
            if text and text not in texts:
                texts.append(text)
            number = texts.index(text) if text else 0
            if number == len(names):
                names.append(_free_name(name, taken))
            if number:
                apart[place] = _renamed(apart[place], name, names[number])
    for note in renamed_sets(apart).values():
        log.warning("%s", note)
    return apart


def _digests(runs: Sequence[FinishedRun], name: str, shown: bool) -> Iterator[tuple[int, str]]:
    """`text_digest` of each run that has a test set, with the run's place."""
    having = [place for place, run in enumerate(runs) if name in run.sets]
    with Stage(f"reading {name}", len(having), "run", shown=shown) as stage:
        for place in having:
            yield place, text_digest(runs[place], name)
            stage.advance()


def renamed_sets(runs: Sequence[FinishedRun]) -> dict[str, str]:
    """What to say of each test set that `disambiguate_test_sets` renamed, by its name."""
    holders: dict[tuple[str, str], list[str]] = {}
    for run in runs:
        for name, stored in run.stored.items():
            holders.setdefault((name, stored), []).append(run.label)
    return {
        name: f"{name} is the test set {stored} of {', '.join(labels)}: "
        f"its sentences are not those of {stored} here."
        for (name, stored), labels in holders.items()
    }


def text_digest(run: FinishedRun, test_set: str) -> str:
    """SHA-256 of the text of a test set; empty where its sentences were not kept.

    Of what no tokeniser changes: normalisation and tokenisation move punctuation and spaces only.
    Runs that are passed on without their text have it in results.json.
    """
    stored = run.results.get("without_text") or {}
    name = run.stored.get(test_set, test_set)
    rows = [] if name in stored else run.translations(test_set)
    letters = [
        f"{row['id']} {_letters(row['source'])} {_letters(row['reference'])}" for row in rows
    ]
    text = "\n".join(letters).encode("utf-8", "surrogatepass")
    return str(stored.get(name, hashlib.sha256(text).hexdigest() if letters else ""))


def _letters(tokens: Sequence[str]) -> str:
    return "".join(filter(str.isalnum, "".join(tokens)))


def _free_name(name: str, taken: set[str]) -> str:
    number = 2
    while f"{name}-{number}" in taken:
        number += 1
    taken.add(f"{name}-{number}")
    return f"{name}-{number}"


def _renamed(run: FinishedRun, test_set: str, name: str) -> FinishedRun:
    test = {name if known == test_set else known: run.results["test"][known] for known in run.sets}
    results = {**run.results, "test": test}
    return replace(run, results=results, stored={**run.stored, name: test_set})
