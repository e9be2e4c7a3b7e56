"""Remote parallel text: data sets of the Hugging Face hub, and sacrebleu's test sets.

Both are fetched by their libraries and kept in the libraries' own caches; what has been fetched
once is used without a network.
"""

from __future__ import annotations

import contextlib
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from nmt.config import DataConfig, TextConfig
from nmt.data.sources.corpus import PART, Corpus, LineAligned, Row, Slice, digest
from nmt.utils.errors import InputError, first_line
from nmt.utils.files import sha256


@dataclass(frozen=True)
class _Hub:
    name: str  # for messages
    dataset: Any
    languages: tuple[str, str]
    start: int
    stop: int

    def __iter__(self) -> Iterator[Row]:
        source, target = self.languages
        nested = "translation" in self.dataset.column_names
        for start in range(self.start, self.stop, 1000):
            rows = self.dataset[start : min(start + 1000, self.stop)]
            pairs = [pair or {} for pair in rows["translation"]] if nested else None
            sources = [pair.get(source) for pair in pairs] if pairs else rows[source]
            targets = [pair.get(target) for pair in pairs] if pairs else rows[target]
            for number, row in enumerate(zip(sources, targets, strict=True), start):
                for language, text in zip(self.languages, row, strict=True):
                    if not (text is None or isinstance(text, str)):
                        raise InputError(f"{self.name}: row {number}: {language} is not text")
                yield Row(row[0] or "", row[1] or "", None)


REMOTE = ("sacrebleu", "hub")  # the keys of a section that name a remote text


def from_remote(text: TextConfig, data: DataConfig, key: str) -> Corpus:
    """A remote text; where both name one, sacrebleu's, unless it lacks the languages.

    Raises:
        InputError: where it cannot be had.
    """
    if text.sacrebleu and not (text.hub and _lacking(text, data)):
        return from_sacrebleu(text, data, key)
    return from_hub(text, data, key)


def _lacking(text: TextConfig, data: DataConfig) -> list[str]:
    """Those of sacrebleu's test sets that do not have the languages."""
    from sacrebleu.dataset import DATASETS

    pair = "-".join(data.languages)
    return [
        name
        for name in text.sacrebleu or ()
        if name not in DATASETS or pair not in DATASETS[name].langpairs
    ]


def hub_config(text: TextConfig, data: DataConfig, key: str) -> str | None:
    """The configuration of the hub's data set that has the languages.

    Raises:
        InputError: where `hub_pairs` says that there is none.
    """
    if text.hub_pairs is None:
        return text.hub_config
    wanted = sorted(data.languages)
    for pair in text.hub_pairs:
        if sorted(pair.split("-")) == wanted:
            return pair if text.hub_config == "pair" else text.hub_config
    local = ""
    if text.files:
        names = " and ".join(f"{text.files[0]}.{language}" for language in data.languages)
        local = f", or data.root=FOLDER with {names}"
    raise InputError(
        f"{key}.hub={text.hub}: has no {'-'.join(data.languages)} (data.languages); it has"
        f" {', '.join(text.hub_pairs)}, in either direction{local}"
    )


def from_hub(text: TextConfig, data: DataConfig, key: str) -> Corpus:
    """A split of a data set: from a folder of `save_to_disk`, the library's cache, or fetched now.

    Raises:
        InputError: where it cannot be had, or has other languages.
    """
    saved = _is_saved(text)
    dataset = _saved(text, key) if saved else _published(text, data, key)
    source, target = data.languages
    columns = dataset.features
    if "translation" in columns:
        translation = columns["translation"]
        inner = translation if isinstance(translation, dict) else ()
        columns = getattr(translation, "languages", None) or inner
    for language in (source, target):
        if language not in columns:
            raise InputError(
                f"{key}.hub={text.hub}: no column {language!r} (data.languages);"
                f" there are {', '.join(columns)}"
            )
    pairs = min(len(dataset), text.pairs or len(dataset))
    files = sorted({Path(file["filename"]) for file in dataset.cache_files})
    # What names the content, and is the same on another machine: of a saved set the digests of its
    # files, else the commit, after which a cache folder is named.
    named: tuple[Any, ...] = ("saved", [sha256(file) for file in files])
    if not saved:
        commits = sorted({file.parent.name for file in files})
        named = ("hub", text.hub, hub_config(text, data, key), text.hub_split, commits)
    identity = digest(*named, list(data.languages), pairs, text.tokenised)
    parts = tuple(
        _Hub(f"{key}.hub={text.hub}", dataset, (source, target), start, min(start + PART, pairs))
        for start in range(0, pairs, PART)
    )
    return Corpus(key, identity, text.tokenised, parts)


def _is_saved(text: TextConfig) -> bool:
    """Whether `hub` is a folder that `Dataset.save_to_disk` or `DatasetDict.save_to_disk` wrote."""
    folder = Path(text.hub or "").expanduser()
    return any((folder / name).is_file() for name in ("dataset_dict.json", "state.json"))


