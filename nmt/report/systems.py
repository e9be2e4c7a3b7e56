"""Reads the output of other systems as runs without a folder.

The output translates a test set of the runs, or a source file that has references.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

from nmt.config.commands import CompareConfig
from nmt.config.keys import MAX_LENGTH
from nmt.evaluation.documents import UNITS, align, measure_documents
from nmt.evaluation.length_curve import LengthScale, fitting_scale
from nmt.evaluation.records import Record, in_order, system_record
from nmt.evaluation.scores.bleu import all_statistics
from nmt.report.declared_scores import FromFile
from nmt.report.line_order import Holders, first_misfit, misplaced, rare_features
from nmt.report.released_files import (
    LINE,
    MAX_SHOWN,
    OUTPUT,
    REFERENCE,
    SOURCE,
    ReleasedFile,
    join_rows,
    paired_rows,
    reach,
    read_file,
    rows_within,
    selected_rows,
    shared_ids,
)
from nmt.report.retention import ADJUSTED
from nmt.report.runs import FinishedRun
from nmt.report.score_files import JOINS, PARAGRAPH
from nmt.report.score_tables import require_systems, sentences_of, systems_of
from nmt.report.system_files import find_languages, name_systems
from nmt.text.tokenise import UNSPACED_LANGUAGES, Tokeniser, count_words, split, tokeniser
from nmt.utils.errors import InputError
from nmt.utils.processes import map_in_processes
from nmt.utils.progress import Stage
from nmt.utils.text import as_list, as_utf_8, counted, file_name, span

BLANK_LINE = "\n\n"  # separates the segments of a row that is a document

DESCRIBED = ("document", "domain")  # keys that select a column with a property of each source line

# indices of segments, and the outputs for all of them
Parts = list[tuple[Sequence[int], Sequence[str]]]


@dataclass(frozen=True)
class TestText:
    """A test set that other systems have translated."""

    records: list[Record]  # the segments, without translations (`nmt.evaluation.records`)
    reference_tokeniser: Tokeniser
    tokenised: bool = False  # whether the outputs are tokenised
    languages: Sequence[str] | None = None  # source and target language
    join: str | None = None  # the key `id`
    source: ReleasedFile | None = None  # the rows of the source file; None: a test set of runs
    segments: Sequence[Sequence[int]] = ()  # for each row of `source`, the indices of its records
    selected: Sequence[int] | None = None  # indices of these rows in the whole file; None: all

    @cached_property
    def rare(self) -> Holders:
        """The rare words of the references, which show to which segment an output belongs."""
        return rare_features([record["reference"] for record in self.records])

    def match(self, file: ReleasedFile, key: str) -> tuple[Parts, bool]:
        """Finds which outputs translate which segments, by id or by line.

        Returns:
            The parts of the test set ([] if the file has none of the selected rows), and whether they were
            matched by line.
        """
        rows = self.segments or [[n] for n in range(len(self.records))]
        names = self.source and shared_ids(self.source, file, self.join)
        if not self.source or not names:
            return self._by_line(rows, file.texts(OUTPUT, key), key), True
        if self.selected is not None:
            file = rows_within(self.source, file, names)
            if not file.rows:
                return [], False
        groups = join_rows(self.source, file, names)
        texts = file.texts(OUTPUT, key)
        parts: Parts = []
        for own, others in groups:
            segments = [segment for row in own for segment in rows[row]]
            outputs = [texts[n] for n in others]
            if len(own) == len(outputs):
                parts += [(rows[row], [output]) for row, output in zip(own, outputs, strict=True)]
            elif len(segments) > 1 and own == [*range(own[0], own[-1] + 1)]:
                parts.append((segments, outputs))
            else:
                identity = ", ".join(
                    f"{each}={reach(file.rows[others[0]], each)}" for each in names
                )
                raise InputError(
                    f"{key}: {file.path}:{file.lines[others[-1]]}: {counted(len(others), 'row')} with "
                    f"{identity}; the source has {len(own)}"
                )
        return parts, False

    def _by_line(self, rows: Sequence[Sequence[int]], lines: Sequence[str], key: str) -> Parts:
        """Matches lines with the rows of the test set, of its whole source file, or with its documents."""
        numbers = [record.get("line", n) - 1 for n, record in enumerate(self.records, 1)]
        if self.selected is not None and self.source and len(lines) == self.source.total:
            lines = [lines[n] for n in self.selected]
        elif not self.source and len(lines) > numbers[-1] >= len(rows):
            lines = [lines[n] for n in numbers]
        if len(lines) != len(rows):
            names = enumerate(record.get("document") for record in self.records)
            documents = [[n for n, _ in own] for name, own in groupby(names, itemgetter(1)) if name]
            if len(lines) == len(documents):
                rows = documents
        if len(lines) != len(rows):
            misfit = first_misfit(
                [self.tokens(line) for line in lines], [each["reference"] for each in self.records]
            )
            raise InputError(
                f"{key}: {len(lines)} lines, but the test set has {len(rows)} sentences (to line "
                f"{numbers[-1] + 1} of its source); from line {misfit} on, lines fit the references "
                "of neighbouring lines better: look there for an added or a missing line"
            )
        return [(row, [line]) for row, line in zip(rows, lines, strict=True)]

    def tokens(self, line: str) -> list[str]:
        """Splits a line of output into words, like the references."""
        return split(line) if self.tokenised else self.reference_tokeniser.tokenise(line)


class SystemOutput(NamedTuple):
    """What a system wrote for a test set."""

    run: FinishedRun
    test_set: str
    text: TestText
    parts: Parts
    by_line: bool
    outside: int  # number of rows of the file outside `select`

    def translate(self) -> Translations:
        """Returns the translation of each segment; documents are split into segments."""
        texts = [""] * len(self.text.records)
        documents = cut = extra = 0
        nothing = []
        for segments, outputs in self.parts:
            if len(segments) == len(outputs):
                parts = outputs
            else:
                wanted = [self._raw(self.text.records[n]) for n in segments]
                parts, is_cut, more = align(wanted, "\n".join(outputs))
                documents += 1
                cut += is_cut
                extra += more
                nothing += [n for n, part in zip(segments, parts, strict=True) if not part]
            for n, part in zip(segments, parts, strict=True):
                texts[n] = _one_line(part)
        tokens = [self.text.tokens(line) for line in texts]
        if self.text.tokenised:
            texts = list(map(self.text.reference_tokeniser.detokenise, tokens))
        references = [[r["reference"], *r.get("more_references", ())] for r in self.text.records]
        statistics = all_statistics(tokens, references).tolist()
        rows = list(zip(tokens, texts, statistics, strict=True))
        return Translations(rows, documents, cut, extra, nothing)

    def _raw(self, record: Record) -> str:
        raw = record.get("raw_reference")
        return " ".join(record["reference"]) if raw is None else str(raw)

    def keep(self, found: Translations) -> None:
        """Adds the records of translations to the run, and notes on documents.

        Raises:
            InputError: if many lines fit the references of other lines.
        """
        records = self.text.records
        where = f"systems.{self.run.label}.{self.test_set}"
        if self.by_line and self.text.join != LINE:
            outputs = [tokens for tokens, _, _ in found.rows]
            if wrong := misplaced(outputs, self.text.rare):
                line, other = next(iter(wrong.items()))
                raise InputError(
                    f"{where}: its lines are in another order than the test set: line {line} fits the "
                    f"reference of line {other}, and so do {counted(len(wrong) - 1, 'more line')}; "
                    "restore the order, or type id=line to compare the file as it is"
                )
        self.run.records[self.test_set] = [
            system_record(sentence, *row) for sentence, row in zip(records, found.rows, strict=True)
        ]
        if found.cut:
            self.run.cut.add(self.test_set)
            lengths = [records[n]["length"] for n in found.nothing]
            unit = self.run.scales.get(self.test_set, LengthScale()).unit
            self.run.notes[self.test_set] = [
                f"{self.run.label}: {found.cut} of {counted(found.documents, 'document')} cut into the "
                f"reference's segments by edit distance; {counted(len(lengths), 'segment')} got nothing"
                f"{f' ({span(lengths, unit)})' if lengths else ''}; {counted(found.extra, 'word')} of the "
                "output fit no segment."
            ]


class Translations(NamedTuple):
    """The translations of a test set's segments."""

    rows: list[tuple[list[str], str, list[int]]]  # tokens, text, and the ten BLEU statistics
    documents: int  # number of documents that were split into segments
    cut: int  # number of them that were cut by edit distance
    extra: int  # number of words in these that correspond to no word of the reference
    nothing: list[int]  # indices of segments without a translation


