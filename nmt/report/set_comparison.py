"""Compares runs and systems on one test set: scores, curves, and significance tests of pairs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from nmt.config.keys import EDGES
from nmt.evaluation import significance
from nmt.evaluation.constant_error import measure_constant_error
from nmt.evaluation.documents import FEWEST_WORDS, RELIABLE_BLEU, in_documents
from nmt.evaluation.domains import adjusted_kernel, kernel_of_domain
from nmt.evaluation.length_curve import Curve, LengthScale, length_curves, separate_curves
from nmt.evaluation.measured import Measured, common_sentences, compute_statistics
from nmt.evaluation.scores import NO_UNK, REGISTERED, Score, choose_scores
from nmt.evaluation.scores_csv import score_table
from nmt.report.retention import ADJUSTED, Curves
from nmt.report.runs import FinishedRun, grouped

MAX_PAIRED = 25  # maximum number of runs compared in pairs; 300 runs would make 44,850 pairs
BREVITY = [REGISTERED["brevity_penalty"], REGISTERED["bleu_precisions"]]  # BLEU is their product


def best_runs(runs: Sequence[FinishedRun], whole: pd.DataFrame) -> list[FinishedRun]:
    """Selects at most MAX_PAIRED runs: other systems first, then the runs with the highest BLEU on the set."""
    bleu = whole[whole["key"] == "bleu"].set_index("run")["value"]
    ranked = sorted(runs, key=lambda run: (not run.external, -bleu.get(run.label, 0.0)))
    chosen = {run.label for run in ranked[:MAX_PAIRED]}
    return [run for run in runs if run.label in chosen]


class SetComparison:
    """The runs on one test set; new scores are computed for the length buckets of the first run.

    Attributes:
        tested: scores whose differences are tested.
        known: all scores, by key.
        keys: keys of the tested scores that have curves.
        compared: scores whose values at the short and the long length are compared, by key.
        measured: statistics of the sentences, by run.
        domains: names of the domains; empty if there is only one, or if any sentence has none.
        no_unk: ids of the sentences whose words are in the shortlists of all runs; None without shortlists.
        unreliable: runs whose segments were found by edit distance although their BLEU is low.
        outdated: keys of stored scores that were computed on other sentences than `no_unk`.
        groups: groups whose runs all have records.
        members: statistics of the runs of these groups.
        controls: names of the groups, other systems first. Each is compared with all groups before it.
    """

    def __init__(
        self,
        name: str,
        runs: Sequence[FinishedRun],
        wanted: Sequence[Score] | None,
        added: Sequence[Score],
        resamples: int,
        *,
        shown: bool = False,
    ) -> None:
        self.name = name
        self.shown = shown
        self.runs = [run for run in runs if name in run.sets]
        self.stored = pd.concat([run.scores.assign(run=run.label) for run in self.runs])
        self.stored = self.stored[self.stored["set"] == name]
        language = next((run.language for run in self.runs if run.language), None)
        stored = [key for key in REGISTERED if key in set(self.stored["score"])]
        own = choose_scores(stored, language=language)
        default = own if stored else choose_scores(None, language=language)
        named = [score.for_language(language) for score in wanted or ()]
        self.tested = [*(default if wanted is None else named), *added]
        self.keys = [score.key for score in self.tested if score.by_length]
        self.known = {score.key: score for score in [*BREVITY, *own, *self.tested]}
        higher = {key: score for key, score in self.known.items() if score.higher_is_better}
        self.compared = higher | {score.key: score for score in added}
        edges = (self.runs[0].config.get("evaluation") or {}).get("edges") or EDGES
        scales = (run.scales[name] for run in self.runs if name in run.scales)
        self.scale = next(scales, LengthScale(edges=edges))
        self.resamples = resamples
        records = {run.label: run.translations(name) for run in self.runs}
        for score in self.known.values():
            if score.slow or score.signature is not None:
                every = score in named or not score.slow
                lacking = {r.label: records[r.label] for r in self.runs if r.external or every}
                compute_statistics(lacking, score, shown=shown)
        known = [*self.known.values()]
        self.measured = {
            label: Measured(rows, known, resamples, self.scale.edges, compute_slow=False)
            for label, rows in records.items()
        }
        self.unreliable = {
            run.label
            for run in self.runs
            if name in run.cut and self.measured[run.label].overall("bleu") < RELIABLE_BLEU
        }
        found = [each.domains for each in self.measured.values() if each.domains is not None]
        names = sorted(set(found[0].tolist())) if len(found) == len(self.measured) else []
        self.domains = names if len(names) > 1 else []
        self.groups = {
            group: members
            for group, members in grouped(self.runs).items()
            if all(len(self.measured[run.label].ids) for run in members)
        }
        self.members = {
            ("score", group): [self.measured[run.label] for run in runs]
            for group, runs in self.groups.items()
        }
        systems = {run.label for run in self.runs if run.external}
        self.controls = sorted(self.groups, key=lambda name: name not in systems)
        covered = [ids for run in self.runs if (ids := run.covered(name)) is not None]
        self.no_unk = set.intersection(*covered) if covered else None
        self.outdated = {NO_UNK.key} if any(ids != self.no_unk for ids in covered) else set()
        for measured in self.measured.values() if covered else ():
            inside = np.isin(measured.ids, list(self.no_unk or ()))[:, None]
            table = measured.tables[NO_UNK.key]
            measured.tables[NO_UNK.key] = np.where(inside, table, np.nan)

    def hides(self, row: Mapping[str, Any]) -> bool:
        """Tells whether a row has a score of short segments of an `unreliable` system."""
        systems = {row.get(key) for key in ("name", "other", "a", "b", "run")}
        if in_documents(self.scale.unit) or not systems & self.unreliable:
            return False
        short = row.get("from") is not None and (row.get("to") or math.inf) <= FEWEST_WORDS
        return row.get("words", FEWEST_WORDS) < FEWEST_WORDS or ("bucket" in row and short)

    def completed_scores(self) -> pd.DataFrame:
        """Returns the stored scores, and computes those that are missing or `outdated`."""
        tables = []
        for label, measured in self.measured.items():
            stored = self.stored[self.stored["run"] == label]
            keys = list(measured.scores) if len(measured.ids) else []  # new scores need records
            anew = [key for key in keys if key in self.outdated or key not in set(stored["key"])]
            rows = [row for key in anew for row in measured.rows(self.name, key)]
            tables += [stored[~stored["key"].isin(anew)], score_table(rows).assign(run=label)]
        scores = pd.concat(tables)
        return scores[[not self.hides(row) for row in scores.to_dict("records")]]

    def curves(self) -> Curves:
        """Computes the curves of the groups, and of simulated systems with a constant error rate."""
        members = dict(self.members)
        records = {run.label: run.translations(self.name) for run in self.runs}
        scored = [
            label for label, rows in records.items() if any(record["reference"] for record in rows)
        ]
        simulated = measure_constant_error(
            [records[label] for label in scored],
            [self.measured[label] for label in scored],
            shown=self.shown,
        )
        constant = dict(zip(scored, simulated, strict=True))
        for name, runs in self.groups.items():
            if all(run.label in constant for run in runs):
                members["constant", name] = [constant[run.label] for run in runs]
        keys = dict.fromkeys(["bleu", "brevity_penalty", "bleu_precisions", NO_UNK.key, *self.keys])
        return separate_curves(members, keys, self.scale.weights)

    def curves_by_domain(self) -> dict[str, Curves]:
        """Computes the curves of the groups in each domain, and with the same mix of domains at all lengths."""
        weights = {
            domain: partial(kernel_of_domain, self.scale, domain=domain) for domain in self.domains
        }
        if weights:
            weights[ADJUSTED] = partial(adjusted_kernel, self.scale)
        return {
            domain: separate_curves(self.members, self.keys, of_domain)
            for domain, of_domain in weights.items()
        }

    def curves_of_pair(self, key: str, name: str, other: str) -> tuple[Curve, Curve] | None:
        """Computes the curves of two groups on the sentences for which both have the score."""
        pair = {each: self.members["score", each] for each in (name, other)}
        curves = length_curves(pair, [key], self.scale.weights).get(key)
        return None if curves is None else (curves[name], curves[other])

    def differences(self) -> Iterator[dict[str, Any]]:
        """Tests each score of each pair of runs, on the sentences for which both runs have the score."""
        whole = self.stored[self.stored["bucket"] == "all"]
        paired = {run.label: self.measured[run.label] for run in best_runs(self.runs, whole)}
        for score in self.tested if self.resamples and len(paired) > 1 else ():
            having = {label: each for label, each in paired.items() if each.has(score.key).any()}
            sentences = {each.ids[each.has(score.key)].tobytes() for each in having.values()}
            # If all runs have the same sentences, one call tests all pairs and resamples each run only once.
            pairs = map(dict, combinations(having.items(), 2))
            for part in [having] if len(sentences) == 1 else pairs:
                common = common_sentences([*part.values()], score.key)
                if not len(common.ids):
                    continue
                for row in significance.paired_differences(
                    dict(zip(part, common.tables, strict=True)),
                    score.combine,
                    common.lengths,
                    self.scale.edges if score.by_length else None,
                    self.resamples,
                    common.documents,
                ):
                    yield {"score": score.key, **row}
