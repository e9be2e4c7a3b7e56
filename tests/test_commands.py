"""The commands as people type them: what they leave behind, print, refuse and end with."""

from __future__ import annotations

import hashlib
import json
import os
import re
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from nmt.data.vocabulary import load_vocabulary

BEST = "checkpoint=rnnsearch/checkpoints/best.ckpt"
QUICK = ("trainer.progress=false", "logger=none", "report.heatmaps=0")
SETS = ("test", "by_length")


def results(folder: Path) -> dict:
    return json.loads((folder / "results.json").read_text())


def lines(file: Path) -> list[dict]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


class TestTrain:
    def test_the_run_folder_holds_what_it_promises(self, rnnsearch):
        found = {name for name in files(rnnsearch) if not name.startswith("wandb/")}
        checkpoints = {
            f"checkpoints/{name}.ckpt{ending}"
            for name in ("last", "previous", "best")
            for ending in ("", ".sha256")
        }
        written = {
            f"{kind}/{name}{ending}"
            for name in SETS
            for kind, ending in [
                ("translations", ".jsonl"),
                ("translations", ".txt"),
                ("translations", ".detok.txt"),
                ("alignments", ".jsonl"),
            ]
        }
        hydra = {f".hydra/{name}.yaml" for name in ("config", "hydra", "overrides")}
        figures = {name for name in found if name.startswith("figures/")}
        assert found - figures == checkpoints | written | hydra | {
            "results.json",
            "train.log",
            "report.html",
        }
        stems = {Path(name).stem for name in figures}
        assert {f"{name}-bleu-by-length" for name in SETS} <= stems
        assert {f"{name}-four" for name in SETS} <= stems
        assert len([stem for stem in stems if "-heatmap-" in stem]) == 2
        assert {Path(name).suffix for name in figures} == {".png", ".svg"}
        assert all((rnnsearch / name).stat().st_size > 1000 for name in figures)

    def test_no_name_holds_an_equals_sign_and_nothing_half_written_stays(self, rnnsearch):
        names = files(rnnsearch)
        assert not [name for name in names if "=" in name or name.endswith(".partial")]

    def test_results_hold_the_promised_keys(self, rnnsearch):
        found = results(rnnsearch)
        assert found["schema"] == 1
        assert (found["name"], found["title"]) == ("RNNsearch-50", "RNNsearch")
        assert (found["experiment"], found["regime"]) == ("rnnsearch50", "tiny")
        assert (found["model"], found["scoring"], found["max_length"]) == (
            "RNNsearch",
            "Additive",
            50,
        )
        assert found["seed"] == 3
        assert "+experiment=rnnsearch50" in found["overrides"]
        assert found["command"].startswith("python -m nmt.train +experiment=rnnsearch50")
        assert found["config"]["data"]["max_length"] == 50
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
        assert list(found["test"]) == list(SETS)
        for name, pairs in (("test", 12), ("by_length", 14)):
            scores = found["test"][name]
            assert scores["pairs"] == scores["bleu"]["all"]["sentences"] == pairs
            assert scores["search"]["beam_size"] == 2
            bleu = scores["bleu"]["all"]
            assert bleu["low"] <= bleu["score"] <= bleu["high"]
            assert scores["sacrebleu"]["signature"].startswith("nrefs:1")
            assert 1 < scores["nll_per_sentence"] < 1000
            assert scores["perplexity"] > 1
            assert 0 <= scores["alignment"]["error_rate"] <= 1
            assert set(scores["alignment"]) >= {"precision", "recall", "on_end_of_sentence"}
            assert sum(bucket["sentences"] for bucket in scores["by_length"]) == pairs
            for bucket in scores["by_length"]:
                assert set(bucket) >= {
                    *("from", "to", "sentences", "score", "low", "high"),
                    *("brevity_penalty", "no_unk", "nll_per_word"),
                }
        buckets = found["test"]["by_length"]["by_length"]
        assert [bucket["sentences"] for bucket in buckets] == [2] * 7
        assert (buckets[-1]["from"], buckets[-1]["to"]) == (61, None)

    def test_parameters_are_counted(self, rnnsearch):
        weights = torch.load(rnnsearch / "checkpoints/best.ckpt", weights_only=True)["state_dict"]
        assert results(rnnsearch)["parameters"] == sum(each.numel() for each in weights.values())

    @pytest.mark.parametrize("name", SETS)
    def test_translations_are_in_the_order_of_the_source(self, rnnsearch, name):
        records = lines(rnnsearch / f"translations/{name}.jsonl")
        assert [record["id"] for record in records] == list(range(len(records)))
        keys = {"id", "source", "reference", "hypothesis", "detokenised", "length", "no_unk"}
        for record in records:
            assert set(record) >= keys | {"nll", "score", "bleu_stats"}
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
    def test_alignments_are_kept_step_by_step(self, rnnsearch, name):
        rows = lines(rnnsearch / f"alignments/{name}.jsonl")
        assert len(rows) == 6
        for row in rows:
            steps, words = len(row["target"]), len(row["source"])
            assert row["source"][-1] == row["target"][-1] == "</s>"
            assert row["length"] == words - 1
            assert [len(weights) for weights in row["weights"]] == [words] * steps
            assert all(abs(sum(weights) - 1) < 1e-3 for weights in row["weights"])
            for key in ("log_normaliser", "spread", "log_probability", "runners_up"):
                assert len(row[key]) == steps
            assert all(len(others) == 5 for others in row["runners_up"])
            # the reading of a hypothesis that was never finished ends in </s> all the same
            ended = sum(row["log_probability"])
            assert row["score"] == pytest.approx(ended, abs=0.01) or row["score"] == pytest.approx(
                ended - row["log_probability"][-1], abs=0.01
            )

    def test_a_fixed_vector_has_no_weights(self, rnnencdec):
        rows = lines(rnnencdec / "alignments/test.jsonl")
        assert len(rows) == 6
        for row in rows:
            assert row["weights"] is row["log_normaliser"] is row["spread"] is None
        found = results(rnnencdec)
        assert (found["model"], found["scoring"]) == ("RNNencdec", "none")
        assert "alignment" not in found["test"]["test"]
        assert not [name for name in files(rnnencdec) if "heatmap" in name or "-four" in name]

    @pytest.mark.parametrize("name", ["best", "last", "previous"])
    def test_checkpoints_are_data_with_a_checksum(self, rnnsearch, name):
        file = rnnsearch / f"checkpoints/{name}.ckpt"
        digest, listed = Path(f"{file}.sha256").read_text().split()
        assert hashlib.sha256(file.read_bytes()).hexdigest() == digest
        assert listed == file.name
        content = torch.load(file, weights_only=True)
        stored = content["nmt"]
        assert stored["config"]["data"]["languages"] == ["en", "fr"]
        assert len(load_vocabulary(stored["source_vocabulary"])) == 302
        assert stored["fingerprint"]
        assert content["global_step"] == {"last": 12, "previous": 6}.get(name, 12)

    def test_weights_and_biases_holds_curves_table_and_pictures(self, rnnsearch):
        [run] = rnnsearch.glob("wandb/offline-run-*/*.wandb")
        tool = str(Path(sys.executable).with_name("wandb"))
        said = subprocess.run(
            [tool, "leet", "inspect", "--json", str(run)], capture_output=True, check=True
        )
        records = [json.loads(line) for line in said.stdout.splitlines()]
        rows = [record["history"]["item"] for record in records if record["type"] == "history"]
        measured = results(rnnsearch)
        valid = [row for row in rows if "valid/nll_per_word" in row]
        assert [row["trainer/global_step"] for row in valid] == [6, 12]
        for row, entry in zip(valid, measured["history"], strict=True):
            assert row["valid/nll_per_word"] == pytest.approx(entry["nll_per_word"])
        assert any("valid/bleu_by_length/11-20" in row for row in valid)
        curve = [row for row in rows if "length/by_length/bleu" in row]
        buckets = measured["test"]["by_length"]["by_length"]
        assert [row["length/by_length/sentences"] for row in curve] == [2] * 7
        assert [row["length/by_length/bleu"] for row in curve] == pytest.approx(
            [bucket["score"] for bucket in buckets]
        )
        assert len({row["length/words"] for row in curve}) == 7
        content = run.parent / "files"
        assert list(content.glob("media/table/test/*.table.json"))
        assert len(list(content.glob("media/images/valid/alignment/*.png"))) == 8

    def test_the_log_tells_the_scores(self, rnnsearch):
        log = (rnnsearch / "train.log").read_text()
        bleu = results(rnnsearch)["test"]["by_length"]["bleu"]["all"]["score"]
        assert f"by_length: BLEU {bleu:.2f}" in log
        assert "Traceback" not in log
        assert not re.search(r"WARNING|ERROR", log)

    def test_metrics_as_comma_separated_values(self, rnnencdec):
        table = (rnnencdec / "metrics.csv").read_text().splitlines()
        assert "valid/nll_per_word" in table[0].split(",")
        assert not (rnnencdec / "wandb").exists()

    def test_tensorboard_without_its_extra_is_refused_or_written(self, program):
        typed = ("regime=tiny", "trainer.max_steps=1", "data.grammar.by_length_pairs=7", *QUICK)
        found = program(
            "train", *typed, "logger=tensorboard", "hydra.run.dir=board", "+experiment=rnnencdec30"
        )
        try:
            import tensorboard  # noqa: F401
        except ImportError:
            assert found.code == 2
            assert "logger=tensorboard: needs the extra 'tensorboard'" in found.err
        else:
            assert found.code == 0, found.err
            assert list((program.folder / "board").glob("**/events.out.*"))


