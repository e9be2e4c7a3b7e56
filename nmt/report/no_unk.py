"""The sentences without unknown words that runs share (Table 1 of the paper, No UNK)."""

from __future__ import annotations

from collections.abc import Sequence

from nmt.report.runs import FinishedRun


def no_unk_subset(runs: Sequence[FinishedRun], name: str) -> tuple[set[int], bool]:
    """Sentences that the shortlists of every run cover; whether any run was scored on others.

    An outside system can write any word, as can a model of subwords: they narrow nothing.
    """
    own = [without_unknown(run, name) for run in _with_shortlists(runs, name)]
    if not own:
        return set(), False
    subset = set.intersection(*own)
    return subset, any(ids != subset for ids in own)


def _with_shortlists(runs: Sequence[FinishedRun], name: str) -> list[FinishedRun]:
    return [run for run in runs if not run.external and has_shortlist(run, name)]


def has_shortlist(run: FinishedRun, test_set: str) -> bool:
    """Whether a run's records of a test set tell which sentences have unknown words."""
    return any(row.get("no_unk") is not None for row in run.translations(test_set))


def without_unknown(run: FinishedRun, name: str) -> set[int]:
    """Sentences of a test set that a run's shortlists cover."""
    return {row["id"] for row in run.translations(name) if row.get("no_unk")}


def no_unk_note(runs: Sequence[FinishedRun], name: str, pairs: int, shared: bool) -> str | None:
    """What to say of the scores without unknown words; None where no run has shortlists.

    Args:
        runs, name: those compared on a test set.
        pairs, shared: how many sentences `no_unk_subset` has found, and whether some run has more.
    """
    having = _with_shortlists(runs, name)
    if not having:
        return None
    if pairs:
        which = (
            "the sentences that every run's shortlists cover"
            if shared
            else "sentences of known words"
        )
        return f"No UNK: {pairs} {which}; models translate with <unk> forbidden."
    none = [run.label for run in having if not without_unknown(run, name)]
    if none:
        return f"No UNK is empty: the shortlists of {', '.join(none)} cover no sentence."
    return "No UNK is empty: no sentence is covered by the shortlists of every run."
