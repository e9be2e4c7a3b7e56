"""Compares docs/results.md with the records in docs/results/, and recorded scores with recorded counts per sentence."""

import json
import math
import re
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from benchmarks import coverage
from benchmarks import records as program
from benchmarks.claims import decide, read_claims
from benchmarks.figures import SENTENCES, runs_of
from benchmarks.records import PAGE, RECORDS, Records, add, with_tables
from nmt.evaluation.estimate import Estimate
from nmt.evaluation.scores.bleu import sentence_statistics
from tests.helpers import ROOT
from tests.helpers.bleu import bleu_by_hand
from tests.helpers.produced import lines
from tests.helpers.run_folders import make_run

CLAIMS = ROOT / "benchmarks/claims"
OWN = """
claims:
  wins:
    claim: the system translates better than RNNsearch
    source: a test
    set: newstest
    runs: [system, search]
    rule: {above: 0}
seeds: 1
runs:
  system: {command: benchmarks.phrase_based, where: {system: PhraseBased}}
  search: {where: {system: RNNsearch}}
"""


@pytest.fixture(scope="module")
def records():
    return Records()


@pytest.fixture(scope="module")
def sentences():
    return pd.read_csv(SENTENCES)


def test_the_tables_of_the_page_are_those_of_the_record(records):
    text = PAGE.read_text(encoding="utf-8")
    assert with_tables(text, records) == text


def columns_of(path):
    """Returns the names of the columns of a record."""
    if path.suffix == ".jsonl":
        return set().union(*map(json.loads, path.read_text(encoding="utf-8").splitlines()))
    return set(pd.read_csv(path, nrows=0).columns)


def test_every_column_of_every_record_is_explained():
    table = pd.read_csv(RECORDS / "columns.csv")
    found: dict[str, set[str]] = {}
    for row in table.itertuples():
        found.setdefault(row.file, set()).update(row.columns.split(", "))
    files = [path for path in RECORDS.rglob("*") if path.is_file() and path.name != "columns.csv"]
    assert found == {str(path.relative_to(RECORDS)): columns_of(path) for path in files}


