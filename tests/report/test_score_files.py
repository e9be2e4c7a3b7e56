"""Scores from files: what they mean, MQM ratings, tables without outputs, and scores compared with each other."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from nmt.config.commands import CompareConfig
from nmt.report.comparison import Comparison, build_comparison
from nmt.report.declared_scores import Meaning, ScoreOptions, declare
from nmt.report.result_tables import against_table, headline, retention_table
from nmt.report.score_files import read_scores
from nmt.report.write import write_comparison
from nmt.utils.errors import InputError

NAMES = ("A", "B", "C", "D")


def write(path: Path, rows: list[dict[str, Any]]) -> str:
    """Writes a TSV file with a heading."""
    pd.DataFrame(rows).to_csv(path, sep="\t", index=False)
    return str(path)


def scored(
    tmp_path: Path, *, falls: dict[str, float], names: tuple[str, ...] = NAMES, **more: Any
) -> Comparison:
    """Compares tables of scores, which fall by a share between 10 and 50 words; 800 sentences of 4 to 80 words."""
    generator = np.random.default_rng(3)
    words = generator.integers(4, 81, 800)
    difficulty = generator.normal(0, 0.02, 800)
    files = {}
    for score, fall in falls.items():
        rows = []
        for place, system in enumerate(names):
            level = 0.8 - 0.05 * place
            value = level * (1 - fall * np.log(words / 10) / np.log(5)) + difficulty
            value += generator.normal(0, 0.02, 800)
            rows += [
                {"system": system, "seg_id": n, "words": w, score: v}
                for n, (w, v) in enumerate(zip(words, value, strict=True), 1)
            ]
        files[score] = {
            "file": write(tmp_path / f"{score}.tsv", rows),
            "better": "high",
            "worst": 0,
        }
    files |= more.pop("scores", {})
    return build_comparison(
        CompareConfig(scores=files, lengths="words", resamples=200, short=10, long=50, **more)
    )


def retention(found: Comparison, key: str, name: str, statistic: str = "retention") -> pd.Series:
    frame = found.retention
    frame = frame[(frame["key"] == key) & (frame["name"] == name)]
    return frame[frame["statistic"] == statistic].iloc[0]


@pytest.mark.parametrize(
    ("name", "values", "meaning"),
    [
        ("xcomet", [0.3, 0.9], Meaning(True, 1, 0)),
        ("MetricX-24", [1.0, 7.0], Meaning(False, 0, 25)),
        ("metricx", [-1.0, -7.0], Meaning(True, 0, -25)),
        ("esa", [-0.4, 1.2], Meaning(True, 100, 0)),
        ("da", [-31.0, 50.0], Meaning(True)),
        ("bleurt", [0.2], Meaning(True)),
        ("mine", [0.2], Meaning()),
    ],
)
def test_names_that_are_known_give_their_meaning(
    name: str, values: list[float], meaning: Meaning
) -> None:
    score = declare(name, ScoreOptions(), pd.DataFrame({name: values}))
    assert Meaning(score.higher_is_better, score.best, score.worst) == meaning


def test_options_override_what_is_known() -> None:
    penalties = pd.DataFrame({"mqm": [-3.0, 2.0]})
    score = declare("mqm", ScoreOptions(better="high", worst=-50), penalties)
    assert (score.higher_is_better, score.best, score.worst) == (True, None, -50)
    per_word = declare("mqm", ScoreOptions(per="words"), penalties.abs())
    assert (per_word.title, per_word.best, per_word.worst) == ("mqm per word", 0, None)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"file": "a", "direction": "low"}, r"scores\.x\.direction: .*the keys are file, better"),
        ({"better": "low"}, r"scores\.x\.file: .*missing mandatory value"),
        ({"file": "a", "better": "lower"}, r"scores\.x\.better=lower: must be one of high, low"),
        ({"file": "a", "worst": "none"}, r"scores\.x\.worst: Value 'none'"),
    ],
)
def test_an_option_that_is_wrong_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_scores({"x": given})


def ratings(tmp_path: Path, *severities: str) -> str:
    """Writes the ratings of one segment of five words, by one rater."""
    row = {"system": "A", "doc": "d", "seg_id": 7, "rater": "r1", "source": "a <v>b</v> c d e"}
    rows = [row | {"category": "Accuracy/Addition", "severity": each} for each in severities]
    return write(tmp_path / "mqm.tsv", rows)


def test_ratings_become_penalties_by_segment_and_by_word(tmp_path: Path) -> None:
    file = Path(ratings(tmp_path, "Major", "Minor", "HOTW-test"))
    head = "A\td\t7\tr2\ta <v>b</v> c d e"
    with file.open("a") as lines:
        lines.write(f"{head}\tFluency/Punctuation\tMinor\n{head}\tNon-translation!\tMajor\n")
        lines.write("A\td\t8\tr2\tf g\tNo-error\tNo-error\n")
    score, per_word = read_scores({"mqm": str(file)})
    table = score.values
    assert table["mqm"].tolist() == [pytest.approx((6 + 25.1) / 2), 0]
    assert table["source"].tolist() == ["a b c d e", "f g"]
    assert (score.title, per_word.title) == ("mqm", "mqm per word")
    found = build_comparison(CompareConfig(scores={"mqm": str(file)}, resamples=0))
    whole = found.whole("scores").set_index("key")["value"]
    assert whole["mqm"] == pytest.approx(31.1 / 4)
    assert whole["mqm_per_word"] == pytest.approx(31.1 / 2 / 7)
    heavier = {"mqm": {"file": str(file), "weights": {"major": 10}}}
    assert read_scores(heavier)[0].values["mqm"][0] == pytest.approx((11 + 25.1) / 2)


def test_a_severity_without_a_weight_is_refused(tmp_path: Path) -> None:
    file = ratings(tmp_path, "Minor", "Critical")
    with pytest.raises(InputError, match=r"row 3 has severity 'Critical'.*weights\.critical="):
        read_scores({"mqm": file})
    given = {"mqm": {"file": file, "weights": {"critical": 10}}}
    assert read_scores(given)[0].values["mqm"].tolist() == [11]


def test_raters_of_a_sentence_are_averaged_and_names_of_systems_matched(tmp_path: Path) -> None:
    rows = [
        {"system": name, "seg_id": 1, "rater": rater, "esa": value, "source": "a b"}
        for name, rater, value in [("Online-W", 1, 60), ("Online-W", 2, 80), ("ref", 1, 90)]
    ]
    (tmp_path / "s.en").write_text("a b\n")
    (tmp_path / "r.de").write_text("c d\n")
    (tmp_path / "ONLINE-W").write_text("c d\n")
    found = build_comparison(
        CompareConfig(
            source=str(tmp_path / "s.en"),
            reference=str(tmp_path / "r.de"),
            systems={name: str(tmp_path / "ONLINE-W") for name in ("ONLINE-W", "mine")},
            scores={"esa": write(tmp_path / "esa.tsv", rows)},
            resamples=0,
        )
    )
    assert found.whole("s").query("key == 'esa'")["value"].tolist() == [70]
    assert "esa: its file also scores ref, not compared." in found.notes["s"]
    assert "esa: no rows for mine." in found.notes["s"]


def test_scores_per_paragraph_are_joined_with_the_source_by_document(tmp_path: Path) -> None:
    """Rows as in WMT25: a list of scores per document; the source names pair, domain and document in one id."""
    source = [
        {"doc_id": f"en-ru_#_{domain}_#_{name}", "src_text": text}
        for domain, name, text in [("news", "n1", "a b c\n\nd"), ("social", "s1", "e f")]
    ]
    (tmp_path / "s.jsonl").write_text("".join(json.dumps(row) + "\n" for row in source))
    for system, scores in (("A", [[0.5], [0.25, 0.75]]), ("B", [[0.1], [0.2, 0.3]])):
        rows = [
            {"language_pair": pair, "document_id": name, "all": {"x": values}}
            for pair, name, values in zip(
                ("en-ru", "en-ru", "en-cs"), ("s1", "n1", "n1"), [*scores, [0, 0]], strict=True
            )
        ]
        (tmp_path / f"{system}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = build_comparison(
        CompareConfig(
            source=str(tmp_path / "s.jsonl"),
            scores={"xcomet": f"{tmp_path}/[AB].jsonl:all.x"},
            select="language_pair=en-ru",
            domain="domain",
            document="document_id",
            resamples=0,
        )
    )
    records = found.runs[0].records["s"]
    assert [row["statistics"]["xcomet"][0] for row in records] == [0.25, 0.75, 0.5]
    assert [(row["length"], row["domain"]) for row in records] == [
        (3, "news"),
        (1, "news"),
        (2, "social"),
    ]


def test_tables_without_source_and_lengths_are_refused(tmp_path: Path) -> None:
    file = write(tmp_path / "x.tsv", [{"system": "A", "comet": 0.5, "size": 3}])
    with pytest.raises(
        InputError, match=r"lengths: the tables of scores have no source text.*size"
    ):
        build_comparison(CompareConfig(scores={"comet": file}))


def test_a_metric_that_falls_alone_is_told_from_one_that_does_not(tmp_path: Path) -> None:
    found = scored(tmp_path, falls={"human": 0.0, "metric": 0.2}, scores={"against": "human"})
    rows = found.against.query("score == 'metric'").set_index("statistic")
    difference = rows.loc["difference of retention"]
    assert difference["low"] < -0.2 < difference["high"]
    assert rows.loc["retention", "value"] == pytest.approx(0.8, abs=0.01)
    assert rows.loc["systems that fall", "value"] == 4
    assert (rows["sentences"] == 800).all()
    human = found.against.query("score == 'human'").set_index("statistic")
    assert human.loc["systems that fall", "value"] == 0
    said = headline(found, "scores")
    assert "metric falls for 4 of 4 systems by " in said
    assert "; human for none (difference of retention: −20 points" in said
    assert "cannot tell which" in said
    table = against_table(found, "scores").frame.set_index("Score")
    assert table.loc["metric", "Systems that fall"].beside == "of 4"


def test_scores_are_compared_on_the_sentences_that_all_have(tmp_path: Path) -> None:
    """Sentences without a human score, on which the metric does not fall, do not count."""
    rows = [
        {"system": name, "seg_id": n, "words": 10 if n <= 200 else 50, "x": x, "esa": esa}
        for name in NAMES
        for n in range(1, 401)
        for esa, x in [(60 + n % 7, 0.5) if n % 2 else ("", 1.0 if n > 200 else 0.5)]
    ]
    file = write(tmp_path / "all.tsv", rows)
    given = {"esa": file, "x": {"file": file, "better": "high", "worst": 0}}
    found = build_comparison(CompareConfig(scores=given, lengths="words", resamples=50))
    kept = found.against.query("score == 'x' and statistic == 'retention'").iloc[0]
    assert (kept["sentences"], kept["value"], kept["against"]) == (200, pytest.approx(1), "esa")
    assert retention(found, "x", "A")["value"] == pytest.approx(1.5)
    assert any("200 of 400 sentences" in note for note in found.notes["scores"])
    with pytest.raises(InputError, match="against=bleu: must be one of esa, x"):
        build_comparison(
            CompareConfig(scores=given | {"against": "bleu"}, lengths="words", resamples=0)
        )


def test_a_score_without_a_worst_value_has_a_change_and_a_penalty_a_ratio(tmp_path: Path) -> None:
    rows = [
        {"system": "A", "seg_id": n, "words": words, "z": words / 10 - 3, "mqm": -words / 10}
        for n, words in enumerate([10] * 50 + [50] * 50, 1)
    ]
    file = write(tmp_path / "z.tsv", rows)
    rate = {"file": f"{file}:mqm", "per": "words", "better": "high", "best": 0}
    given = {"z": {"file": file, "better": "high"}, "mqm": file, "rate": rate}
    found = build_comparison(CompareConfig(scores=given, lengths="words", resamples=20))
    change = retention(found, "z", "A", "change")
    assert (change["value"], change["low"], change["high"]) == (pytest.approx(4),) * 3
    assert retention(found, "mqm", "A", "error ratio")["value"] == pytest.approx(5)
    assert retention(found, "mqm", "A")["value"] == pytest.approx(20 / 24)
    assert found.retention.query("key == 'z' and statistic == 'retention'").empty
    assert any(
        note.startswith("Retention of z is unknown: its worst value") and "scores.z.worst=" in note
        for note in found.notes["scores"]
    )
    assert retention(found, "rate", "A", "at 50 words")["value"] == pytest.approx(-0.1)
    assert retention(found, "rate", "A", "error ratio")["value"] == pytest.approx(1)


@pytest.mark.parametrize(("short", "long", "withheld"), [(30, 50, True), (10, 50, False)])
def test_retention_between_close_lengths_is_withheld(
    tmp_path: Path, short: int, long: int, withheld: bool
) -> None:
    scored(tmp_path, falls={"x": 0.1}, names=("A",))
    config = {"file": str(tmp_path / "x.tsv"), "better": "high", "worst": 0}
    found = build_comparison(
        CompareConfig(scores={"x": config}, lengths="words", short=short, long=long, resamples=20)
    )
    statistics = set(found.retention["statistic"])
    assert ("retention" in statistics) is not withheld
    assert f"at {short} words" in statistics
    assert any("too close" in note for note in found.notes["scores"]) is withheld


def test_a_system_that_fails_on_short_sentences_is_named(tmp_path: Path) -> None:
    found = scored(tmp_path, falls={"x": 0.0, "y": -0.6}, names=("A", "B", "C"))
    assert retention(found, "y", "A", "of the median at 10 words")["value"] == pytest.approx(
        0.8 / 0.75, abs=0.02
    )
    assert found.retention.query("key == 'x' and statistic.str.startswith('of the')").empty
    notes = [note for note in found.notes["scores"] if "short sentences fail" in note]
    assert len(notes) == 3
    assert "of the median at 10 words" in notes[0]
    assert "Of the median at 50 words" in retention_table(found, "scores").frame


def test_clumps_of_lengths_say_which_lengths_are_needed(tmp_path: Path) -> None:
    rows = [
        {"system": "A", "seg_id": n, "words": (5, 23, 80)[n % 3], "comet": 0.5} for n in range(300)
    ]
    given = {"comet": write(tmp_path / "c.tsv", rows)}
    found = build_comparison(
        CompareConfig(scores=given, lengths="words", resamples=0, short=10, long=50)
    )
    assert found.retention.empty
    [note] = [note for note in found.notes["scores"] if note.startswith("Retention")]
    assert "at about 10 and 50 words; there are enough at " in note
    assert "short=" in note


def test_a_page_of_scores_alone_has_no_published_table_and_counts_systems(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    found = scored(tmp_path, falls={"comet": 0.1, "esa_like": 0.0}, names=("A", "B"))
    page = write_comparison(found, tmp_path / "page").read_text(encoding="utf-8")
    assert "2 systems compared" in caplog.text
    assert "Published in the paper" not in page
    assert "Published in the paper" not in (tmp_path / "page/tables/tables.md").read_text()
    assert 'id="translations-section"' not in page
    assert len(pd.read_csv(tmp_path / "page/tables/against.csv"))


def outputs_of(tmp_path: Path, lines: int, systems: tuple[str, ...]) -> dict[str, Any]:
    """Writes a text, and the same output of each system; returns the keys of a comparison."""
    text = "".join(f"word {n} here\n" for n in range(lines))
    for name in ("s.en", "r.de", *systems):
        (tmp_path / name).write_text(text)
    files = {name: str(tmp_path / name) for name in systems}
    source, reference = str(tmp_path / "s.en"), str(tmp_path / "r.de")
    return {"source": source, "reference": reference, "systems": files, "resamples": 0}


def scores_in(found: Comparison, place: int) -> list[float | None]:
    """The scores `x` of the sentences of a system; None where a sentence has none."""
    records = found.runs[place].translations("s")
    return [row["statistics"].get("x", [None])[0] for row in records]


@pytest.mark.parametrize("first", [0, 1])
def test_ids_of_a_system_without_the_first_sentence_start_where_those_of_others_do(
    tmp_path: Path, first: int
) -> None:
    rows = [
        {"system": name, "seg_id": n + first, "x": n / 10}
        for name, numbers in (("A", range(4)), ("B", range(1, 3)))
        for n in numbers
    ]
    config = outputs_of(tmp_path, 4, ("A", "B"))
    config["scores"] = {"x": write(tmp_path / "x.tsv", rows)}
    found = build_comparison(CompareConfig(**config))
    assert scores_in(found, 0) == [0, 0.1, 0.2, 0.3]
    assert scores_in(found, 1) == [None, 0.1, 0.2, None]


def test_a_note_says_that_it_is_unknown_where_ids_start(tmp_path: Path) -> None:
    rows = [{"system": "A", "seg_id": n, "x": n} for n in (1, 3)]
    config = outputs_of(tmp_path, 4, ("A",))
    found = build_comparison(CompareConfig(**config, scores={"x": write(tmp_path / "x.tsv", rows)}))
    assert scores_in(found, 0) == [1, None, 3, None]
    assert "x: no row has seg_id 0 or 4; ids are taken to start at 1." in found.notes["s"]


def test_a_column_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    file = write(tmp_path / "x.tsv", [{"system": "A", "seg_id": 1, "x": 0.5}])
    [score] = read_scores({"other": file})  # the only column of numbers
    assert score.values["other"].tolist() == [0.5]
    for name in ("x", "other"):
        with pytest.raises(InputError, match=r"no column x_xl; wanted: .* in a column x_xl"):
            read_scores({name: f"{file}:x_xl"})


def test_systems_that_differ_in_their_last_number_stay_apart(tmp_path: Path) -> None:
    rows = [
        {"system": f"model.{step}", "seg_id": n, "words": n, "x": step}
        for step in (1000, 2000)
        for n in range(1, 5)
    ]
    scores = {"x": write(tmp_path / "x.tsv", rows)}
    alone = build_comparison(CompareConfig(scores=scores, lengths="words", resamples=0))
    assert [run.label for run in alone.runs] == ["model.1000", "model.2000"]
    config = outputs_of(tmp_path, 4, ("model.1000", "model.3000"))
    found = build_comparison(CompareConfig(**config, scores=scores))
    assert scores_in(found, 0) == [1000] * 4
    assert all(
        "statistics" not in row or "x" not in row["statistics"]
        for row in found.runs[1].translations("s")
    )
    assert "x: no rows for model.3000." in found.notes["s"]
    one = {"x": write(tmp_path / "y.tsv", [row | {"system": "model"} for row in rows[:4]])}
    with pytest.raises(InputError, match=r"scores\.x: its file has no row for a test set of model"):
        build_comparison(CompareConfig(**config, scores=one))  # it could be either
