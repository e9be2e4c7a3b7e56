import json
import logging
import subprocess
import sys

import pytest

from nmt.config import ReportConfig
from nmt.config.schema import to_containers
from nmt.config.validation import load
from nmt.report.figures import draw_run
from nmt.report.finding import read_run
from nmt.report.heatmap import choose_four
from nmt.report.runs import FinishedRun
from nmt.report.wandb import panels as wandb_panels
from nmt.report.wandb.panels import (
    define_metrics,
    log_alignments,
    log_test,
    log_translations,
    warn_on_error,
)
from tests.helpers.run_folders import MARKUP, add_links, make_run


@pytest.fixture(autouse=True)
def forget(monkeypatch):
    monkeypatch.setattr(wandb_panels, "_reported", set())


ROW = {"id": 3, "weights": [[0.25, 0.75]], "source": ["maison", "</s>"], "target": ["house"]}

FELL = {
    **{"all": {"slope": {"score": -1.5, "low": -2.25, "high": -0.75}}},
    **{"to_cap": {"slope": None}, "beyond_cap": {"slope": None}},
    "losses": {
        "tenth": {"status": "found", "score": 12.5, "low": 9.0, "high": None},
        "half": {"status": "beyond the data", "score": None, "low": 48.0, "high": None},
    },
    "breakpoint": {"status": "found", "score": 31.0, "low": 25.0, "high": 36.5},
}


class Recorder:
    """A run that keeps what is logged, or fails at everything."""

    def __init__(self, broken=False):
        self.broken, self.rows, self.summary = broken, [], {}

    def log(self, row):
        if self.broken:
            raise OSError("No space left on device")
        self.rows.append(row)

    def define_metric(self, *names, **options):
        self.log({names: options})


def test_errors_are_reported_once_and_stop_nothing(caplog):
    run = Recorder(broken=True)
    with caplog.at_level(logging.WARNING):
        for update in (1, 2, 3):
            log_alignments(run, update, [ROW])
        define_metrics(run)
        log_test(run, {"test": {"dev": {"by_length": [{"from": 1}]}}})
    assert [record.message.split(" failed")[0] for record in caplog.records] == [
        "W&B: logging alignments",
        "W&B: defining metrics",
        "W&B: logging the test",
    ]
    assert "OSError: No space left on device" in caplog.records[0].message


def test_stopping_a_run_is_not_an_error_of_wandb():
    with pytest.raises(KeyboardInterrupt), warn_on_error("waiting"):
        raise KeyboardInterrupt


def test_models_without_attention_log_no_alignments():
    run = Recorder()
    log_alignments(run, 7, [{"weights": None}])
    assert run.rows == []
    log_alignments(run, 7, [{"weights": None}, ROW])
    assert [set(row) for row in run.rows] == [{"trainer/global_step", "valid/alignment/2"}]


def inspect(folder):
    """Records of the one offline run under a folder."""
    [file] = folder.glob("wandb/offline-run-*/*.wandb")
    command = [sys.executable, "-m", "wandb", "leet", "inspect", "--json", str(file)]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return [json.loads(line) for line in lines.splitlines()], file.parent / "files"