def statements(records):
    """Yields pages, and texts that they must contain, with numbers of the records."""
    bleu = records.scores.query("score == 'bleu' and subset == 'all' and set == 'test2016'")
    bleu = bleu[(bleu["study"] == "multi30k") & bleu["from"].isna()].set_index("group")["value"]
    claim = records.claims[records.claims["study"] == "multi30k"].set_index("name")

    def gain(name):
        return "{:.1f} [{:.1f}, {:.1f}]".format(*claim.loc[name, ["value", "low", "high"]])

    yield (
        "results",
        f"three seeds of RNNsearch-50 have a mean of {bleu['rnnsearch50'].mean():.2f} BLEU",
    )
    yield "results", f"{gain('attention-wins')} more than RNNencdec-50"
    yield "results", f"{gain('attention-wins-phrase-based')} more than the phrase-based system"
    yield "results", f"An ensemble of the three gains {gain('ensemble-helps')}"

    gpu = (RECORDS / "gpu.jsonl").read_text(encoding="utf-8").splitlines()
    items = {row["item"]: row["figures"] for row in map(json.loads, gpu)}  # the last of each item
    memory = items["memory"]["reserved_mib"]
    yield "performance", f"The graphs of 11 shapes need {memory['second pool']:,.0f} MiB"
    yield "performance", f"the largest graph alone needs {memory['largest']:,.0f} MiB"
    yield "performance", f"a peak memory of {items['train']['train']['peak_memory'] / 1e9:.1f} GB"
    for size in ("80x30", "80x50", "1024x30"):
        cells = [*items["updates"][f"{size} ms"].values()]
        numbers = " | ".join([*(f"{cell:.0f}" for cell in cells[:-1]), f"{cells[-1]:.1f}"])
        yield "performance", f"| {size.replace('x', ' x ')} | {numbers} |"
    lines = (RECORDS / "cpu.jsonl").read_text(encoding="utf-8").splitlines()
    cpu = pd.DataFrame(map(json.loads, lines))
    amx = pd.read_csv(RECORDS / "performance.csv", dtype=str).query(
        "section == 'Training, laptop sizes' and table == '1'"
    )
    for _, of_version in amx.groupby("row"):
        cells = of_version.set_index("column")["value"]
        numbers = f"{cells['ms per update']} | {cells['ratio']} | {cells['target words/s']}"
        own = cpu.query(f"part == 'training' and version == '{cells['version']}'").squeeze()
        here = f"{own['ms']} | {own['ratio']:.2f} | {own['target_words_per_s']:,.0f}"
        emulated = "bf16" in cells["version"]
        of_both = f"{'emulated | |' if emulated else here} | {numbers}"
        yield "performance", f"| {cells['version']} | {of_both} |"
    fused = cpu.query("part == 'training' and version == 'fused float32'").squeeze()
    yield "performance", f"{fused['over_products']:.2f} times as long as its matrix products"
    peak = cpu[cpu["part"] == "memory"].set_index(["version", "shape"])["peak_mib"]
    for version in ("plain", "fused"):
        short, long = (peak[f"{version} float32", shape] for shape in ("80x50", "80x100"))
        yield "performance", f"{short:.0f} MiB with `{version}`"
        yield "performance", f"{long / short:.1f} times"
    quality = (RECORDS / "quality.jsonl").read_text(encoding="utf-8").splitlines()
    for row in map(json.loads, quality):
        numbers = f"{row['updates']:,} | {row['bleu']:.2f} | {row['brevity_penalty']:.2f} |"
        yield "performance", numbers

    scores = records.scores.query("study == 'table1' and set == 'by_length' and score == 'bleu'")
    means = scores.query("subset == 'all'").groupby(["group", "to"])["value"].mean()
    encdec, search = (means[name] for name in ("rnnencdec50", "rnnsearch50"))
    yield (
        "first-hour",
        f"RNNencdec falls from BLEU {encdec[10]:.1f} (1 to 10 words) to {encdec[50]:.1f} (41 to 50), "
        f"RNNsearch from {search[10]:.1f} to {search[50]:.1f}",
    )
    page = (RECORDS.parent / "performance.md").read_text(encoding="utf-8")
    tried = pd.read_csv(RECORDS / "rivals.csv", keep_default_na=False).groupby("keys")
    for keys in ("", *re.findall(r"^\| `([^`]+)` \| [\d.]+ \| 0\.\d{3} \|", page, re.MULTILINE)):
        runs = tried.get_group(keys)
        assert len(runs) == 3, keys
        mean = runs[["by_length_bleu", "by_length_aer", "cpu_s"]].mean()
        yield (
            "performance",
            f"| {f'`{keys}`' if keys else 'none'} | {mean['by_length_bleu']:.1f} | "
            f"{mean['by_length_aer']:.3f} | {mean['cpu_s']:.0f} |",
        )

    table = pd.read_csv(RECORDS / "bands.csv")
    equal, worse = table["equal"], table["worse"]
    yield "degradation", f"for {equal.min():.1f} to {equal.max():.1f} % of equal systems"
    yield "degradation", f"for {worse.min():.0f} to {worse.max():.0f} % if words are right 2 %"
    [sets] = table["sets"].unique()
    yield "degradation", f"in {sets:,} sets of 700 shared sentences"
    table = pd.read_csv(RECORDS / "coverage.csv", dtype=str, keep_default_na=False)
    page = (RECORDS.parent / "degradation.md").read_text(encoding="utf-8")
    for cells in table.replace("nan", "–").itertuples(index=False):
        if f"| {title_of(cells[0])} |" in page:
            yield "degradation", f"| {' | '.join([title_of(cells[0]), *cells[1:]])} |"


def title_of(row):
    """Returns how the page names a row, without the shape of most rows."""
    return row.replace(", power law", "")


