"""Translations of outside systems, scored as those of the runs."""

from __future__ import annotations

from nmt.config import CompareConfig, EvaluationConfig
from nmt.data.tokenise import tokeniser
from nmt.evaluation.external import read_external
from nmt.evaluation.scores import REGISTERED
from nmt.report.comparison import edges, scored_sets
from nmt.report.no_unk import has_shortlist
from nmt.report.runs import FinishedRun, known_scores, outside_system
from nmt.utils.errors import InputError


def read_system(
    name: str, files: dict[str, str], runs: list[FinishedRun], config: CompareConfig
) -> FinishedRun:
    """Another system's hypotheses, a file a test set, scored as the runs' are.

    Of the runs on a set the first that has a shortlist says how it was scored: which sentences are
    without unknown words is not known of subwords.

    Args:
        name: the system's.
        files: by test set.
        runs: those that the system stands beside.
        config: resamples behind its intervals, and scores that are asked for.

    Raises:
        InputError: for the name of a run, a system without files, a test set that no run was scored
            on, or a file that does not fit it.
    """
    if name in {run.label for run in runs}:
        raise InputError(f"external.{name}: a run has this name; give the system another")
    if not files:
        raise InputError(f"external.{name}: names no file; give external.{name}.<test set>=FILE")
    sentences, settings = {}, {}
    for test_set, path in files.items():
        key = f"external.{name}.{test_set}"
        scored = [run for run in runs if test_set in run.sets and run.translations(test_set)]
        if not scored:
            known = ", ".join(scored_sets(runs)) or "none"
            raise InputError(f"{key}: no run was tested on {test_set}; the runs have: {known}")
        run = max(scored, key=lambda run: has_shortlist(run, test_set))
        keys = run.flat
        if missing := [key for key in ("data.languages", "tokenizer.normalise") if key not in keys]:
            raise InputError(
                f"{key}: config.{missing[0]} of {run.label} is missing in its results.json"
            )
        moses = tokeniser(keys["data.languages"][1], keys["tokenizer.normalise"])
        sentences[test_set] = read_external(
            path,
            run.translations(test_set),
            tokenised=any(
                keys.get(f"data.test.{test_set}.{key}") for key in ("tokenised", "grammar")
            ),
            tokenise=moses.tokenise,
            detokenise=moses.detokenise,
            key=key,
        )
        settings[test_set] = EvaluationConfig(
            edges=edges([run], test_set),
            bucket_by=run.results["test"][test_set]["bucket_by"],
            resamples=config.resamples,
            confidence=run.confidence(test_set),
            scores=scores_beside(runs, config.scores),
        )
    return outside_system(name, sentences, settings)


def scores_beside(runs: list[FinishedRun], asked: list[str] | None) -> list[str]:
    """The scores that a system gets: those asked for, and those of nmt that the runs have."""
    return list(
        dict.fromkeys([*(key for key in known_scores(runs) if key in REGISTERED), *(asked or ())])
    )