def test_an_offline_run_holds_curves_table_images_and_summary(tmp_path, monkeypatch):
    wandb = pytest.importorskip("wandb")
    from pytorch_lightning.loggers import WandbLogger

    monkeypatch.setenv("WANDB_SILENT", "true")
    source = add_links(make_run(tmp_path / "run", pairs=60, kept=12))
    results = json.loads((source / "results.json").read_text())
    kept = [json.loads(line) for line in (source / "alignments/newstest.jsonl").open()]
    figures = draw_run(read_run(source), ReportConfig(heatmaps=0, figures=["png"]))
    page = tmp_path / "report.html"
    page.write_text("<!doctype html><title>é</title><script>1 < 2</script>", encoding="utf-8")
    four = choose_four(kept)
    expected = results["test"]["newstest"]
    expected["degradation"] = {"bleu": FELL}
    logger = WandbLogger(save_dir=tmp_path, offline=True, mode="offline", project="p")
    try:
        run = logger.experiment
        define_metrics(run)
        for update in (5, 10):
            scores = {"valid/nll": 10.0 / update, "valid/bleu_by_length/11-20": 31.0 / update}
            logger.log_metrics(scores, step=update)
            log_alignments(run, update, four)
        log_test(run, results, figures, page)
    finally:
        wandb.finish()
    records, files = inspect(tmp_path)

    metrics = [record["metric"] for record in records if record["type"] == "metric"]
    axes = {each["glob_name"]: each["step_metric"] for each in metrics if "glob_name" in each}
    assert axes == {"*": "trainer/global_step"}  # no metric has two rules
    exact = {each["name"]: each for each in metrics if "name" in each}
    over_length = {name for name in exact if exact[name].get("step_metric") == "length/words"}
    logged = {name for each in records for name in (each.get("history") or {}).get("item", {})}
    curves = {name for name in logged if name.startswith("length/")}
    assert over_length == curves - {"length/words"} != set()
    # the last bucket's score is not that of the set
    assert all(exact[name]["summary"] == {"none": True} for name in over_length)
    bests = {
        name: kept
        for name in exact
        for kept in ("min", "max")
        if exact[name].get("summary", {}).get(kept)
    }
    assert {exact[name]["step_metric"] for name in bests} == {"trainer/global_step"}
    assert bests["valid/nll_per_word"] == bests["valid/alignment_error_rate"] == "min"
    assert bests["valid/bleu"] == "max"

    rows = [record["history"]["item"] for record in records if record["type"] == "history"]
    curve = [
        (each["length/words"], each["length/newstest/bleu"], each["length/newstest/sentences"])
        for each in rows
        if "length/words" in each
    ]
    places = [70 if b["to"] is None else b["to"] for b in expected["by_length"]]
    wanted = [(b["score"], b["sentences"]) for b in expected["by_length"]]
    assert [each[0] for each in curve] == places
    assert [each[1:] for each in curve] == [pytest.approx(each) for each in wanted]
    validations = [each for each in rows if "valid/bleu_by_length/11-20" in each]
    assert [each["trainer/global_step"] for each in validations] == [5, 10]
    assert [each["valid/bleu_by_length/11-20"] for each in validations] == [6.2, 3.1]
    drawn = [each for each in rows if "valid/alignment/1" in str(each)]
    assert [each["trainer/global_step"] for each in drawn] == [5, 10]
    caption = drawn[1]["valid/alignment/1.caption"]
    assert caption == f"{' '.join(four[0]['source'])} → {' '.join(four[0]['target'])}"
    assert len(list(files.glob("media/images/valid/alignment/*.png"))) == 8
    assert len(list(files.glob("media/images/figures/newstest-b*.png"))) == 2
    [kept_page] = files.glob("media/html/test/page_*.html")
    assert kept_page.read_bytes() == page.read_bytes()
    [shown] = [each for each in rows if "test/page._type" in each]
    assert shown["test/page._type"] == "html-file"
    assert shown["test/page.path"] == str(kept_page.relative_to(files))

    [table] = files.glob("media/table/test/*.table.json")
    content = json.loads(table.read_text())
    entries = [dict(zip(content["columns"], data, strict=True)) for data in content["data"]]
    assert [each["words"] for each in entries][:2] == ["1-10", "11-20"]
    assert [each["sentences"] for each in entries] == [each[1] for each in wanted]
    assert entries[1]["bleu_low"] == pytest.approx(expected["by_length"][1]["low"])
    aligned = expected["by_length"][1]["alignment_error_rate"]
    assert entries[1]["alignment_error_rate"] == pytest.approx(aligned["score"])
    assert entries[1]["alignment_error_rate_high"] == 0.3
    assert entries[1]["recall"] == pytest.approx(0.9 - 11 / 400)
    known = entries[1]["bleu_no_unk"], entries[1]["bleu_no_unk_sentences"]
    no_unk = expected["by_length"][1]["no_unk"]
    assert known == pytest.approx((no_unk["score"], no_unk["sentences"]))

    summary = {}
    for record in records:
        if record["type"] == "summary":
            summary |= record["summary"].get("update", {})
    assert summary["test/newstest/bleu"] == pytest.approx(expected["bleu"]["all"]["score"])
    assert summary["test/newstest/alignment_error_rate"] == pytest.approx(0.11)
    assert summary["test/newstest/alignment_error_rate_low"] == pytest.approx(0.1)
    assert summary["test/newstest/nll_per_word"] == pytest.approx(1.8)
    beside = "test/newstest/alignment/"
    links = {name.removeprefix(beside): at for name, at in summary.items() if beside in name}
    made_by = ["statistical_aligners/hmm", "symmetrised/reverse"]
    made_by += ["symmetrised/grow_diag_final_and", f"systems/{MARKUP}"]
    assert {name.removesuffix("/recall") for name in links if name.endswith("recall")} == {*made_by}
    assert len(links) == 5 * len(made_by)  # AER and its interval, precision, recall
    hmm = [links[f"statistical_aligners/hmm/alignment_error_rate{end}"] for end in ("", "_low")]
    assert hmm == pytest.approx([0.15, 0.13])
    falls = "test/newstest/degradation/"
    assert {name.removeprefix(falls): at for name, at in summary.items() if falls in name} == {
        **{"bleu/all/slope": -1.5, "bleu/all/slope_low": -2.25, "bleu/all/slope_high": -0.75},
        **{"bleu/losses/tenth": 12.5, "bleu/losses/tenth_low": 9.0, "bleu/losses/half_low": 48.0},
        **{"bleu/breakpoint": 31.0, "bleu/breakpoint_low": 25.0, "bleu/breakpoint_high": 36.5},
    }
    assert summary["parameters"] == 2_345_678
    for name in ("hours", "target_words_per_second", "peak_memory"):
        assert summary[f"train/{name}"] == results["train"][name], name