def read_systems(
    config: CompareConfig,
    runs: Sequence[FinishedRun],
    scored: Sequence[FromFile] = (),
) -> list[FinishedRun]:
    """Reads the systems of a configuration as runs without a folder.

    Args:
        scored: result of `read_scores`. Without runs and systems, the systems are those of its tables, and have
            scores alone.

    Raises:
        InputError: if a file cannot be read or does not fit its test set, if a test set is unknown, or if
            a table lacks a required column `system`. The message names the key.
    """
    of_source = (
        "reference",
        "languages",
        "lengths",
        "edges",
        "short",
        "long",
        "metadata",
        "select",
    )
    given = [key for key in (*of_source, *DESCRIBED) if getattr(config, key)]
    alone = bool(scored) and not runs and not config.systems
    if config.source and not config.systems and not alone:
        raise InputError(
            "source: without systems, no output translates it; type systems=FILE, or omit source"
        )
    if given and not config.source and not alone:
        raise InputError(f"{given[0]}: describes a text of source=FILE; add source=FILE")
    if alone:
        require_systems(scored)
        source = None if config.source else sentences_of(scored, config.lengths)
        return systems_of(scored, *_source_text(config, source, alone=True))
    own, scale = _source_text(config) if config.source else ({}, None)
    sets = list(own or dict.fromkeys(name for run in runs for name in run.sets))
    systems = []
    outputs: list[SystemOutput] = []
    both = [name for name in own if any(name in run.sets for run in runs)]
    if both and (described := [key for key in DESCRIBED if getattr(config, key)]):
        raise InputError(f"{described[0]}: does not apply to runs on {both[0]}; omit it or runs=")
    named = name_systems(config.systems or {}, sets)
    if len(runs) + len(named) > 1:
        require_systems(scored)
    left_out = []
    for system, files in named.items():
        if system in {run.label for run in runs}:
            raise InputError(f"systems.{system}: a run has this name; use another")
        run = FinishedRun(system, {"name": system}, records={key: [] for key in sorted(files)})
        for name, output in files.items():
            key = f"systems.{system}.{name}"
            text = own[name] if own else replace(_text_of(runs, name), join=config.id)
            file = read_file(output, key)
            parts, by_line = text.match(file, key)
            run.results |= {"languages": text.languages, "output": as_utf_8(output)}
            if scale is not None:
                run.scales[name] = scale
            if parts:
                outside = file.total - sum(len(rows) for _, rows in parts)
                outputs.append(SystemOutput(run, name, text, parts, by_line, outside))
        if any(each.run is run for each in outputs):
            systems.append(run)
        else:
            left_out.append(system)
    if left_out and not systems:
        raise InputError(f"select={config.select}: no system has one of these rows")
    with Stage("reading systems", len(outputs), "file", shown=bool(outputs)) as stage:
        sentences = sum(len(each.text.records) for each in outputs)
        translations = []
        for found in map_in_processes(SystemOutput.translate, outputs, sentences):
            translations.append(found)
            stage.advance()
    for written, found in zip(outputs, translations, strict=True):  # an error must not stop workers
        written.keep(found)
    for name, text in own.items():
        if text.selected is not None and text.source:
            systems[0].notes.setdefault(name, []).append(
                _selection_note(config, text, outputs, left_out)
            )
    return systems