class TestRefusals:
    def test_a_misspelt_key_in_a_process_of_its_own(self, program):
        before = files(program.folder)
        ended = program.process("train", "trainer.max_step=5")
        assert ended.code == 2
        assert ended.out == ""
        assert ended.err.startswith("nmt: trainer.max_step: no such key; did you mean")
        assert ended.err.count("\n") == 1
        assert files(program.folder) == before

    def test_wmt14_without_network_is_refused_within_seconds(self, program):
        started = time.process_time()
        ended = program("prepare", "data=wmt14", "data.cache=elsewhere")
        assert time.process_time() - started < 20
        assert ended.code == 2
        assert "data.train.hub=wmt/wmt14: no connection to" in ended.err
        assert last_line(ended.err).startswith("nmt: data.train.hub=wmt/wmt14")

    @pytest.mark.parametrize(
        ("source", "target", "said"),
        [
            (None, "a\n", "data.train.source={source}: no such file"),
            ("a\nb\n", "a\n", "{source} has 2, {target} has 1 lines"),
            ("a\n\xff\n", "a\nb\n", "{source}:2: not UTF-8 (byte 0xff at column 1)"),
            ("", "", "data.train"),
        ],
        ids=["missing", "unequal", "not UTF-8", "empty"],
    )
    def test_text_that_is_wrong_is_named_by_file_and_line(
        self, program, tmp_path, source, target, said
    ):
        paths = {"source": tmp_path / "s.en", "target": tmp_path / "t.fr"}
        for side, text in (("source", source), ("target", target)):
            if text is not None:
                paths[side].write_bytes(text.encode("latin-1"))
        typed = [
            f"data.{s}.{side}={path}" for s in ("train", "valid") for side, path in paths.items()
        ]
        ended = program("prepare", "data=text", *typed, f"data.cache={tmp_path}/cache", *QUICK[:1])
        assert ended.code == 2
        assert last_line(ended.err).startswith("nmt: ")
        assert said.format(**paths) in last_line(ended.err)
        assert "Traceback" not in ended.err

    def test_files_that_were_not_named(self, program):
        ended = program("prepare", "data=text")
        assert ended.code == 2
        assert "data.train.source: missing" in ended.err

    def test_a_refused_run_leaves_no_folder_but_what_was_there(self, program):
        typed = ("data=text", "data.train.source=no.en", "data.train.target=no.fr")
        kept = program.folder / "kept"
        kept.mkdir()
        (kept / "notes.txt").write_text("mine")
        for folder in ("refused", "kept"):
            ended = program("train", *typed, f"hydra.run.dir={folder}")
            assert ended.code == 2, ended.err
        assert not (program.folder / "refused").exists()
        assert (kept / "notes.txt").read_text() == "mine"

    @pytest.mark.parametrize("command", ["train", "evaluate", "baseline"])
    def test_a_finished_run_is_not_written_over(self, program, rnnsearch, command):
        before = {path: path.stat().st_mtime_ns for path in sorted(rnnsearch.rglob("*"))}
        typed = [BEST] if command == "evaluate" else ["seed=99"]
        ended = program(command, *typed, f"hydra.run.dir={rnnsearch}")
        assert ended.code == 2, ended.err
        assert "holds" in ended.err
        after = {path: path.stat().st_mtime_ns for path in sorted(rnnsearch.rglob("*"))}
        changed = {path.name for path in before if before[path] != after.get(path)}
        assert changed <= {".hydra", "train.log"}
        assert {path.name for path in after.keys() - before.keys()} <= {f"{command}.log"}

    def test_gold_links_of_the_development_text_are_read_before_training(self, program, tmp_path):
        for name, content in (("s", "a b\nc d\n"), ("t", "x y\nz w\n"), ("gold", "0-0\n0-7\n")):
            (tmp_path / name).write_text(content)
        texts = [
            f"data.{part}.{side}={tmp_path / side[0]}"
            for part in ("train", "valid")
            for side in ("source", "target")
        ]
        gold = [f"data.valid.alignment={tmp_path}/gold", "data.valid.tokenised=true"]
        ended = program("train", "data=text", *texts, *gold, "hydra.run.dir=gold", *QUICK)
        assert ended.code == 2, ended.err
        assert f"data.valid.alignment={tmp_path}/gold:2: '0-7' lies outside" in ended.err

    @pytest.mark.parametrize("command", ["evaluate", "translate"])
    @pytest.mark.parametrize(
        ("typed", "said"),
        [
            ((), "checkpoint: must be given (file of the trained model)"),
            (("checkpoint=nowhere.ckpt",), "checkpoint=nowhere.ckpt: no such file"),
            ((BEST, "model=rnnencdec"), "model: belongs to the training run"),
            ((BEST, "model.dropout=0.1"), "model.dropout: belongs to the training run"),
            ((BEST, "seed=4"), "seed: belongs to the training run"),
            ((BEST, "regime=paper"), "regime=paper: the checkpoint is of regime=tiny"),
            ((BEST, "search.beam_size=0"), "search.beam_size=0: must be at least 1"),
        ],
    )
    def test_what_a_trained_model_cannot_change(self, program, rnnsearch, command, typed, said):
        ended = program(command, *typed, *(["hydra.run.dir=refused"] * (command == "evaluate")))
        assert ended.code == 2
        assert said in ended.err
        assert last_line(ended.err).startswith("nmt: ")
        assert "Traceback" not in ended.err

    def test_a_file_that_is_no_checkpoint(self, program, tmp_path):
        (tmp_path / "x.ckpt").write_text("not a checkpoint")
        ended = program("translate", f"checkpoint={tmp_path}/x.ckpt")
        assert ended.code == 2
        assert f"checkpoint={tmp_path}/x.ckpt: not a checkpoint of nmt" in ended.err

    def test_a_checkpoint_that_was_cut_short(self, program, rnnsearch, tmp_path):
        for ending in ("", ".sha256"):
            content = (rnnsearch / f"checkpoints/best.ckpt{ending}").read_bytes()
            (tmp_path / f"best.ckpt{ending}").write_bytes(content[: -1000 if not ending else None])
        ended = program("translate", f"checkpoint={tmp_path}/best.ckpt")
        assert ended.code == 2
        assert "damaged: its SHA-256 is not the one in best.ckpt.sha256" in ended.err


