"""Finds and names the output files of other systems."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from nmt.config.changes import flatten
from nmt.utils.errors import InputError
from nmt.utils.files import matching
from nmt.utils.text import as_list, as_utf_8

# Parts of file names that name no system and no language; `gz` and `xz` look like language codes.
COMMON_ENDINGS = frozenset(["gz", "xz", "bz2", "zst", "txt", "jsonl", "tsv", "detok"])


def name_systems(given: Any, sets: Sequence[str]) -> dict[str, dict[str, str]]:
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
    systems: dict[str, dict[str, str]] = {}
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
        systems[name][test_set] = str(path)
    return systems


def _files_by_name(patterns: Any) -> dict[str, str]:
    """Finds the files that match patterns, and names each system by the part of its file name that differs."""
    files: list[Path] = []
    for pattern in as_list(patterns):
        found = [file for file in matching(pattern) if file.is_file()]
        if not found:
            raise InputError(f"systems: no file matches {pattern}")
        files += found
    systems: dict[str, str] = {}
    for file, name in zip(files, distinct_names([file.name for file in files]), strict=True):
        label = as_utf_8(name)
        if label in systems:
            raise InputError(f"systems: two files are named {label}; type systems={{NAME: FILE}}")
        systems[label] = str(file)
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
