"""The contents of study.md and study.json: verdicts, figures, rules, commands.

study.md depends on the study and its runs alone: no dates, paths or names of machines. The same runs
give the same bytes.
"""

from __future__ import annotations

import dataclasses
import textwrap
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from nmt.config.keys import CONFIDENCE
from nmt.evaluation.results import as_json
from nmt.report.table import Column, Table
from nmt.studies.existing import ExistingRun, FoundRuns
from nmt.studies.plan import RunGroup
from nmt.studies.registration import Registration, changed_claims
from nmt.studies.verdicts import Verdict
from nmt.studies.wording import figure_of, rule_of, spoken_of, statistic_of
from nmt.utils.code import code_fingerprint
from nmt.utils.commands import command_line, quoted
from nmt.utils.progress import counted

SCHEMA = 1
WIDTH = 120  # of a line of study.md


@dataclass(frozen=True)
class StudyReport:
    """The results of a study.

    Attributes:
        found: the runs, and the study.
        verdicts: of its claims.
        registrations: of `nmt.studies.registration`.
    """

    found: FoundRuns
    verdicts: Sequence[Verdict]
    registrations: list[Registration]

    @property
    def title(self) -> str:
        study = self.found.study
        return study.section.title or study.name

    @property
    def summary(self) -> str:
        """The numbers of verdicts in a line."""
        counts = Counter(each.verdict for each in self.verdicts)
        return ", ".join(f"{counts[name]} {name}" for name in ("supported", "refuted", "undecided"))

    def notes(self) -> list[str]:
        """What a reader must know before the verdicts."""
        said = [self._registered()]
        runs = self._all_runs()
        taken = sum(each.taken for each in runs)
        other = sum(not each.same_code for each in runs)
        if taken:
            said.append(
                f"{counted(taken, 'run')} taken from elsewhere: made before the claims were hashed."
            )
        if other:
            said.append(
                f"{counted(other, 'run')} made by other code than this (study.accept=configuration)."
            )
        said.append(
            "Each claim is decided by itself: p-values are not corrected for the number of claims. "
            "How to read a verdict: docs/study.md."
        )
        return said

    def table(self, only: Collection[str] = ()) -> Table:
        """A row a claim; `only` names those to be shown, none: all."""
        columns = [
            Column("claim", "claim", text=True),
            Column("verdict", "verdict", text=True),
            Column("figure", "figure", text=True),
            Column("rule", "rule", text=True),
            Column("sentences", "sentences", 0),
            Column("seeds", "seeds", 0),
        ]
        rows = [
            {
                "claim": each.name,
                "verdict": each.verdict,
                "figure": figure_of(each),
                "rule": rule_of(each),
                "sentences": each.sentences,
                "seeds": each.seeds,
            }
            for each in self.verdicts
            if not only or each.name in only
        ]
        return Table("verdicts", "Verdicts", columns, rows)

    def facts(self, verdict: Verdict) -> list[tuple[str, str]]:
        """The facts on a claim, by name; the last is the command that repeats it."""
        claim = verdict.claim
        chosen = [self._chosen(self.found.study.groups[name]) for name in claim.runs]
        return [
            ("claim", claim.claim),
            ("source", claim.source),
            ("statistic", statistic_of(verdict)),
            ("figure", figure_of(verdict, CONFIDENCE) + spoken_of(verdict)),
            ("rule", rule_of(verdict)),
            *([("undecided", verdict.reason)] if verdict.reason else []),
            *(("chosen", each) for each in chosen if each),
            ("command", self.command(verdict.name)),
        ]

    def command(self, claim: str) -> str:
        return command_line("study", [*self.found.study.typed, f"study.only=[{quoted(claim)}]"])

    def runs_table(self) -> Table:
        """A row a group: its seeds, its runs, and the command that makes the first of them."""
        columns = [
            Column("group", "runs", text=True),
            Column("seeds", "seeds", text=True),
            Column("found", "found", 0),
            Column("development", "dev. NLL per word", 3),
            Column("command", "command of the first seed", text=True),
        ]
        rows: list[dict[str, Any]] = []
        for group in self.found.study.groups.values():
            runs = self.found.final(group)
            if not runs:
                continue
            found = self.found.of_group(group)
            scores = [each.development for each in found]
            known = [score for score in scores if score is not None]
            rows.append(
                {
                    "group": group.name,
                    "seeds": ", ".join(map(str, group.seeds)),
                    "found": len(found),
                    "development": sum(known) / len(known) if known else None,
                    "command": runs[0].command,
                }
            )
        return Table("runs", "Runs", columns, rows)

    def sweeps(self) -> list[Table]:
        """The points of each group's sweep."""
        tables = []
        for group in self.found.study.groups.values():
            if not group.points:
                continue
            best = self.found.chosen(group)
            keys = list(group.settings.sweep)
            columns = [Column(key, key, text=True) for key in keys]
            columns += [
                Column("development", "dev. NLL per word", 4),
                Column("chosen", "chosen", text=True),
            ]
            rows = [
                {
                    **{key: str(point.values[key]) for key in keys},
                    "development": self.found.development(point),
                    "chosen": "yes" if point is best else "",
                }
                for point in group.points
            ]
            title = f"Sweep of {group.name}, seed {group.settings.sweep_seed}"
            tables.append(Table(f"sweep-{group.name}", title, columns, rows))
        return tables

    def _registered(self) -> str:
        first, last = self.registrations[0], self.registrations[-1]
        if first is last:
            when = (
                "before the first run made here"
                if not first.runs
                else f"when there were {counted(first.runs, 'run')} already"
            )
            return f"Claims and rules hashed {when}: {first.sha256}."
        changes = "; ".join(changed_claims(self.registrations)) or "none of the claims"
        return (
            f"Claims and rules were changed when there were {counted(last.runs, 'run')}: {changes}. "
            f"Hash before: {first.sha256}; hash of those decided here: {last.sha256}."
        )

    def _all_runs(self) -> list[ExistingRun]:
        groups = self.found.study.groups.values()
        needed = [run for group in groups for run in self.found.needed(group)]
        there = [found for run in needed if (found := self.found.of(run)) is not None]
        return list({each.identity: each for each in there}.values())

    def _chosen(self, group: RunGroup) -> str:
        best = self.found.chosen(group)
        if best is None:
            return ""
        values = ", ".join(f"{key}={value}" for key, value in best.values.items())
        return f"{group.name}: {values}, of {counted(len(group.points), 'point')}"

    def markdown(self) -> str:
        """study.md."""
        parts = [f"# {_plain(self.title)}\n", *(_wrapped(note) for note in self.notes())]
        parts += [f"{self.summary}.\n", _second_level(self.table())]
        for verdict in self.verdicts:
            parts.append(f"## {verdict.name}: {verdict.verdict}\n")
            *facts, (_, command) = self.facts(verdict)
            listed = (_wrapped(f"- {name}: {_plain(text)}", "  ") for name, text in facts)
            parts += ["".join(listed), f"    {command}\n"]
        parts += [_second_level(table) for table in (*self.sweeps(), self.runs_table())]
        return "\n".join(parts)

    def content(self) -> dict[str, Any]:
        """study.json: all of it, with the folders of the runs."""
        study = self.found.study
        claims = [
            {
                **vars(each),
                "claim": dataclasses.asdict(each.claim),
                "score": each.score.key,
                "rule": rule_of(each),
                "command": self.command(each.name),
            }
            for each in self.verdicts
        ]
        runs = []
        for name, group in study.groups.items():
            final = {planned.identity for planned in self.found.final(group)}
            once = {planned.identity: planned for planned in self.found.needed(group)}
            for planned in once.values():
                found = self.found.of(planned)
                runs.append(
                    {
                        "group": name,
                        "seed": planned.seed,
                        "final": planned.identity in final,
                        "command": planned.command,
                        "configuration": planned.identity,
                        "folder": None if found is None else str(found.run.folder),
                        "taken": None if found is None else found.taken,
                        "code": None if found is None else found.run.results.get("code"),
                        "text": None if found is None else found.run.results.get("text"),
                    }
                )
        chosen = {
            name: best.values
            for name, group in study.groups.items()
            if (best := self.found.chosen(group)) is not None
        }
        whole = {
            "schema": SCHEMA,
            "study": study.name,
            "title": self.title,
            "code": code_fingerprint(),
            "registrations": [
                {"sha256": each.sha256, "runs": each.runs} for each in self.registrations
            ],
            "changed": changed_claims(self.registrations),
            "claims": claims,
            "chosen": chosen,
            "titles": {name: group.settings.title or name for name, group in study.groups.items()},
            "runs": runs,
        }
        return dict(as_json(whole))


def _second_level(table: Table) -> str:
    return table.markdown().replace("### ", "## ", 1)


def _wrapped(text: str, indent: str = "") -> str:
    """A paragraph in lines of at most `WIDTH` characters."""
    lines = textwrap.wrap(
        text, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
    return "\n".join(lines) + "\n"


def _plain(text: str) -> str:
    """Escapes Markdown in the text of a study."""
    return text.replace("\\", "\\\\").replace("<", "&lt;").replace("\n", " ")
