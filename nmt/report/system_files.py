"""Finds and names the output files of other systems, and reads texts and tables."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from nmt.config.keys import flatten
from nmt.evaluation.records import read_rows
from nmt.text.lines import check_file, read_lines
from nmt.utils.errors import InputError
from nmt.utils.files import matching, refuse_unreadable
from nmt.utils.text import as_list

# Parts of file names that name no system and no language; `gz` and `xz` look like language codes.
COMMON_ENDINGS = frozenset(["gz", "xz", "bz2", "zst", "txt", "jsonl", "tsv", "detok"])

# Column names that this program, COMET, MetricX and other tools use.
SOURCE = ("source", "src", "text")
REFERENCE = ("reference", "ref", "target")
OUTPUT = ("translation", "hypothesis", "mt", "target", "text")


class Output(NamedTuple):
    """A file with the output of a system; `column` is used if the file is a table of several systems."""

    file: str
    column: str = ""


def name_systems(given: Any, sets: Sequence[str]) -> dict[str, dict[str, Output]]:
    """Returns the files of each system by test set.

    Args:
        given: a list of files and globs, or a mapping from each system to its file, or to its file for each
            test set. Names may contain dots, which Hydra reads as nested keys.
        sets: names of the known test sets.

    Raises:
        InputError: if a pattern matches no file, if the test set of a file is unknown or ambiguous, or if a
            name occurs twice.
    """
    listed = ", ".join(sets) or "none; give source and reference"
    if not isinstance(given, Mapping):
        if len(sets) != 1:
            raise InputError(
                f"systems: no test set given; type systems.NAME.SET=FILE; test sets: {listed}"
            )
        return {name: {sets[0]: output} for name, output in _files_by_name(given).items()}
    systems: dict[str, dict[str, Output]] = {}
    for key, path in flatten(given).items():
        parts = key.split(".")
        ends = [".".join(parts[n:]) for n in range(1, len(parts))]
        test_set = next((end for end in ends if end in sets), "")
        name = key[: -len(test_set) - 1] if test_set else key
        if not test_set and len(sets) != 1:
            raise InputError(f"systems.{name}: type systems.{name}.SET=FILE; test sets: {listed}")
        test_set = test_set or sets[0]
        if test_set in systems.setdefault(name, {}):
            raise InputError(f"systems.{name}: has two files for {test_set}")
        systems[name][test_set] = Output(str(path))
    return systems


def _files_by_name(patterns: Any) -> dict[str, Output]:
    """Finds the files that match patterns, and names each system by the part of its file name that differs."""
    files: list[Path] = []
    for pattern in as_list(patterns):
        found = [file for file in matching(pattern) if file.is_file()]
        if not found:
            raise InputError(f"systems: no file matches {pattern}")
        files += found
    systems: dict[str, Output] = {}
    for file, name in zip(files, distinct_names([file.name for file in files]), strict=True):
        for column in _system_columns(file) or [""]:
            label = column or name
            if label in systems:
                raise InputError(
                    f"systems: two files are named {label}; type systems={{NAME: FILE}}"
                )
            systems[label] = Output(str(file), column)
    return systems


def distinct_names(files: Sequence[str]) -> list[str]:
    """Shortens file names: drops the first and last parts (between dots) that all names share.

    >>> distinct_names(["news.Claude-3.5.de.xz", "news.GPT-4.de.xz"])
    ['Claude-3.5', 'GPT-4']
    >>> distinct_names(["moses.fr.gz"])
    ['moses']
    """
    parts = [name.split(".") for name in files]
    if len(parts) == 1:
        [only] = parts
        while len(only) > 1 and (only[-1] in COMMON_ENDINGS or is_language(only[-1])):
            only.pop()
    for end in (-1, 0):
        while (
            len(parts) > 1 and len({each[end] for each in parts}) == 1 and min(map(len, parts)) > 1
        ):
            for each in parts:
                each.pop(end)
    return [".".join(each) for each in parts]


def _system_columns(file: Path) -> list[str]:
    """Returns the columns of a table that has one column per system; [] for the output of one system."""
    if not {".jsonl", ".tsv"} & set(file.suffixes):
        return []
    table = read_table(str(file), "systems")
    if set(OUTPUT) & set(table):
        return []
    numbers = [name for name in table if pd.to_numeric(table[name], errors="coerce").notna().all()]
    return [name for name in table if name not in {*SOURCE, *REFERENCE, *numbers}]


def find_languages(source: str, reference: str) -> list[str]:
    """Reads the languages from file names, such as `news.de` and `news.fr.gz`, or `en-zh.refA.txt`.

    Raises:
        InputError: if the names do not give both languages.
    """
    for path in (source, reference):
        for part in Path(path).name.split("."):
            pair = re.split("[-_]", part)[-2:]
            if len(pair) == 2 and all(map(is_language, pair)):
                return pair
    found = [
        next((part for part in reversed(Path(path).name.split(".")[1:]) if is_language(part)), None)
        for path in (source, reference)
    ]
    if None in found:
        raise InputError(
            f"languages: not in the names of {source} and {reference}; type languages=[SOURCE,TARGET]"
        )
    return [str(each) for each in found]


def is_language(text: str) -> bool:
    """Whether a part of a file name has the form of a language code."""
    return bool(re.fullmatch("[a-z]{2}", text)) and text not in COMMON_ENDINGS


def read_texts(path: str, key: str, names: Sequence[str]) -> list[str]:
    """Reads the lines of a text file, or a column of a JSONL or TSV file: the first of `names` that exists."""
    if not {".jsonl", ".tsv"} & set(Path(path).suffixes):
        return [line.strip() for line in read_lines(check_file(path, key))]
    table = read_table(path, key, *names)
    column = next(name for name in names if name in table)
    texts = table[column].fillna("")  # a missing output counts as empty
    return [" ".join(each) if isinstance(each, list) else str(each) for each in texts]


def read_table(path: str, key: str, *names: str) -> pd.DataFrame:
    """Reads a JSONL file, or a TSV file with a heading.

    Raises:
        InputError: if the file cannot be read, or if no column has one of the given `names`.
    """
    file = check_file(path, key)
    table = _parsed(file, key, file.stat().st_mtime_ns)
    if names and not set(names) & set(table):
        raise InputError(f"{key}={path}: no column {' or '.join(names)}")
    return table


@lru_cache(maxsize=1)  # avoids reading a table again for each of its systems
def _parsed(file: Path, key: str, changed: int) -> pd.DataFrame:
    if ".jsonl" in file.suffixes:
        return pd.DataFrame(read_rows(file))
    with refuse_unreadable(f"{key}={file}", "a table with a heading"):
        # Names such as "50" or "NA" stay text. In a table of one column, an empty line is a missing value.
        return pd.read_csv(
            file, sep="\t", quoting=csv.QUOTE_NONE, skip_blank_lines=False, dtype=str,
            keep_default_na=False, na_values=[""],
        )  # fmt: skip
