"""Finds the parallel text that a section of the configuration describes, and reads its pairs.

The text comes from line-aligned files, a data set of the Hugging Face hub, or the built-in grammar. It is
read in chunks, so that it does not have to fit into memory.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from nmt import grammar
from nmt.config.schema import DataConfig, TextConfig
from nmt.text.lines import ENDINGS, check_file, read_parallel
from nmt.utils.errors import InputError, first_line
from nmt.utils.files import sha256

# Seeds of the built-in corpus. Test sets use another seed, since hyperparameters of the laptop regime were
# chosen on test sets of seed 1.
SEED, TEST_SEED = 1, 2
SIDES = ("source", "target")
CHUNK = 1_000  # pairs per chunk

# Source, target (raw text, or tokens separated by spaces) and alignment in Pharaoh format
Pair = tuple[str | None, str | None, str | None]


class Source(NamedTuple):
    """A parallel text that is read in chunks.

    Attributes:
        identity: digest of everything that determines the pairs.
        chunks: parts of the text, of CHUNK pairs each; the last one may be shorter.
        read: returns the pairs of a chunk; several processes call it, since it may be slow.
    """

    identity: str
    chunks: Iterator[Any]
    read: Callable[[Any], Sequence[Pair]]


def digest(*values: Any) -> str:
    """Returns a short digest of plain values."""
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:16]


def open_source(text: TextConfig, data: DataConfig, key: str) -> Source:
    """Opens the text of a section of the configuration.

    `key` is the name of the section, such as `data.test.mine`. It also selects the split of the built-in corpus.

    Raises:
        InputError: if the section names no text, half of one, or files beside the grammar, or if the text cannot be
            opened.
    """
    start = text.skip or 0
    stop = None
    if text.pairs:
        stop = start + text.pairs
    if text.alignment and not text.tokenised:
        raise InputError(f"{key}.alignment: needs tokenised text; type {key}.tokenised=true")
    if text.grammar and (text.source or text.target):
        raise InputError(f"{key}: has both files and grammar; to read files, type data=text")
    if text.grammar:
        return _open_grammar(text, data, key, start, stop)
    root = Path(data.root or "").expanduser()
    if text.source or text.target:
        names = {"source": text.source, "target": text.target, "alignment": text.alignment}
        for side in ("source", "target"):
            if not names[side]:
                raise InputError(f"{key}.{side}: missing; type {key}.source=FILE {key}.target=FILE")
        files = [
            [
                check_file(root / Path(name).expanduser(), f"{key}.{side}")
                for side, name in names.items()
                if name
            ]
        ]
    else:
        if text.alignment:
            raise InputError(f"{key}.alignment: needs {key}.source=FILE and {key}.target=FILE")
        files = [
            [_spelling(root / Path(f"{name}.{end}").expanduser()) for end in data.languages]
            for name in text.files or ()
        ]
        missing = [path for paths in files for path in paths if not path.is_file()]
        if text.hub and data.root is None and (missing or not files):
            return _open_hub(text, data, key, start, stop)
        for path in missing:
            check_file(path, f"{key}.files")
    if not files:
        raise InputError(
            f"{key}.source: missing; type {key}.source=FILE {key}.target=FILE, or choose another data "
            "set with data=NAME"
        )
    contents = [list(map(sha256, paths)) for paths in files]
    identity = digest("files", contents, text.tokenised, text.skip, text.pairs)
    lines = itertools.chain.from_iterable(map(read_parallel, files))
    pairs = ((*line, None)[:3] for line in itertools.islice(lines, start, stop))
    return Source(identity, _chunks(pairs), list)


def _spelling(file: Path) -> Path:
    """Returns `file`, or its compressed version if only the compressed version exists."""
    compressed = (file.with_name(file.name + ending) for ending in ENDINGS)
    return next((path for path in (file, *compressed) if path.is_file()), file)


def _chunks(pairs: Iterator[Any]) -> Iterator[list[Any]]:
    """Yields lists of CHUNK pairs."""
    while chunk := list(itertools.islice(pairs, CHUNK)):
        yield chunk


def _open_hub(text: TextConfig, data: DataConfig, key: str, start: int, stop: int | None) -> Source:
    """Opens a split of a data set that was saved with `save_to_disk`, is cached by `datasets`, or is on the hub.

    The data set has one column per language, or a column `translation` with an entry per language.
    """
    import datasets  # this import takes more than a second

    arguments = {"split": "train", **(text.hub or {})}
    folder = Path(str(arguments.get("path"))).expanduser()
    try:
        if any((folder / name).is_file() for name in ("dataset_dict.json", "state.json")):
            saved = datasets.load_from_disk(str(folder))
            rows = saved[arguments["split"]] if isinstance(saved, dict) else saved
        else:
            rows = datasets.load_dataset(**arguments)
        # The fingerprint is the same on every machine, since it depends only on the data or on the commit in the hub.
        fingerprint = rows._fingerprint
        rows = rows.flatten()
    except Exception as error:  # the library raises many types of exceptions
        local = [f"{text.files[0]}.{language}" for language in data.languages] if text.files else []
        hint = f"; or type data.root=FOLDER with {' and '.join(local)}" if local else ""
        raise InputError(
            f"{key}.hub={arguments}: cannot be loaded ({first_line(error)}){hint}"
        ) from error
    columns = {name.removeprefix("translation."): name for name in rows.column_names}
    for language in data.languages:
        if language not in columns:
            raise InputError(
                f"{key}.hub: no column {language!r} (data.languages); it has {', '.join(columns)}"
            )
    identity = digest("hub", fingerprint, list(data.languages), start, stop, text.tokenised)
    sides = [columns[language] for language in data.languages]
    batches = rows.select(range(len(rows))[start:stop]).iter(CHUNK)
    chunks = (list(zip(*map(batch.get, sides), itertools.repeat(None))) for batch in batches)
    return Source(identity, chunks, list)


# The built-in corpus


def _open_grammar(
    text: TextConfig, data: DataConfig, key: str, start: int, stop: int | None
) -> Source:
    if sorted(data.languages) != ["en", "fr"]:
        raise InputError(
            f"data.languages=[{', '.join(data.languages)}]: the built-in corpus is English and "
            "French; type data=text for your own files"
        )
    if stop is None:
        raise InputError(f"{key}.pairs: missing; type the number of pairs to draw")
    split = {"data.train": "train", "data.valid": "valid"}.get(key, "test")
    by_length, reverse = text.grammar == "by_length", data.languages[0] == "fr"
    seed = TEST_SEED if split == "test" else SEED
    identity = digest("grammar", grammar.VERSION, seed, split, by_length, reverse, start, stop)
    draw = functools.partial(_draw, seed=seed, split=split, by_length=by_length, reverse=reverse)
    return Source(identity, _chunks(iter(range(start, stop))), draw)


def _draw(
    numbers: Sequence[int], seed: int, split: str, by_length: bool, reverse: bool
) -> list[Pair]:
    """Draws the pairs with these numbers; if `by_length`, each length bucket gets equally many pairs."""
    pairs = [
        grammar.draw_by_length(seed, split, number, by_target=reverse)
        if by_length
        else grammar.draw(seed, split, number)
        for number in numbers
    ]
    pairs = [pair.reversed() for pair in pairs] if reverse else pairs
    return [(" ".join(pair.source), " ".join(pair.target), pair.pharaoh()) for pair in pairs]
