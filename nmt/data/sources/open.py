"""Opens the parallel text that a section of the configuration describes, as a `Corpus`.

The text is in files, in a remote data set, or drawn from the built-in grammar. It is read row by
row and never held in memory as a whole.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from nmt.config import DataConfig, TextConfig
from nmt.data.sources.corpus import PART, Corpus, LineAligned, Row, Slice, digest
from nmt.data.sources.lines import OPENERS, Stamp, check_file
from nmt.data.sources.remote import REMOTE, from_remote
from nmt.utils.errors import InputError
from nmt.utils.files import sha256


def open_corpus(text: TextConfig, data: DataConfig, key: str, split: str) -> Corpus:
    """The corpus that a section of the configuration describes.

    Args:
        text: the section.
        data: the whole description of the text, for languages and grammar.
        key: name of the section, such as `data.test.mine`, for messages.
        split: `train`, `valid` or `test`: the split of the grammar that is drawn from.

    Raises:
        InputError: where the section names no text, two of them, or one that cannot be had.
    """
    if text.skip:
        stop = text.pairs and text.skip + text.pairs
        whole = open_corpus(replace(text, skip=None, pairs=stop), data, key, split)
        identity = digest(whole.identity, "skip", text.skip)
        return replace(whole, identity=identity, parts=(Slice(whole.parts, text.skip, None),))
    ways = [way for way in ("source", "files", *REMOTE, "grammar") if getattr(text, way)]
    if not ways:
        raise InputError(
            f"{key}.source: missing; name line-aligned files ({key}.source, {key}.target)"
            " or choose another data=…"
        )
    remote = [way for way in ways if way in REMOTE]
    apart = [way for way in ways if way not in ("files", *REMOTE)]
    if apart and len(ways) > 1:
        raise InputError(f"{key}: both {ways[0]} and {ways[1]} are given; give only one of them")
    if text.alignment and ways[0] != "source":
        raise InputError(f"{key}.alignment: only for text from files, not with {key}.{ways[0]}")
    if ways[0] == "source":
        return _from_files(text, data, key)
    if ways[0] == "grammar":
        return _from_grammar(text, data, key, split)
    if ways[0] == "files":
        found, missing = local_files(text, data)
        if not missing:
            return _from_line_aligned(found, text, key)
        if data.root is None and remote:
            return from_remote(text, data, key)
        absent = f"{key}.files: {missing} is not in {data.root or 'this folder'} (data.root)"
        if not remote:
            raise InputError(f"{absent}, nor compressed as .gz, .xz or .zst")
        try:
            return from_remote(text, data, key)
        except InputError as refusal:
            raise InputError(f"{absent}, and {refusal}") from refusal
    return from_remote(text, data, key)


def local_files(text: TextConfig, data: DataConfig) -> tuple[list[tuple[Path, ...]], str | None]:
    """The pairs of files that `files` stands for, and the first one that is missing, if any."""
    root = Path(data.root or ".").expanduser()
    pairs: list[tuple[Path, ...]] = []
    for name in text.files or ():
        pair = []
        for language in data.languages:
            file = root / f"{name}.{language}"
            spelt = [file, *(file.with_name(file.name + ending) for ending in OPENERS)]
            path = next((path for path in spelt if path.is_file()), None)
            if path is None:
                return [], file.name
            pair.append(path)
        pairs.append(tuple(pair))
    return pairs, None


def named_files(text: TextConfig, data: DataConfig, key: str) -> dict[str, Path]:
    """The files that a section names, by their keys, such as `data.valid.source`; none of other texts.

    A file that is missing is named all the same; what `files` stands for only where it is there.
    """
    named = {
        f"{key}.{side}": Path(under_root(data.root, value)).expanduser()
        for side in ("source", "target", "alignment")
        if (value := getattr(text, side))
    }
    found, _ = local_files(text, data)
    return named | {f"{key}.files.{path.name}": path for pair in found for path in pair}


def file_digests(data: DataConfig) -> dict[str, dict[str, str]]:
    """SHA-256 of every file of the text, by section and key; raises InputError where one is missing."""
    return {
        section: {key: digest_of(check_file(path, key)) for key, path in files.items()}
        for section, text in text_sections(data).items()
        if (files := named_files(text, data, section))
    }


def text_sections(data: DataConfig) -> dict[str, TextConfig]:
    """Every text that a configuration describes, by the key of its section."""
    tests = {f"data.test.{name}": text for name, text in data.test.items()}
    return {
        "data.train": data.train,
        "data.in_domain": data.in_domain,
        "data.valid": data.valid,
        **tests,
    }


def digest_of(path: Path) -> str:
    """SHA-256 of a file, computed once as long as nothing is written to it."""
    return _digest_of(path.resolve(), Stamp.of(path))


@functools.lru_cache(maxsize=256)
def _digest_of(path: Path, stamp: Stamp) -> str:
    return sha256(path)


def _from_line_aligned(pairs: list[tuple[Path, ...]], text: TextConfig, key: str) -> Corpus:
    """Pairs of files put after one another."""
    checked = [tuple(check_file(path, key) for path in pair) for pair in pairs]
    if len(checked) == 1:  # the same text as the two files named one by one
        return _line_aligned(checked[0], text, key)
    parts = tuple(LineAligned(pair, None) for pair in checked)
    contents = [[digest_of(path) for path in pair] for pair in checked]
    identity = digest("joined files", contents, text.tokenised, text.pairs)
    limited = parts if text.pairs is None else (Slice(parts, 0, text.pairs),)
    return Corpus(key, identity, text.tokenised, limited)


def _from_files(text: TextConfig, data: DataConfig, key: str) -> Corpus:
    for side in ("source", "target"):
        if not getattr(text, side):
            raise InputError(
                f"{key}.{side}: missing; name the file of the other side's translations"
            )
    if text.alignment and not text.tokenised:
        raise InputError(
            f"{key}.alignment numbers the words of tokenised files;"
            f" give such files and {key}.tokenised=true"
        )
    if text.alignment and key in ("data.train", "data.in_domain"):
        raise InputError(f"{key}.alignment: gold alignments are for development and test sets only")
    named = [
        (side, value)
        for side in ("source", "target", "alignment")
        if (value := getattr(text, side))
    ]
    paths = tuple(check_file(under_root(data.root, path), f"{key}.{side}") for side, path in named)
    return _line_aligned(paths, text, key)


def _line_aligned(paths: tuple[Path, ...], text: TextConfig, key: str) -> Corpus:
    part = LineAligned(paths, text.pairs)  # before the digests: it tells when a file changes
    identity = digest("files", [digest_of(path) for path in paths], text.tokenised, text.pairs)
    return Corpus(key, identity, text.tokenised, (part,))


def under_root(root: str | None, path: str) -> str:
    """A file's name as it is opened: below the root unless it is absolute."""
    if root is None or Path(path).expanduser().is_absolute():
        return path
    return str(Path(root) / path)