def test_statements_and_tables_of_pages_are_those_of_the_records(records):
    for page, text in statements(records):
        content = (RECORDS.parent / f"{page}.md").read_text(encoding="utf-8")
        assert text in " ".join(content.split()), page


def test_runs_are_added_once(tmp_path):
    for name in ("runs.csv", "claims.csv"):
        shutil.copy(RECORDS / name, tmp_path)
    some = pd.read_csv(RECORDS / "scores.csv.xz", dtype=str, keep_default_na=False, nrows=200)
    some.to_csv(tmp_path / "scores.csv.xz", index=False)  # writing all rows would take seconds
    run = tmp_path / "run"
    run.mkdir()
    described = {
        "experiment": "mine", "seed": 3, "name": "Mine", "max_length": 7, "parameters": 11,
        "train": {"updates": 5, "epochs": 0.5, "hours": 2, "device": "CPU", "precision": "bf16"},
        "valid": {}, "processor": "P", "commit": "c", "command": "nmt train",
        "versions": {"torch": "2", "sacrebleu": "2"}, "config": {"data": {"languages": ["de", "en"]}},
    }  # fmt: skip
    (run / "results.json").write_text(json.dumps(described))
    before = Records(tmp_path)
    for value in (10, 20):
        row = f"test,all,bleu,,,{value},1,30,9,sentences"
        heads = "set,subset,score,from,to,value,low,high,sentences,interval"
        (run / "scores.csv").write_text(f"{heads}\n{row}\n")
        add("own", [("mine", run)], tmp_path)
    after = Records(tmp_path)
    assert "| Mine | 3 | 20.00 [1.00, 30.00] |" in after.table("own scores test de-en")
    assert after.runs.iloc[-1]["minutes"] == 120
    pd.testing.assert_frame_equal(after.runs.iloc[:-1], before.runs, check_dtype=False)
    pd.testing.assert_frame_equal(after.scores.iloc[:-1], before.scores, check_dtype=False)


def test_claims_that_the_runs_do_not_decide_stay_on_record(tmp_path, monkeypatch):
    shutil.copy(RECORDS / "claims.csv", tmp_path)
    before = pd.read_csv(RECORDS / "claims.csv", dtype=str, keep_default_na=False)
    estimate = Estimate(5.0, np.array([4.0, 6.0]), 90, None, 1, 1.0, math.inf)
    decided = {"estimate": estimate, "verdict": "supported", "p": 1e-9, "seeds": 1, "reason": ""}

    def decide_first(file, runs, resamples):
        yield decided | {"values": "5.00"}
        yield from [{"verdict": "missing", "reason": "no runs"}] * (len(file.claims) - 1)

    monkeypatch.setattr(program, "decided_rows", decide_first)
    monkeypatch.setattr(program, "read_runs", list)
    program.add_claims("table1", CLAIMS / "bahdanau.yaml", [Path("run")], tmp_path)
    after = pd.read_csv(tmp_path / "claims.csv", dtype=str, keep_default_na=False)
    mine = after[after["study"] == "table1"].set_index("name")
    assert sorted(mine.index) == sorted(before.loc[before["study"] == "table1", "name"])
    assert mine.loc["attention-wins", ["value", "p", "seeds"]].tolist() == ["5", "1e-09", "1"]
    command = "python -m benchmarks.records --claims benchmarks/claims/bahdanau.yaml --runs run"
    assert mine.loc["attention-wins", "command"] == command
    assert float(mine.loc["attention-wins", "p_holm"]) > 1e-9
    others = after["study"] != "table1"
    assert after[others].equals(before[before["study"] != "table1"])


