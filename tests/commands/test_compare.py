"""`nmt.compare`, and the page that a sweep ends in."""

from __future__ import annotations

import json
import shlex
import shutil

import pytest

from hydra_plugins.nmt_process_launcher._jobs import signature
from nmt.config import CompareConfig, EvaluationConfig
from nmt.evaluation import summary
from nmt.evaluation.bleu import sentence_statistics
from nmt.evaluation.results import describe_scores
from nmt.evaluation.scores import choose_scores
from nmt.report.outside import read_system
from nmt.report.runs import FinishedRun
from tests.helpers.produced import QUICK, files, last_line, lines, results

TEST = "translations/test.jsonl"


class TestCompare:
    def test_runs_and_another_system_on_one_page(self, program, rnnsearch, rnnencdec):
        reference = [
            " ".join(record["reference"]) for record in lines(rnnsearch / "translations/test.jsonl")
        ]
        (program.folder / "moses.txt").write_text("\n".join(reference) + "\n")
        left = program.folder / "compared/tables/.training.md.x.partial"  # by one that was killed
        left.parent.mkdir(parents=True)
        left.touch()
        before = files(program.folder)
        ended = program(
            "compare",
            "runs=[rnnsearch,rnnencdec]",
            "output=compared",
            "+external.moses.test=moses.txt",
            "resamples=50",
            "figures=[png]",
        )
        assert ended.code == 0, ended.err
        written = files(program.folder) - before
        assert written
        assert not left.exists()
        assert all(name.startswith("compared/") for name in written)
        assert "compared/comparison.html" in written
        page = (program.folder / "compared/comparison.html").read_text()
        for name in ("RNNsearch-50", "RNNencdec-30", "moses"):
            assert name in page
        tables = [name for name in written if name.startswith("compared/tables/")]
        text = "".join((program.folder / name).read_text() for name in tables)
        assert "100.00" in text  # the references are their own best translation
        assert any(name.startswith("compared/figures/") for name in written)

    def test_a_run_of_another_text_stands_apart(self, program, rnnsearch, rnnencdec):
        other = program.folder / "other"
        shutil.copytree(rnnsearch, other)
        records = [{**row, "source": row["source"][::-1]} for row in lines(other / TEST)]
        (other / TEST).write_text("".join(f"{json.dumps(row)}\n" for row in records))
        typed = ("runs=[rnnsearch,rnnencdec,other]", "output=apart", "resamples=20")
        ended = program("compare", *typed)
        assert ended.code == 0, ended.err
        assert "test-2 is the test set test of RNNsearch-50" in ended.err
        significance = (program.folder / "apart/tables/significance_test.csv").read_text()
        assert len({tuple(row.split(",")[1:3]) for row in significance.splitlines()[1:]}) == 1
        assert (program.folder / "apart/tables/scores_test-2.csv").is_file()
        assert not (program.folder / "apart/tables/significance_test-2.csv").exists()

    @pytest.mark.parametrize(
        ("typed", "said"),
        [
            (("runs=[nowhere]",), "runs: nothing matches nowhere"),
            (("runs=[]",), "runs: empty; name run folders, sweep folders or globs"),
            (("runs=[rnnsearch]", "output="), "output=: must be the name of a file or folder"),
            ((), "runs takes: list of text"),
            (("runs=[rnnsearch]", "+external.moses.tset=moses.txt"), "external.moses.tset: no run"),
            (("runs=[rnnsearch]", "+external.moses.test=gone.txt"), "gone.txt: no such file"),
            (("runs=[rnnsearch]", "+external.moses={}"), "external.moses: names no file; give"),
            (
                ("runs=[rnnsearch]", "+external.RNNsearch-50.test=short.txt"),
                "external.RNNsearch-50: a run has this name; give the system another",
            ),
            (
                ("runs=[rnnsearch]", "+external.moses.test=short.txt"),
                "1 lines, but the test set has 12",
            ),
        ],
    )
    def test_refusals(self, program, rnnsearch, typed, said):
        (program.folder / "short.txt").write_text("une ligne\n")
        ended = program("compare", "output=refused-page", *typed)
        assert ended.code == 2, ended.err
        assert said in last_line(ended.err)
        assert "Traceback" not in ended.err
        assert not (program.folder / "refused-page").exists()


