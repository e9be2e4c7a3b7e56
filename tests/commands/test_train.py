"""`nmt.train`: the content of its run folder."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
import torch

from nmt.data.vocabulary import load_vocabulary
from nmt.evaluation.scores_csv import read_scores
from nmt.report.runs import find_runs, grouped
from tests.helpers.processes import SILENT, TINY
from tests.helpers.produced import SETS, files, lines, results, score


class TestTrain:
    def test_run_folder_has_the_documented_files(self, rnnsearch):
        found = {name for name in files(rnnsearch) if not name.startswith("wandb/")}
        assert not [name for name in found if "=" in name or name.endswith(".partial")]
        checkpoints = {"checkpoints/last.ckpt", "checkpoints/best.ckpt"}
        written = {f"alignments/{name}.jsonl" for name in SETS}
        for ending in ("jsonl", "txt", "detok.txt"):
            written |= {f"translations/{name}.{ending}" for name in SETS}
        hydra = {f".hydra/{name}.yaml" for name in ("config", "hydra", "overrides")}
        figures = {name for name in found if name.startswith("figures/")}
        assert found - figures == checkpoints | written | hydra | {
            "results.json",
            "scores.csv",
            "train.log",
            ".lock",
            "report.html",
            "live.bin",
        }
        names = [f"{name}-{figure}" for name in SETS for figure in ("bleu-by-length", "four")]
        assert figures == {f"figures/{name}.svg" for name in names}
        assert all((rnnsearch / name).stat().st_size > 1000 for name in figures)

    def test_log_shows_translations_and_next_steps(self, rnnsearch):
        text = (rnnsearch / "train.log").read_text()
        pattern = r"update (\d+): BLEU [\d.]+,.*\n  source +(.+)\n  reference +(.+)\n  translation"
        shown = re.findall(pattern, text)
        assert [update for update, *_ in shown] == ["6", "12"]
        assert len({tuple(pair) for _, *pair in shown}) == 1
        after = text.partition("what to do next:")[2]
        assert "python -m nmt.translate checkpoint=rnnsearch\n" in after
        counterpart = "+experiment=rnnencdec50 regime=tiny"
        assert f"python -m nmt.train {counterpart}" in after
        assert "python -m nmt.compare 'runs=[rnnsearch,rnnsearch-rnnencdec50]'" in after
        assert re.search(r"file:///.*/report\.html$", after.strip())

    def test_results_have_the_documented_keys(self, rnnsearch):
        found = results(rnnsearch)
        assert (found["name"], found["title"]) == ("RNNsearch-50", "RNNsearch")
        assert (found["experiment"], found["regime"]) == ("rnnsearch50", "tiny")
        assert (found["model"], found["scoring"]) == ("RNNsearch", "Additive")
        assert (found["max_length"], found["seed"]) == (50, 3)
        assert "+experiment=rnnsearch50" in found["overrides"]
        assert found["command"].startswith("python -m nmt.train +experiment=rnnsearch50")
        assert found["config"]["data"]["max_length"] == 50
        weights = torch.load(rnnsearch / "checkpoints/best.ckpt", weights_only=True)["state_dict"]
        assert found["parameters"] == sum(each.numel() for each in weights.values())
        release = found["versions"]["torch"].partition("+")[0]  # some builds add +cpu or +cu132
        assert release == torch.__version__.partition("+")[0]
        train = found["train"]
        assert train["updates"] == 12
        assert train["epochs"] == pytest.approx(12 * 16 / 400, rel=0.1)
        assert 0 < train["hours"] < 0.2
        assert train["device"].startswith("CPU")
        assert train["sentences_per_second"] > 1
        assert train["target_words_per_second"] > train["sentences_per_second"]
        assert 20 < train["nll_per_sentence"] < 400
        assert found["valid"]["update"] in (6, 12)
        assert [entry["update"] for entry in found["history"]] == [6, 12]
        assert 4 < found["history"][1]["nll_per_word"] < 6.5
        assert "test" not in found
        assert found["scores"]["sacrebleu"]["signature"].startswith("nrefs:1")
        table = read_scores(rnnsearch)
        assert list(table["set"].unique()) == list(SETS)
        for name, pairs in (("test", 12), ("by_length", 14)):
            rows = table[(table["set"] == name) & (table["subset"] == "all")]
            whole = rows[rows["from"].isna()].set_index("score")
            assert set(whole.index) == set(found["scores"]) >= {"precision", "recall", "eos_share"}
            assert (whole["sentences"] == pairs).all()
            assert (whole["interval"] == "sentences").all()
            assert (whole["low"] <= whole["value"]).all()
            assert (whole["value"] <= whole["high"]).all()
            assert 1 < whole.loc["nll_per_sentence", "value"] < 1000
            assert whole.loc["perplexity", "value"] > 1
            assert 0 <= whole.loc["alignment_error_rate", "value"] <= 1
            buckets = rows[rows["from"].notna() & (rows["score"] == "bleu")]
            assert buckets["sentences"].sum() == pairs
        assert buckets["sentences"].tolist() == [2] * 7
        assert buckets["from"].iloc[-1] == 61
        assert pd.isna(buckets["to"].iloc[-1])

    @pytest.mark.slow
    def test_initial_checkpoints_that_differ_in_seed_form_one_group(self, program, rnnsearch):
        """The file is deleted during the training. A resumed run and an evaluation still know what it was."""
        content = torch.load(rnnsearch / "checkpoints/best.ckpt", weights_only=True)
        runs = []
        for seed, lr in ((1, 0.002), (2, 0.002), (3, 0.004)):
            stored = content["hyper_parameters"]["config"]
            stored["seed"], stored["optimizer"]["lr"] = seed, lr
            torch.save(content, program.folder / f"first{seed}.ckpt")
            folder = f"further{seed}"
            typed = (
                f"initial_checkpoint=first{seed}.ckpt",
                f"seed={seed}",
                f"hydra.run.dir={folder}",
            )
            hook = f"before('nmt.training.fit:Training.finish', 1, lambda: os.remove('first{seed}.ckpt'))"
            typed = (*TINY, "trainer.max_steps=6", *typed)
            ended = program("train", *typed, figures=False, hook=hook)
            assert ended.code == 0, ended.err
            runs.append(program.folder / folder)
        assert [len(each) for each in grouped(find_runs(runs)).values()] == [2, 1]
        before = results(runs[0])["initial_checkpoint"]
        ended = program("train", f"resume={runs[0]}", "trainer.max_steps=7", figures=False)
        assert ended.code == 0, ended.err
        assert results(runs[0])["initial_checkpoint"] == before
        typed = (f"checkpoint={runs[0]}/checkpoints/last.ckpt", "hydra.run.dir=tested")
        ended = program("evaluate", *typed, *SILENT, figures=False)
        assert ended.code == 0, ended.err
        assert results(program.folder / "tested")["initial_checkpoint"] == before

    @pytest.mark.slow
    def test_dictionary_of_unknown_words_is_stored_if_it_is_used(self, program, rnnsearch):
        def stored(folder):
            return torch.load(folder / "checkpoints/best.ckpt", weights_only=True)["nmt"]

        assert stored(rnnsearch)["dictionary"] is None
        typed = (*TINY, "trainer.max_steps=2", "search.replace_unk=dictionary")
        ended = program("train", *typed, "hydra.run.dir=replaced", figures=False)
        assert ended.code == 0, ended.err
        assert isinstance(stored(program.folder / "replaced")["dictionary"], dict)

    @pytest.mark.parametrize("name", SETS)
    def test_translations_keep_the_order_of_the_source(self, rnnsearch, name):
        records = lines(rnnsearch / f"translations/{name}.jsonl")
        assert [record["id"] for record in records] == list(range(len(records)))
        keys = {"id", "source", "reference", "hypothesis", "detokenised", "length", "no_unk"}
        for record in records:
            assert set(record) >= keys | {"nll", "log_probability", "bleu_stats"}
            assert len(record["bleu_stats"]) == 10
            assert all(type(count) is int for count in record["bleu_stats"])
            assert record["bleu_stats"][8:] == [len(record["hypothesis"]), len(record["reference"])]
            assert record["length"] == len(record["source"])
            assert ("hypothesis_no_unk" in record) == bool(record["no_unk"])
        tokens = (rnnsearch / f"translations/{name}.txt").read_text().split("\n")
        assert tokens == [*(" ".join(record["hypothesis"]) for record in records), ""]
        text = (rnnsearch / f"translations/{name}.detok.txt").read_text().split("\n")
        assert text == [*(record["detokenised"] for record in records), ""]

    @pytest.mark.parametrize("name", SETS)
    def test_alignments_have_a_row_per_target_word(self, rnnsearch, name):
        rows = lines(rnnsearch / f"alignments/{name}.jsonl")
        assert len(rows) == 6
        for row in rows:
            steps, words = len(row["target"]), len(row["source"])
            assert row["source"][-1] == row["target"][-1] == "</s>"
            assert row["length"] == words - 1
            assert [len(weights) for weights in row["weights"]] == [words] * steps
            assert all(abs(sum(weights) - 1) < 1e-3 for weights in row["weights"])
            for key in (
                "log_normaliser",
                "attention_entropy",
                "word_log_probabilities",
                "runners_up",
            ):
                assert len(row[key]) == steps
            assert all(len(others) == 5 for others in row["runners_up"])
            # The word scores of an unfinished hypothesis have one more entry, for an added </s>.
            ended = sum(row["word_log_probabilities"])
            assert row["log_probability"] == pytest.approx(ended, abs=0.01) or row[
                "log_probability"
            ] == pytest.approx(ended - row["word_log_probabilities"][-1], abs=0.01)

    def test_rnnencdec_has_no_attention_weights(self, rnnencdec):
        rows = lines(rnnencdec / "alignments/test.jsonl")
        assert len(rows) == 6
        for row in rows:
            assert row["weights"] is row["log_normaliser"] is row["attention_entropy"] is None
        found = results(rnnencdec)
        assert (found["model"], found["scoring"]) == ("RNNencdec", "none")
        table = (rnnencdec / "csv/version_0/metrics.csv").read_text().splitlines()
        assert "valid/nll_per_word" in table[0].split(",")
        assert not (rnnencdec / "wandb").exists()
        assert "alignment_error_rate" not in found["scores"]

    @pytest.mark.parametrize("name", ["best", "last"])
    def test_checkpoints_load_without_code(self, rnnsearch, name):
        content = torch.load(rnnsearch / f"checkpoints/{name}.ckpt", weights_only=True)
        stored = content["nmt"]
        assert content["hyper_parameters"]["config"]["data"]["languages"] == ["en", "fr"]
        assert len(load_vocabulary(stored["source_vocabulary"])) == 302
        assert stored["fingerprint"]
        assert content["global_step"] == 12

    def test_wandb_gets_curves_table_and_heatmaps(self, rnnsearch):
        [run] = rnnsearch.glob("wandb/offline-run-*/*.wandb")
        tool = str(Path(sys.executable).with_name("wandb"))
        said = subprocess.run(
            [tool, "leet", "inspect", "--json", str(run)], capture_output=True, check=True
        )
        records = [json.loads(line) for line in said.stdout.splitlines()]
        rows = [record["history"]["item"] for record in records if record["type"] == "history"]
        measured = results(rnnsearch)
        valid = [row for row in rows if "valid/nll_per_word" in row]
        assert [row["trainer/global_step"] for row in valid] == [5, 11]
        for row, entry in zip(valid, measured["history"], strict=True):
            assert row["valid/nll_per_word"] == pytest.approx(entry["nll_per_word"])
            assert row["valid/eos_weight"] == pytest.approx(entry["eos_weight"])
        assert any("valid/bleu_by_length/11-20" in row for row in valid)
        curve = [row for row in rows if "length/by_length/bleu" in row]
        table = read_scores(rnnsearch)
        bleu = table[(table["set"] == "by_length") & (table["score"] == "bleu")]
        buckets = bleu[bleu["from"].notna() & (bleu["subset"] == "all")]
        assert [row["length/by_length/bleu"] for row in curve] == pytest.approx(
            buckets["value"].tolist()
        )
        assert len({row["length/words"] for row in curve}) == 7
        content = run.parent / "files"
        assert list(content.glob("media/table/scores*.table.json"))
        assert len(list(content.glob("media/images/valid/alignment_*.png"))) == 8

    def test_log_has_the_scores(self, rnnsearch):
        log = (rnnsearch / "train.log").read_text()
        bleu = score(rnnsearch, "by_length", "bleu")["value"]
        assert f"by_length: BLEU {bleu:.2f}" in log
        assert "Traceback" not in log
        assert not re.search(r"WARNING|ERROR", log)

    def test_diverged_training_ends_with_code_1(self, program):
        ended = program("train", *TINY, "optimizer.lr=1e30", "hydra.run.dir=diverged")
        assert ended.code == 1
        assert "is not finite at or before update" in ended.err
        assert "Traceback" not in ended.err

    def test_refuses_a_monitor_that_nothing_logs(self, program):
        typed = (*TINY, "callbacks.best.monitor=valid/typo", "hydra.run.dir=typo")
        ended = program("train", *typed)
        assert ended.code == 2
        assert "nmt: callbacks.best.monitor=valid/typo: no validation logs it" in ended.err
        assert "valid/bleu" in ended.err.splitlines()[-1]
        assert not (program.folder / "typo/checkpoints").exists()  # fails before the first update

    @pytest.mark.slow
    def test_best_of_several_kept_checkpoints_is_named_best(self, program):
        typed = ("callbacks.best.save_top_k=2", "optimizer.lr=0.05", "schedule=constant")
        steps = ("trainer.max_steps=12", "trainer.val_check_interval=2", "data.valid.pairs=6")
        ended = program(
            "train", "+experiment=rnnsearch50", *TINY, *typed, *steps, "hydra.run.dir=several",
            figures=False,
        )  # fmt: skip
        assert ended.code == 0, ended.err
        folder = program.folder / "several"
        nll = {row["update"]: row["nll_per_word"] for row in results(folder)["history"]}
        ranked = sorted(nll, key=nll.__getitem__)
        names = {path.name for path in (folder / "checkpoints").iterdir()}
        assert names == {
            "best.ckpt",
            "last.ckpt",
            *(f"best-{update}.ckpt" for update in ranked[:2]),
        }
        best = torch.load(folder / "checkpoints/best.ckpt", weights_only=True)
        assert best["global_step"] == ranked[0]
