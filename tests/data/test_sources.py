"""The text that a section of the configuration describes, and sections that are invalid."""

from __future__ import annotations

import gzip
import lzma
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import datasets
import pytest

from nmt import grammar
from nmt.config.schema import DataConfig, TextConfig
from nmt.data.preparation import tokenise_text
from nmt.data.sources import SIDES, open_source
from nmt.utils.errors import InputError

Write = Callable[[str, list[str]], str]
Read = Callable[..., list[dict[str, Any]]]


@pytest.fixture
def read() -> Read:
    """Returns a function read(section, key, **data) that returns the pairs of a text."""

    def rows(text: TextConfig, key: str = "data.train", **data: Any) -> list[dict[str, Any]]:
        source = open_source(text, DataConfig(**data), key)
        pairs = [pair for chunk in source.chunks for pair in source.read(chunk)]
        return [dict(zip((*SIDES, "alignment"), pair, strict=True)) for pair in pairs]

    return rows


def identity(text: TextConfig, key: str = "data.train", **data: Any) -> str:
    return open_source(text, DataConfig(**data), key).identity


def test_files_are_read_with_their_alignment(write: Write, read: Read) -> None:
    files = write("a", ["x y", "z"]), write("b", ["u", "v w"]), write("c", ["0-0 1p0", "0-1"])
    rows = read(TextConfig(*files, tokenised=True))
    assert [[*row.values()] for row in rows] == [["x y", "u", "0-0 1p0"], ["z", "v w", "0-1"]]


@pytest.mark.parametrize(("pairs", "kept"), [(None, "yzw"), (2, "yz"), (1, "y"), (9, "yzw")])
@pytest.mark.parametrize("files", [["c"], ["a", "b"]])
def test_pairs_limit_applies_after_skip(
    write: Write, read: Read, tmp_path: Path, files: list[str], pairs: int | None, kept: str
) -> None:
    for name, lines in {"a": "vxy", "b": "zw", "c": "vxyzw"}.items():
        write(f"{name}.en", list(lines))
        write(f"{name}.fr", list(lines))
    whole, rest = (TextConfig(files=files, skip=skip, pairs=pairs) for skip in (None, 2))
    root = str(tmp_path)
    assert "".join(row["target"] for row in read(rest, root=root)) == kept
    assert identity(rest, root=root) != identity(whole, root=root)
    data = DataConfig(root=root, cache=str(tmp_path / "cache"))
    rows = tokenise_text(rest, data, "data.train").rows
    assert rows["line"][0].as_py() == 2  # line number in the file, from 0


def test_identity_depends_on_content_not_name(write: Write) -> None:
    first = identity(TextConfig(write("a", ["x"]), write("b", ["y"])))
    renamed = identity(TextConfig(write("c", ["x"]), write("d", ["y"])))
    changed = identity(TextConfig(write("a", ["X"]), write("b", ["y"])))
    assert first == renamed != changed


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({}, r"data\.train\.source: missing"),
    ({"target": "b"}, r"data\.train\.source: missing"),
    ({"source": "a"}, r"data\.train\.target: missing"),
    (
        {"source": "a", "target": "nowhere"},
        r"data\.train\.target: no such file: /.*nowhere; a relative name",
    ),
    (
        {"source": "a", "target": "nowhere", "hub": {"path": "mine/text"}, "files": ["c"]},
        r"data\.train\.target: no such file: /.*nowhere; a relative name",
    ),
    ({"source": "a", "target": "b", "grammar": "natural"}, r"data\.train: .*type data=text"),
    ({"target": "b", "grammar": "natural", "pairs": 3}, r"data\.train: .*type data=text"),
    ({"source": "a", "files": ["c"]}, r"data\.train\.target: missing"),
    ({"source": "a", "hub": {"path": "mine/text"}}, r"data\.train\.target: missing"),
    (
        {"files": ["c"], "alignment": "a", "tokenised": True},
        r"data\.train\.alignment: needs data\.train\.source=FILE",
    ),
    ({"source": "a", "target": "b", "alignment": "c"}, r"data\.train\.alignment: .*tokenised"),
    ({"grammar": "natural"}, r"data\.train\.pairs: missing"),
    ({"files": ["a"]}, r"data\.train\.files: no such file: /.*/a\.en; a relative name"),
]


@pytest.mark.parametrize(("section", "message"), REFUSED)
def test_refuses_sections_without_a_text(
    write: Write, monkeypatch: pytest.MonkeyPatch, section: dict[str, Any], message: str
) -> None:
    monkeypatch.chdir(Path(write("a", ["x"])).parent)
    write("b", ["y"])
    with pytest.raises(InputError, match=message):
        identity(TextConfig(**section))


def test_files_are_read_below_data_root(tmp_path: Path, read: Read) -> None:
    """Files are concatenated in order, may be compressed, and work for both translation directions."""
    (tmp_path / "a.en").write_text("x\ny\n")
    (tmp_path / "a.fr.gz").write_bytes(gzip.compress(b"u\nv\n"))
    (tmp_path / "b.en.xz").write_bytes(lzma.compress(b"z\n"))
    (tmp_path / "b.fr").write_text("w\n")
    root = str(tmp_path)
    text = TextConfig(files=["a", "b"], hub={"path": "wmt/wmt14"})
    joined = [(row["source"], row["target"]) for row in read(text, root=root)]
    assert joined == [("x", "u"), ("y", "v"), ("z", "w")]
    back = read(text, root=root, languages=["fr", "en"])
    assert [row["source"] for row in back] == ["u", "v", "w"]
    one = identity(TextConfig(files=["a"]), root=root)
    assert identity(TextConfig(source="a.en", target="a.fr.gz"), root=root) == one
    absolute = TextConfig(source=str(tmp_path / "a.en"), target=str(tmp_path / "a.fr.gz"))
    assert identity(absolute, root="/elsewhere") == one


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("datasets.config.HF_HUB_OFFLINE", True)