@pytest.fixture
def beside(tmp_path):
    """Returns the folders of a run, and of a phrase-based system that omits the last word of each reference."""
    made = {"processor": "P", "commit": "c", "versions": {"torch": "2", "sacrebleu": "2"}}
    run = make_run(tmp_path / "run", pairs=40, kept=2)
    content = json.loads((run / "results.json").read_text()) | made
    content["config"]["data"]["test"] = {"newstest": {"tokenised": True}}
    (run / "results.json").write_text(json.dumps(content))
    system = tmp_path / "phrases"
    system.mkdir()
    kept = [row["reference"][:-1] for row in lines(run / "translations/newstest.jsonl")]
    (system / "newstest.txt").write_text("".join(f"{' '.join(words)}\n" for words in kept))
    about = {
        "name": "phrase-based (Thot)", "model": "PhraseBased", "seed": 1, "max_length": 50,
        "command": "python -m benchmarks.phrase_based", "valid": {"bleu": 30}, **made,
        "train": {"updates": 0, "hours": 0.5, "device": "CPU"},
    }  # fmt: skip
    (system / program.SYSTEM).write_text(json.dumps(about))
    return run, system


def test_a_phrase_based_system_is_scored_beside_runs(beside, tmp_path):
    for name in ("runs.csv", "scores.csv.xz"):
        old = pd.read_csv(RECORDS / name, dtype=str, keep_default_na=False, nrows=1)
        old.to_csv(tmp_path / name, index=False)
    shutil.copy(RECORDS / "claims.csv", tmp_path)
    run, system = beside
    add("own", [("phrase_based", system), ("rnnsearch50", run)], tmp_path)
    found = Records(tmp_path)
    own = found.runs[found.runs["study"] == "own"].set_index("group").loc["phrase_based"]
    assert (own["name"], own["languages"], own["minutes"]) == ("phrase-based (Thot)", "en-fr", 30)
    scores = found.scores[
        (found.scores["group"] == "phrase_based") & (found.scores["study"] == "own")
    ]
    whole = scores[(scores["score"] == "bleu") & scores["from"].isna()].set_index("subset")
    references = [row["reference"] for row in lines(run / "translations/newstest.jsonl")]
    counts = [sentence_statistics(words[:-1], words) for words in references]
    assert whole.loc["all", "value"] == pytest.approx(bleu_by_hand(np.sum(counts, axis=0)))
    assert "| phrase-based (Thot) | 1 | " in found.table("own lengths newstest en-fr phrase*")


def test_claims_of_a_file_are_decided_and_not_recorded(beside, tmp_path, monkeypatch, capsys):
    (tmp_path / "own.yaml").write_text(OWN)
    before = PAGE.read_bytes(), (RECORDS / "claims.csv").read_bytes()
    typed = ["--claims", tmp_path / "own.yaml", "--runs", *beside]
    monkeypatch.setattr("sys.argv", ["records", *map(str, typed)])
    program.main()
    assert "| supported, for these models only |" in capsys.readouterr().out
    monkeypatch.setattr("sys.argv", ["records", *map(str, typed[:-1])])
    program.main()
    missing = "Missing runs: python -m benchmarks.phrase_based seed=1"
    assert missing in capsys.readouterr().out
    assert (PAGE.read_bytes(), (RECORDS / "claims.csv").read_bytes()) == before


@pytest.mark.parametrize(
    "typed", [["--runs", "run"], ["--claims", "f"], ["--add", "s", "g=run", "--runs", "run"]]
)
def test_claims_need_runs(typed, monkeypatch):
    monkeypatch.setattr("sys.argv", ["records", *typed])
    with pytest.raises(SystemExit, match="2"):
        program.main()


def bleu(rows, part="bleu_correct", words="hypothesis_words"):
    correct = [rows[f"{part}_{order}"].sum() for order in (1, 2, 3, 4)]
    total = [np.maximum(rows[words] - order, 0).sum() for order in range(4)]
    return bleu_by_hand([*correct, *total, rows[words].sum(), rows["reference_words"].sum()])


