"""What a section of the configuration describes, and what is said of one that describes nothing."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import nmt
from nmt.config import DataConfig, TextConfig
from nmt.data.sources import remote
from nmt.data.sources.open import open_corpus
from nmt.data.tokenised import tokenise_corpus
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
    assert corpus.tokenised
    text.pairs = 1
    assert len(list(open_text(text, "data.valid"))) == 1
    assert open_text(text, "data.valid").identity != corpus.identity


@pytest.mark.parametrize(
    ("pairs", "kept"), [(None, ["y", "z", "w"]), (2, ["y", "z"]), (1, ["y"]), (9, ["y", "z", "w"])]
)
@pytest.mark.parametrize("parts", [1, 2])
def test_pairs_are_counted_after_those_left_out(
    write: Write, parts: int, pairs: int | None, kept: list[str]
) -> None:
    for name, lines in (("a", ["v", "x", "y"]), ("b", ["z", "w"])):
        write(f"{name}.en", lines)
        write(f"{name}.fr", lines)
    if parts == 1:
        for language in ("en", "fr"):
            write(f"c.{language}", ["v", "x", "y", "z", "w"])
    files = ["c"] if parts == 1 else ["a", "b"]
    root = str(Path(write("a.en", ["v", "x", "y"])).parent)
    whole, rest = (
        open_text(TextConfig(files=files, skip=skip, pairs=pairs), root=root) for skip in (None, 2)
    )
    assert [row.target for row in rest] == kept
    assert rest.identity != whole.identity


def test_pairs_of_the_grammar_are_drawn_after_those_left_out() -> None:
    all_five = open_text(TextConfig(grammar="natural", pairs=5))
    last = open_text(TextConfig(grammar="natural", pairs=3, skip=2))
    assert list(last) == list(all_five)[2:]


def test_identity_follows_the_content_not_the_name(write: Write) -> None:
    first = open_text(TextConfig(source=write("a", ["x"]), target=write("b", ["y"])))
    renamed = open_text(TextConfig(source=write("c", ["x"]), target=write("d", ["y"])))
    changed = open_text(TextConfig(source=write("a", ["X"]), target=write("b", ["y"])))
    assert first.identity == renamed.identity != changed.identity


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ({}, r"data\.train\.source: missing; name line-aligned files"),
        ({"target": "b"}, r"data\.train\.source: missing"),
        ({"source": "a", "target": "b", "files": ["a"]}, r"data\.train: both source and files are"),
        ({"source": "a"}, r"data\.train\.target: missing"),
        ({"source": "a", "target": "nowhere"}, r"data\.train\.target=nowhere: no such file"),
        ({"source": "a", "target": "b", "hub": "x"}, r"data\.train: both source and hub are given"),
        (
            {"source": "a", "target": "b", "alignment": "c"},
            r"data\.train\.alignment numbers .* data\.train\.tokenised=true",
        ),
        (
            {"source": "a", "target": "b", "alignment": "c", "tokenised": True},
            r"data\.train\.alignment: gold alignments are for development and test sets only",
        ),
        ({"grammar": "natural", "alignment": "c"}, r"data\.train\.alignment: only for text from"),
        ({"hub": "wmt/wmt14"}, r"data\.train\.hub_split: missing"),
        ({"sacrebleu": ["wmt99"]}, r"data\.train\.sacrebleu: wmt99: no such test set"),
    ],
)
def test_sections_that_name_no_text_are_refused(
    write: Write, monkeypatch: pytest.MonkeyPatch, section: dict[str, Any], message: str
) -> None:
    monkeypatch.chdir(Path(write("a", ["x"])).parent)
    write("b", ["y"])
    with pytest.raises(InputError, match=message):
        open_text(TextConfig(**section))


def test_test_set_in_another_language_is_refused() -> None:
    with pytest.raises(InputError, match=r"data\.valid\.sacrebleu: wmt12 has no en-ja"):
        open_text(TextConfig(sacrebleu=["wmt12"]), "data.valid", languages=["en", "ja"])


@pytest.mark.parametrize(
    "section",
    [
        {"hub": "no/such-set", "hub_config": "fr-en", "hub_split": "train"},
        {"sacrebleu": ["wmt12", "wmt13"]},
    ],
)
def test_without_network_published_text_is_refused_within_seconds(
    monkeypatch: pytest.MonkeyPatch, section: dict[str, Any]
) -> None:
    asked = []
    monkeypatch.setattr(remote, "reachable", lambda url: asked.append(url))
    monkeypatch.setattr("sacrebleu.dataset.base.SACREBLEU_DIR", "/nonexistent")
    start = time.monotonic()
    with pytest.raises(InputError, match=r"data\.valid\.\w+.* no connection to https?://[a-z.]+,"):
        open_text(TextConfig(**section), "data.valid")
    assert time.monotonic() - start < 5
    assert len(asked) == 1


def test_server_that_is_not_there_is_found_out_quickly() -> None:
    start = time.monotonic()
    assert not remote.reachable("http://127.0.0.1:9", seconds=1)
    assert not remote.reachable("http://nothing.invalid", seconds=1)
    assert time.monotonic() - start < 3


def test_published_pairs_of_the_hub_are_read_by_language(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import datasets

    pairs = [{"translation": {"en": f"w {k}", "fr": f"m {k} ."}} for k in range(7)]
    dataset = datasets.Dataset.from_list(pairs)
    monkeypatch.setattr(remote, "reachable", lambda url: True)
    monkeypatch.setattr(datasets, "load_dataset", lambda *names, split: dataset)
    text = TextConfig(hub="mine/set", hub_split="train", pairs=5)
    corpus = open_text(text)
    text_on_disk = tokenise_corpus(corpus, ("en", "fr"), cache=tmp_path / "cache")
    assert text_on_disk.rows["target"][:2] == ["m 0 .", "m 1 ."]
    assert len(text_on_disk.rows) == 5
    assert open_text(text).identity != open_text(replace(text, tokenised=True)).identity
    with pytest.raises(InputError, match=r"data\.train\.hub=mine/set: no column 'de' .* en, fr"):
        open_text(text, languages=["en", "de"])


LIKE_WMT14 = {
    "hub": "wmt/wmt14",
    "hub_config": "pair",
    "hub_pairs": ["cs-en", "fr-en", "hi-en"],
    "hub_split": "validation",
}


@pytest.mark.parametrize(
    ("languages", "chosen"),
    [(["en", "cs"], "cs-en"), (["cs", "en"], "cs-en"), (["en", "hi"], "hi-en")],
)
def test_languages_choose_the_configuration_of_the_hub(
    monkeypatch: pytest.MonkeyPatch, languages: list[str], chosen: str
) -> None:
    import datasets

    asked = []

    def load(name: str, config: str, split: str) -> datasets.Dataset:
        asked.append((name, config, split))
        return datasets.Dataset.from_list(
            [{"translation": {language: f"{language} {k}" for language in config.split("-")}}
             for k in range(3)]
        )  # fmt: skip

    monkeypatch.setattr(remote, "reachable", lambda url: True)
    monkeypatch.setattr(datasets, "load_dataset", load)
    rows = list(open_text(TextConfig(**LIKE_WMT14), languages=languages))
    assert asked == [("wmt/wmt14", chosen, "validation")]
    assert tuple(rows[2])[:2] == (f"{languages[0]} 2", f"{languages[1]} 2")


def test_pair_that_the_hub_has_not_is_refused_without_asking_it() -> None:
    where = r"data\.train\.hub=wmt/wmt14: has no en-es \(data\.languages\); it has cs-en, fr-en"
    with pytest.raises(InputError, match=where):
        open_text(TextConfig(**LIKE_WMT14), languages=["en", "es"])
    text = TextConfig(hub="some/captions", hub_split="train", hub_pairs=["de-en"], files=["train"])
    with pytest.raises(InputError, match=r"data\.root=FOLDER with train\.en and train\.fr"):
        open_text(text)


@pytest.mark.parametrize(
    ("languages", "way"),
    [(["en", "fr"], "sacrebleu"), (["ru", "en"], "hub"), (["hi", "en"], "hub")],
)
def test_hub_serves_for_languages_that_a_test_set_has_not(
    monkeypatch: pytest.MonkeyPatch, languages: list[str], way: str
) -> None:
    for name in ("hub", "sacrebleu"):
        monkeypatch.setattr(remote, f"from_{name}", lambda *_, name=name: name)
    text = TextConfig(**LIKE_WMT14, sacrebleu=["wmt12", "wmt13"])
    assert open_text(text, "data.valid", languages=languages) == way


def test_local_copies_are_read_below_the_root(tmp_path: Path) -> None:
    """Plain or compressed, joined in the order given, in either direction."""
    import gzip
    import lzma

    (tmp_path / "a.en").write_text("x\ny\n")
    (tmp_path / "a.fr.gz").write_bytes(gzip.compress(b"u\nv\n"))
    (tmp_path / "b.en.xz").write_bytes(lzma.compress(b"z\n"))
    (tmp_path / "b.fr").write_text("w\n")
    root = str(tmp_path)
    text = TextConfig(files=["a", "b"], hub="wmt/wmt14", hub_split="train")
    joined = open_text(text, root=root)
    assert [row[:2] for row in joined] == [("x", "u"), ("y", "v"), ("z", "w")]
    assert [row[0] for row in open_text(text, root=root, languages=["fr", "en"])] == ["u", "v", "w"]
    text.pairs = 2
    assert len(list(open_text(text, root=root))) == 2
    named = TextConfig(source="a.en", target="a.fr.gz")
    assert (
        open_text(named, root=root).identity
        == open_text(TextConfig(files=["a"]), root=root).identity
    )
    absolute = TextConfig(source=str(tmp_path / "a.en"), target=str(tmp_path / "a.fr.gz"))
    assert open_text(absolute, root="/elsewhere").identity == open_text(named, root=root).identity


def test_missing_local_copies_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "train.en").write_text("x\n")
    text = TextConfig(files=["train"])
    missing = r"data\.train\.files: train\.fr is not in .*\(data\.root\)"
    with pytest.raises(InputError, match=missing + ", nor compressed"):
        open_text(text, root=str(tmp_path))
    monkeypatch.setattr(remote, "reachable", lambda url: False)
    text = TextConfig(files=["train"], hub="no/such-set", hub_split="train")
    with pytest.raises(
        InputError, match=missing + r", and data\.train\.hub=no/such-set: no connect"
    ):
        open_text(text, root=str(tmp_path))
    with pytest.raises(InputError, match=r"^data\.train\.hub=no/such-set: no connection"):
        open_text(text)
    with pytest.raises(InputError, match=r"data\.train: both files and grammar are given"):
        open_text(TextConfig(files=["train"], grammar="natural", pairs=3))


def test_set_of_the_hub_is_read_from_the_librarys_cache_without_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cache as `datasets` leaves it behind, where HF_HOME points to."""
    import datasets

    pairs = [{"translation": {"en": f"w {k}", "fr": f"m {k} ."}} for k in range(7)]
    kept = tmp_path / "mine___set" / "fr-en" / "0.0.0" / "0123456789abcdef"
    features = datasets.Features({"translation": datasets.Translation(languages=["en", "fr"])})
    info = datasets.DatasetInfo(
        features=features,
        builder_name="parquet",
        dataset_name="set",
        config_name="fr-en",
        version=datasets.Version("0.0.0"),
        splits={
            "train": {"name": "train", "num_bytes": 1, "num_examples": 7, "dataset_name": "set"}
        },
    )
    kept.mkdir(parents=True)
    info.write_to_directory(str(kept))
    with datasets.arrow_writer.ArrowWriter(
        path=str(kept / "set-train.arrow"), features=features
    ) as writer:
        for pair in pairs:
            writer.write(pair)
        writer.finalize()
    monkeypatch.setattr(remote, "reachable", lambda url: False)
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", str(tmp_path))
    text = TextConfig(
        hub="mine/set", hub_config="pair", hub_pairs=["fr-en"], hub_split="train", pairs=5
    )
    assert [tuple(row)[:2] for row in open_text(text)][4] == ("w 4", "m 4 .")