@pytest.mark.parametrize("path", ["no/such-set", "./nothing"])
def test_refuses_a_hub_text_that_cannot_be_downloaded(offline: None, path: str) -> None:
    text = TextConfig(files=["dev"], hub={"path": path})
    message = r"data\.valid\.hub=.* data\.root=FOLDER with dev\.en and dev\.fr"
    with pytest.raises(InputError, match=message):
        identity(text, "data.valid")
    with pytest.raises(InputError, match=r"no such file: /elsewhere/dev\.en"):
        identity(text, "data.valid", root="/elsewhere")


@pytest.mark.parametrize("languages", [["en", "cs"], ["cs", "en"]])
def test_languages_select_columns_of_a_hub_text(
    monkeypatch: pytest.MonkeyPatch, read: Read, languages: list[str]
) -> None:
    calls = []

    def load(**options: Any) -> datasets.Dataset:
        calls.append(options)
        texts = {language: f"{language} text" for language in ("cs", "en")}
        return datasets.Dataset.from_list([{"translation": texts}])

    monkeypatch.setattr(datasets, "load_dataset", load)
    text = TextConfig(hub={"path": "wmt/wmt14", "name": "cs-en", "revision": "v1"})
    (row,) = read(text, languages=languages)
    assert calls == [{"path": "wmt/wmt14", "name": "cs-en", "split": "train", "revision": "v1"}]
    assert [row[side] for side in SIDES] == [f"{language} text" for language in languages]
    with pytest.raises(InputError, match=r"no column 'es' \(data\.languages\); it has cs, en"):
        identity(text, languages=["en", "es"])


def test_saved_dataset_is_identified_by_its_content(tmp_path: Path, read: Read) -> None:
    rows = [{"en": f"w {k}", "fr": f"m {k} ."} for k in range(4)]
    empty = [{"translation": {"en": "a", "fr": None}}, {"translation": None}]
    for name, content in (("a", rows), ("b", rows), ("c", rows[::-1]), ("e", empty)):
        datasets.Dataset.from_list(content).save_to_disk(tmp_path / name)
    datasets.DatasetDict({"train": datasets.Dataset.from_list(rows)}).save_to_disk(tmp_path / "d")

    def section(name: str, split: str = "train", **options: Any) -> TextConfig:
        return TextConfig(hub={"path": str(tmp_path / name), "split": split}, **options)

    assert read(section("c"))[0] == {"source": "w 3", "target": "m 3 .", "alignment": None}
    assert read(section("d", skip=1, pairs=2)) == read(section("a"))[1:3]
    assert read(section("e"))[0]["target"] is None
    assert identity(section("a")) == identity(section("b")) != identity(section("c"))
    options: list[dict[str, Any]] = [{}, {"pairs": 3}, {"tokenised": True}]
    assert len({identity(section("a", **each)) for each in options}) == 3
    with pytest.raises(InputError, match=r"^data\.train\.hub=.*: cannot be loaded .*test"):
        identity(section("d", split="test"))


def test_grammar_pairs_have_an_alignment(tmp_path: Path, read: Read) -> None:
    data = DataConfig(cache=str(tmp_path / "cache"))
    text = TextConfig(grammar="natural", pairs=5)
    rows = tokenise_text(text, data, "data.valid").rows.to_pylist()
    pair = grammar.draw(1, "valid", 4)
    assert rows[4]["source"] == " ".join(pair.source)
    assert rows[4]["target_words"] == len(pair.target)
    assert rows[4]["alignment"] == pair.pharaoh()
    assert rows[4]["target_text"].endswith(pair.target[-2] + ".")
    rest = read(TextConfig(grammar="natural", pairs=3, skip=2), "data.valid")
    assert rest == read(text, "data.valid")[2:]
    longest = read(TextConfig(grammar="by_length", pairs=7), "data.test.by_length")[6]
    pair = grammar.draw_by_length(2, "test", 6)
    assert longest["source"].split() == pair.source  # test sets have seed 2, other texts seed 1
    assert len(pair.source) > 60


@pytest.mark.parametrize("lengths", ["natural", "by_length"])
def test_more_grammar_pairs_start_with_the_same_pairs(read: Read, lengths: str) -> None:
    few, many = (read(TextConfig(grammar=lengths, pairs=pairs), "data.test.x") for pairs in (7, 14))
    assert many[:7] == few


def test_grammar_from_french_to_english(read: Read) -> None:
    text = TextConfig(grammar="natural", pairs=5)
    forth, back = (read(text, languages=languages) for languages in (["en", "fr"], ["fr", "en"]))
    assert identity(text) != identity(text, languages=["fr", "en"])
    for there, here in zip(forth, back, strict=True):
        assert (here["source"], here["target"]) == (there["target"], there["source"])
        links = {tuple(re.split("[-p]", link)) for link in there["alignment"].split()}
        turned = {tuple(re.split("[-p]", link))[::-1] for link in here["alignment"].split()}
        assert turned == links
    text = TextConfig(grammar="by_length", pairs=14)
    rows = read(text, "data.test.x", languages=["fr", "en"])
    lengths = [len(row["source"].split()) for row in rows]
    edges = [0, 10, 20, 30, 40, 50, 60, 80]
    assert all(edges[k % 7] < length <= edges[k % 7 + 1] for k, length in enumerate(lengths))
    with pytest.raises(InputError, match=r"data\.languages=\[en, de\]: the built-in corpus"):
        identity(text, "data.test.x", languages=["en", "de"])
