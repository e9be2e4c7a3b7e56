"""Which text a section of the configuration describes, and which sections are refused."""

from __future__ import annotations

import gzip
import logging
import lzma
import re
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import datasets
import pytest

from nmt import grammar
from nmt.config import DataConfig, TextConfig, TokenizerConfig
from nmt.data import sources
from nmt.data.sources import leave_out_absent, open_corpus
from nmt.data.tokenised import tokenise_text
from nmt.utils.errors import InputError

Write = Callable[[str, list[str]], str]


def open_text(text: TextConfig, key: str = "data.train", **data: Any) -> Any:
    return open_corpus(text, DataConfig(**data), key, key.split(".")[1])


def test_files_are_read_in_step_with_their_alignment(write: Write) -> None:
    text = TextConfig(
        source=write("a", ["x y", "z"]),
        target=write("b", ["u", "v w"]),
        alignment=write("c", ["0-0 1p0", "0-1"]),
        tokenised=True,
    )
    corpus = open_text(text, "data.valid")
    assert [tuple(row) for row in corpus] == [("x y", "u", "0-0 1p0"), ("z", "v w", "0-1")]
    text.pairs = 1
    assert len(list(open_text(text, "data.valid"))) == 1
    assert open_text(text, "data.valid").identity != corpus.identity


@pytest.mark.parametrize(
    ("pairs", "kept"), [(None, ["y", "z", "w"]), (2, ["y", "z"]), (1, ["y"]), (9, ["y", "z", "w"])]
)
@pytest.mark.parametrize("files", [["c"], ["a", "b"]])
def test_pairs_are_counted_after_those_left_out(
    write: Write, tmp_path: Path, files: list[str], pairs: int | None, kept: list[str]
) -> None:
    content = {"a": ["v", "x", "y"], "b": ["z", "w"], "c": ["v", "x", "y", "z", "w"]}
    for name, lines in content.items():
        write(f"{name}.en", lines)
        write(f"{name}.fr", lines)
    texts = [TextConfig(files=files, skip=skip, pairs=pairs) for skip in (None, 2)]
    whole, rest = (open_text(text, root=str(tmp_path)) for text in texts)
    assert [row.target for row in rest] == kept
    assert rest.identity != whole.identity
    data = DataConfig(root=str(tmp_path), cache=str(tmp_path / "cache"))
    rows = tokenise_text(texts[1], data, "data.train", TokenizerConfig()).rows
    assert rows["line"][0] == 2  # the number in the file


def test_identity_follows_the_content_not_the_name(write: Write) -> None:
    first = open_text(TextConfig(source=write("a", ["x"]), target=write("b", ["y"])))
    renamed = open_text(TextConfig(source=write("c", ["x"]), target=write("d", ["y"])))
    changed = open_text(TextConfig(source=write("a", ["X"]), target=write("b", ["y"])))
    assert first.identity == renamed.identity != changed.identity


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({}, r"data\.train\.source: missing"),
    ({"target": "b"}, r"data\.train\.source: missing"),
    ({"source": "a"}, r"data\.train\.target: missing"),
    ({"source": "a", "target": "nowhere"}, r"data\.train\.target=nowhere: no such file"),
    ({"source": "a", "target": "b", "grammar": "natural"}, r"data\.train: .*type data=text"),
    ({"source": "a", "target": "b", "alignment": "c"}, r"data\.train\.alignment: .*tokenised"),
    ({"grammar": "natural"}, r"data\.train\.pairs: missing"),
    ({"files": ["a"]}, r"data\.train\.files: a\.en is not in /.* \(data\.root\)"),
    ({"sacrebleu": ["wmt99"]}, r"data\.train\.sacrebleu: wmt99: no such test set"),
]


@pytest.mark.parametrize(("section", "message"), REFUSED)
def test_sections_that_name_no_text_are_refused(
    write: Write, monkeypatch: pytest.MonkeyPatch, section: dict[str, Any], message: str
) -> None:
    monkeypatch.chdir(Path(write("a", ["x"])).parent)
    write("b", ["y"])
    with pytest.raises(InputError, match=message):
        open_text(TextConfig(**section))