def test_pairs_of_the_grammar_are_drawn_with_their_alignment(tmp_path: Path) -> None:
    from nmt.grammar import draw, draw_by_length

    data = DataConfig()
    data.grammar.seed = 3
    text = TextConfig(grammar="natural", pairs=5)
    corpus = open_corpus(text, data, "data.valid", "valid")
    assert corpus.tokenised
    rows = tokenise_corpus(corpus, ("en", "fr"), cache=tmp_path / "cache").rows
    pair = draw(3, "valid", 4, mean_length=22.0, max_length=80)
    assert rows[4]["source"] == " ".join(pair.source)
    assert rows[4]["target_words"] == len(pair.target)
    assert rows[4]["alignment"] == pair.pharaoh()
    assert rows[4]["source_text"].endswith(pair.source[-2] + ".")

    text = TextConfig(grammar="by_length", pairs=7)
    longest = list(open_corpus(text, data, "data.test.by_length", "test"))[6]
    pair = draw_by_length(3, "test", 6, edges=[10, 20, 30, 40, 50, 60], max_length=80)
    assert longest.source.split() == pair.source
    assert len(pair.source) > 60
    with pytest.raises(InputError, match=r"data\.train\.pairs: missing"):
        open_text(TextConfig(grammar="natural"))


def test_the_grammar_in_the_other_direction() -> None:
    forth, back = DataConfig(), DataConfig(languages=["fr", "en"])
    text = TextConfig(grammar="natural", pairs=5)
    corpora = [open_corpus(text, data, "data.valid", "valid") for data in (forth, back)]
    assert corpora[0].identity != corpora[1].identity
    for there, here in zip(*corpora, strict=True):
        assert (here.source, here.target) == (there.target, there.source)
        links = {tuple(re.split("[-p]", link)) for link in there.alignment.split()}
        assert {tuple(re.split("[-p]", link))[::-1] for link in here.alignment.split()} == links
        assert here.alignment.count("p") == there.alignment.count("p")
    text = TextConfig(grammar="by_length", pairs=14)
    lengths = [len(row.source.split()) for row in open_corpus(text, back, "data.test.x", "test")]
    edges = [0, *back.grammar.edges, back.grammar.max_length]
    assert all(edges[k % 7] < length <= edges[k % 7 + 1] for k, length in enumerate(lengths))
    german = DataConfig(languages=["en", "de"])
    with pytest.raises(
        InputError, match=r"data\.languages=\[en, de\]: the built-in corpus is English"
    ):
        open_corpus(text, german, "data.test.x", "test")