@pytest.mark.slow
def test_sentences_give_the_scores_on_record(records, sentences):
    found = records.scores[
        (records.scores["study"] == "europarl") & (records.scores["aligner"] == "")
    ]
    scores = found.set_index(["set", "group", "seed", "subset", "score", "from"])[
        "value"
    ].sort_index()
    for (name, group, seed), rows in sentences.groupby(["set", "group", "seed"]):
        run = scores.loc[name, group, seed]
        assert bleu(rows) == pytest.approx(run["all", "bleu", np.nan], abs=1e-5)
        free = rows[rows["no_unk"] == 1]
        if len(free):
            expected = run["no_unk", "bleu", np.nan]
            assert bleu(free, "no_unk_correct", "no_unk_words") == pytest.approx(expected, abs=1e-5)
        longest = rows[rows["length"] > 60]
        if ("all", "bleu", 61.0) in run.index:
            assert bleu(longest) == pytest.approx(run["all", "bleu", 61.0], abs=1e-5)
        if rows["nll"].notna().all():
            expected = run["all", "nll_per_sentence", np.nan]
            assert rows["nll"].mean() == pytest.approx(expected, abs=0.002)
        if rows["links"].notna().any():
            hits = rows["hits_sure"].sum() + rows["hits_possible"].sum()
            rate = 1 - hits / (rows["links"].sum() + rows["sure"].sum())
            assert rate == pytest.approx(run["all", "alignment_error_rate", np.nan], abs=1e-6)


@pytest.mark.slow
def test_verdicts_follow_from_the_sentences_on_record(sentences):
    file = read_claims(CLAIMS / "europarl.yaml")
    runs = runs_of(sentences[sentences["group"].isin(["rnnsearch50", "rnnencdec50"])])
    table = pd.read_csv(RECORDS / "claims.csv").query("study == 'europarl'").set_index("name")
    for name in ("attention-wins", "fixed-falls", "attention-flat-beyond"):
        claim = file.claims[name]
        found = decide(claim, [runs[group] for group in claim.runs], 1000)
        assert found["verdict"] == table.loc[name, "verdict"]
        expected = table.loc[name, ["value", "low", "high"]].tolist()
        estimate = found["estimate"]
        assert [estimate.score, *estimate.interval()] == pytest.approx(expected)


@pytest.mark.slow
def test_simulated_coverage_is_a_share_of_sets(monkeypatch):
    monkeypatch.setattr(coverage, "POPULATION", 2000)
    for plan in (coverage.Plan("natural", "1 seed", "linear"), coverage.PLANS[-1]):
        cells = coverage.coverage(plan, sets=3, size=300, resamples=20)
        assert len(cells) == len(coverage.COLUMNS)
        assert all(np.isnan(cell) or 0 <= cell <= 100 for cell in cells)


def test_systems_share_the_difficulty_of_sentences():
    """The scores of two equal systems are more similar than those of two systems on two test sets."""
    draw = np.random.default_rng(0)
    lengths = np.full(400, 20)
    documents = np.arange(400) // 40
    means = []
    for _ in range(60):
        right = coverage.draw_difficulty(lengths, coverage.FALLS["linear"], draw, documents)
        means.append([t[:, 0].mean() for t in coverage.translate(lengths, right, np.ones(2), draw)])
    first, second = np.transpose(means)
    assert np.std(first - second) < 0.3 * np.std(first)


def test_bands_exclude_zero_for_worse_systems(monkeypatch):
    monkeypatch.setattr(coverage, "WORSE", 0.8)
    plan = coverage.Plan("even", "3 similar seeds", "flat at 56", documents=40)
    equal, worse = coverage.bands(plan, sets=4, size=400, resamples=60)
    assert equal < 50
    assert worse == 100


@pytest.mark.parametrize("name", ["runs", "claims"])
def test_records_name_no_folder_of_a_machine(name):
    commands = pd.read_csv(RECORDS / f"{name}.csv", keep_default_na=False)["command"]
    assert not commands[commands.str.contains("(?:^|[ =,'\"\\[])/")].tolist()