@dataclass(frozen=True)
class _Draws:
    seed: int
    split: str
    edges: tuple[int, ...] | None
    mean_length: float
    max_length: int
    reverse: bool
    start: int
    stop: int

    def __iter__(self) -> Iterator[Row]:
        from nmt import grammar

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
            try:
                pair = draw(k=number, max_length=self.max_length)
            except ValueError as error:
                raise InputError(f"data.grammar: {error}") from error
            pair = pair.reversed() if self.reverse else pair
            yield Row(" ".join(pair.source), " ".join(pair.target), pair.pharaoh())


def _from_grammar(text: TextConfig, data: DataConfig, key: str, split: str) -> Corpus:
    from nmt.grammar import VERSION

    grammar, languages = data.grammar, list(data.languages)
    if sorted(languages) != ["en", "fr"]:
        raise InputError(
            f"data.languages=[{', '.join(languages)}]: the built-in corpus is English and French; "
            "take data=text for others"
        )
    if text.pairs is None:
        raise InputError(f"{key}.pairs: missing; say how many pairs are drawn from the grammar")
    edges = tuple(grammar.edges) if text.grammar == "by_length" else None
    settings = (grammar.seed, split, edges, grammar.mean_length, grammar.max_length)
    reverse = languages == ["fr", "en"]
    identity = digest("grammar", VERSION, settings, text.pairs, *(["reversed"] if reverse else []))
    parts = tuple(
        _Draws(*settings, reverse, start, min(start + PART, text.pairs))
        for start in range(0, text.pairs, PART)
    )
    try:
        next(iter(parts[0]))
    except ValueError as error:
        raise InputError(f"{key}.grammar: {error}") from error
    return Corpus(key, identity, True, parts)