class TestSavedDatasets:
    """Folders that `save_to_disk` of the library `datasets` wrote."""

    def test_the_built_in_corpus_is_trained_on_as_the_grammar_is(self, tmp_path: Path) -> None:
        corpus = nmt.built_in_corpus(train_pairs=6, valid_pairs=3, test_pairs=2, by_length_pairs=7)
        corpus.save_to_disk(tmp_path / "corpus")
        assert {name: len(split) for name, split in corpus.items()} == {
            **{"train": 6, "valid": 3, "test": 2, "by_length": 7}
        }
        data = DataConfig()
        for name, kind, split in (
            ("train", "natural", "train"),
            ("by_length", "by_length", "test"),
        ):
            drawn = TextConfig(grammar=kind, pairs=len(corpus[name]))
            expected = list(open_corpus(drawn, data, "data.train", split))
            text = TextConfig(hub=str(tmp_path / "corpus"), hub_split=name, tokenised=True)
            found = list(open_text(text))
            assert [row[:2] for row in found] == [row[:2] for row in expected]
            assert corpus[name]["alignment"] == [row.alignment for row in expected]
        for keys, said in (
            ({"pairs": 3}, "pairs=3: Key 'pairs' not in"),
            ({"train_pairs": 0}, "train_pairs=0: must be at least 1"),
            ({"mean_length": "long"}, "mean_length='long': "),
        ):
            with pytest.raises(nmt.InputError, match=said):
                nmt.built_in_corpus(**keys)

    def test_what_they_hold_names_them(self, tmp_path: Path) -> None:
        import datasets

        rows = [{"en": f"w {k}", "fr": f"m {k} ."} for k in range(4)]
        for name, kept in (("a", rows), ("b", rows), ("c", rows[::-1])):
            datasets.Dataset.from_list(kept).save_to_disk(tmp_path / name)
        a, b, c = (open_text(TextConfig(hub=str(tmp_path / name))) for name in "abc")
        assert next(row[:2] for row in c) == ("w 3", "m 3 .")
        assert a.identity == b.identity != c.identity
        assert a.identity != open_text(TextConfig(hub=str(tmp_path / "a"), pairs=3)).identity

    @pytest.mark.parametrize(
        ("keys", "said"),
        [
            ({"hub_split": "test"}, r"hub_split=test: not in .*, which has train"),
            ({"hub_split": None}, r"hub_split=None: not in .*, which has train"),
            ({"hub_revision": "v1"}, r"hub_revision=v1: .* is a folder of this machine"),
        ],
    )
    def test_what_they_lack_is_refused(self, tmp_path: Path, keys: dict, said: str) -> None:
        import datasets

        rows = datasets.Dataset.from_list([{"en": "a", "fr": "b"}])
        datasets.DatasetDict({"train": rows}).save_to_disk(tmp_path / "set")
        with pytest.raises(InputError, match=rf"^data\.train\.{said}"):
            open_text(TextConfig(**{"hub": str(tmp_path / "set"), "hub_split": "train", **keys}))

    @pytest.mark.parametrize(
        ("rows", "said"),
        [
            ([{"en": "a", "fr": 2.5}], "row 0: fr is not text"),
            ([{"en": ["a"], "fr": ["b"]}], "row 0: en is not text"),
            ([{"translation": {"en": 1, "fr": 2}}], "row 0: en is not text"),
            ([{"translation": "x"}], "no column 'en'"),
        ],
    )
    def test_what_is_no_text_is_refused(self, tmp_path: Path, rows: list, said: str) -> None:
        import datasets

        datasets.Dataset.from_list(rows).save_to_disk(tmp_path / "set")
        with pytest.raises(InputError, match=rf"^data\.train\.hub=.*set: {said}"):
            list(open_text(TextConfig(hub=str(tmp_path / "set"))))

    def test_a_missing_pair_is_an_empty_one(self, tmp_path: Path) -> None:
        import datasets

        rows = [{"translation": {"en": "a", "fr": None}}, {"translation": None}]
        datasets.Dataset.from_list(rows).save_to_disk(tmp_path / "set")
        corpus = open_text(TextConfig(hub=str(tmp_path / "set")))
        assert [row[:2] for row in corpus] == [("a", ""), ("", "")]

    def test_a_pipe_inside_is_not_waited_for(self, tmp_path: Path) -> None:
        (tmp_path / "set").mkdir()
        (tmp_path / "set/state.json").write_text("{}")
        os.mkfifo(tmp_path / "set/dataset_info.json")
        with pytest.raises(InputError, match=r"hub=.*set: .*dataset_info\.json is not a file"):
            open_text(TextConfig(hub=str(tmp_path / "set")))

    def test_a_damaged_one_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "set").mkdir()
        (tmp_path / "set/state.json").write_text("{}")
        with pytest.raises(InputError, match=r"^data\.train\.hub=.*set: cannot be loaded"):
            open_text(TextConfig(hub=str(tmp_path / "set")))


def test_a_revision_of_the_hub_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    import datasets

    asked = {}

    def load(*names: str, **options: str) -> datasets.Dataset:
        asked.update(options)
        return datasets.Dataset.from_list([{"en": "a", "fr": "b"}])

    monkeypatch.setattr(remote, "reachable", lambda url: True)
    monkeypatch.setattr(datasets, "load_dataset", load)
    open_text(TextConfig(hub="mine/set", hub_split="train", hub_revision="v1.2"))
    assert asked == {"split": "train", "revision": "v1.2"}
