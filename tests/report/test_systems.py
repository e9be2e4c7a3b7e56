"""External systems, from files: outputs, several references, and scores of other tools."""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sacrebleu.metrics import BLEU

from nmt.config.commands import CompareConfig
from nmt.evaluation.scores.base import Ratio
from nmt.report import result_tables
from nmt.report.comparison import Comparison, build_comparison
from nmt.report.line_order import misplaced, rare_features
from nmt.report.page.payload import overview
from nmt.report.released_files import OUTPUT as OUTPUTS
from nmt.report.released_files import read_file
from nmt.report.runs import FinishedRun
from nmt.report.system_files import find_languages
from nmt.report.systems import read_systems
from nmt.report.write import write_comparison
from nmt.utils.errors import InputError
from tests.helpers.run_folders import make_run

SOURCE = ["ein Hund", "eine Katze schläft auf dem Dach", "das Haus ist rot , aber klein"]
FIRST = ["a dog", "a cat sleeps on the roof", "the house is red, but small"]
SECOND = ["one dog", "a cat is sleeping on the roof", "the house is red but it is small"]
OUTPUT = ["a hound", "a cat is asleep on the roof", "the house is red, but it is little"]


def write(path: Path, lines: list[Any]) -> str:
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    path.write_text("".join(f"{text}\n" for text in texts), "utf-8")
    return str(path)


def value(comparison: Comparison, run: str, score: str) -> float:
    frame = comparison.scores.query(f"run == {run!r} and key == {score!r} and bucket == 'all'")
    return float(frame["value"].item())


@pytest.fixture
def text(tmp_path: Path) -> dict[str, Any]:
    """Returns the keys of `CompareConfig` for a test set with two references, and for one system."""
    return {
        "source": write(tmp_path / "news.de", SOURCE),
        "reference": [write(tmp_path / "a.en", FIRST), write(tmp_path / "b.en", SECOND)],
        "systems": {"mine": write(tmp_path / "out.txt", OUTPUT)},
    }


def test_several_references_equal_sacrebleu(text: dict[str, Any]) -> None:
    found = build_comparison(CompareConfig(**text, resamples=20))
    wanted = BLEU().corpus_score(OUTPUT, [FIRST, SECOND]).score
    assert value(found, "mine", "sacrebleu") == pytest.approx(wanted)
    assert value(found, "mine", "bleu") == pytest.approx(wanted)  # tokenizers 13a and Moses agree
    assert found.sets == ["news"]
    assert any("nrefs:2" in note for note in found.notes["news"])


class Words(Ratio):
    key = title = "words"

    def statistics(self, record: Any) -> tuple[int, int]:
        return len(record["hypothesis"]), 1


def test_systems_get_user_scores(text: dict[str, Any]) -> None:
    found = build_comparison(
        CompareConfig(**text, scores=["bleu", f"{__name__}.Words"], resamples=0)
    )
    shown = found.whole("news").set_index("key")
    assert shown.loc["words", "value"] == pytest.approx((2 + 7 + 9) / 3)


def test_lines_and_jsonl_give_the_same_text(text: dict[str, Any], tmp_path: Path) -> None:
    rows = [
        {"src": source, "ref": reference, "mt": output, "size": len(source)}
        for source, reference, output in zip(SOURCE, FIRST, OUTPUT, strict=True)
    ]
    file = write(tmp_path / "all.jsonl", rows)
    typed = {"source": file, "reference": file, "systems": {"mine": file}, "resamples": 0}
    found = build_comparison(CompareConfig(**typed, languages=["de", "en"], lengths="size"))
    plain = build_comparison(
        CompareConfig(**{**text, "reference": text["reference"][0], "resamples": 0})
    )
    assert value(found, "mine", "bleu") == value(plain, "mine", "bleu")
    lengths = {"size": list(map(len, SOURCE)), "words": [2, 6, 7], "tokens": [2, 6, 7]}
    for counted, wanted in lengths.items():
        options = {**typed, "languages": ["de", "en"], "lengths": counted}
        [run] = read_systems(CompareConfig(**options), [])
        assert [row["length"] for row in run.translations("all")] == wanted
        assert run.scales["all"].unit == counted


def test_lengths_in_words_may_be_a_column_of_the_metadata(
    news: dict[str, Any], tmp_path: Path
) -> None:
    counts = [{"words": 7 * (n + 1)} for n in range(80)]
    news["metadata"] = write(tmp_path / "m.jsonl", counts)
    [run, *_] = build_comparison(CompareConfig(**news, lengths="words")).runs
    assert [row["length"] for row in run.translations("news")] == [row["words"] for row in counts]