def last_line(text: str) -> str:
    return text.rstrip("\n").rpartition("\n")[2]


class TestEvaluate:
    def test_a_checkpoint_scores_as_it_did_after_training(self, program, rnnsearch):
        ended = program("evaluate", BEST, "hydra.run.dir=again", *QUICK)
        assert ended.code == 0, ended.err
        before, after = results(rnnsearch), results(program.folder / "again")
        assert after["test"] == before["test"]
        assert after["parameters"] == before["parameters"]
        assert after["train"]["updates"] == 12
        file = rnnsearch / "checkpoints/best.ckpt"
        assert after["sources"] == {
            "checkpoint": str(file.resolve()),
            "sha256": hashlib.sha256(file.read_bytes()).hexdigest(),
        }
        for name in SETS:
            for ending in (".jsonl", ".txt", ".detok.txt"):
                path = f"translations/{name}{ending}"
                assert (program.folder / "again" / path).read_text() == (
                    rnnsearch / path
                ).read_text()
        assert (program.folder / "again/.hydra/config.yaml").is_file()

    def test_files_with_gold_links(self, program, rnnsearch, tmp_path):
        (tmp_path / "s").write_text("the cat sees the dog .\na bird sings .\n")
        (tmp_path / "t").write_text("le chat voit le chien .\nun oiseau chante .\n")
        (tmp_path / "gold").write_text("1-1 2-2 3-3 4-4 5p5 6-6\n1-1 2-2 3-3 4-4\n")
        mine = {"source": "s", "target": "t", "alignment": "gold"}
        typed = [f"+data.test.mine.{key}={tmp_path / name}" for key, name in mine.items()]
        typed += ["+data.test.mine.alignment_base=1", "+data.test.mine.tokenised=true"]
        ended = program(
            "evaluate", BEST, *typed, "sets=[mine]", "search=greedy", "hydra.run.dir=mine", *QUICK
        )
        assert ended.code == 0, ended.err
        found = results(program.folder / "mine")["test"]
        assert list(found) == ["mine"]
        assert found["mine"]["pairs"] == 2
        assert found["mine"]["search"]["beam_size"] == 1
        assert found["mine"]["alignment"]["sentences"] == 2
        assert found["mine"]["by_length"][0]["sentences"] == 2
        records = lines(program.folder / "mine/translations/mine.jsonl")
        assert records[1]["source"] == ["a", "bird", "sings", "."]

    @pytest.mark.parametrize(
        ("gold", "said"),
        [("1-1\n", "has 1"), ("1-1\n1-9\n", "gold:2: "), ("1-1\n1:1\n", "gold:2: ")],
        ids=["too few", "out of the sentence", "not Pharaoh"],
    )
    def test_gold_links_that_do_not_fit(self, program, rnnsearch, tmp_path, gold, said):
        (tmp_path / "s").write_text("the cat\na bird\n")
        (tmp_path / "t").write_text("le chat\nun oiseau\n")
        (tmp_path / "gold").write_text(gold)
        mine = {"source": "s", "target": "t", "alignment": "gold"}
        typed = [f"+data.test.mine.{key}={tmp_path / name}" for key, name in mine.items()]
        typed += ["+data.test.mine.alignment_base=1", "+data.test.mine.tokenised=true"]
        ended = program("evaluate", BEST, *typed, "sets=[mine]", "hydra.run.dir=refused", *QUICK)
        assert ended.code == 2, ended.err
        assert said in last_line(ended.err)

    def test_sentences_joined_into_longer_ones(self, program, rnnsearch):
        typed = ("+stress=lengths", "stress.lengths=[20,40]", "stress.pairs=3", "sets=[test]")
        ended = program("evaluate", BEST, *typed, "hydra.run.dir=stress", *QUICK)
        assert ended.code == 0, ended.err
        found = results(program.folder / "stress")["test"]
        joined = [name for name in found if name != "test"]
        assert len(joined) == 2
        for name, length in zip(joined, (20, 40), strict=True):
            records = lines(program.folder / f"stress/translations/{name}.jsonl")
            assert 1 <= len(records) <= 3
            assert all(record["length"] >= length * 0.5 for record in records)
        assert all("=" not in name for name in found)

    def test_a_set_that_there_is_not(self, program, rnnsearch):
        ended = program("evaluate", BEST, "sets=[tset]", "hydra.run.dir=refused", *QUICK)
        assert ended.code == 2
        assert "sets: no test set tset; data.test has: test, by_length" in ended.err


