"""Opens the parallel text that a section of the configuration describes, as a `Corpus`.

The text is in line-aligned files, in sacrebleu's test sets, in a data set of the Hugging Face hub, or
drawn from the built-in grammar. It is read row by row and never held in memory as a whole.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import json
import logging
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from nmt import grammar
from nmt.config import DataConfig, TextConfig
from nmt.data.lines import ENDINGS, check_file, read_parallel
from nmt.utils.errors import InputError, first_line
from nmt.utils.files import sha256

if TYPE_CHECKING:
    import datasets

log = logging.getLogger(__name__)

# Last length of each equally full bucket of `grammar: by_length`; another list is another corpus.
GRAMMAR_EDGES = (10, 20, 30, 40, 50, 60)
PART = 5_000  # rows of a part, if the parts of a corpus can be read by several processes


class Row(NamedTuple):
    """One pair as its source has it: raw text, or tokens joined by spaces if it is tokenised."""

    source: str
    target: str
    alignment: str | None


@dataclass(frozen=True)
class Corpus:
    """A parallel text that can be read from start to end, more than once.

    Attributes:
        key: section of the configuration that describes it, such as `data.train`.
        identity: digest of everything that its rows depend on.
        tokenised: whether the rows hold tokens, not raw text.
        parts: functions that return the rows of one part each; each can be read by another process.
        first: number of the first row in its source, from 0.
    """

    key: str
    identity: str
    tokenised: bool
    parts: tuple[Callable[[], Iterator[Row]], ...]
    first: int = 0

    def __iter__(self) -> Iterator[Row]:
        for part in self.parts:
            yield from part()


def digest(*values: Any) -> str:
    """A short digest of plain values."""
    content = json.dumps(values, ensure_ascii=False, sort_keys=True)
    return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def text_sections(data: DataConfig) -> dict[str, TextConfig]:
    """Every text that a configuration describes, by the key of its section."""
    tests = {f"data.test.{name}": text for name, text in data.test.items()}
    return {"data.train": data.train, "data.valid": data.valid, **tests}


def open_corpus(text: TextConfig, data: DataConfig, key: str, split: str) -> Corpus:
    """The corpus that a section of the configuration describes.

    Args:
        text: the section.
        data: the whole section `data`, for languages and folder.
        key: name of the section, such as `data.test.mine`, for messages.
        split: `train`, `valid` or `test`: the split of the grammar that is drawn from.

    Raises:
        InputError: if the section names no text, two of them, or one that cannot be opened.
    """
    if text.alignment and not text.tokenised:
        raise InputError(f"{key}.alignment: its links number words, type {key}.tokenised=true")
    if text.source and text.grammar:
        raise InputError(f"{key}: source and grammar exclude each other; type data=text, too")
    if text.grammar:
        return _open_grammar(text, data, key, split)
    if text.source or text.target:
        return _open_files([_named_files(text, data, key)], text, key)
    remote = text.hub or text.sacrebleu
    if text.files:
        pairs, missing = _local_files(text, data)
        if not missing:
            return _open_files(pairs, text, key)
        if data.root is not None or not remote:
            raise InputError(
                f"{key}.files: {missing} is not in {data.root or Path.cwd()} (data.root),"
                f" nor with {', '.join(ENDINGS)}"
            )
    if not remote:
        raise InputError(
            f"{key}.source: missing; type {key}.source=FILE {key}.target=FILE, or choose another"
            " data=…"
        )
    if text.sacrebleu and not (text.hub and _lacking(text, data)):
        return _open_files(
            [_fetch_test_set(name, text, data, key) for name in text.sacrebleu], text, key
        )
    return _open_hub(text, data, key)


# Files


def leave_out_absent(data: DataConfig) -> None:
    """Removes the optional test sets whose files are missing, with a log line for each."""
    for name, text in list(data.test.items()):
        _, missing = _local_files(text, data)
        for path in (text.source, text.target, text.alignment):
            if path and not _under_root(data, path).is_file():
                missing = missing or path
        if text.optional and missing:
            del data.test[name]
            _log_left_out(name, missing, data.root or str(Path.cwd()))


@functools.cache
def _log_left_out(name: str, file: str, folder: str) -> None:
    log.info("data.test.%s is left out: %s is not in %s (data.root)", name, file, folder)


def _under_root(data: DataConfig, path: str) -> Path:
    return Path(data.root or "").expanduser() / Path(path).expanduser()


def _named_files(text: TextConfig, data: DataConfig, key: str) -> list[Path]:
    """The files that `source`, `target` and `alignment` name."""
    for side in ("source", "target"):
        if not getattr(text, side):
            raise InputError(f"{key}.{side}: missing; type {key}.{side}=FILE")
    sides = [side for side in ("source", "target", "alignment") if getattr(text, side)]
    return [check_file(_under_root(data, getattr(text, side)), f"{key}.{side}") for side in sides]


def _local_files(text: TextConfig, data: DataConfig) -> tuple[list[list[Path]], str | None]:
    """The pairs of files that `files` stands for, and the name of the first missing one, if any."""
    pairs = []
    for name in text.files or ():
        pair = []
        for language in data.languages:
            file = _under_root(data, f"{name}.{language}")
            spellings = [file, *(file.with_name(file.name + ending) for ending in ENDINGS)]
            path = next((path for path in spellings if path.is_file()), None)
            if path is None:
                return [], file.name
            pair.append(path)
        pairs.append(pair)
    return pairs, None


def _open_files(files: Sequence[Sequence[Path]], text: TextConfig, key: str) -> Corpus:
    """Line-aligned files, read one after the other; each item is source, target and alignment."""
    contents = [[sha256(path) for path in paths] for paths in files]
    identity = digest("files", contents, text.tokenised, text.skip, text.pairs)
    start, stop = _range(text)
    part = functools.partial(_read_files, files, start, stop)
    return Corpus(key, identity, text.tokenised, (part,), start)


def _range(text: TextConfig) -> tuple[int, int | None]:
    """First row of a text, and the row behind the last one."""
    start = text.skip or 0
    return start, start + text.pairs if text.pairs else None


def _read_files(files: Sequence[Sequence[Path]], start: int, stop: int | None) -> Iterator[Row]:
    # Lines behind the last pair are not read, if there is one file a side.
    lines = itertools.chain.from_iterable(
        read_parallel(paths, stop if len(files) == 1 else None) for paths in files
    )
    for source, target, *alignment in itertools.islice(lines, start, stop):
        yield Row(source, target, alignment[0] if alignment else None)


# The built-in corpus


def _open_grammar(text: TextConfig, data: DataConfig, key: str, split: str) -> Corpus:
    if sorted(data.languages) != ["en", "fr"]:
        raise InputError(
            f"data.languages=[{', '.join(data.languages)}]: the built-in corpus is English and "
            "French; type data=text for your own files"
        )
    start, stop = _range(text)
    if stop is None:
        raise InputError(f"{key}.pairs: missing; the number of pairs to draw from the grammar")
    by_length, reverse = text.grammar == "by_length", data.languages[0] == "fr"
    identity = digest("grammar", grammar.VERSION, split, by_length, reverse, start, stop)
    parts = tuple(
        functools.partial(_draw, split, range(first, min(first + PART, stop)), by_length, reverse)
        for first in range(start, stop, PART)
    )
    return Corpus(key, identity, True, parts, start)


def _draw(
    split: str, numbers: range, by_length: bool = False, reverse: bool = False, seed: int = 1
) -> Iterator[Row]:
    """Draws of the grammar by number; `by_length` fills each bucket of length equally."""
    for number in numbers:
        if by_length:
            pair = grammar.draw_by_length(
                seed, split, number, edges=GRAMMAR_EDGES, by_target=reverse
            )
        else:
            pair = grammar.draw(seed, split, number)
        pair = pair.reversed() if reverse else pair
        yield Row(" ".join(pair.source), " ".join(pair.target), pair.pharaoh())


def built_in_corpus(
    train_pairs: int = 60_000,
    valid_pairs: int = 1_000,
    test_pairs: int = 1_000,
    by_length_pairs: int = 1_400,
    seed: int = 1,
) -> datasets.DatasetDict:
    """The pairs of `data=grammar`, with their gold links (docs/grammar.md), for other programs.

    Args:
        train_pairs, valid_pairs, test_pairs, by_length_pairs: pairs of each split.
        seed: another seed is another sample of the same language.

    Returns:
        The splits `train`, `valid`, `test` and `by_length`, with the columns `translation` (`en`
        and `fr`, tokens separated by spaces) and `alignment` (links i-j and ipj in Pharaoh format).
    """
    import datasets

    features = datasets.Features(
        {
            "translation": datasets.Translation(languages=["en", "fr"]),
            "alignment": datasets.Value("string"),
        }
    )
    drawn = {
        "train": _draw("train", range(train_pairs), seed=seed),
        "valid": _draw("valid", range(valid_pairs), seed=seed),
        "test": _draw("test", range(test_pairs), seed=seed),
        # The first 1,400 draws chose settings of the laptop regime (conf/data/grammar.yaml).
        "by_length": _draw("test", range(1_400, 1_400 + by_length_pairs), True, seed=seed),
    }
    splits = {
        name: datasets.Dataset.from_list(
            [
                {"translation": {"en": row.source, "fr": row.target}, "alignment": row.alignment}
                for row in rows
            ],
            features=features,
        )
        for name, rows in drawn.items()
    }
    return datasets.DatasetDict(splits)


# Published text. The libraries fetch it and keep it in caches of their own.


def _lacking(text: TextConfig, data: DataConfig) -> list[str]:
    """The test sets of sacrebleu that do not have the languages."""
    from sacrebleu.dataset import DATASETS

    pair = "-".join(data.languages)
    return [
        name
        for name in text.sacrebleu or ()
        if name not in DATASETS or pair not in DATASETS[name].langpairs
    ]


def _fetch_test_set(name: str, text: TextConfig, data: DataConfig, key: str) -> list[Path]:
    """Source and reference of a test set of sacrebleu."""
    from sacrebleu.dataset import DATASETS

    pair = "-".join(data.languages)
    if name in _lacking(text, data):
        raise InputError(
            f"{key}.sacrebleu: {name}: no such test set with {pair} (data.languages);"
            " `sacrebleu --list` names them"
        )
    test_set = DATASETS[name]
    wanted = ["src", next(f for f in test_set.fieldnames(pair) if f.startswith("ref"))]
    files = [Path(test_set._get_txt_file_path(pair, field)) for field in wanted]
    if not all(path.exists() for path in files):
        try:
            test_set.get_files(pair)
        except (Exception, SystemExit) as error:  # sacrebleu ends the process on a bad download
            raise InputError(
                f"{key}.sacrebleu: {name}: cannot be fetched ({first_line(error)})"
                f"{_local_hint(text, data)}"
            ) from error
    return files


def _local_hint(text: TextConfig, data: DataConfig) -> str:
    """What to type if the files are on this machine."""
    names = " and ".join(f"{text.files[0]}.{name}" for name in data.languages) if text.files else ""
    return f"; or type data.root=FOLDER with {names}" if names else ""


def _open_hub(text: TextConfig, data: DataConfig, key: str) -> Corpus:
    """A split of a data set: from a folder of `save_to_disk`, the library's cache, or fetched now."""
    arguments = dict(text.hub or {})
    named = arguments.get("name")
    if isinstance(named, Sequence) and not isinstance(named, str):
        fitting = [name for name in named if sorted(name.split("-")) == sorted(data.languages)]
        arguments["name"] = (fitting or list(named))[0]
    try:
        dataset = _load_dataset(**arguments)
        columns = dataset.features
        if "translation" in columns:
            translation = columns["translation"]
            columns = getattr(translation, "languages", None) or translation
        for language in data.languages:
            if language not in columns:
                raise InputError(
                    f"no column {language!r} (data.languages); it has {', '.join(columns)}"
                )
    except Exception as error:  # whatever the library raises, the key is what can be changed
        raise InputError(
            f"{key}.hub={arguments}: cannot be loaded ({first_line(error)})"
            f"{_local_hint(text, data)}"
        ) from error
    start, stop = _range(text)
    rows = range(len(dataset))[start:stop]
    # The name of a cached folder is the commit, which is the same on another machine.
    files = sorted(Path(file["filename"]) for file in dataset.cache_files)
    version: Any = [arguments, [file.parent.name for file in files]]
    if _is_saved(Path(arguments["path"]).expanduser()):
        version = [sha256(file) for file in files]
    identity = digest("hub", version, list(data.languages), start, stop, text.tokenised)
    parts = tuple(
        functools.partial(_read_dataset, dataset, data.languages, rows[first : first + PART])
        for first in range(0, len(rows), PART)
    )
    return Corpus(key, identity, text.tokenised, parts, start)