def _selection_note(
    config: CompareConfig, text: TestText, outputs: Sequence[SystemOutput], left_out: Sequence[str]
) -> str:
    """Counts what `select` leaves out: rows of the source and of outputs, and systems."""
    assert text.source is not None
    assert text.selected is not None
    which = f"select={', '.join(as_list(config.select))}"
    note = f"{which}: {len(text.selected):,} of {counted(text.source.total, 'row')} of the source."
    if outside := [each.outside for each in outputs if each.outside]:
        note += (
            f" {counted(len(outside), 'output')}: {span(outside, 'rows')} more, which are left out."
        )
    if left_out:
        systems = counted(len(outputs) + len(left_out), "system")
        note += f" {len(left_out)} of {systems} have none of these rows: {', '.join(left_out)}."
    return note


def _one_line(text: str) -> str:
    return " ".join(text.split("\n")).strip() if "\n" in text else text


def _text_of(runs: Sequence[FinishedRun], test_set: str) -> TestText:
    """Returns a test set of the runs; its sentences come from a run with shortlists, if there is one."""
    scored = [run for run in runs if run.translations(test_set)]
    if not scored:
        raise InputError(f"systems: no run has stored translations of {test_set}")
    run = max(scored, key=lambda run: run.translations(test_set)[0].get("no_unk") is not None)
    flat = run.flat
    reference_tokeniser = tokeniser(run.language or "en")
    tokenised = any(flat.get(f"data.test.{test_set}.{key}") for key in ("tokenised", "grammar"))
    records = in_order(run.translations(test_set))
    return TestText(records, reference_tokeniser, tokenised, flat.get("data.languages"))