def _saved(text: TextConfig, key: str) -> Any:
    """The data set of a folder that `save_to_disk` wrote; raises InputError."""
    import datasets

    folder = Path(text.hub or "").expanduser()
    if text.hub_revision is not None:
        raise InputError(
            f"{key}.hub_revision={text.hub_revision}: {text.hub} is a folder of this machine, which"
            " has no revisions; leave it out"
        )
    for path in folder.rglob("*"):  # a pipe would be waited for, a device read for ever
        if not (path.is_file() or path.is_dir()):
            raise InputError(f"{key}.hub={text.hub}: {path} is not a file")
    try:
        found = datasets.load_from_disk(str(folder))
    except Exception as error:  # whatever the library raises, the key is what can be changed
        raise InputError(f"{key}.hub={text.hub}: cannot be loaded ({first_line(error)})") from error
    splits = list(found) if isinstance(found, dict) else []
    if splits and text.hub_split not in splits:
        raise InputError(
            f"{key}.hub_split={text.hub_split}: not in {text.hub}, which has {', '.join(splits)}"
        )
    if not splits and text.hub_split is not None:
        raise InputError(
            f"{key}.hub_split={text.hub_split}: {text.hub} holds one data set without splits;"
            " leave it out"
        )
    return found[text.hub_split] if splits else found


def _published(text: TextConfig, data: DataConfig, key: str) -> Any:
    """A split of a data set of the hub; raises InputError."""
    import datasets
    import huggingface_hub

    if not text.hub_split:
        raise InputError(f"{key}.hub_split: missing; name a split of {text.hub}, such as train")
    config = hub_config(text, data, key)
    revision = {} if text.hub_revision is None else {"revision": text.hub_revision}
    modules: tuple[Any, ...] = (huggingface_hub.constants, datasets.config)
    online = reachable(huggingface_hub.constants.ENDPOINT)
    with contextlib.ExitStack() as stack:
        if not online:  # what has been fetched before can still be used
            for module in modules:
                stack.callback(setattr, module, "HF_HUB_OFFLINE", module.HF_HUB_OFFLINE)
                module.HF_HUB_OFFLINE = True
        try:
            return datasets.load_dataset(text.hub, config, split=text.hub_split, **revision)
        except Exception as error:  # whatever the library raises, the key is what can be changed
            name = f"{key}.hub={text.hub}"
            if not online:
                raise InputError(
                    f"{name}: no connection to {huggingface_hub.constants.ENDPOINT}, and the data"
                    f" set is not in the local cache ({datasets.config.HF_DATASETS_CACHE}); run where"
                    " there is a network, set HF_HOME to a copy of such a cache, or use data=grammar"
                ) from error
            raise InputError(f"{name}: cannot be loaded ({first_line(error)})") from error


def from_sacrebleu(text: TextConfig, data: DataConfig, key: str) -> Corpus:
    """Test sets of sacrebleu by name, one after the other.

    Raises:
        InputError: for a name or a pair of languages that it does not have, or a set that can be had
            neither from its cache nor from the network.
    """
    from sacrebleu.dataset import DATASETS

    pair = "-".join(data.languages)
    parts = []
    for name in text.sacrebleu or ():
        where = f"{key}.sacrebleu: {name}"
        if name not in DATASETS:
            raise InputError(f"{where}: no such test set; `sacrebleu --list` names them")
        if pair not in DATASETS[name].langpairs:
            raise InputError(f"{where} has no {pair} (data.languages)")
        parts.append(LineAligned(_fetch_test_set(DATASETS[name], pair, where), None))
    contents = [[sha256(path) for path in part.paths] for part in parts]
    identity = digest("sacrebleu", contents, text.tokenised, text.pairs)
    limited = tuple(parts) if text.pairs is None else (Slice(tuple(parts), 0, text.pairs),)
    return Corpus(key, identity, text.tokenised, limited)


def _fetch_test_set(test_set: Any, pair: str, where: str) -> tuple[Path, Path]:
    wanted = ["src", next(f for f in test_set.fieldnames(pair) if f.startswith("ref"))]
    paths = [Path(test_set._get_txt_file_path(pair, field)) for field in wanted]
    if not all(path.exists() for path in paths):
        site = "{0.scheme}://{0.netloc}".format(urlsplit(test_set.data[0]))
        if not reachable(site):
            raise InputError(
                f"{where}: no connection to {site}, and the test set is not in the local cache;"
                " run where there is a network, or use data=grammar"
            )
        try:
            test_set.get_files(pair)
        except (Exception, SystemExit) as error:  # sacrebleu ends the process on a bad download
            raise InputError(f"{where}: cannot be fetched from {site} ({error})") from error
    return paths[0], paths[1]


def reachable(url: str, seconds: float = 4.0) -> bool:
    """Whether the server of `url` answers anything within `seconds`, through a proxy if one is set.

    Asked first, since the libraries retry for half a minute where there is no network.
    """
    answered = threading.Event()

    def ask() -> None:
        try:
            request = urllib.request.Request(url, method="HEAD")
            urllib.request.urlopen(request, timeout=seconds).close()
        except urllib.error.HTTPError:
            pass  # an error page is an answer
        except (OSError, ValueError):
            return
        answered.set()

    # A thread, since the time limit of a request does not cover looking up the host's name.
    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    asking.join(seconds)
    return answered.is_set()
