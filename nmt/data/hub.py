"""Remote parallel text: data sets of the Hugging Face hub, and sacrebleu's test sets.

Their libraries fetch both and keep them in caches of their own; a cached set needs no network.
"""

from __future__ import annotations

import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from nmt.config import DataConfig, TextConfig
from nmt.data.corpus import PART, Corpus, LineAligned, Row, Slice, digest
from nmt.utils.errors import InputError, first_line
from nmt.utils.files import sha256


@dataclass(frozen=True)
class _Rows:
    """Rows `start` to `stop` of a `datasets.Dataset`, with a column a language or `translation`."""

    dataset: Any
    languages: tuple[str, str]
    start: int
    stop: int

    def __iter__(self) -> Iterator[Row]:
        nested = "translation" in self.dataset.column_names
        for start in range(self.start, self.stop, 1000):
            columns = self.dataset[start : min(start + 1000, self.stop)]
            if nested:
                pairs = [pair or {} for pair in columns["translation"]]
                columns = {name: [pair.get(name) for pair in pairs] for name in self.languages}
            for row in zip(*(columns[name] for name in self.languages), strict=True):
                yield Row(row[0] or "", row[1] or "", None)


def from_remote(text: TextConfig, data: DataConfig, key: str) -> Corpus:
    """A remote text; if both kinds are named, sacrebleu's, unless it lacks the languages.

    Raises:
        InputError: if it cannot be loaded.
    """
    from sacrebleu.dataset import DATASETS

    pair = "-".join(data.languages)
    lacking = [name for name in text.sacrebleu or () if pair not in _pairs(DATASETS.get(name))]
    if text.sacrebleu and not (text.hub and lacking):
        if lacking:
            raise InputError(
                f"{key}.sacrebleu: {lacking[0]}: no such test set with {pair} (data.languages);"
                " `sacrebleu --list` names them"
            )
        return _from_sacrebleu(text, pair, key)
    return _from_hub(text, data, key)


def _pairs(test_set: Any) -> Any:
    return test_set.langpairs if test_set is not None else ()


def _from_hub(text: TextConfig, data: DataConfig, key: str) -> Corpus:
    """A split of a data set: from a folder of `save_to_disk`, the library's cache, or fetched now."""
    folder = Path(str(text.hub)).expanduser()
    saved = any((folder / name).is_file() for name in ("dataset_dict.json", "state.json"))
    config = _config_of(text, data)
    dataset = _load(text, data, config, key, folder if saved else None)
    source, target = data.languages
    columns = dataset.features
    if "translation" in columns:
        translation = columns["translation"]
        inner = translation if isinstance(translation, dict) else ()
        columns = getattr(translation, "languages", None) or inner
    for language in (source, target):
        if language not in columns:
            raise InputError(
                f"{key}.hub={text.hub}: no column {language!r} (data.languages); there are"
                f" {', '.join(columns)}{_local_hint(text, data)}"
            )
    pairs = min(len(dataset), text.pairs or len(dataset))
    files = sorted({Path(file["filename"]) for file in dataset.cache_files})
    # The content by a name that is the same on another machine: the digests of saved files, or the
    # commit, after which a cache folder is named.
    named: tuple[Any, ...] = ("saved", [sha256(file) for file in files])
    if not saved:
        commits = sorted({file.parent.name for file in files})
        named = ("hub", text.hub, config, text.hub_split, commits)
    identity = digest(*named, list(data.languages), pairs, text.tokenised)
    parts = tuple(
        _Rows(dataset, (source, target), start, min(start + PART, pairs))
        for start in range(0, pairs, PART)
    )
    return Corpus(key, identity, text.tokenised, parts)


def _config_of(text: TextConfig, data: DataConfig) -> str | None:
    """The configuration of the data set; of several, the one named after the two languages."""
    configs = [text.hub_config] if isinstance(text.hub_config, str) else list(text.hub_config or ())
    wanted = sorted(data.languages)
    fitting = [name for name in configs if sorted(name.split("-")) == wanted]
    return next(iter(fitting or configs), None)


def _load(
    text: TextConfig, data: DataConfig, config: str | None, key: str, folder: Path | None
) -> Any:
    """A split of a saved or published data set; raises InputError."""
    import datasets
    import huggingface_hub

    name, _, revision = str(text.hub).partition("@")
    where = f"{key}.hub={text.hub}"
    try:
        if folder is None:
            if not reachable(huggingface_hub.constants.ENDPOINT):  # use what is cached, at once
                huggingface_hub.constants.HF_HUB_OFFLINE = True
                datasets.config.HF_HUB_OFFLINE = True
            return datasets.load_dataset(
                name, config, split=text.hub_split or "train", revision=revision or None
            )
        dataset = datasets.load_from_disk(str(folder))
    except Exception as error:  # whatever the library raises, the key is what can be changed
        raise InputError(
            f"{where}: cannot be loaded ({first_line(error)}){_local_hint(text, data)}"
        ) from error
    if not isinstance(dataset, dict):
        return dataset
    if text.hub_split not in dataset:
        raise InputError(
            f"{key}.hub_split={text.hub_split}: not in {text.hub}, which has {', '.join(dataset)}"
        )
    return dataset[text.hub_split]


def _local_hint(text: TextConfig, data: DataConfig) -> str:
    """What to type where the files are on this machine."""
    if not text.files:
        return ""
    names = " and ".join(f"{text.files[0]}.{language}" for language in data.languages)
    return f"; or type data.root=FOLDER with {names}"


def _from_sacrebleu(text: TextConfig, pair: str, key: str) -> Corpus:
    """Test sets of sacrebleu by name, one after the other."""
    from sacrebleu.dataset import DATASETS

    files = [
        _fetch(DATASETS[name], pair, f"{key}.sacrebleu: {name}") for name in text.sacrebleu or ()
    ]
    contents = [[sha256(path) for path in paths] for paths in files]
    identity = digest("sacrebleu", contents, text.tokenised, text.pairs)
    parts = (Slice(tuple(LineAligned(paths) for paths in files), 0, text.pairs),)
    return Corpus(key, identity, text.tokenised, parts)


def _fetch(test_set: Any, pair: str, where: str) -> tuple[Path, Path]:
    wanted = ["src", next(f for f in test_set.fieldnames(pair) if f.startswith("ref"))]
    source, target = [Path(test_set._get_txt_file_path(pair, field)) for field in wanted]
    if not (source.exists() and target.exists()):
        site = "{0.scheme}://{0.netloc}".format(urlsplit(test_set.data[0]))
        try:
            if not reachable(site):
                raise ConnectionError(f"no connection to {site}")
            test_set.get_files(pair)
        except (Exception, SystemExit) as error:  # sacrebleu ends the process on a bad download
            raise InputError(
                f"{where}: not in sacrebleu's cache, and cannot be fetched ({first_line(error)});"
                " name files instead, with data.root=FOLDER"
            ) from error
    return source, target


def reachable(url: str, seconds: float = 4.0) -> bool:
    """Whether the server of `url` answers within `seconds`, through a proxy if one is set.

    The libraries themselves retry for half a minute without a network.
    """
    answered = threading.Event()

    def ask() -> None:
        try:
            urllib.request.urlopen(urllib.request.Request(url, method="HEAD"), timeout=seconds)
        except urllib.error.HTTPError:
            pass  # an error page is an answer
        except (OSError, ValueError):
            return
        answered.set()

    # A thread, since the time limit of a request does not cover looking up the host's name.
    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    thread.join(seconds)
    return answered.is_set()
