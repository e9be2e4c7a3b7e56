"""Notes that explain the scores on a test set."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from textwrap import shorten
from typing import Any

import numpy as np

from nmt.evaluation import significance
from nmt.evaluation.documents import FEWEST_WORDS, RELIABLE_BLEU, short_and_long
from nmt.evaluation.domains import (
    adjusted_kernel,
    comparable_domains,
    known_lengths,
    shares_at,
)
from nmt.evaluation.length_curve import FEWEST, MAX_GAP, Curve, LengthScale
from nmt.evaluation.measured import common_sentences
from nmt.evaluation.records import Record
from nmt.evaluation.resampling import count_documents
from nmt.evaluation.scores import Score
from nmt.evaluation.scores.text import missing_tokenizer
from nmt.report.declared_scores import FromFile
from nmt.report.retention import RETAINED, SHORT_END_FAILS, SMALLEST_RATIO, Curves, ends_of
from nmt.report.set_comparison import BREVITY, MAX_PAIRED, SetComparison
from nmt.utils.text import counted, span

REPEATED = 5  # a note names an output that occurs this often, unless as many sources are repeated
FEWEST_DOCUMENTS = 20  # with fewer documents, a note warns of narrow intervals and small p-values
CHANGED_MIX = 0.1  # a note names a domain whose fraction of lines changes this much with length


def notes_of(part: SetComparison, curves: Curves, rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Returns notes on the scores, the curves and the rows of retention of a test set."""
    notes = [
        f"{part.name}: {run.stored[part.name]} of {run.label}, renamed since its text differs."
        for run in part.runs
        if part.name in run.stored
    ]
    if part.no_unk:
        notes.append(
            f"No UNK: {counted(len(part.no_unk), 'sentence')} covered by the shortlists of all "
            "runs, translated with <unk> forbidden."
        )
    notes += [f"{s.title} signature: {s.signature}" for s in part.tested if s.signature]
    languages = {run.language for run in part.runs if run.language and "sacrebleu" in part.known}
    notes += [note for note in map(missing_tokenizer, sorted(languages)) if note]
    pairs = max((len(measured.ids) for measured in part.measured.values()), default=0)
    if 0 < pairs < significance.FEWEST:
        few = f"intervals of fewer than {significance.FEWEST} sentences are too narrow"
        notes.append(f"{counted(pairs, 'sentence')}: {few}.")
    documents = [count_documents(each.documents) for each in part.measured.values()]
    if (known := [count for count in documents if count]) and len(known) == len(documents):
        drawn = f"Intervals draw {counted(min(known), 'document')} whole."
        few = (
            "With so few documents, intervals are too narrow and p-values too small, above all if the "
            "documents differ in size."
        )
        notes.append(f"{drawn} {few}" if min(known) < FEWEST_DOCUMENTS else drawn)
    for score in part.tested:
        if isinstance(score, FromFile):
            notes += score.notes
            counts = {int(each.has(score.key).sum()) for each in part.measured.values()} - {0}
            if counts and min(counts) < pairs:
                few = (
                    f"{min(counts):,}"
                    if len(counts) == 1
                    else f"{min(counts):,} to {max(counts):,}"
                )
                notes.append(f"{score.title}: for {few} of {counted(pairs, 'sentence')}.")
    notes += reference_notes(part)
    for run in part.runs:
        notes += output_notes(run.label, run.translations(part.name), part.scale.unit)
        notes += run.notes.get(part.name, [])
    if len(part.runs) > MAX_PAIRED:
        notes.append(
            f"Of {len(part.runs)} runs, the {MAX_PAIRED} with the highest BLEU (other systems first) "
            "are compared in pairs and sentence by sentence; runs= selects others."
        )
    searches = dict.fromkeys(run.search for run in part.runs)
    notes += [f"Search: {settings}." for settings in searches if settings]
    if len({run.results.get("commit") for run in part.runs} - {None}) > 1:
        notes.append("The runs used different commits of the code.")
    if part.unreliable:
        notes.append(
            f"{', '.join(sorted(part.unreliable))}: below BLEU {RELIABLE_BLEU}, only about 60 % of the cuts "
            f"between segments are right; scores of segments below {FEWEST_WORDS} words are left out."
        )
    return [*notes, *domain_notes(part), *retention_notes(part, curves, rows)]


def output_notes(name: str, records: Sequence[Record], unit: str) -> list[str]:
    """Returns at most one note, on outputs that are empty, equal their source, or are repeated, such as a refusal."""
    outputs = [
        (record.get("detokenised", " ".join(record.get("hypothesis", ()))).strip(), record)
        for record in records
        if record["source"]
    ]
    empty = [record["length"] for text, record in outputs if not text]
    copied = [
        record["length"]
        for text, record in outputs
        if text and record.get("hypothesis") == record["source"] != record["reference"]
    ]
    counts = Counter(text for text, _ in outputs if text)
    sources = {tuple(record["source"]) for record in records}
    if not any("hypothesis" in record for _, record in outputs):
        return []  # scores alone
    [(most, count)] = counts.most_common(1) or [("", 0)]
    parts = [f"{counted(len(empty), 'output')} empty ({span(empty, unit)})"] if empty else []
    if copied:
        equal = "equals its" if len(copied) == 1 else "equal their"
        parts.append(f"{counted(len(copied), 'output')} {equal} source ({span(copied, unit)})")
    if count >= REPEATED and len(sources) > len(records) - count:
        lengths = [record["length"] for text, record in outputs if text == most]
        shown = shorten(most, 60, placeholder="…")
        parts.append(f"{count} outputs are {shown!r} ({span(lengths, unit)})")
    return [f"{name}: {'; '.join(parts)}."] if parts else []