def test_the_table_of_translations_has_each_sentence_and_the_heatmaps_there_are(tmp_path):
    wandb = pytest.importorskip("wandb")
    from PIL import Image

    short, long = ({"id": 7, "length": 2}, {"id": 3, "length": 9})
    for row, score in ((short, -1.5), (long, -4.0)):
        row.update(
            source=["a", "</s>"], target=["un", "<unk>", "</s>"], reference=["le"], score=score
        )
    replaced = [{"id": row["id"], "hypothesis": ["un", "chat"]} for row in (short, long)]
    lines = {("alignments", "newstest"): [long, short], ("translations", "newstest"): replaced}
    finished = FinishedRun("mine", {"test": {"newstest": {}}}, lines=lines)
    heatmap = tmp_path / "newstest-heatmap-3.png"
    Image.new("L", (2, 2)).save(heatmap)
    run = Recorder()
    figures = [heatmap, tmp_path / "newstest-heatmap-7.pdf", tmp_path / "other-heatmap-7.png"]
    log_translations(run, finished, figures)
    [row] = run.rows
    table = row["test/translations"]
    assert isinstance(table, wandb.Table)
    first, second = (dict(zip(table.columns, data, strict=True)) for data in table.data)
    assert first.pop("attention") is None
    assert first == {
        **{"set": "newstest", "id": 7, "words": 2, "score": -1.5},
        **{"source": "a", "translation": "un chat", "reference": "le"},
    }
    assert (second["id"], second["words"], second["score"]) == (3, 9, -4.0)
    assert isinstance(second["attention"], wandb.Image)
    log_translations(run, FinishedRun("mine", {"test": {"newstest": {}}}), figures)
    assert len(run.rows) == 1


def test_an_offline_run_holds_its_group_tags_and_config(tmp_path, composer, monkeypatch):
    wandb = pytest.importorskip("wandb")
    from nmt.training import wandb_logger
    from nmt.training.loggers import make_logger

    typed = ["+experiment=rnnsearch30", "regime=tiny", "scoring=dot", "name=dotted", "seed=7"]
    typed += ["logger.group=lengths", "logger.tags=[first,laptop]", "logger.project=curves"]
    config = load(composer(*typed, "logger.entity=team"))
    monkeypatch.setattr(wandb_logger, "command_name", lambda: "evaluate")
    try:
        logger = make_logger(config, tmp_path)
        assert logger is not None
        number = logger.experiment.id
    finally:
        wandb.finish()
    records, _ = inspect(tmp_path)
    [run] = [record["run"] for record in records if record["type"] == "run"]
    assert run["run_id"] == number == (tmp_path / "wandb" / "id").read_text()
    assert (run["entity"], run["project"], run["run_group"]) == ("team", "curves", "lengths")
    assert run["display_name"] == "dotted, seed 7"
    assert run["job_type"] == "evaluate"
    assert sorted(run["tags"]) == ["first", "laptop", "rnnsearch30", "tiny"]
    kept = run["config"]["update"]
    kept.pop("_wandb")
    assert kept == to_containers(config)
    assert (kept["seed"], kept["data"]["max_length"]) == (7, 30)
    assert kept["model"]["scoring"] == {"_target_": "nmt.layers.scoring.Dot"}


def test_a_run_folder_keeps_the_id_of_wandbs_sweep_agent(tmp_path, monkeypatch):
    pytest.importorskip("wandb")
    from nmt.training.wandb_logger import run_id

    monkeypatch.setenv("WANDB_RUN_ID", "agents")
    drawn = run_id(tmp_path / "alone")  # each job of a sweep of Hydra's own is a run
    assert drawn != "agents"
    monkeypatch.setenv("WANDB_SWEEP_ID", "sweep")
    assert run_id(tmp_path / "agent") == "agents"
    monkeypatch.delenv("WANDB_RUN_ID")
    assert run_id(tmp_path / "agent") == "agents"
    assert run_id(tmp_path / "alone") == drawn