def test_local_copies_are_read_below_the_root(tmp_path: Path) -> None:
    """Plain or compressed, joined in the order given, in either direction."""
    (tmp_path / "a.en").write_text("x\ny\n")
    (tmp_path / "a.fr.gz").write_bytes(gzip.compress(b"u\nv\n"))
    (tmp_path / "b.en.xz").write_bytes(lzma.compress(b"z\n"))
    (tmp_path / "b.fr").write_text("w\n")
    root = str(tmp_path)
    text = TextConfig(files=["a", "b"], hub={"path": "wmt/wmt14"})
    joined = open_text(text, root=root)
    assert [row[:2] for row in joined] == [("x", "u"), ("y", "v"), ("z", "w")]
    assert [row[0] for row in open_text(text, root=root, languages=["fr", "en"])] == ["u", "v", "w"]
    text.pairs = 2
    assert len(list(open_text(text, root=root))) == 2
    one = open_text(TextConfig(files=["a"]), root=root).identity
    assert open_text(TextConfig(source="a.en", target="a.fr.gz"), root=root).identity == one
    absolute = TextConfig(source=str(tmp_path / "a.en"), target=str(tmp_path / "a.fr.gz"))
    assert open_text(absolute, root="/elsewhere").identity == one


def test_optional_test_sets_are_left_out_if_a_file_is_missing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("a.en.gz", "a.fr", "b.en", "c.en", "c.fr"):
        (tmp_path / name).touch()
    files = {"source": "c.en", "target": "c.fr"}
    texts: dict[str, dict[str, Any]] = {
        "whole": {"files": ["a"], "optional": True},
        "half": {"files": ["b"], "optional": True},
        "named": {**files, "optional": True},
        "gold": {**files, "alignment": "c.align", "optional": True},
        "needed": {"files": ["b"]},
    }
    tests = {name: TextConfig(**text) for name, text in texts.items()}
    data = DataConfig(root=str(tmp_path), test=tests)
    with caplog.at_level(logging.INFO):
        leave_out_absent(data)
    assert list(data.test) == ["whole", "named", "needed"]
    assert [message.split(" is ")[0] for message in caplog.messages] == [
        "data.test.half",
        "data.test.gold",
    ]