def test_source_without_systems_is_refused(text: dict[str, Any], tmp_path: Path) -> None:
    del text["systems"]
    run = [FinishedRun("mine", {"name": "mine"})]
    with pytest.raises(InputError, match="source: without systems, no output translates it"):
        read_systems(CompareConfig(**text), run)


def test_refuses_output_that_is_not_text(tmp_path: Path) -> None:
    file = read_file(
        write(tmp_path / "out.jsonl", [{"mt": "a \ud83d dog"}, {"mt": None}]), "systems"
    )
    with pytest.raises(InputError, match=r"out\.jsonl:2: mt is null; it must be a text"):
        file.texts(OUTPUTS, "systems")
    assert file.select([0]).texts(OUTPUTS, "systems") == ["a \ufffd dog"]


@pytest.mark.parametrize("kind", ["tsv", "jsonl"])
def test_scores_are_read_from_a_file(text: dict[str, Any], tmp_path: Path, kind: str) -> None:
    text["systems"]["other"] = text["systems"]["mine"]
    numbers = {"mine": [0.1, None, 0.8], "other": [0.2, 0.3, 0.4]}
    rows = [(name, number) for name, column in numbers.items() for number in column]
    if kind == "jsonl":
        given: Any = write(tmp_path / "s.jsonl", [{"system": n, "comet": x} for n, x in rows])
    else:
        # The system name "2014" must stay a string.
        text["systems"]["2014"] = text["systems"]["mine"]
        rows += [("2014", number) for number in (0.5, 0.6, 0.7)]
        cells = [f"{'' if x is None else x}\t{n}" for n, x in rows]
        given = write(tmp_path / "s.tsv", ["comet\tsystem", *cells])
    found = build_comparison(
        CompareConfig(**text, scores={"comet": given}, edges=[10], resamples=50)
    )
    assert value(found, "mine", "comet") == pytest.approx(0.45)
    assert value(found, "other", "comet") == pytest.approx(0.3)
    frame = found.by_length("news").query("key == 'comet' and run == 'other'")
    assert frame["sentences"].tolist() == [3]
    if kind == "tsv":
        assert value(found, "2014", "comet") == pytest.approx(0.6)
        return
    [test] = found.differences.query("score == 'comet' and bucket == 'all'").to_dict("records")
    assert test["sentences"] == 2
    assert test["delta"] == pytest.approx(np.mean([0.1, 0.8]) - np.mean([0.2, 0.4]))


@pytest.mark.parametrize("all_lines", [False, True])
def test_systems_are_compared_with_runs(tmp_path: Path, all_lines: bool) -> None:
    """The system's output equals the references; with `all_lines` it also has a line for the empty source line."""
    folder = make_run(tmp_path / "run", pairs=40, kept=2)
    file = folder / "translations/newstest.jsonl"
    rows = [json.loads(line) for line in file.open()]
    write(file, [{**row, "line": row["id"] + 1 + (row["id"] > 5)} for row in rows])
    lines = [" ".join(row["reference"]) for row in rows]
    best = write(tmp_path / "best.txt", [*lines[:6], *["other"] * all_lines, *lines[6:]])
    typed = {"runs": [str(folder)], "systems": {"best": best}, "resamples": 20}
    found = build_comparison(CompareConfig(**typed, scores=["bleu", "chrf"]))
    assert [each.external for each in found.runs] == [False, True]
    assert value(found, "best", "bleu") > 98
    assert set(found.differences["b"]) == {"best"}
    counts = found.scores.query("key == 'bleu'").groupby("run")["sentences"].agg(list)
    assert counts["best"] == counts["RNNsearch-50"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"reference": None}, "reference: must be given"),
        ({"reference": "short.txt"}, "1 lines, source has 3"),
        (
            {"systems": {"mine": "short.txt"}},
            r"systems\.mine\.news: 1 lines, but the test set has 3",
        ),
        ({"lengths": "chars"}, "no column chars"),
        (
            {"source": "grades.jsonl", "lengths": "grade", "languages": ["de", "en"]},
            "grade is .*; it must be a whole number",
        ),
        ({"domain": "kind"}, "no column kind"),
        ({"source": None}, "reference: describes a text of source=FILE"),
        ({"scores": {"comet": "short.txt"}}, "no column comet"),
        ({"scores": {"comet": "bad.tsv"}}, "numbers in column comet"),
        (  # refused before the systems' files are read
            {
                "scores": {"comet": "one.tsv"},
                "systems": {"mine": "short.txt", "other": "short.txt"},
            },
            "no column 'system'",
        ),
        (
            {"scores": {"comet": "one.tsv"}, "systems": ["*o*.t*"]},  # matches several files
            "no column 'system'",
        ),
        ({"scores": {"comet": "set.tsv"}}, "its file has no row for a test set of mine"),
        ({"scores": {"comet": "one.tsv"}}, "1 rows for the 3 sentences of mine"),
        ({"source": "bad.jsonl"}, r"bad\.jsonl:2: not an object"),
    ],
)
def test_refuses_files_that_do_not_fit(
    text: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    change: dict[str, Any],
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "short.txt", ["one line"])
    write(tmp_path / "bad.tsv", ["comet", "0.5", "good", "0.1"])
    write(tmp_path / "one.tsv", ["comet", "0.5"])
    write(tmp_path / "set.tsv", ["comet\tset", *["0.5\tnewz"] * 3])
    write(tmp_path / "grades.jsonl", [{"source": line, "grade": "A"} for line in SOURCE])
    write(tmp_path / "bad.jsonl", ['{"source": "a"}', "[1]"])
    with pytest.raises(InputError, match=said):
        build_comparison(CompareConfig(**{**text, **change, "resamples": 0}))


