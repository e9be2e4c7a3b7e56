"""Opens the parallel text that a section of the configuration describes, as a `Corpus`.

The text is in files, in a remote data set, or drawn from the built-in grammar. It is read row by
row and never held in memory as a whole.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from nmt import grammar
from nmt.config import DataConfig, TextConfig
from nmt.data.corpus import PART, Corpus, LineAligned, Row, Slice, digest
from nmt.data.hub import from_remote
from nmt.data.lines import ENDINGS, check_file
from nmt.utils.errors import InputError
from nmt.utils.files import sha256

log = logging.getLogger(__name__)


def open_corpus(text: TextConfig, data: DataConfig, key: str, split: str) -> Corpus:
    """The corpus that a section of the configuration describes.

    Args:
        text: the section.
        data: the whole description of the text, for languages and grammar.
        key: name of the section, such as `data.test.mine`, for messages.
        split: `train`, `valid` or `test`: the split of the grammar that is drawn from.

    Raises:
        InputError: if the section names no text, two of them, or one that cannot be opened.
    """
    if text.skip:
        stop = text.pairs and text.skip + text.pairs
        whole = open_corpus(replace(text, skip=None, pairs=stop), data, key, split)
        identity = digest(whole.identity, "skip", text.skip)
        rest = (Slice(whole.parts, text.skip, None),)
        return replace(whole, identity=identity, parts=rest, first=text.skip)
    local = [name for name in ("source", "grammar") if getattr(text, name)]
    remote = [name for name in ("sacrebleu", "hub") if getattr(text, name)]
    named = [*local, *(["files"] if text.files else []), *remote]
    if not named:
        raise InputError(
            f"{key}.source: missing; name line-aligned files ({key}.source, {key}.target)"
            " or choose another data=…"
        )
    if local and len(named) > 1:
        raise InputError(f"{key}: both {named[0]} and {named[1]} are given; give only one of them")
    if text.alignment and not text.source:
        raise InputError(f"{key}.alignment: only for text from files, not with {key}.{named[0]}")
    if text.source:
        return _from_files(text, data, key)
    if text.grammar:
        return _from_grammar(text, data, key, split)
    if text.files:
        pairs, missing = local_files(text, data)
        if not missing:
            return _line_aligned(
                [tuple(check_file(p, key) for p in pair) for pair in pairs], text, key
            )
        if data.root is not None or not remote:
            where = data.root or "this folder"
            raise InputError(
                f"{key}.files: {missing} is not in {where} (data.root), nor with"
                f" {', '.join(ENDINGS)}"
            )
    return from_remote(text, data, key)


def local_files(text: TextConfig, data: DataConfig) -> tuple[list[tuple[Path, ...]], str | None]:
    """The pairs of files that `files` stands for, and the name of the first missing one, if any."""
    pairs: list[tuple[Path, ...]] = []
    for name in text.files or ():
        pair = []
        for language in data.languages:
            file = Path(under_root(data.root, f"{name}.{language}")).expanduser()
            spellings = [file, *(file.with_name(file.name + ending) for ending in ENDINGS)]
            path = next((path for path in spellings if path.is_file()), None)
            if path is None:
                return [], file.name
            pair.append(path)
        pairs.append(tuple(pair))
    return pairs, None


def text_sections(data: DataConfig) -> dict[str, TextConfig]:
    """Every text that a configuration describes, by the key of its section."""
    tests = {f"data.test.{name}": text for name, text in data.test.items()}
    return {"data.train": data.train, "data.valid": data.valid, **tests}


def leave_out_absent(data: DataConfig) -> None:
    """Removes the optional test sets whose files are missing, with a log line for each."""
    for name, text in list(data.test.items()):
        _, missing = local_files(text, data)
        for path in (text.source, text.target, text.alignment):
            if path and not Path(under_root(data.root, path)).expanduser().is_file():
                missing = missing or path
        if text.optional and missing:
            del data.test[name]
            _log_left_out(name, missing, data.root or "this folder")


@functools.cache
def _log_left_out(name: str, file: str, where: str) -> None:
    log.info("data.test.%s is left out: %s is not in %s (data.root)", name, file, where)


def under_root(root: str | None, path: str) -> str:
    """A file's name as it is opened: below the root unless it is absolute."""
    if root is None or Path(path).expanduser().is_absolute():
        return path
    return str(Path(root) / path)


def _from_files(text: TextConfig, data: DataConfig, key: str) -> Corpus:
    for side in ("source", "target"):
        if not getattr(text, side):
            raise InputError(
                f"{key}.{side}: missing; name the file of the other side's translations"
            )
    if text.alignment and (key == "data.train" or not text.tokenised):
        raise InputError(
            f"{key}.alignment: needs a development or test set of tokenised files"
            f" ({key}.tokenised=true), whose words it numbers"
        )
    sides = [side for side in ("source", "target", "alignment") if getattr(text, side)]
    paths = [
        check_file(under_root(data.root, getattr(text, side)), f"{key}.{side}") for side in sides
    ]
    return _line_aligned([tuple(paths)], text, key)


def _line_aligned(files: list[tuple[Path, ...]], text: TextConfig, key: str) -> Corpus:
    """Line-aligned files, put one after the other."""
    contents = [[sha256(path) for path in paths] for paths in files]
    identity = digest("files", contents, text.tokenised, text.pairs)
    parts = tuple(LineAligned(paths, text.pairs if len(files) == 1 else None) for paths in files)
    if len(files) > 1 and text.pairs is not None:
        parts = (Slice(parts, 0, text.pairs),)  # type: ignore[assignment]
    return Corpus(key, identity, text.tokenised, parts)


@dataclass(frozen=True)
class _Draws:
    """Draws `start` to `stop` of the built-in grammar."""

    seed: int
    split: str
    edges: tuple[int, ...] | None
    mean_length: float
    max_length: int
    reverse: bool
    start: int
    stop: int

    def __iter__(self) -> Iterator[Row]:
        draw = functools.partial(grammar.draw, self.seed, self.split, mean_length=self.mean_length)
        if self.edges is not None:
            draw = functools.partial(
                grammar.draw_by_length,
                self.seed,
                self.split,
                edges=list(self.edges),
                by_target=self.reverse,
            )
        for number in range(self.start, self.stop):
            pair = draw(k=number, max_length=self.max_length)
            pair = pair.reversed() if self.reverse else pair
            yield Row(" ".join(pair.source), " ".join(pair.target), pair.pharaoh())


def _from_grammar(text: TextConfig, data: DataConfig, key: str, split: str) -> Corpus:
    settings, languages = data.grammar, list(data.languages)
    if sorted(languages) != ["en", "fr"]:
        raise InputError(
            f"data.languages=[{', '.join(languages)}]: the built-in corpus is English and French; "
            "take data=text for others"
        )
    if text.pairs is None:
        raise InputError(f"{key}.pairs: missing; say how many pairs are drawn from the grammar")
    edges = tuple(settings.edges) if text.grammar == "by_length" else None
    reverse = languages == ["fr", "en"]
    parts = tuple(
        _Draws(
            settings.seed,
            split,
            edges,
            settings.mean_length,
            settings.max_length,
            reverse,
            start,
            min(start + PART, text.pairs),
        )
        for start in range(0, text.pairs, PART)
    )
    try:
        next(iter(parts[0]))
    except ValueError as error:
        raise InputError(f"{key}.grammar: {error}") from error
    named = (settings.seed, split, edges, settings.mean_length, settings.max_length, reverse)
    return Corpus(key, digest("grammar", grammar.VERSION, named, text.pairs), True, parts)