def _source_text(
    config: CompareConfig, source: ReleasedFile | None = None, *, alone: bool = False
) -> tuple[dict[str, TestText], LengthScale]:
    """Reads `source`, `reference` and `metadata`; returns the test set, by name, and its scale of lengths.

    Args:
        source: the source if it is no file.
        alone: whether there are no outputs. Then no reference is needed.
    """
    if not config.reference and not alone:
        raise InputError("reference: must be given with source")
    source = source or read_file(str(config.source), "source")
    if not source.rows:
        raise InputError(f"source={config.source}: has no lines")
    paths = [("reference", path) for path in as_list(config.reference or [])]
    paths += [("metadata", config.metadata)] if config.metadata else []
    files = []
    for key, path in paths:
        file = read_file(path, key)
        files.append(file.select(paired_rows(source, file, key, config.id)))
    count = len(as_list(config.reference or []))
    kept = selected_rows(as_list(config.select or []), [*files[count:], source])
    source, *files = [file.select(kept) for file in (source, *files)]
    described = [*files[count:], source]
    references = [file.texts(REFERENCE, "reference") for file in files[:count]]
    languages = config.languages
    if not languages:
        languages = find_languages(str(config.source), paths[0][1]) if not alone else ["en", "en"]
    source_tokeniser, reference_tokeniser = map(tokeniser, languages)
    names = {
        key: _names(getattr(config, key), key, described)
        for key in DESCRIBED
        if getattr(config, key) is not None
    }
    ids = [name for name in JOINS if source.has(name)]
    unspaced = languages[0] in UNSPACED_LANGUAGES
    counts_of = next((file for file in described if file.has("words")), None)
    given = counts_of.values("words", "words") if counts_of else None
    sources = []  # the raw text of each segment
    records: list[Record] = []
    segments = []  # indices of the segments of each row
    for row, (text, *texts) in enumerate(
        zip(source.texts(SOURCE, "source"), *references, strict=True)
    ):
        written = [each for each in texts if each] or texts[
            :1
        ]  # an empty further reference is none
        paragraphs = [each.split(BLANK_LINE) for each in (text, *written)]
        if len(set(map(len, paragraphs))) > 1:
            paragraphs = [[each] for each in (text, *written)]
        paragraphs = [[_one_line(part) for part in parts] for parts in paragraphs]
        segments.append(range(len(records), len(records) + len(paragraphs[0])))
        own: dict[str, Any] = {key: column[row] for key, column in names.items()}
        own |= {"ids": {name: reach(source.rows[row], name) for name in ids}} if ids else {}
        for place, (raw, *raws) in enumerate(zip(*paragraphs, strict=True), 1):
            sources.append(raw)
            record = {"id": len(records), "source": source_tokeniser.tokenise(raw), "length": 0}
            words = _length(given[row], "words") if given else count_words(raw, unspaced)
            record |= {"words": words, "reference": []} | own
            record["ids"] = {PARAGRAPH: place} | own.get("ids", {})
            if raws:
                reference, *others = map(reference_tokeniser.tokenise, raws)
                record |= {"reference": reference, "raw_reference": raws[0]}
                record |= {"more_references": others, "more_raw_references": raws[1:]}
            records.append(record)
    if "document" not in names and len(records) > len(segments):
        for row, own_segments in enumerate(segments):
            for n in own_segments:
                records[n]["document"] = str(source.lines[row])
    scale, lengths = _measure_lengths(config, described, segments, sources, records, languages[0])
    for record, length in zip(records, lengths, strict=True):
        record["length"] = length
    scale = replace(
        scale,
        short=config.short or scale.short,
        long=config.long or scale.long,
        edges=config.edges or scale.edges,
    )
    if scale.long <= scale.short:
        raise InputError(f"short={scale.short}: must be below long={scale.long}")
    name = file_name(Path(source.path).name.partition(".")[0])
    selected = kept if config.select else None
    return {
        name: TestText(
            records, reference_tokeniser, False, languages, config.id, source, segments, selected
        )
    }, scale


