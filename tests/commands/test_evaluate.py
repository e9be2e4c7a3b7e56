"""`nmt.evaluate`: the test protocol on a trained model."""

from __future__ import annotations

import hashlib

import pytest

import nmt
from tests.helpers.models import small_checkpoint
from tests.helpers.processes import SILENT
from tests.helpers.produced import BEST, SETS, last_line, lines, results, score


class TestEvaluate:
    def test_scores_equal_those_after_training(self, program, rnnsearch):
        ended = program("evaluate", BEST, "hydra.run.dir=again", *SILENT, figures=False)
        assert ended.code == 0, ended.err
        before, after = results(rnnsearch), results(program.folder / "again")
        tables = [folder / "scores.csv" for folder in (rnnsearch, program.folder / "again")]
        assert tables[0].read_bytes() == tables[1].read_bytes()
        assert after["parameters"] == before["parameters"]
        assert after["train"] == before["train"]
        file = rnnsearch / "checkpoints/best.ckpt"
        assert after["sources"] == {
            "checkpoint": BEST.removeprefix("checkpoint="),  # as typed, not absolute
            "sha256": hashlib.sha256(file.read_bytes()).hexdigest(),
            **{key: before["train"][key] for key in ("device", "devices", "precision")},
        }
        for name in SETS:
            for ending in (".jsonl", ".txt", ".detok.txt"):
                path = f"translations/{name}{ending}"
                assert (program.folder / "again" / path).read_text() == (
                    rnnsearch / path
                ).read_text()
        assert (program.folder / "again/.hydra/config.yaml").is_file()

    @pytest.mark.slow
    def test_ensemble_is_scored_as_one_model(self, program, tmp_path):
        files = [small_checkpoint(tmp_path / f"{seed}.ckpt", seed) for seed in (1, 2)]
        (tmp_path / "s").write_text("the cat sees a bird .\nthe red cat .\n")
        (tmp_path / "t").write_text("le chat voit un oiseau .\nle chat rouge .\n")
        typed = [f"checkpoint=[{','.join(map(str, files))}]", "sets=[mine]"]
        typed += [f"+data.test.mine.source={tmp_path}/s", f"+data.test.mine.target={tmp_path}/t"]
        ended = program("evaluate", *typed, "hydra.run.dir=ensemble", *SILENT, figures=False)
        assert ended.code == 0, ended.err
        found = results(program.folder / "ensemble")
        assert found["name"] == "RNNsearch-50, 2 models"
        alone = sum(value.numel() for value in nmt.load(files[0]).network.parameters())
        assert found["parameters"] == 2 * alone
        [other] = found["sources"]["others"]
        assert other["sha256"] == hashlib.sha256(files[1].read_bytes()).hexdigest()
        pairs = list(zip(*((tmp_path / f).read_text().splitlines() for f in "st"), strict=True))
        scores = [pair.log_probability for pair in nmt.load(files).score(pairs)]
        nll = score(program.folder / "ensemble", "mine", "nll_per_sentence")["value"]
        assert nll == pytest.approx(-sum(scores) / 2)
        made = lines(program.folder / "ensemble/translations/mine.jsonl")
        texts = [each.text for each in nmt.load(files).translate([pair[0] for pair in pairs])]
        assert [row["detokenised"] for row in made] == texts

    def test_gold_alignments_give_an_error_rate(self, program, rnnsearch, tmp_path):
        """The second pair is left out, since its source sentence is empty."""
        (tmp_path / "s").write_text("the cat sees the dog .\n\na bird sings .\n")
        (tmp_path / "t").write_text("le chat voit le chien .\nx\nun oiseau chante .\n")
        (tmp_path / "gold").write_text("0-0 1-1 2-2 3-3 4p4 5-5\n\n0-0 1-1 2-2 3-3\n")
        mine = {"source": "s", "target": "t", "alignment": "gold"}
        typed = [f"+data.test.mine.{key}={tmp_path / name}" for key, name in mine.items()]
        typed += ["+data.test.mine.tokenised=true"]
        typed += ["sets=[mine]", "search=greedy", "hydra.run.dir=mine"]
        ended = program("evaluate", BEST, *typed, *SILENT, figures=False)
        assert ended.code == 0, ended.err
        assert results(program.folder / "mine")["config"]["search"]["beam_size"] == 1
        for key in ("bleu", "alignment_error_rate"):
            assert score(program.folder / "mine", "mine", key)["sentences"] == 2
            assert score(program.folder / "mine", "mine", key, first=1)["sentences"] == 2
        records = lines(program.folder / "mine/translations/mine.jsonl")
        assert records[1]["source"] == ["a", "bird", "sings", "."]

    def test_refuses_gold_links_outside_the_sentence(self, program, rnnsearch, tmp_path):
        (tmp_path / "s").write_text("the cat\na bird\n")
        (tmp_path / "t").write_text("le chat\nun oiseau\n")
        (tmp_path / "gold").write_text("0-0\n1-9\n")
        mine = {"source": "s", "target": "t", "alignment": "gold"}
        typed = [f"+data.test.mine.{key}={tmp_path / name}" for key, name in mine.items()]
        typed += ["+data.test.mine.tokenised=true"]
        typed += ["sets=[mine]", "hydra.run.dir=refused", *SILENT]
        ended = program("evaluate", BEST, *typed)
        assert ended.code == 2, ended.err
        assert "gold:2: '1-9' lies outside" in last_line(ended.err)

    def test_refuses_an_unknown_test_set(self, program, rnnsearch):
        ended = program("evaluate", BEST, "sets=[tset]", "hydra.run.dir=refused", *SILENT)
        assert ended.code == 2
        assert "sets: no test set tset; data.test has: by_length, test" in ended.err