def reference_notes(part: SetComparison) -> list[str]:
    """Returns a note if sentences have different numbers of references."""
    records = part.runs[0].translations(part.name)
    counts = [1 + len(record.get("more_references", ())) for record in records]
    if not counts or min(counts) == (most := max(counts)):
        return []
    few = sum(count < most for count in counts)
    return [f"{few:,} of {counted(len(counts), 'sentence')} have fewer than {most} references."]


def domain_notes(part: SetComparison) -> list[str]:
    """Returns notes on how short and long sentences differ in their domains."""
    if not part.domains:
        return []
    key = next(
        key for key in part.known if all(each.has(key).any() for each in part.measured.values())
    )
    common = common_sentences([*part.measured.values()], key)
    lengths = part.scale.short, part.scale.long
    short, long = (shares_at(common, length) for length in lengths)
    domain = max(short, key=lambda name: abs(short[name] - long[name]))
    notes = []
    if abs(short[domain] - long[domain]) >= CHANGED_MIX:
        notes.append(
            f"Domains change with length: {domain} is {short[domain]:.0%} of the lines of about "
            f"{lengths[0]} {part.scale.unit}, and {long[domain]:.0%} at {lengths[1]}."
        )
    known = known_lengths(part.scale, common)
    rounded = [ends and (round(ends[0]), round(ends[1])) for ends in known.values()]
    if any(ends is None or ends[0] > lengths[0] or ends[1] < lengths[1] for ends in rounded):
        each = [
            f"{name} {'at no length' if ends is None else '{} to {}'.format(*ends)}"
            for name, ends in zip(known, rounded, strict=True)
        ]
        compared = comparable_domains(part.scale, common)
        adjusted = adjusted_kernel(part.scale, common).lengths
        use = "no adjusted curve"
        if len(adjusted):
            use = f"adjusted curves use {', '.join(compared)}, "
            use += f"from {adjusted[0]:.0f} to {adjusted[-1]:.0f} {part.scale.unit}"
        notes.append(f"Lengths with enough lines, in {part.scale.unit}: {', '.join(each)}; {use}.")
    return notes


def retention_notes(
    part: SetComparison, curves: Curves, rows: Sequence[Mapping[str, Any]]
) -> list[str]:
    """Returns notes on each missing retention, with the reason, and on systems that fail on short sentences.

    Args:
        rows: the rows of retention over all sentences.
    """
    short, long = short_and_long(part.scale.unit)
    missing: dict[tuple[str, str], list[str]] = {}  # title of the score, and the reason -> groups
    notes = []
    for key, score in part.compared.items():
        of_key = [row for row in rows if row["key"] == key]
        kept = {row["name"]: row for row in of_key if row["statistic"] == RETAINED}
        for name in part.groups if score not in BREVITY else ():
            if name not in kept and all(
                each.has(key).any() for each in part.members["score", name]
            ):
                reason = _reason(curves.get(key, {}).get(("score", name)), score, part.scale)
                missing.setdefault((score.title, reason), []).append(name)
        for name, row in kept.items():
            if row["value"] > SHORT_END_FAILS and score not in BREVITY:
                shares = [
                    f"{each['value']:.2f} {each['statistic']}"
                    for each in of_key
                    if each["name"] == name and each["statistic"].startswith("of the median")
                ]
                beside = f" (its score is {', '.join(shares)})" if shares else ""
                notes.append(
                    f"{name}: retention of {score.title} above {SHORT_END_FAILS:.0%}: {short} fail{beside}. "
                    f"This is no strength of {long}."
                )
    for (title, reason), names in missing.items():
        everyone = len(names) == len(part.groups) and not reason.startswith("fewer")
        who = "" if everyone else f" for {', '.join(names)}"
        notes.append(f"Retention of {title} is unknown{who}: {reason}.")
    return notes


def _reason(curve: Curve | None, score: Score, scale: LengthScale) -> str:
    """Says why a curve has no retention, and what would give it one."""
    known = np.empty(0, int)  # lengths with a value
    if curve is not None:
        known = curve.lengths[np.isfinite(curve.score)].round().astype(int)
    ends = [
        x for x in (scale.short, scale.long) if curve is None or not np.isfinite(curve.at(x).score)
    ]
    if curve is not None and (not ends or ends == [scale.long]):
        short, long = ends_of(curve, scale)
        if not ends or long > short:
            if long < SMALLEST_RATIO * short:
                return (
                    f"withheld, since the lengths {short:.0f} and {long} {scale.unit} are too close; one must be "
                    f"at least {SMALLEST_RATIO} times the other"
                )
            given = f"; scores.{score.key}.worst=NUMBER gives it" * ("_per_" not in score.key)
            return f"its worst value is not known. The table shows the change{given}"
    clumps = np.split(known, np.flatnonzero(known[1:] > MAX_GAP * known[:-1]) + 1)
    enough = ", ".join(span(each.tolist(), scale.unit) for each in clumps if len(each))
    typed = ""
    if len(known) > 1 and known[-1] >= SMALLEST_RATIO * known[0]:
        typed = f"; short={known[0]} long={known[-1]} compares these"
    return (
        f"fewer than {FEWEST} sentences, or too few matches, at about {' and '.join(map(str, ends))} "
        f"{scale.unit}; there are enough at {enough or 'no length'}{typed}"
    )