NASTY = [
    b"the cat sees the dog .",
    b"",
    b"   \t ",
    b"\x01\x02\x7f",
    b"a\xe2\x80\xa8b c",
    b"bad \xff\xfe bytes",
    b"very " * 300,
    b"a bird sings .\r",
    b"\xc2\x85 nel",
    b"<unk> </s> <s>",
    b"last without a line feed",
]


class TestTranslate:
    def test_one_line_out_for_each_line_in(self, program, rnnsearch):
        before = files(program.folder)
        ended = program("translate", BEST, stdin=b"\n".join(NASTY))
        assert ended.code == 0, ended.err
        assert ended.out.endswith("\n")
        found = ended.out.removesuffix("\n").split("\n")
        assert len(found) == len(NASTY)
        assert [bool(line) for line in found[:3]] == [True, False, False]
        assert all(found[4:])
        assert not any(set(line) & set("\r\x85\u2028\0") for line in found)
        assert files(program.folder) == before

    def test_the_number_of_translations_is_its_own_key(self, program, rnnsearch):
        ended = program("translate", BEST, "search.nbest=2", stdin=b"the cat .\n")
        assert (ended.code, ended.out) == (2, "")
        assert "search.nbest: type nbest= instead" in ended.err

    def test_nothing_in_nothing_out(self, program, rnnsearch):
        assert program("translate", BEST)[:2] == (0, "")

    def test_several_translations_with_scores_and_links(self, program, rnnsearch):
        given = b"the cat sees the dog .\n\na bird sings .\n"
        typed = ("nbest=3", "scores=true", "alignments=pharaoh", "detokenise=false")
        ended = program("translate", BEST, *typed, "tokenised=true", stdin=given)
        assert ended.code == 0, ended.err
        rows = [line.split("\t") for line in ended.out.splitlines()]
        assert [row[0] for row in rows] == ["1"] * 3 + ["2"] + ["3"] * 3
        assert rows[3] == ["2", "", "", ""]
        for block, words in ((rows[:3], 6), (rows[4:], 4)):
            scores = [float(row[1]) for row in block]
            assert scores == sorted(scores, reverse=True)
            assert max(scores) < 0
            for _, _, text, links in block:
                pairs = [tuple(map(int, link.split("-"))) for link in links.split()]
                assert all(0 <= i < words and 0 <= j < len(text.split()) for i, j in pairs)

    def test_objects_heatmaps_and_a_page(self, program, rnnsearch, tmp_path):
        given = b"the cat sees the dog .\n\nthe bird sings ."
        typed = (f"heatmap={tmp_path}/maps", f"page={tmp_path}/page.html", "alignments=json")
        ended = program("translate", BEST, *typed, stdin=given)
        assert ended.code == 0, ended.err
        rows = [json.loads(line) for line in ended.out.splitlines()]
        assert [row["line"] for row in rows] == [1, 2, 3]
        assert rows[0]["source"] == ["the", "cat", "sees", "the", "dog", "."]
        assert rows[1]["translations"] == []
        [found] = rows[2]["translations"]
        assert len(found["weights"]) == len(found["tokens"]) + 1
        assert [len(each) for each in found["weights"]] == [5] * len(found["weights"])
        assert {path.name for path in (tmp_path / "maps").iterdir()} == {"line-1.png", "line-3.png"}
        assert (tmp_path / "page.html").read_text().startswith("<!doctype html>")

    def test_a_model_without_attention_writes_empty_links(self, program, rnnencdec):
        typed = ("checkpoint=rnnencdec/checkpoints/best.ckpt", "alignments=pharaoh")
        ended = program("translate", *typed, stdin=b"a bird sings .\n")
        assert ended.code == 0, ended.err
        text, links = ended.out.rstrip("\n").split("\t")
        assert text
        assert links == ""

    def test_greedy_and_beam_are_what_was_typed(self, program, rnnsearch):
        given = b"the cat sees the dog .\n"
        outs = {
            size: program("translate", BEST, f"search.beam_size={size}", "scores=true", stdin=given)
            for size in (1, 6)
        }
        scores = {size: float(ended.out.split("\t")[0]) for size, ended in outs.items()}
        assert scores[6] >= scores[1]
        # a group that is typed replaces all of its keys, also those the run had set
        greedy = program("translate", BEST, "search=greedy", "scores=true", stdin=given)
        typed = ("search.beam_size=1", "search.max_ratio=3", "scores=true")
        assert greedy.out == program("translate", BEST, *typed, stdin=given).out

    def test_a_line_is_answered_before_the_end_of_the_input(self, program, rnnsearch):
        process = program.start("translate", BEST, stdin=subprocess.PIPE)
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            for line in (b"a bird sings .\n", b"\n", b"the cat sees the dog .\n"):
                process.stdin.write(line)
                process.stdin.flush()
                ready, _, _ = select.select([process.stdout], [], [], 200)
                assert ready, "no answer while the input is open"
                answer = os.read(process.stdout.fileno(), 4096)
                assert answer.count(b"\n") == 1
            process.stdin.close()
            assert process.wait(60) == 0
        finally:
            process.kill()
            process.wait()


