"""What was measured: kept without text and paths, and shown as it was kept."""

from __future__ import annotations

import copy
import doctest
import json
import math
import re
import shutil
import statistics
import subprocess
import sys
from collections import Counter

import pytest

from benchmarks.records import __main__ as program
from benchmarks.records import figures, rows, tables
from benchmarks.records.figures import draw_figures, figure_of
from benchmarks.records.rows import record, write_record
from benchmarks.records.tables import PAGES, RECORDS, read_records, table_of, with_tables
from nmt.evaluation.results import read
from tests.helpers.run_folders import make_run

CLAIM = {
    **{"name": "wins", "score": "bleu", "verdict": "supported", "value": 3.21487, "low": -1.0},
    **{"high": 5.5, "confidence": 0.95, "p": 0.01, "sentences": 60, "seeds": 2, "of": "seeds"},
    **{
        "reason": "",
        "rule": "above 0",
        "command": "python -m nmt.study +study=a study.only=[wins]",
    },
    "claim": {
        **{"claim": "One is better", "source": "the paper", "runs": ["search", "fixed"]},
        **{"statistic": "score", "score": "bleu", "set": "newstest", "range": "all"},
        **{"rule": "above", "margin": 0.0},
    },
}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Groups with all runs, with one that has not finished, with the point of a sweep, and with none."""
    folder = tmp_path_factory.mktemp("study")
    entries = []
    for group, model, seeds in (("search", "RNNsearch", (1, 2)), ("fixed", "RNNencdec", (1, None))):
        for seed in seeds:
            place = seed and make_run(folder / f"{group}{seed}", model=model, seed=seed, pairs=60)
            command = f"python -m nmt.train +experiment={group}"
            entries.append(
                {
                    "group": group,
                    "seed": seed or 2,
                    "final": True,
                    "command": command,
                    "folder": place and str(place),
                }
            )
    entries.append({**entries[0], "final": False})  # of a sweep: not chosen
    file = folder / "search1/results.json"
    results = json.loads(file.read_text())
    results["overrides"] += [f"data.root={folder}", f"hydra.run.dir={folder}", "trainer.threads=1"]
    file.write_text(json.dumps(results))
    no_figure = {"value": None, "low": None, "high": None}
    open_claim = {**CLAIM, **no_figure, "name": "open", "verdict": "undecided"}
    study = {
        "title": "A study",
        "registrations": [{"sha256": "a", "runs": 0}],
        "titles": {"fixed": "RNNencdec-50", "search": "RNNsearch-50", "joined": "joined"},
        "runs": entries,
        "claims": [CLAIM, open_claim],
    }
    return folder, study


@pytest.fixture
def kept(made):
    return record("a", made[1], {"processor": "a processor"})


def test_what_is_kept_of_runs(made, kept):
    folder, _ = made
    assert [row["name"] for row in kept["rows"]] == ["RNNencdec-50", "RNNsearch-50"]
    fixed, search = kept["rows"]
    results = [read(folder / f"search{seed}") for seed in (1, 2)]
    bleu = [found["test"]["newstest"]["bleu"]["all"]["score"] for found in results]
    told = [run["test"]["newstest"]["scores"]["bleu"]["score"] for run in search["runs"]]
    assert told == pytest.approx(bleu, abs=1e-4)
    assert search["over_seeds"]["newstest"]["bleu"] == {
        "mean": pytest.approx(sum(bleu) / 2, abs=1e-3),
        "sd": pytest.approx(abs(bleu[0] - bleu[1]) / 2**0.5, abs=1e-3),
    }
    assert fixed["over_seeds"] == {}
    first = search["runs"][0]
    assert first["typed"] == ["+experiment=rnnsearch50", "seed=1", "trainer.threads=1"]
    assert first["minutes"] == pytest.approx(60 * 0.32)
    assert (first["processor"], first["commit"]) == ("a processor", None)
    assert [claim["name"] for claim in kept["claims"]] == ["wins"]
    assert str(folder) not in json.dumps(kept)


def test_a_length_outside_the_data_can_decide_a_claim():
    said = {**CLAIM["claim"], "statistic": "breakpoint"}
    claim = {**CLAIM, "claim": said, "value": None, "low": None, "high": 16.04}
    assert rows.is_decided(claim)
    assert tables.claim_figure(rows.claim_entry(claim)) == "before 16.0 words, 2 seeds"


def test_tables_of_what_is_kept(kept):
    records = {"a": kept}
    spread = kept["rows"][1]["over_seeds"]["newstest"]["bleu"]
    table = table_of("a scores newstest en-fr", records)
    assert f"| RNNsearch-50 | 1, 2 | {spread['mean']:.2f} ± {spread['sd']:.2f} |" in table
    one = kept["rows"][0]["runs"][0]["test"]["newstest"]["scores"]["bleu"]
    assert (
        f"| RNNencdec-50 | 1 | {one['score']:.2f} [{one['low']:.2f}, {one['high']:.2f}] |" in table
    )
    assert table_of("claims", records).splitlines()[-2] == (
        "| One is better | a, newstest | supported | 3.21 [−1.00, 5.50], 2 seeds | "
        "`python -m nmt.study +study=a study.only=[wins]` |"
    )
    assert "| One is better | the paper | supported | 3.21 " in table_of("claims a", records)
    some = table_of("a scores newstest en-fr fix*", records)
    assert ("RNNencdec-50" in some, "RNNsearch-50" in some) == (True, False)
    lengths = table_of("a lengths newstest en-fr", records)
    values = [
        run["test"]["newstest"]["by_length"][0]["bleu"]["score"] for run in kept["rows"][1]["runs"]
    ]
    assert f" {statistics.fmean(values):.1f} ± {statistics.stdev(values):.1f} |" in lengths
    likely = table_of("a lengths:nll_per_word newstest en-fr fix*", records)
    nll = kept["rows"][0]["runs"][0]["test"]["newstest"]["by_length"][0]["nll_per_word"]["score"]
    assert f"| RNNencdec-50 | 1 | {nll:.2f} |" in likely
    assert table_of("a runs newstest en-fr", records).count("\n| RNNsearch-50 |") == 2
    assert "RNNencdec" not in table_of("a alignment newstest en-fr", records)
    for wrong in (
        "a scores newstest fr-en",
        "a scores other en-fr",
        "a scores newstest en-fr nothing",
        "claims b",
        "a scores:bleu newstest en-fr",
        "b scores newstest en-fr",
        "a",
    ):
        with pytest.raises(ValueError, match=r"no such (table|rows)"):
            table_of(wrong, records)


def test_bleu_by_unknown_words(made, kept, tmp_path):
    """From the translations, unless results.json has it."""
    folder, study = made
    parts = kept["rows"][0]["runs"][0]["test"]["newstest"]["by_unknown_words"]
    counts = Counter(
        min(sum(json.loads(line)["unknown_words"]), 4)
        for line in (folder / "fixed1/translations/newstest.jsonl").read_text().splitlines()
    )
    ends = [(number, None if number == 4 else number) for number in sorted(counts)]
    assert [(part["from"], part["to"]) for part in parts] == ends
    assert [part["sentences"] for part in parts] == [counts[number] for number, _ in ends]
    again = copy.deepcopy(study)
    (entry,) = [run for run in again["runs"] if run["folder"] == str(folder / "fixed1")]
    entry["folder"] = str(shutil.copytree(folder / "fixed1", tmp_path / "fixed1"))
    results = read(tmp_path / "fixed1")
    told = {"from": 3, "to": 3, "score": 12.34, "low": 1.0, "high": 20.0, "sentences": 8}
    results["test"]["newstest"]["by_unknown_words"] = [told]
    (tmp_path / "fixed1/results.json").write_text(json.dumps(results))
    table = table_of("a unknown newstest en-fr fix*", {"a": record("a", again, {})})
    assert table.splitlines()[1] == "|  | seeds | 3 |"
    assert "| RNNencdec-50 | 1 | 12.3 |" in table


def test_a_claim_about_bleu_without_unknown_words_is_shown(kept):
    kept["claims"][0]["score"] = "bleu_no_unk"
    assert "| 3.21 [−1.00, 5.50], 2 seeds |" in table_of("claims", {"a": kept})


def test_a_figure_is_rounded_where_it_is_shown_and_nowhere_else():
    claim = {**CLAIM, "score": "alignment_error_rate", "value": 0.082, "low": 0.06546}
    assert tables.claim_figure(rows.claim_entry(claim)).startswith("0.082 [0.065, ")


def test_aligners_stand_beside_a_model(made, kept):
    folder, _ = made
    result = read(folder / "search1")["test"]["newstest"]
    figure = {"score": 0.123456, "low": 0.1, "high": 0.2}
    result["alignment"]["statistical_aligners"] = {
        "training_pairs": 9,
        "hmm": {"sentences": 60, "alignment_error_rate": figure},
    }
    entry = rows.set_entry(result)
    assert entry["aligners"] == {"hmm": {"alignment_error_rate": figure}}
    assert entry["by_length"][0]["bleu_no_unk"]["score"] > 0
    kept["rows"][1]["runs"][0]["test"]["newstest"] = entry
    table = table_of("a alignment newstest en-fr", {"a": kept})
    assert "| RNNsearch-50: hmm | – | 0.123 [0.100, 0.200] | – |" in table
    aer = result["alignment"]["alignment_error_rate"]["score"]
    assert f"\n| RNNsearch-50 | 1, 2 | {aer:.3f} ± 0.000 |" in table


def test_figures_are_drawn_where_a_page_asks_for_them(tmp_path, kept):
    page = tmp_path / "page.md"
    page.write_text("![BLEU](by-length.png)\n<!-- figure: a newstest en-fr search -->\n")
    assert draw_figures(page, {"a": kept}) == [tmp_path / "by-length.png"]
    assert (tmp_path / "by-length.png").is_file()
    page.write_text("a page\n<!-- figure: a newstest en-fr search -->\n")
    with pytest.raises(ValueError, match="no picture"):
        draw_figures(page, {"a": kept})


def test_a_figure_of_joined_sentences(kept):
    """A point for each length that there is a set of."""
    for run in kept["rows"][1]["runs"]:
        single = run["test"]["newstest"]
        for length, score in ((40, 12.5), (20, 25.0)):
            scores = {"bleu": {"score": score + run["seed"]}}
            run["test"][f"newstest-joined{length}"] = {**single, "pairs": length, "scores": scores}
    figure = figure_of("a newstest-joined* en-fr sea*", {"a": kept})
    panel = next(axes for axes in figure.axes if axes.get_title() == "All sentences")
    assert panel.lines[0].get_ydata().tolist() == [26.5, 14.0]  # of seeds 1 and 2
    labels = [label.get_text() for axes in figure.axes for label in axes.get_xticklabels()]
    assert {"20", "40"} <= set(labels)
    with pytest.raises(ValueError, match="no such rows"):
        figure_of("a newstest-joined* en-fr fixed", {"a": kept})


def test_a_figure_shows_what_was_kept(made, kept):
    figure = figure_of("a newstest en-fr", {"a": kept})
    panels = [axes for axes in figure.axes if axes.get_title()]
    assert [panel.get_title() for panel in panels] == ["All sentences", "No unknown words"]
    for panel, key in zip(panels, ("bleu", "bleu_no_unk"), strict=True):
        named = {line.get_label(): line for line in panel.lines}
        for row in kept["rows"]:
            scores = [
                [found.get(key, {}).get("score", math.nan) for found in each["by_length"]]
                for each in (run["test"]["newstest"] for run in row["runs"])
            ]
            expected = [statistics.fmean(values) for values in zip(*scores, strict=True)]
            assert named[row["name"]].get_ydata() == pytest.approx(expected, nan_ok=True)
    folder, _ = made
    file = folder / "search1/results.json"
    results = json.loads(file.read_text())
    line = [[4.0, 30.123456], [50.0, 20.0]]
    results["test"]["newstest"]["degradation"] = {
        "bleu": {"all": None, "to_cap": None, "beyond_cap": None, "line": line}
    }
    entry = rows.set_entry(results["test"]["newstest"])
    assert entry["fits"] == {"bleu": line}
    kept["rows"][0]["runs"][0]["test"]["newstest"] = entry
    fitted = figure_of("a newstest en-fr fixed", {"a": kept})
    assert [line.get_linestyle() for line in fitted.axes[0].lines].count(":") == 1


@pytest.mark.parametrize(
    "asked", ["b newstest en-fr", "a newstest", "a newstest fr-en", "a newstest en-fr search x"]
)
def test_a_figure_that_there_is_not(kept, asked):
    with pytest.raises(ValueError, match=r"no such rows|are needed"):
        figure_of(asked, {"a": kept})
    if len(asked.split()) > 2:
        text, *others = asked.split()
        with pytest.raises(ValueError, match="no such rows"):
            table_of(" ".join([text, "scores", *others]), {"a": kept})


def test_lines_of_one_name_are_not_drawn_as_one(kept):
    kept["rows"][0]["name"] = kept["rows"][1]["name"]
    with pytest.raises(ValueError, match="two groups have one name"):
        figure_of("a newstest en-fr", {"a": kept})


def test_a_record_is_read_as_it_was_written(tmp_path, kept):
    write_record(tmp_path / "a.json", kept)
    assert json.loads((tmp_path / "a.json").read_text()) == kept


def test_the_tables_of_the_documentation_are_those_of_its_records():
    for page in PAGES:
        assert with_tables(page.read_text(), read_records()) == page.read_text()


def test_a_table_that_was_changed_by_hand_is_found():
    page, records = PAGES[0].read_text(), read_records()
    changed = copy.deepcopy(records)
    for row in changed["multi30k"]["rows"]:
        for run in row["runs"]:
            run["test"]["test2016"]["scores"]["bleu"]["score"] += 1
    assert with_tables(page, changed) != page


@pytest.mark.parametrize("file", sorted(RECORDS.glob("*.json")), ids=lambda file: file.stem)
def test_a_record_has_neither_text_nor_paths(file):
    def strings(value):
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict | list):
            for each in value if isinstance(value, list) else [*value, *value.values()]:
                yield from strings(each)

    found = list(strings(json.loads(file.read_text())))
    assert len(found) > 20
    for each in found:
        assert len(each) < 400
        assert not any(part in each for part in ("/tmp", "/root", "/home", "/work", "=/"))


def test_runs_of_other_code_are_not_said_to_be_of_a_commit(kept, monkeypatch):
    monkeypatch.setattr(program, "code_of", lambda commit: "another")
    program.refuse_other_commits(kept, None)
    kept["rows"][0]["runs"][0]["commit"] = "abc"
    with pytest.raises(SystemExit, match="RNNencdec-50, seed 1: not made by the code of abc"):
        program.refuse_other_commits(kept, "abc")


def test_the_code_of_a_commit(tmp_path, monkeypatch):
    """As a run of that commit says it: another way of telling code apart is another fingerprint."""
    repository = tmp_path / "r"
    (repository / "nmt/utils").mkdir(parents=True)
    for place in ("nmt/__init__.py", "nmt/utils/__init__.py"):
        (repository / place).touch()
    (repository / "nmt/utils/code.py").write_text("def code_fingerprint():\n    return 'then'\n")
    git = ["git", "-C", str(repository), "-c", "user.name=a", "-c", "user.email=a@b"]
    for command in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "then"]):
        subprocess.run([*git, *command], check=True)
    monkeypatch.setattr(program, "PACKAGE", repository / "nmt")
    assert program.code_of("HEAD") == "then"


def test_a_record_is_not_made_smaller_by_chance(kept):
    fewer = copy.deepcopy(kept)
    program.refuse_to_lose(kept, fewer)
    del fewer["rows"][1]["runs"][1], fewer["claims"][0]
    program.refuse_to_lose(fewer, kept)
    with pytest.raises(SystemExit, match="would lose claim wins, search seed 2; name the folders"):
        program.refuse_to_lose(kept, fewer)


def test_a_plan_alone_ends_without_a_record(tmp_path, monkeypatch):
    """There is no study.json, or one of an earlier time."""
    monkeypatch.setattr(program, "RECORDS", tmp_path)
    monkeypatch.setattr("subprocess.run", lambda typed, check: subprocess.CompletedProcess([], 0))
    typed = ["tiny", "study.plan_only=True", "--folder", str(tmp_path / "study")]
    monkeypatch.setattr("sys.argv", ["records", *typed])
    program.main()
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


@pytest.mark.slow
def test_the_whole_of_a_text_is_made_once(tmp_path, monkeypatch):
    """Trains two runs of a study, evaluates them together, and finds all of it the second time."""
    monkeypatch.chdir(tmp_path)
    runs = [
        "+study.runs.rnnencdec50.title=single",
        "+study.runs.both={title: together, command: evaluate, of: rnnencdec50, together: true}",
        "study.claims.no-magic.runs=[both]",
    ]
    page = tmp_path / "page.md"
    marks = [
        f"<!-- table: {asked} -->\n<!-- end of table -->"
        for asked in ("claims", "tiny scores test en-fr")
    ]
    page.write_text("\n\n".join(marks))
    for module in (program, rows, tables):
        for name, value in (("RECORDS", tmp_path), ("PAGES", (page,))):
            if hasattr(module, name):
                monkeypatch.setattr(module, name, value)
    monkeypatch.setattr("sys.argv", ["records", "tiny", "study.only=[no-magic]", *runs])
    program.main()
    kept, shown = (tmp_path / "tiny.json").read_text(), page.read_text()
    made = {file: file.stat().st_mtime_ns for file in (tmp_path / "studies").rglob("results.json")}
    assert len(made) == 3
    assert "| refuted |" in shown
    assert (tmp_path / "tiny.md").read_text() == (tmp_path / "studies/tiny/study.md").read_text()
    assert re.search(r"\| single \| 1, 2 \| \d+\.\d\d ± ", shown)
    assert re.search(r"\| together \| – \| \d+\.\d\d \[", shown)
    monkeypatch.setattr("sys.argv", [*sys.argv, "--keep-runs"])
    program.main()
    assert (tmp_path / "tiny.json").read_text() == kept
    assert page.read_text() == shown
    assert {file: file.stat().st_mtime_ns for file in made} == made
    verdicts = (tmp_path / "tiny.md").read_text()
    shutil.rmtree(tmp_path / "studies")
    monkeypatch.setattr("sys.argv", [*sys.argv[:-1], "study.missing=leave"])
    program.main()
    assert (tmp_path / "tiny.md").read_text() == verdicts
    assert (tmp_path / "tiny.json").read_text() == kept


@pytest.mark.parametrize("module", [figures, rows])
def test_doctests(module):
    assert doctest.testmod(module).failed == 0