def _load_dataset(path: str, split: str | None = None, **options: Any) -> datasets.Dataset:
    import datasets
    import huggingface_hub

    if _is_saved(folder := Path(path).expanduser()):
        saved = datasets.load_from_disk(str(folder))
        return saved[split] if isinstance(saved, dict) else saved
    # Without a network the library tries for half a minute before it uses its cache.
    if not _is_reachable(huggingface_hub.constants.ENDPOINT):
        huggingface_hub.constants.HF_HUB_OFFLINE = datasets.config.HF_HUB_OFFLINE = True
    return datasets.load_dataset(path, split=split or "train", **options)


def _is_saved(folder: Path) -> bool:
    """Whether `save_to_disk` wrote a folder."""
    return any((folder / name).is_file() for name in ("dataset_dict.json", "state.json"))


@functools.cache
def _is_reachable(url: str) -> bool:
    """Whether the server answers within four seconds, through a proxy if one is set."""
    try:
        urllib.request.urlopen(urllib.request.Request(url, method="HEAD"), timeout=4).close()
    except urllib.error.HTTPError:
        return True
    except OSError:
        return False
    return True


def _read_dataset(dataset: Any, languages: Sequence[str], rows: range) -> Iterator[Row]:
    """Rows of a data set, with one column for each language or one column `translation`."""
    for start in range(0, len(rows), 1000):
        columns = dataset[rows[start : start + 1000]]
        if "translation" in columns:
            pairs = [pair or {} for pair in columns["translation"]]
            columns = {name: [pair.get(name) for pair in pairs] for name in languages}
        for source, target in zip(*(columns[name] for name in languages), strict=True):
            yield Row(source or "", target or "", None)