@pytest.mark.parametrize(
    "section",
    [{"hub": {"path": "no/such-set"}}, {"sacrebleu": ["wmt12"]}, {"hub": {"path": "./nothing"}}],
)
def test_without_network_published_text_is_refused_within_seconds(
    monkeypatch: pytest.MonkeyPatch, section: dict[str, Any]
) -> None:
    monkeypatch.setattr(sources, "_is_reachable", lambda url: False)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)  # and put back
    monkeypatch.setattr("datasets.config.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("sacrebleu.dataset.base.SACREBLEU_DIR", "/nonexistent")
    start = time.monotonic()
    with pytest.raises(InputError, match=r"data\.valid\.\w+.* data\.root=FOLDER"):
        open_text(TextConfig(files=["dev"], **section), "data.valid")
    assert time.monotonic() - start < 5


@pytest.mark.parametrize(
    ("languages", "config"),
    [(["en", "cs"], "cs-en"), (["cs", "en"], "cs-en"), (["en", "hi"], "hi-en")],
)
def test_languages_choose_the_configuration_of_the_hub(
    monkeypatch: pytest.MonkeyPatch, languages: list[str], config: str
) -> None:
    calls = []

    def load(path: str, name: str, **options: Any) -> datasets.Dataset:
        calls.append((path, name, options))
        return datasets.Dataset.from_list(
            [{"translation": {language: f"{language} {k}" for language in name.split("-")}}
             for k in range(3)]
        )  # fmt: skip

    monkeypatch.setattr(sources, "_is_reachable", lambda url: True)
    monkeypatch.setattr(datasets, "load_dataset", load)
    text = TextConfig(
        hub={"path": "wmt/wmt14", "name": ["cs-en", "fr-en", "hi-en"], "revision": "v1"}
    )
    rows = list(open_text(text, languages=languages))
    assert calls == [("wmt/wmt14", config, {"split": "train", "revision": "v1"})]
    assert tuple(rows[2])[:2] == (f"{languages[0]} 2", f"{languages[1]} 2")
    with pytest.raises(InputError, match=r"no column '\w+' \(data\.languages\); it has"):
        open_text(text, languages=["en", "es"])


@pytest.mark.parametrize(
    ("languages", "loader"),
    [(["en", "fr"], "sacrebleu"), (["ru", "en"], "hub"), (["hi", "en"], "hub")],
)
def test_hub_serves_languages_that_a_test_set_lacks(
    monkeypatch: pytest.MonkeyPatch, languages: list[str], loader: str
) -> None:
    monkeypatch.setattr(sources, "_open_hub", lambda *_: "hub")
    monkeypatch.setattr(sources, "_fetch_test_set", lambda *_: [])
    monkeypatch.setattr(sources, "_open_files", lambda *_: "sacrebleu")
    text = TextConfig(hub={"path": "wmt/wmt14"}, sacrebleu=["wmt12", "wmt13"])
    assert open_text(text, "data.valid", languages=languages) == loader


def test_saved_datasets_are_read_and_known_by_their_content(tmp_path: Path) -> None:
    rows = [{"en": f"w {k}", "fr": f"m {k} ."} for k in range(4)]
    for name, content in (("a", rows), ("b", rows), ("c", rows[::-1])):
        datasets.Dataset.from_list(content).save_to_disk(tmp_path / name)
    a, b, c = (open_text(TextConfig(hub={"path": str(tmp_path / name)})) for name in "abc")
    assert next(row[:2] for row in c) == ("w 3", "m 3 .")
    assert a.identity == b.identity != c.identity
    text = TextConfig(hub={"path": str(tmp_path / "a")}, pairs=3)
    assert len({corpus.identity for corpus in (
        a, open_text(text), open_text(replace(text, tokenised=True)))}) == 3  # fmt: skip
    datasets.DatasetDict({"train": datasets.Dataset.from_list(rows)}).save_to_disk(tmp_path / "d")
    with pytest.raises(InputError, match=r"^data\.train\.hub=.*: cannot be loaded .*test"):
        open_text(TextConfig(hub={"path": str(tmp_path / "d"), "split": "test"}))
    empty = [{"translation": {"en": "a", "fr": None}}, {"translation": None}]
    datasets.Dataset.from_list(empty).save_to_disk(tmp_path / "e")
    corpus = open_text(TextConfig(hub={"path": str(tmp_path / "e")}))
    assert [row[:2] for row in corpus] == [("a", ""), ("", "")]


def test_pairs_of_the_grammar_are_drawn_with_their_alignment(tmp_path: Path) -> None:
    data = DataConfig(cache=str(tmp_path / "cache"))
    text = TextConfig(grammar="natural", pairs=5)
    corpus = open_corpus(text, data, "data.valid", "valid")
    assert corpus.tokenised
    rows = tokenise_text(text, data, "data.valid", TokenizerConfig()).rows
    pair = grammar.draw(1, "valid", 4, mean_length=22.0, max_length=80)
    assert rows[4]["source"] == " ".join(pair.source)
    assert rows[4]["target_words"] == len(pair.target)
    assert rows[4]["alignment"] == pair.pharaoh()
    assert rows[4]["source_text"].endswith(pair.source[-2] + ".")
    rest = open_corpus(TextConfig(grammar="natural", pairs=3, skip=2), data, "data.valid", "valid")
    assert list(rest) == list(corpus)[2:]
    text = TextConfig(grammar="by_length", pairs=7)
    longest = list(open_corpus(text, data, "data.test.by_length", "test"))[6]
    pair = grammar.draw_by_length(1, "test", 6, edges=[10, 20, 30, 40, 50, 60], max_length=80)
    assert longest.source.split() == pair.source
    assert len(pair.source) > 60


def test_the_grammar_in_the_other_direction() -> None:
    forth, back = DataConfig(), DataConfig(languages=["fr", "en"])
    text = TextConfig(grammar="natural", pairs=5)
    corpora = [open_corpus(text, data, "data.valid", "valid") for data in (forth, back)]
    assert corpora[0].identity != corpora[1].identity
    for there, here in zip(*corpora, strict=True):
        assert (here.source, here.target) == (there.target, there.source)
        links = {tuple(re.split("[-p]", link)) for link in there.alignment.split()}
        assert {tuple(re.split("[-p]", link))[::-1] for link in here.alignment.split()} == links
    text = TextConfig(grammar="by_length", pairs=14)
    lengths = [len(row.source.split()) for row in open_corpus(text, back, "data.test.x", "test")]
    edges = [0, 10, 20, 30, 40, 50, 60, 80]
    assert all(edges[k % 7] < length <= edges[k % 7 + 1] for k, length in enumerate(lengths))
    german = DataConfig(languages=["en", "de"])
    with pytest.raises(InputError, match=r"data\.languages=\[en, de\]: the built-in corpus"):
        open_corpus(text, german, "data.test.x", "test")