@pytest.fixture
def news(tmp_path: Path) -> dict[str, Any]:
    """80 sentences of 10 or 50 words in 8 documents; `bad` makes more errors in later documents."""
    source = [" ".join(f"w{n}x{i}" for i in range(50 if n % 2 else 10)) for n in range(80)]
    wrong = [" ".join([*line.split()[: -1 - n // 10], "zz"]) for n, line in enumerate(source)]
    files = {name: write(tmp_path / name, source) for name in ("news.en", "news.de", "good.de")}
    rows = [{"doc": f"d{n // 10}", "domain": "n"} for n in range(80)]
    return {
        "source": files["news.en"],
        "reference": files["news.de"],
        "systems": {"good": files["good.de"], "bad": write(tmp_path / "bad.de", wrong)},
        "metadata": write(tmp_path / "meta.jsonl", rows),
        "resamples": 200,
    }


def test_document_column_resamples_documents(news: dict[str, Any]) -> None:
    by_sentence = build_comparison(CompareConfig(**news))
    by_document = build_comparison(CompareConfig(**news, document="doc"))
    for frame in (by_document.scores, by_document.differences, by_document.curves):
        assert set(frame["interval"]) - {""} == {"documents"}
    widths = []
    for found in (by_sentence, by_document):
        row = found.scores.query("run == 'bad' and key == 'bleu' and bucket == 'all'").iloc[0]
        widths.append(row["high"] - row["low"])
    assert widths[1] > 1.5 * widths[0]
    [note] = [note for note in by_document.notes["news"] if note.startswith("Intervals draw")]
    assert note.startswith("Intervals draw 8 documents whole. With so few documents, intervals are")


def test_domain_column_gives_adjusted_curves(news: dict[str, Any], tmp_path: Path) -> None:
    """Half of the words of each hard line are wrong. Most long lines and few short lines are hard."""
    hard = [(n // 2) % 4 == 0 if n % 2 == 0 else (n // 2) % 4 != 0 for n in range(320)]
    source = [" ".join(f"w{n}x{i}" for i in range(50 if n % 2 else 10)) for n in range(320)]
    output = [
        " ".join(
            [
                *(words := line.split())[: len(words) // (1 + each)],
                *["zz"] * (each * len(words) // 2),
            ]
        )
        for line, each in zip(source, hard, strict=True)
    ]
    rows = [{"kind": "hard" if each else "easy"} for each in hard]
    for key in ("source", "reference"):
        write(Path(news[key]), source)
    news |= {"systems": {"mine": write(tmp_path / "mine.de", output)}, "domain": "kind"}
    news["metadata"] = write(tmp_path / "kinds.jsonl", rows)
    found = build_comparison(CompareConfig(**news))
    kept = found.retention.query("key == 'bleu' and statistic == 'retention'")
    kept = kept.set_index("domain")["value"]
    assert [*kept.index] == ["", "easy", "hard", "adjusted"]
    assert kept[""] < 0.75
    assert kept["easy"] == pytest.approx(1)
    assert kept["adjusted"] > kept[""] + 0.2
    drawn = found.curves.query("kind == 'domain' and key == 'bleu'")
    assert set(drawn["other"]) == {"easy", "hard", "adjusted"}
    assert (
        "Domains change with length: easy is 75% of the lines of about 10 words, and 25% at 50."
        in found.notes["news"]
    )
    assert not any("enough lines" in note for note in found.notes["news"])
    table = result_tables.domains_table(found, "news")
    assert [*table.frame] == ["Runs", "Score", "all", "easy", "hard", "adjusted"]
    assert overview(found)["sets"]["news"]["domains"] == ["easy", "hard", "adjusted"]
    rows = found.retention.copy()
    rows.loc[rows["domain"] == "adjusted", "to"] = 33
    table = result_tables.domains_table(replace(found, retention=rows), "news").frame
    row = table.set_index("Score").loc["BLEU"]
    texts = {name: row[name].text for name in ("all", "easy", "adjusted")}
    assert texts["adjusted"].endswith("% (10–33)")
    assert texts["easy"].endswith("%")


def test_domains_with_missing_scores_and_short_lines(news: dict[str, Any], tmp_path: Path) -> None:
    """Only domain a has human scores; domains b (only long lines) and captions (only short) are left out."""
    domains = ["a" if n % 4 < 2 else "b" if n % 2 else "captions" for n in range(80)]
    news["metadata"] = write(tmp_path / "kinds.jsonl", [{"kind": name} for name in domains])
    rated = [{"system": "good", "human": 1 if name == "a" else None} for name in domains]
    scores = {"human": write(tmp_path / "human.jsonl", rated)}
    found = build_comparison(CompareConfig(**news, domain="kind", scores=scores, short=10, long=50))
    curves = found.curves.query("key == 'human' and kind == 'domain'")
    assert "b" not in set(curves["other"])
    [note] = [note for note in found.notes["news"] if note.startswith("Lengths with enough lines")]
    assert note == (
        "Lengths with enough lines, in words: a 10 to 50, b 50 to 50, captions 10 to 10; "
        "no adjusted curve."
    )


@pytest.mark.parametrize("key", ["document", "domain"])
def test_refuses_metadata_with_runs(key: str, news: dict[str, Any], tmp_path: Path) -> None:
    news["runs"] = [str(make_run(tmp_path / "run", pairs=20, kept=0, sets=("news",)))]
    with pytest.raises(InputError, match=f"{key}: does not apply to runs on news"):
        build_comparison(CompareConfig(**news, **{key: "doc"}))


def test_refuses_a_wrong_document_column(news: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no column document"):
        build_comparison(CompareConfig(**news, document="document"))
    rows = [{"doc": None if n == 3 else "a"} for n in range(80)]
    unnamed = news | {"metadata": write(tmp_path / "unnamed.jsonl", rows)}
    with pytest.raises(InputError, match="document=doc: row 4 names no document"):
        build_comparison(CompareConfig(**unnamed, document="doc"))
    for name, said in (("", "row 1 names no domain"), ("all", "the name all is reserved")):
        news["metadata"] = write(tmp_path / "kinds.jsonl", [{"kind": name}] * 80)
        with pytest.raises(InputError, match=said):
            build_comparison(CompareConfig(**news, domain="kind"))
    news["metadata"] = write(tmp_path / "short.jsonl", [{"doc": "a"}])
    with pytest.raises(InputError, match="1 lines, source has 80"):
        build_comparison(CompareConfig(**news, document="doc"))


def test_refuses_an_empty_source(news: dict[str, Any], tmp_path: Path) -> None:
    news["source"] = news["reference"] = write(tmp_path / "empty.en", [])
    with pytest.raises(InputError, match="has no lines"):
        build_comparison(CompareConfig(**news))


def test_pairs_use_sentences_that_both_have(news: dict[str, Any], tmp_path: Path) -> None:
    """`few` has scores for every fifth sentence only; on these sentences `bad` is better than `good`."""
    news["systems"]["few"] = news["systems"]["good"]
    rows = ["system\tda"]
    for name in ("good", "bad", "few"):
        for n in range(80):
            better = (name == "good") * (-10 if n % 5 == 0 else 10)
            rows.append(f"{name}\t{'' if name == 'few' and n % 5 else 50 + better}")
    news["scores"] = {"da": write(tmp_path / "da.tsv", rows)}
    found = build_comparison(CompareConfig(**news)).differences
    found = found.query("score == 'da' and bucket == 'all'").set_index(["a", "b"])
    assert found.loc[("good", "bad"), ["sentences", "delta"]].tolist() == [80, pytest.approx(6.0)]
    assert found.loc[("good", "few"), ["sentences", "delta"]].tolist() == [16, pytest.approx(-10.0)]


@pytest.mark.slow
def test_unknown_retention_names_the_few_sentences(news: dict[str, Any], tmp_path: Path) -> None:
    known = build_comparison(CompareConfig(**news))
    assert not any("unknown for" in note for note in known.notes["news"])
    ends = known.retention.query("key == 'bleu' and statistic == 'at 10 words'")
    assert ends["value"].notna().all()  # curves begin at 10 words
    lines = (tmp_path / "news.en").read_text().splitlines()[1::2]
    for key in ("source", "reference"):
        news[key] = write(tmp_path / f"long.{'en' if key == 'source' else 'de'}", lines)
    del news["metadata"]
    news["systems"] = {"good": news["reference"]}
    notes = build_comparison(CompareConfig(**news, short=10, long=50)).notes["long"]
    assert any("unknown for good: fewer than 30 sentences" in note for note in notes)
    assert any("at about 10 words" in note for note in notes)


def test_systems_are_named_by_their_files(news: dict[str, Any], tmp_path: Path) -> None:
    """System names come from file names or keys; Hydra turns a key `a.b` into nested keys."""
    folder = tmp_path / "outputs"
    folder.mkdir()
    good = (tmp_path / "good.de").read_text()
    for name in ("news.Claude-3.5.de", "news.GPT-4.de"):
        (folder / name).write_text(good)
    [claude, gpt] = read_systems(CompareConfig(**news | {"systems": [f"{folder}/*.de"]}), [])
    assert [claude.label, gpt.label] == ["Claude-3.5", "GPT-4"]
    nested = {"Claude-3": {"5": news["reference"]}, "a b": {"news": news["reference"]}}
    systems = read_systems(CompareConfig(**news | {"systems": nested}), [])
    assert [each.label for each in systems] == ["Claude-3.5", "a b"]
    lines = good.splitlines()
    table = write(tmp_path / "all.tsv", ["source\tx.1\tx.2", *(f"s\t{line}\tb" for line in lines)])
    columns = {"systems": {"first": f"{table}:x.1", "second": f"{table}:x.2"}}
    first, second = read_systems(CompareConfig(**news | columns), [])
    assert first.translations("news")[3]["detokenised"] == lines[3]
    assert second.translations("news")[3]["detokenised"] == "b"
    with pytest.raises(
        InputError, match=r"no column .*; it has source, x\.1, x\.2; type FILE:COLUMN"
    ):
        read_systems(CompareConfig(**news | {"systems": [table]}), [])
    for pattern in (f"{folder}/*.fr", str(folder)):
        with pytest.raises(InputError, match="no file matches"):
            read_systems(CompareConfig(**news | {"systems": [pattern]}), [])
    twice = {"a": news["reference"], "a.news": news["reference"]}
    with pytest.raises(InputError, match="two files for news"):
        read_systems(CompareConfig(**news | {"systems": twice}), [])


@pytest.mark.parametrize(
    ("source", "reference", "languages"),
    [
        ("news.de", "ref.A.en.gz", ["de", "en"]),
        ("en-zh.txt", "en-zh.refA.txt", ["en", "zh"]),
        ("wmt.cs-uk", "uk.txt.xz", ["cs", "uk"]),
        ("source.txt", "reference.txt", None),
    ],
)
def test_languages_come_from_file_names_or_keys(source, reference, languages) -> None:
    if languages:
        assert find_languages(source, reference) == languages
        return
    with pytest.raises(InputError, match=r"type languages=\[SOURCE,TARGET\]"):
        find_languages(source, reference)


@pytest.mark.slow
def test_unit_of_lengths_is_the_label(tmp_path: Path) -> None:
    """A length counts words (a URL is one word), or characters in Chinese; buckets adapt to long lines."""
    lines = [f"see https://example.org/{n}?a=b " + "w " * (60 + 3 * (n % 60)) for n in range(240)]
    text = {name: write(tmp_path / "t.en", lines) for name in ("source", "reference")}
    text["systems"] = {"copy": text["source"]}
    found = build_comparison(CompareConfig(**text, resamples=20))
    scale = found.runs[0].scales["t"]
    assert (scale.unit, scale.short, scale.long) == ("words", 100, 230)
    assert found.runs[0].translations("t")[0]["length"] == 62
    assert {100, 230} == set(found.retention[["from", "to"]].stack())
    assert "at 100 words" in set(found.retention["statistic"])
    assert found.by_length("t")["to"].dropna().max() == 230
    chinese = [f"他昨天在市场上买了{n}个红苹果。" for n in range(40)]
    text["source"] = write(tmp_path / "t.zh", chinese)
    text["reference"] = text["systems"]["copy"] = write(tmp_path / "u.en", lines[:40])
    found = build_comparison(CompareConfig(**text, resamples=20))
    assert found.unit("t") == "characters"
    assert found.runs[0].translations("t")[0]["length"] == 15
    assert "characters per" not in result_tables.retention_table(found, "t").markdown()
    assert (
        "Scores by length of the source sentence, in characters"
        in result_tables.lengths_table(found, "t").notes[0]
    )


@pytest.mark.parametrize("length", [10**18, 10**400, -5, 3.7, "x", True, None])
def test_refuses_lengths_that_are_not_whole_numbers(
    news: dict[str, Any], tmp_path: Path, length: Any
) -> None:
    rows = [{"n": 7.0} for _ in range(len(Path(news["source"]).read_text().splitlines()))]
    rows[2]["n"] = length
    metadata = write(tmp_path / "m.jsonl", rows)
    config = CompareConfig(
        **news | {"metadata": metadata, "document": None, "domain": None, "lengths": "n"}
    )
    with pytest.raises(
        InputError, match=r"m\.jsonl:3: n is .*must be a whole number from 0 to 10{9}$"
    ):
        read_systems(config, [])


@pytest.mark.slow
@pytest.mark.parametrize("name", [b"syst\xe8me.de", b"x" * 237 + b".de"])
def test_system_file_may_have_any_name(news: dict[str, Any], tmp_path: Path, name: bytes) -> None:
    folder = tmp_path / "outputs"
    folder.mkdir()
    file = folder / os.fsdecode(name)
    file.write_text((tmp_path / "good.de").read_text())
    found = build_comparison(CompareConfig(**news | {"systems": [f"{folder}/*"]}))
    write_comparison(found, tmp_path / "page", figures=["pdf"])
    assert found.runs[0].label == name[:-3].decode("utf-8", "replace")
    assert found.runs[0].label in (tmp_path / "page/comparison.html").read_text("utf-8")


@pytest.mark.parametrize("number", [10**400, "1e400", "-inf"])
def test_refuses_scores_that_are_not_finite(
    text: dict[str, Any], tmp_path: Path, number: Any
) -> None:
    file = write(tmp_path / "q.jsonl", [{"system": "mine", "q": each} for each in (1, number, 2)])
    with pytest.raises(InputError, match=r"scores\.q=.*: not numbers in column q: '"):
        build_comparison(CompareConfig(**text, scores={"q": file}))


def test_note_counts_outputs_that_equal_their_source(news: dict[str, Any], tmp_path: Path) -> None:
    lines = (tmp_path / "news.en").read_text().splitlines()
    news["reference"] = write(tmp_path / "v.de", [line.replace("w", "v") for line in lines])
    outputs = [*lines[:3], *(line.replace("w", "v") for line in lines[3:])]
    news["systems"] = {"lazy": write(tmp_path / "lazy.de", outputs)}
    notes = build_comparison(CompareConfig(**news)).notes["news"]
    assert "lazy: 3 outputs equal their source (10 to 50 words)." in notes


@pytest.mark.parametrize("name", ["bleu", "chrf", "bleu_no_unk"])
def test_refuses_the_name_of_a_built_in_score(text: dict[str, Any], name: str) -> None:
    with pytest.raises(InputError, match=f"scores.{name}: is a built-in score"):
        build_comparison(CompareConfig(**text, scores={name: "scores.tsv"}))


def test_empty_further_reference_is_ignored(text: dict[str, Any], tmp_path: Path) -> None:
    """sacrebleu writes None for a reference that a sentence lacks; the first may be missing, too."""
    text["reference"] = [
        write(tmp_path / "a.en", ["", *FIRST[1:]]),
        write(tmp_path / "b.en", [SECOND[0], "", SECOND[2]]),
    ]
    found = build_comparison(CompareConfig(**text, resamples=0))
    references = [[SECOND[0], *FIRST[1:]], [None, None, SECOND[2]]]
    wanted = BLEU().corpus_score(OUTPUT, references).score
    assert value(found, "mine", "sacrebleu") == pytest.approx(wanted)
    notes = found.notes["news"]
    assert any("nrefs:var" in note for note in notes)
    assert "2 of 3 sentences have fewer than 2 references." in notes


def test_refuses_output_in_another_order(news: dict[str, Any], tmp_path: Path) -> None:
    lines = (tmp_path / "good.de").read_text().splitlines()
    news["systems"] = {"sorted": write(tmp_path / "sorted.de", sorted(lines, key=len))}
    said = r"in another order.* line 2 fits the reference of line 3, and so .* type id=line"
    with pytest.raises(InputError, match=said):
        build_comparison(CompareConfig(**news))
    found = build_comparison(CompareConfig(**news, id="line"))
    assert value(found, "sorted", "bleu") < 5


def test_few_lines_may_fit_other_references() -> None:
    """In whole documents, 2.3 % of a weak system's lines resemble a neighbour's reference."""
    references = [[f"{n}.{k}" for k in range(9)] for n in range(300)]
    swapped = {n: references[n - 1] for n in range(1, 300)}
    some = [swapped[n] if n in range(10, 150, 20) else row for n, row in enumerate(references)]
    many = [swapped[n] if n in range(10, 250, 10) else row for n, row in enumerate(references)]
    rare = rare_features(references)
    assert misplaced(some, rare) == {}
    assert len(misplaced(many, rare)) == 24


def released(tmp_path: Path) -> dict[str, Any]:
    """A test set of 30 documents in two language pairs as JSONL, with an output in another order."""
    rows, outputs = [], []
    for n in range(60):
        pair = "en-de" if n % 2 else "en-fr"
        identity = f"{pair}_#_doc{n // 2}"
        paragraphs = [" ".join(f"w{n}.{k}.{i}" for i in range(12)) + "." for k in range(3)]
        reference = "\n\n".join(paragraphs)
        rows.append(
            {"doc_id": identity, "src_text": reference, "refs": {"refA": {"ref": reference}}}
        )
        outputs.append({"doc_id": identity, "hypothesis": reference})
    file = write(tmp_path / "wmt.jsonl", rows)
    text: dict[str, Any] = {"source": file, "reference": file, "languages": ["en", "de"]}
    text["systems"] = {"mine": write(tmp_path / "mine.jsonl", outputs[::-1])}
    return text | {"select": "doc_id=en-de*", "resamples": 0}


def test_rows_are_joined_by_id_and_documents_by_paragraph(tmp_path: Path) -> None:
    text = released(tmp_path)
    found = build_comparison(CompareConfig(**text))
    assert value(found, "mine", "bleu") == pytest.approx(100)
    [run] = found.runs
    assert len(run.translations("wmt")) == 90
    assert run.translations("wmt")[4]["raw_reference"].startswith("w3.1.0")
    assert not run.cut
    by_position = build_comparison(CompareConfig(**text, lengths="position"))
    lengths = [row["length"] for row in by_position.runs[0].translations("wmt")]
    assert lengths == [1, 2, 3] * 30
    assert by_position.unit("wmt") == "segments into the document"
    assert "by position in the document" in result_tables.lengths_table(by_position, "wmt").title
    by_document = build_comparison(CompareConfig(**text, lengths="document"))
    assert {row["length"] for row in by_document.runs[0].translations("wmt")} == {36}


def test_note_counts_what_select_leaves_out(tmp_path: Path) -> None:
    text = released(tmp_path)
    outputs = [json.loads(line) for line in (tmp_path / "mine.jsonl").open()]
    french = [row for row in outputs if row["doc_id"].startswith("en-fr")]
    text["systems"] |= {"french": write(tmp_path / "french.jsonl", french)}
    found = build_comparison(CompareConfig(**text))
    assert [run.label for run in found.runs] == ["mine"]
    assert (
        "select=doc_id=en-de*: 30 of 60 rows of the source. 1 output: 30 rows more, which are left out. "
        "1 of 2 systems have none of these rows: french."
    ) in found.notes["wmt"]


def test_refuses_an_id_without_partner(tmp_path: Path) -> None:
    text = released(tmp_path)
    with pytest.raises(InputError, match=r"select=doc_id=ja\*: matches no row; doc_id is en-de"):
        build_comparison(CompareConfig(**text | {"select": "doc_id=ja*"}))
    outputs = [json.loads(line) for line in (tmp_path / "mine.jsonl").open()]
    text["systems"] = {"some": write(tmp_path / "some.jsonl", outputs[:-2])}
    with pytest.raises(
        InputError, match=r"wmt\.jsonl:2: .*some\.jsonl has no row with doc_id=en-de_#_doc0"
    ):
        build_comparison(CompareConfig(**text))
    text["systems"] = {"twice": write(tmp_path / "twice.jsonl", [*outputs, outputs[0]])}
    text["source"] = text["reference"] = write(
        tmp_path / "wmt.jsonl", [{**row, "source": "a", "reference": "b"} for row in outputs]
    )
    with pytest.raises(
        InputError, match=r"twice\.jsonl:61: 2 rows with doc_id=.*; the source has 1"
    ):
        build_comparison(CompareConfig(**text))
    extra = [*outputs, {"doc_id": "other", "hypothesis": "a"}]
    text |= {"select": None, "systems": {"more": write(tmp_path / "more.jsonl", extra)}}
    with pytest.raises(
        InputError, match=r"more\.jsonl:61: .* has no row with doc_id=other; type id="
    ):
        build_comparison(CompareConfig(**text))


@pytest.mark.parametrize("how", ["line", "id", "fewer lines"])
def test_document_output_is_cut_into_segments(
    news: dict[str, Any], tmp_path: Path, how: str
) -> None:
    """Documents of ten segments are one text each, without segment 4 of each document."""
    lines = [f"{line}." for line in (tmp_path / "news.en").read_text().splitlines()]
    for key in ("source", "reference"):
        write(Path(news[key]), lines)
    documents = [[*lines[n : n + 3], *lines[n + 4 : n + 10]] for n in range(0, 80, 10)]
    rows: list[Any] = [" ".join(own) for own in documents]
    if how != "line":
        source = [{"source": line, "doc_id": f"d{n // 10}"} for n, line in enumerate(lines)]
        news |= {"source": write(tmp_path / "t.jsonl", source), "languages": ["en", "de"]}
        parts = [[row] for row in rows] if how == "id" else documents
        rows = [{"doc_id": f"d{n}", "mt": part} for n, own in enumerate(parts) for part in own][
            :: -1 if how == "id" else 1
        ]
    news["systems"] = {"whole": write(tmp_path / ("w.jsonl" if how != "line" else "w.txt"), rows)}
    found = build_comparison(CompareConfig(**news, document="doc", lengths="position"))
    [run] = found.runs
    [name] = run.sets
    texts = [row["detokenised"] for row in run.translations(name)]
    assert texts == ["" if n % 10 == 3 else line for n, line in enumerate(lines)]
    assert run.cut == {name}
    assert run.notes[name] == [
        "whole: 8 of 8 documents cut into the reference's segments by edit distance; 8 segments got "
        "nothing (4 segments into the document); 0 words of the output fit no segment."
    ]
    with pytest.raises(InputError, match="lengths=position: names no documents; type document="):
        build_comparison(CompareConfig(**news, lengths="position"))


def test_notes_count_copied_empty_and_repeated_outputs(
    news: dict[str, Any], tmp_path: Path
) -> None:
    lines = (tmp_path / "news.en").read_text().splitlines()
    references = [line.replace("w", "v") for line in lines]
    outputs = [*references[:4], "", *["I cannot translate this."] * 6, *references[11:]]
    news["reference"] = write(tmp_path / "copies.de", references)
    news["systems"] = {"llm": write(tmp_path / "llm.de", outputs)}
    notes = build_comparison(CompareConfig(**news)).notes["news"]
    [counts] = [note for note in notes if note.startswith("llm: ")]
    assert counts == (
        "llm: 1 output empty (10 words); 6 outputs are 'I cannot translate this.' (10 to 50 words)."
    )


@pytest.mark.parametrize(("change", "line"), [("split", 31), ("lost", 31)])
def test_refusal_names_the_first_misaligned_line(
    news: dict[str, Any], tmp_path: Path, change: str, line: int
) -> None:
    lines = (tmp_path / "good.de").read_text().splitlines()
    middle = lines[30].split()
    parts = [" ".join(middle[:4]), " ".join(middle[4:])] if change == "split" else []
    news["systems"] = {"bad": write(tmp_path / "bad.de", [*lines[:30], *parts, *lines[31:]])}
    with pytest.raises(InputError) as refused:
        build_comparison(CompareConfig(**news))
    found = int(re.search(r"from line (\d+) on", str(refused.value))[1])
    assert abs(found - line) <= 1


def test_short_segments_of_documents_that_are_badly_cut_have_no_scores(
    news: dict[str, Any], tmp_path: Path
) -> None:
    """`bad` has documents of which most words are wrong, so their cuts are unreliable."""
    lines = [" ".join(f"w{n}x{i}" for i in range(40 if n % 2 else 6)) for n in range(160)]
    for key in ("source", "reference"):
        news[key] = write(Path(news[key]), lines)
    wrong = [
        " ".join(word if n % 7 == 0 else "zz" for n, word in enumerate(line.split()))
        for line in lines
    ]
    del news["metadata"]
    rows = [{"source": line, "doc": f"d{n // 10}"} for n, line in enumerate(lines)]
    news |= {"source": write(tmp_path / "s.jsonl", rows), "languages": ["en", "de"]}
    documents = [" ".join(wrong[n : n + 10]) for n in range(0, 160, 10)]
    news["systems"] = {
        "good": news["reference"],
        "bad": write(tmp_path / "documents.de", documents),
    }
    found = build_comparison(CompareConfig(**news, document="doc", short=6, long=40))
    [name] = found.sets
    assert found.runs[1].cut == {name}
    buckets = found.by_length(name).query("key == 'bleu'")
    assert set(buckets.query("run == 'good'")["bucket"]) == {"1-10", "31-40"}
    assert set(buckets.query("run == 'bad'")["bucket"]) == {"31-40"}
    assert set(found.differences.query("score == 'bleu'")["bucket"]) == {"all", "31-40"}
    short = found.curves.query("words < 10")
    assert set(short["name"]) == {"good"}
    assert set(short["other"].fillna("")) == {""}
    assert not found.curves.query("words > 30 and other == 'bad' or name == 'bad'").empty