def _measure_lengths(
    config: CompareConfig,
    described: Sequence[ReleasedFile],
    segments: Sequence[Sequence[int]],
    sources: Sequence[str],
    records: Sequence[Record],
    language: str,
) -> tuple[LengthScale, list[int]]:
    """Returns the scale of lengths, and the length of each segment."""
    usual = "characters" if language in UNSPACED_LANGUAGES else "words"
    unit = config.lengths or usual
    if unit == "words" and any(file.has("words") for file in described):
        lengths = [record["words"] for record in records]
    elif unit == "tokens":
        lengths = [len(record["source"]) for record in records]
    elif unit in ("words", "characters", *UNITS):
        characters = (usual if unit in UNITS else unit) == "characters"
        lengths = [count_words(text, characters) for text in sources]
    else:
        file = _file_with(unit, described)
        values = [
            _length(value, f"{file.path}:{line}: {unit}")
            for value, line in zip(file.values(unit, "lengths"), file.lines, strict=True)
        ]
        lengths = [values[row] for row, own in enumerate(segments) for _ in own]
    if unit not in UNITS:
        return fitting_scale(lengths, unit), lengths
    if any("document" not in record for record in records):
        raise InputError(f"lengths={unit}: names no documents; type document=COLUMN")
    scale, lengths = measure_documents([record["document"] for record in records], lengths, unit)
    return replace(scale, unit=scale.unit.replace("words", usual)), lengths


def _length(value: Any, where: str) -> int:
    """Converts a cell to a length; raises InputError that starts with `where` for any other value."""
    with contextlib.suppress(ValueError, TypeError, OverflowError):
        number = float(value)
        if number.is_integer() and 0 <= number <= MAX_LENGTH and not isinstance(value, bool):
            return int(number)
    shown = str(value)[:MAX_SHOWN]
    raise InputError(f"{where} is {shown}; it must be a whole number from 0 to {MAX_LENGTH}")


def _names(name: str, key: str, described: Sequence[ReleasedFile]) -> list[str]:
    """Reads the column that `document` or `domain` selects; every source line needs a name in it."""
    column = [
        None if value is None else str(value)
        for value in _file_with(name, described).values(name, key)
    ]
    if empty := [n for n, value in enumerate(column, 1) if not value]:
        raise InputError(f"{key}={name}: row {empty[0]} names no {key}")
    names = [str(value) for value in column]
    if key == "domain" and (taken := {"all", ADJUSTED} & {*names}):
        raise InputError(f"domain={name}: the name {min(taken)} is reserved; rename this domain")
    return names


def _file_with(column: str, described: Sequence[ReleasedFile]) -> ReleasedFile:
    """Returns `metadata` if it has the column, which describes the source lines, else `source`."""
    return next((file for file in described if file.has(column)), described[0])
