"""Finds the parallel text that a section of the configuration describes, and reads it as raw rows.

The text is in line-aligned files, in sacrebleu's test sets, in a data set of the Hugging Face hub, or
drawn from the built-in grammar. Its rows lie in Arrow files and are never all held in memory.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import json
import logging
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import datasets
import pyarrow as pa

from nmt import grammar
from nmt.config import DataConfig, TextConfig
from nmt.data.cache import map_rows
from nmt.data.lines import ENDINGS, check_file, read_parallel
from nmt.utils.errors import InputError, first_line
from nmt.utils.files import sha256

log = logging.getLogger(__name__)

# Last length of each equally full bucket of `grammar: by_length`; another list is another corpus.
GRAMMAR_EDGES = (10, 20, 30, 40, 50, 60)
SIDES = ("source", "target")
RAW = datasets.Features({name: datasets.Value("string") for name in (*SIDES, "alignment")})
CHUNK = 10_000  # lines of a file that are written at a time


class Source(NamedTuple):
    """A parallel text that has not been read yet.

    Attributes:
        identity: digest of everything that its rows depend on.
        read: given a folder for Arrow files, returns the rows: `source` and `target`, raw text or
            tokens separated by spaces, and `alignment` if there is one; any can be null.
    """

    identity: str
    read: Callable[[Path], datasets.Dataset]


def digest(*values: Any) -> str:
    """A short digest of plain values."""
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:16]


def open_source(text: TextConfig, data: DataConfig, key: str) -> Source:
    """The text that a section of the configuration describes.

    Args:
        text: the section.
        data: the whole section `data`, for languages and folder.
        key: name of the section, such as `data.test.mine`. It chooses the split of the grammar.

    Raises:
        InputError: if the section names no text, two of them, or one that cannot be opened.
    """
    if text.alignment and not text.tokenised:
        raise InputError(f"{key}.alignment: its links number words, type {key}.tokenised=true")
    if text.source and text.grammar:
        raise InputError(f"{key}: source and grammar exclude each other; type data=text, too")
    if text.grammar:
        return _open_grammar(text, data, key)
    files, remote = _local_files(text, data), text.hub or text.sacrebleu
    if text.source and text.target:
        for side, path in zip(RAW, files[0], strict=False):
            check_file(path, f"{key}.{side}")
    missing = _missing(files)
    if files and not missing:
        return _open_files(files, text)
    if missing and (data.root is not None or not remote):
        raise InputError(
            f"{key}.files: {missing.name} is not in {missing.parent.absolute()} (data.root),"
            f" nor with {', '.join(ENDINGS)}"
        )
    if not remote:
        side = "target" if text.source else "source"
        raise InputError(
            f"{key}.{side}: missing; type {key}.source=FILE {key}.target=FILE, or choose another"
            " data=…"
        )
    return (_open_sacrebleu if text.sacrebleu else _open_hub)(text, data, key)


def _range(text: TextConfig) -> tuple[int, int | None]:
    """First row of a text, and the row behind the last one."""
    start = text.skip or 0
    return start, start + text.pairs if text.pairs else None


# Files


def leave_out_absent(data: DataConfig) -> None:
    """Removes the optional test sets whose files are missing, with a log line for each."""
    for name, text in list(data.test.items()):
        missing = _missing(_local_files(text, data))
        if text.optional and missing:
            del data.test[name]
            log.info("data.test.%s is left out: no file %s (data.root)", name, missing)


def _local_files(text: TextConfig, data: DataConfig) -> list[list[Path]]:
    """Source, target and alignment of each pair of files that a section names, found or not."""
    root = Path(data.root or "").expanduser()
    if text.source and text.target:
        names = [text.source, text.target, *([text.alignment] if text.alignment else [])]
        return [[root / Path(name).expanduser() for name in names]]
    return [
        [_spelling(root / Path(f"{name}.{language}").expanduser()) for language in data.languages]
        for name in text.files or ()
    ]


def _spelling(file: Path) -> Path:
    """The file, or the compressed one that there is in its place."""
    compressed = (file.with_name(file.name + ending) for ending in ENDINGS)
    return next((path for path in (file, *compressed) if path.is_file()), file)


def _missing(files: Iterable[Iterable[Path]]) -> Path | None:
    paths = itertools.chain.from_iterable(files)
    return next((path for path in paths if not path.is_file()), None)


def _open_files(files: Sequence[Sequence[Path]], text: TextConfig) -> Source:
    """Line-aligned files, read one after the other; each item is source, target and alignment."""
    contents = [[sha256(path) for path in paths] for paths in files]
    identity = digest("files", contents, text.tokenised, text.skip, text.pairs)
    return Source(identity, functools.partial(_read_files, files, *_range(text)))


def _read_files(
    files: Sequence[Sequence[Path]], start: int, stop: int | None, folder: Path
) -> datasets.Dataset:
    lines = itertools.chain.from_iterable(map(read_parallel, files))
    rows = itertools.islice(((*line, None)[: len(RAW)] for line in lines), start, stop)
    schema, file = RAW.arrow_schema, str(folder / "lines.arrow")
    with pa.OSFile(file, "wb") as stream, pa.ipc.new_stream(stream, schema) as writer:
        while chunk := list(itertools.islice(rows, CHUNK)):
            columns = [pa.array(column, pa.string()) for column in zip(*chunk, strict=True)]
            writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=schema))
    return datasets.Dataset.from_file(file)


# The built-in corpus


def _open_grammar(text: TextConfig, data: DataConfig, key: str) -> Source:
    if sorted(data.languages) != ["en", "fr"]:
        raise InputError(
            f"data.languages=[{', '.join(data.languages)}]: the built-in corpus is English and "
            "French; type data=text for your own files"
        )
    start, stop = _range(text)
    if stop is None:
        raise InputError(f"{key}.pairs: missing; the number of pairs to draw from the grammar")
    split = {"data.train": "train", "data.valid": "valid"}.get(key, "test")
    by_length, reverse = text.grammar == "by_length", data.languages[0] == "fr"
    identity = digest("grammar", grammar.VERSION, split, by_length, reverse, start, stop)

    def read(folder: Path) -> datasets.Dataset:
        numbers = datasets.Dataset.from_dict({"number": range(start, stop)})
        options = {"split": split, "by_length": by_length, "reverse": reverse}
        file = folder / "drawn.arrow"
        return map_rows(numbers, _draw, RAW, file, identity, fn_kwargs=options)

    return Source(identity, read)


def _draw(
    batch: Mapping[str, Iterable[int]],
    split: str,
    by_length: bool = False,
    reverse: bool = False,
    seed: int = 1,
) -> dict[str, list[str]]:
    """Draws of the grammar by number; `by_length` fills each bucket of length equally."""
    pairs = [
        grammar.draw_by_length(seed, split, number, edges=GRAMMAR_EDGES, by_target=reverse)
        if by_length
        else grammar.draw(seed, split, number)
        for number in batch["number"]
    ]
    pairs = [pair.reversed() for pair in pairs] if reverse else pairs
    return {
        "source": [" ".join(pair.source) for pair in pairs],
        "target": [" ".join(pair.target) for pair in pairs],
        "alignment": [pair.pharaoh() for pair in pairs],
    }


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
    numbers = {
        "train": ("train", range(train_pairs)),
        "valid": ("valid", range(valid_pairs)),
        "test": ("test", range(test_pairs)),
        # The first 1,400 draws chose settings of the laptop regime (conf/data/grammar.yaml).
        "by_length": ("test", range(1_400, 1_400 + by_length_pairs)),
    }
    corpus = datasets.DatasetDict()
    for name, (split, chosen) in numbers.items():
        drawn = _draw({"number": chosen}, split, name == "by_length", seed=seed)
        sides = zip(drawn["source"], drawn["target"], strict=True)
        translation = [{"en": english, "fr": french} for english, french in sides]
        corpus[name] = datasets.Dataset.from_dict(
            {"translation": translation, "alignment": drawn["alignment"]}
        )
    return corpus


# Published text. The libraries fetch it and keep it in caches of their own.


def _open_sacrebleu(text: TextConfig, data: DataConfig, key: str) -> Source:
    """Test sets of sacrebleu, one after the other; the hub if one of them lacks the languages."""
    from sacrebleu.dataset import DATASETS

    pair, files = "-".join(data.languages), []
    for name in text.sacrebleu or ():
        if name not in DATASETS or pair not in DATASETS[name].langpairs:
            if text.hub:
                return _open_hub(text, data, key)
            raise InputError(
                f"{key}.sacrebleu: {name}: no such test set with {pair} (data.languages);"
                " `sacrebleu --list` names them"
            )
        try:
            test_set = DATASETS[name]
            paths = test_set.get_source_file(pair), test_set.get_reference_files(pair)[0]
            files.append([Path(path) for path in paths])
        except (Exception, SystemExit) as error:  # sacrebleu ends the process on a bad download
            raise InputError(
                f"{key}.sacrebleu: {name}: cannot be fetched ({first_line(error)})"
                f"{_local_hint(text, data)}"
            ) from error
    return _open_files(files, text)


def _local_hint(text: TextConfig, data: DataConfig) -> str:
    """What to type if the files are on this machine."""
    names = " and ".join(f"{text.files[0]}.{name}" for name in data.languages) if text.files else ""
    return f"; or type data.root=FOLDER with {names}" if names else ""


def _open_hub(text: TextConfig, data: DataConfig, key: str) -> Source:
    """A split of a data set: from a folder of `save_to_disk`, the library's cache, or fetched now.

    It has one column for each language, or one column `translation` with an entry for each.
    """
    arguments = dict(text.hub or {})
    named = arguments.get("name")
    if isinstance(named, Sequence) and not isinstance(named, str):
        fitting = [name for name in named if sorted(name.split("-")) == sorted(data.languages)]
        arguments["name"] = (fitting or list(named))[0]
    try:
        rows, version = _load_dataset(**arguments)
        rows = rows.flatten()
        names = {name.removeprefix("translation."): name for name in rows.column_names}
        for language in data.languages:
            if language not in names:
                raise InputError(
                    f"no column {language!r} (data.languages); it has {', '.join(names)}"
                )
    except Exception as error:  # whatever the library raises, the key is what can be changed
        raise InputError(
            f"{key}.hub={arguments}: cannot be loaded ({first_line(error)})"
            f"{_local_hint(text, data)}"
        ) from error
    start, stop = _range(text)
    identity = digest("hub", version, list(data.languages), start, stop, text.tokenised)
    columns = {names[name]: side for name, side in zip(data.languages, SIDES, strict=True)}
    chosen = rows.select(range(len(rows))[start:stop]).select_columns(list(columns))
    return Source(identity, lambda folder: chosen.rename_columns(columns))


def _load_dataset(
    path: str, split: str = "train", **options: Any
) -> tuple[datasets.Dataset, list[Any]]:
    """A split of a data set, and what its content is known by: its commit, or digests of files."""
    folder = Path(path).expanduser()
    if any((folder / name).is_file() for name in ("dataset_dict.json", "state.json")):
        saved = datasets.load_from_disk(str(folder))
        rows = saved[split] if isinstance(saved, dict) else saved
        return rows, sorted(sha256(Path(file["filename"])) for file in rows.cache_files)
    _use_cache_without_network()
    rows = datasets.load_dataset(path, split=split, **options)
    # The name of a cached folder is the commit, which is the same on another machine.
    commits = sorted(Path(file["filename"]).parent.name for file in rows.cache_files)
    return rows, [path, split, options, commits]


@functools.cache
def _use_cache_without_network() -> None:
    """Without a network the library would try for half a minute before it uses its cache."""
    import huggingface_hub

    url = huggingface_hub.constants.ENDPOINT
    try:
        urllib.request.urlopen(urllib.request.Request(url, method="HEAD"), timeout=4).close()
    except urllib.error.HTTPError:
        pass  # it answers
    except OSError:
        huggingface_hub.constants.HF_HUB_OFFLINE = datasets.config.HF_HUB_OFFLINE = True