def scored_run(label, records, **evaluation):
    config = {
        "evaluation": evaluation,
        "data": {"languages": ["en", "fr"]},
        "tokenizer": {"normalise": True},
    }
    settings = EvaluationConfig(resamples=0, **evaluation)
    scores = summary.summarise(records, settings)
    tests = {"dev": scores}
    about = describe_scores(choose_scores(None), tests)
    results = {"config": config, "test": tests, "scores": about}
    return FinishedRun(label, results, lines={("translations", "dev"): records})


@pytest.fixture
def records():
    """Six sentences whose targets are twice as long as their sources."""
    found = []
    for number in range(6):
        words = ["mot"] * (2 * number + 2)
        statistics = sentence_statistics(words, words).tolist()
        found.append(
            {
                "id": number,
                "source": ["word"] * (number + 1),
                "reference": words,
                "hypothesis": words,
                "raw_reference": " ".join(words),
                "detokenised": " ".join(words),
                "length": len(words),
                "no_unk": number % 2 == 0,
                "bleu_stats": statistics,
                "bleu_stats_no_unk": statistics if number % 2 == 0 else None,
            }
        )
    return found


@pytest.fixture
def hypotheses(tmp_path, records):
    file = tmp_path / "moses.txt"
    file.write_text("".join(f"{' '.join(row['reference'][:-1])}\n" for row in records))
    return str(file)


def test_another_system_is_scored_as_the_runs_were(records, hypotheses):
    settings = {"edges": [4, 8], "bucket_by": "target", "confidence": 0.5}
    run = scored_run("a", records, **settings)
    moses = read_system("moses", {"dev": hypotheses}, [run], CompareConfig(resamples=40))
    scores = moses.results["test"]["dev"]
    assert (scores["bucket_by"], scores["confidence"]) == ("target", 0.5)
    assert [(row["to"], row["sentences"]) for row in scores["by_length"]] == [
        (4, 2),
        (8, 2),
        (None, 2),
    ]
    expected = EvaluationConfig(resamples=40, **settings)
    assert scores == summary.summarise(moses.translations("dev"), expected)
    asked = CompareConfig(resamples=0, scores=["ter"])
    alike = read_system("moses", {"dev": hypotheses}, [run], asked).results
    assert set(alike["scores"]) == {
        *("bleu", "sacrebleu", "chrf", "ter", "length_ratio", "brevity_penalty")
    }


@pytest.mark.parametrize("order", [1, -1])
def test_another_system_has_its_unknown_words_from_a_shortlist(records, hypotheses, order):
    pieces = [{**row, "no_unk": None, "bleu_stats_no_unk": None} for row in records]
    runs = [scored_run("words", records), scored_run("bpe", pieces)][::order]
    moses = read_system("moses", {"dev": hypotheses}, runs, CompareConfig(resamples=0))
    assert moses.results["test"]["dev"]["bleu"]["no_unk"]["sentences"] == 3


@pytest.mark.slow
def test_a_sweep_ends_in_the_comparison_page(program):
    typed = ["-m", "+experiment=rnnencdec30,rnnsearch30", "regime=tiny", *QUICK]
    ended = program("train", *typed, "hydra.sweep.dir=sweep")
    assert ended.code == 0, ended.err
    jobs = [results(program.folder / "sweep" / str(job)) for job in (0, 1)]
    names = [job["name"] for job in jobs]
    assert names == ["RNNencdec-30", "RNNsearch-30"]
    page = (program.folder / "sweep/comparison.html").read_text()
    assert all(name in page for name in names)
    for experiment, job in zip(("rnnencdec30", "rnnsearch30"), jobs, strict=True):
        # the line that a person types: neither folders nor what the launcher has added
        typed = [f"+experiment={experiment}", "regime=tiny", *QUICK]
        python, *words = shlex.split(job["command"])
        assert [python, *words[:2]] == ["python", "-m", "nmt.train"]
        assert signature(words[2:]) == signature(typed)  # the launcher writes False for false
        assert job["command"] in page
    assert list((program.folder / "sweep/tables").glob("*.csv"))