class TestCompare:
    def test_runs_and_another_system_on_one_page(self, program, rnnsearch, rnnencdec):
        reference = [
            " ".join(record["reference"]) for record in lines(rnnsearch / "translations/test.jsonl")
        ]
        (program.folder / "moses.txt").write_text("\n".join(reference) + "\n")
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
        assert all(name.startswith("compared/") for name in written)
        assert "compared/comparison.html" in written
        page = (program.folder / "compared/comparison.html").read_text()
        for name in ("RNNsearch-50", "RNNencdec-30", "moses"):
            assert name in page
        tables = [name for name in written if name.startswith("compared/tables/")]
        text = "".join((program.folder / name).read_text() for name in tables)
        assert "100.00" in text  # the references are their own best translation
        assert any(name.startswith("compared/figures/") for name in written)

    @pytest.mark.parametrize(
        ("typed", "said"),
        [
            (("runs=[nowhere]",), "runs: nothing matches nowhere"),
            (("runs=[]",), "runs: empty; name run folders, sweep folders or globs"),
            ((), "runs: must be given (run folders, sweep folders, or globs of them)"),
            (("runs=[rnnsearch]", "+external.moses.tset=moses.txt"), "external.moses.tset: no run"),
            (("runs=[rnnsearch]", "+external.moses.test=gone.txt"), "gone.txt: no such file"),
            (
                ("runs=[rnnsearch]", "+external.moses.test=short.txt"),
                "1 lines, but the test set has 12",
            ),
        ],
    )
    def test_refusals(self, program, rnnsearch, typed, said):
        (program.folder / "short.txt").write_text("une ligne\n")
        ended = program("compare", *typed, "output=refused-page")
        assert ended.code == 2, ended.err
        assert said in last_line(ended.err)
        assert "Traceback" not in ended.err
        assert not (program.folder / "refused-page").exists()


class TestPrepare:
    def test_counts_on_standard_output_and_no_folder_of_its_own(self, program, tmp_path):
        (tmp_path / "s").write_text("The cat sees the dog.\n\nA bird sings.\n" + "a " * 60 + "\n")
        (tmp_path / "t").write_text("Le chat voit le chien.\n\nUn oiseau chante.\nb\n")
        typed = [
            f"data.{split}.{side}={tmp_path / side[0]}"
            for split in ("train", "valid")
            for side in ("source", "target")
        ]
        before = files(program.folder)
        ended = program("prepare", "data=text", *typed, f"data.cache={tmp_path}/cache")
        assert ended.code == 0, ended.err
        rows = {row[0]: row[1:] for row in map(str.split, ended.out.splitlines())}
        assert rows["train"][:3] == ["2", "1", "1"]  # pairs kept, empty, too long
        assert rows["valid"][:3] == ["3", "1", "0"]  # the cap is for training alone
        assert files(program.folder) == before


class TestEveryCommand:
    @pytest.mark.parametrize("command", ["train", "evaluate", "translate", "compare", "prepare"])
    def test_shows_its_configuration(self, program, command):
        ended = program(command, "--cfg", "job")
        assert ended.code == 0
        assert re.search(r"^(seed|runs): ", ended.out, re.MULTILINE)
        assert not (program.folder / "outputs").exists()

    @pytest.mark.parametrize(
        ("command", "does", "shown"),
        [
            ("train", "Trains a model", "experiment: rnnencdec30, rnnencdec50, rnnsearch30"),
            ("evaluate", "Runs the whole test protocol", "stress: lengths"),
            ("translate", "Translates standard input", "search: beam, greedy"),
            ("compare", "Sets runs", "resamples: 1000"),
            ("prepare", "Text to memory-mapped", "tokenizer: bpe, words"),
            ("baseline", "Trains a phrase-based system", "data: grammar, multi30k, text"),
        ],
    )
    def test_helps(self, program, command, does, shown):
        """What it does, three examples or more, what can be chosen, and where the keys are."""
        asked = program(command, "--help")
        assert asked.code == 0, asked.err
        assert asked.out.startswith(f"python -m nmt.{command}: {does}")
        examples = re.findall(rf"^ *python -m nmt\.{command}\b", asked.out, re.MULTILINE)
        assert len(examples) > 3  # the first line is the title
        assert shown in asked.out
        assert "docs/configuration.md" in asked.out


@pytest.mark.slow
def test_a_sweep_ends_in_the_comparison_page(program):
    typed = ["-m", "+experiment=rnnencdec30,rnnsearch30", "regime=tiny", *QUICK]
    ended = program.process("train", *typed, "hydra.sweep.dir=sweep")
    assert ended.code == 0, ended.err
    names = [results(program.folder / "sweep" / str(job))["name"] for job in (0, 1)]
    assert names == ["RNNencdec-30", "RNNsearch-30"]
    page = (program.folder / "sweep/comparison.html").read_text()
    assert all(name in page for name in names)
    assert list((program.folder / "sweep/tables").glob("*.csv"))
