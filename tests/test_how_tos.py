"""What the documentation marks as quick is typed, in order, in tiny form; what comes of it is checked.

Each page has a folder of its own, with the files it gives the content of, and those it takes the
reader to have. Among them are a scoring function and a model from outside the package.
"""

from __future__ import annotations

import contextlib
import csv
import importlib.util
import io
import json
import shutil
import types
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch
from nmt.training.validation import is_logged

import nmt
from nmt.grammar import draw
from nmt.layers import ForwardEncoder
from tests.helpers import ROOT
from tests.helpers.documentation import PAGES, Shown, blocks, files, in_block
from tests.helpers.processes import run
from tests.helpers.produced import score
from tests.report.page.elements import Elements

QUICK = [page for page in PAGES if any(block.mark == "quick" for block in blocks(page.read_text()))]
LINES = {"train": 60, "valid": 12, "test": 8, "test:some": 3}  # pairs of the reader's own files
SMALL = (
    "trainer.enable_progress_bar=false",
    "logger=none",
    "report.heatmaps=0",
    "evaluation.resamples=20",
)
BUILT_IN = ("+experiment=rnnencdec50", "+experiment=rnnsearch50")
DATED = "outputs/DATE/TIME"  # stands for the folder of the reader's own training
GRAMMAR = {"train_pairs": 64, "valid_pairs": 8, "test_pairs": 6, "by_length_pairs": 7}
TINY = {
    "prepare": ("regime=tiny", "trainer.enable_progress_bar=false"),
    "train": (
        *(
            "regime=tiny",
            "trainer=cpu",
            *SMALL,
            "trainer.max_steps=4",
            "trainer.val_check_interval=2",
        ),
        *("evaluation.train_sample=4", "evaluation.dictionary_sample=8", "search.max_ratio=1"),
        *(f"data.grammar.{name}={pairs}" for name, pairs in GRAMMAR.items()),
    ),
    "evaluate": SMALL,
    "compare": ("resamples=20",),
    "translate": (),
}


@dataclass
class Played:
    """A page whose quick blocks were run: its folder, and the names its Python code has made."""

    folder: Path
    names: dict[str, Any] = field(default_factory=dict)

    def results(self, name: str) -> dict[str, Any]:
        return json.loads((self.folder / "runs" / name / "results.json").read_text())

    def score(self, name: str, *place: Any, **where: Any) -> Any:
        return score(self.folder / "runs" / name, *place, **where)

    def weights(self, name: str) -> dict[str, torch.Tensor]:
        path = self.folder / "runs" / name / "checkpoints/last.ckpt"
        return torch.load(path, weights_only=True)["state_dict"]

    def module(self, name: str) -> types.ModuleType:
        spec = importlib.util.spec_from_file_location(name, self.folder / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    def type(self, command: Shown) -> None:
        """Runs a command as it is shown, but for its size."""
        name = command.module.removeprefix("nmt.")
        shown = [word.replace(DATED, self.newest()) for word in command.words]
        smaller = {word.partition("=")[0] for word in TINY[name]}
        words = [word for word in shown if word.partition("=")[0] not in smaller]
        if name == "train" and words[0] in BUILT_IN and len(words) == 2:
            self.train_once(words[0], words[1].partition("=")[2])
            return
        text = (self.folder / command.stdin).read_bytes() if command.stdin else b""
        there = {"PYTHONPATH": str(self.folder)}  # as `python -m` does
        ended = run(name, *words, *TINY[name], cwd=self.folder, env=there, stdin=text)
        assert ended.code == 0, f"{command}\n{ended.err}"
        if command.stdout:
            (self.folder / command.stdout).write_text(ended.out)

    def train_once(self, experiment: str, to: str) -> None:
        """A training of the built-in text that several pages show: made for one, then copied."""
        made = self.folder.parent / experiment.partition("=")[2]
        if not made.exists():
            ended = run("train", experiment, "hydra.run.dir=run", *TINY["train"], cwd=made)
            assert ended.code == 0, ended.err
        shutil.copytree(made / "run", self.folder / to)

    def execute(self, code: str) -> None:
        """Runs Python code of the page; names stay from block to block."""
        with contextlib.chdir(self.folder), contextlib.redirect_stdout(io.StringIO()):
            exec(code.replace(DATED, self.newest()), self.names)

    def newest(self) -> str:
        """The folder of the last training that named none; empty where there is none."""
        made = sorted(self.folder.glob("outputs/*/*/checkpoints"))
        return str(made[-1].parent.relative_to(self.folder)) if made else ""


def prepare_folder(folder: Path, page: str) -> None:
    """The files that the page gives, and those that stand for the reader's own."""
    for name, content in files(page).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)
    for split, count in LINES.items():
        pairs = [draw(1, split, k, mean_length=8) for k in range(count)]
        for language, sentences in {
            "en": [pair.source for pair in pairs],
            "fr": [pair.target for pair in pairs],
        }.items():
            text = "".join(" ".join(words) + "\n" for words in sentences)
            (folder / f"{split.removeprefix('test:')}.{language}").write_text(text)
    (folder / "moses-output.txt").write_text((folder / "test.fr").read_text())


@pytest.fixture(scope="module")
def play(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Played]:
    """play("own-scoring.md"): that page, its quick blocks run once."""
    done: dict[str, Played] = {}

    def once(name: str) -> Played:
        if name not in done:
            page = next(page for page in PAGES if page.name == name).read_text()
            played = Played(tmp_path_factory.mktemp(name.removesuffix(".md")))
            prepare_folder(played.folder, page)
            for block in blocks(page):
                if block.mark == "quick" and block.language == "python":
                    pytest.importorskip("pandas")
                    played.execute(block.text)
                elif block.mark == "quick":
                    shown = in_block(block)
                    assert shown, f"nothing to run in {block.text}"
                    for command in shown:
                        played.type(command)
            done[name] = played
        return done[name]

    return once


def test_the_pages_that_are_run():
    """Those that the index marks, and the README."""
    index = (ROOT / "docs/README.md").read_text()
    assert [page.name for page in QUICK if page.parent == ROOT] == ["README.md"]
    for page in (ROOT / "docs").glob("*.md"):
        assert (f"]({page.name}) ✓" in index) == (page in QUICK), page.name


@pytest.mark.parametrize("page", [page.name for page in QUICK])
def test_what_is_marked_quick_runs(play, page):
    played = play(page)
    assert list(played.folder.glob("**/results.json")) or played.names


def test_the_readmes_translations_and_page(play):
    folder = play("README.md").folder
    assert len((folder / "some.fr").read_text().splitlines()) == LINES["test:some"]
    table = (folder / "comparison/tables/tables.md").read_text()
    assert "moses" in table
    assert list(folder.glob("outputs/*/*/translations/mine-joined40.jsonl"))


def test_the_readmes_python(play):
    names = play("README.md").names
    assert len(names["result"].nbest) == 3
    assert names["pair"].weights.shape == (6, 6)
    assert {"bleu", "nll_per_word"} <= set(names["scores"]["score"])
    assert names["bleu"]["from"].notna().any()


class TestOwnCorpus:
    def test_the_named_files_are_the_text(self, play):
        played = play("own-corpus.md")
        assert played.score("mine", "mine", "bleu")["sentences"] == LINES["test"]
        source = (played.folder / "test.en").read_text().splitlines()[0]
        first = (played.folder / "runs/mine/translations/mine.jsonl").read_text().splitlines()[0]
        assert json.loads(first)["source"] == source.split()

    def test_a_file_of_ones_own_is_an_option_of_the_group(self, play):
        config = play("own-corpus.md").results("subwords")["config"]
        assert config["data"]["title"] == "ours"
        assert config["tokenizer"]["kind"] == "bpe"

    def test_a_trained_model_is_trained_further(self, play):
        played = play("own-corpus.md")
        found = played.results("further")["initial_checkpoint"]["checkpoint"]
        assert found == str((played.folder / "runs/mine/checkpoints/best.ckpt").resolve())
        assert played.results("further")["train"]["updates"] == 4


class TestOwnScoring:
    """A scoring function from outside the package: added, trained, reloaded, compared."""

    def test_it_is_trained(self, play):
        played = play("own-scoring.md")
        assert played.results("fused")["scoring"] == "Bilinear"
        matrix = played.weights("fused")["network.decoder.context.scoring.M"]
        assert matrix.shape == (16, 16)
        assert not torch.equal(matrix, torch.eye(16))

    def test_plain_trains_the_same_weights(self, play):
        played = play("own-scoring.md")
        for name in ("plain", "fused"):
            assert played.results(name)["config"]["model"]["recurrence"] == name
        plain, fused = played.weights("plain"), played.weights("fused")
        torch.testing.assert_close(fused, plain, rtol=1e-4, atol=1e-5)

    def test_its_checkpoint_is_read_only_where_it_is_trusted(self, play):
        """With `trust` it was, by the commands of the page."""
        played = play("own-scoring.md")
        assert played.results("greedy")["scoring"] == "Bilinear"
        assert len((played.folder / "some.fr").read_text().splitlines()) == LINES["test:some"]
        there = {"PYTHONPATH": str(played.folder)}
        typed = "checkpoint=runs/fused/checkpoints/best.ckpt"
        ended = run("translate", typed, cwd=played.folder, env=there, stdin=b"a\n")
        assert ended.code == 2
        assert "add trust=[my_scores]" in ended.err

    def test_the_page_names_it(self, play):
        page = (play("own-scoring.md").folder / "comparison/comparison.html").read_text()
        for name in ("scoring Bilinear, recurrence plain", "scoring Additive, recurrence fused"):
            assert f"RNNsearch-50 ({name}, beam_size 2)" in page


class TestOwnScore:
    """A score from outside the package: measured, shown, tested, and not imported for a stranger."""

    def test_it_is_in_the_results(self, play):
        played = play("own-score.md")
        found = played.results("search")
        about = {"title": "Word recall", "unit": "", "digits": 3}
        about |= {"higher_is_better": True, "by_length": True}
        assert found["scores"]["word_recall"] == about
        assert "chrf" in found["scores"]
        lines = (played.folder / "runs/search/translations/by_length.jsonl").read_text()
        score = played.module("my_scores").WordRecall()
        counts = [score.statistics(json.loads(line)) for line in lines.splitlines()]
        matched, words = map(sum, zip(*counts, strict=True))
        result = played.score("search", "by_length", "word_recall")
        assert 0 < result["value"] == pytest.approx(matched / words)
        assert result["low"] < result["value"] < result["high"]
        assert "word_recall" not in played.results("encdec")["scores"]
        assert played.score("greedy", "test", "word_recall")["value"] > 0

    def test_it_is_on_the_page_and_in_the_tables(self, play):
        folder = play("own-score.md").folder / "comparison"
        page = Elements((folder / "comparison.html").read_text()).packed("overview")
        assert page["scores"]["word_recall"]["title"] == "Word recall"
        compared = page["sets"]["by_length"]
        assert "word_recall" in compared["scores"]
        assert {row["run"] for row in compared["rows"] if "word_recall" in row} == {
            run["label"] for run in page["runs"]
        }
        assert list(compared["significance"]) == ["bleu", "word_recall"]
        assert "Word recall" in (folder / "tables/tables.md").read_text()
        for name in ("by_length", "significance"):
            with open(folder / f"tables/{name}_by_length.csv", newline="") as file:
                rows = [row for row in csv.DictReader(file) if row["score"] == "word_recall"]
            assert len(rows) == {"by_length": 3, "significance": 3 * 8}[name]

    def test_its_module_is_imported_only_where_it_is_typed_or_trusted(self, play):
        folder = play("own-score.md").folder
        there = {"PYTHONPATH": str(folder)}
        typed = "checkpoint=runs/search/checkpoints/best.ckpt"
        ended = run("evaluate", typed, *TINY["evaluate"], cwd=folder, env=there)
        assert ended.code == 2
        assert "add trust=[my_scores]" in ended.err
        chosen = ("evaluation.scores=[chrf]", "sets=[test]", "hydra.run.dir=elsewhere")
        assert run("evaluate", typed, *chosen, *TINY["evaluate"], cwd=folder, env=there).code == 0
        (folder / "away").mkdir()
        shown = run("compare", "runs=[../runs/*]", *TINY["compare"], cwd=folder / "away")
        assert shown.code == 0, shown.said
        page = Elements((folder / "away/comparison/comparison.html").read_text())
        compared = page.packed("overview")["sets"]["test"]
        assert "word_recall" in compared["scores"]
        assert "word_recall" not in compared["significance"]


class TestOwnModel:
    def test_it_is_trained_with_a_key_of_its_own(self, play):
        played = play("own-model.md")
        encoder = {"_target_": "my_encoder.MeanEncoder", "share": 0.5}
        assert played.results("mean")["config"]["model"]["encoder"] == encoder
        assert played.results("last")["config"]["model"]["encoder"] == encoder | {"share": 0}
        mean, last = played.weights("mean"), played.weights("last")
        assert mean.keys() == last.keys()
        name = "network.decoder.W_s"
        assert not torch.equal(mean[name], last[name])
        assert played.results("greedy")["config"]["model"]["encoder"] == encoder

    def test_without_a_share_it_is_the_papers(self, play):
        """And with all of it the summary is the mean, padding left out."""
        module = play("own-model.md").module("my_encoder")
        mine, paper = module.MeanEncoder(11, 4, 5, share=0.0), ForwardEncoder(11, 4, 5)
        paper.load_state_dict(mine.state_dict())
        source = torch.tensor([[3, 4, 5, 0], [6, 0, 0, 0]])
        mask = torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0]]).bool()
        torch.testing.assert_close(mine(source, mask), paper(source, mask))
        mine.share = 1.0
        states, summary = mine(source, mask)
        torch.testing.assert_close(summary[1], states[1, :2].mean(0))


class TestOwnTraining:
    """An optimizer, a schedule and a callback from outside the package."""

    def test_they_train_and_are_tested(self, play):
        played = play("own-training.md")
        config = played.results("lion")["config"]
        assert config["optimizer"]["_target_"] == "my_training.Lion"
        assert list(config["callbacks"]) == ["ema", "update_log"]
        rows = json.loads((played.folder / "updates.json").read_text())
        assert [row["update"] for row in rows] == [0, 1, 2, 3]
        shares = [1, (1 + 0.5**0.5) / 2, 0.5, (1 - 0.5**0.5) / 2]
        assert [row["lr"] for row in rows] == pytest.approx([3e-4 * share for share in shares])
        assert all(row["norm"] > 0 for row in rows)
        first, again = (
            played.score(name, "test", "nll_per_sentence") for name in ("lion", "again")
        )
        assert again["value"] == pytest.approx(first["value"], rel=1e-6)

    def test_its_update_is_the_papers(self, play):
        module = play("own-training.md").module("my_training")
        parameter = torch.nn.Parameter(torch.tensor([1.0, -2.0, 4.0]))
        rule = module.Lion([parameter], lr=0.1, betas=(0.9, 0.5), weight_decay=0.2)
        for gradient in ([1.0, 3.0, 0.0], [-1.0, 3.0, 8.0]):
            parameter.grad = torch.tensor(gradient)
            rule.step()
        # means after the first: 0.5, 1.5, 0; signs of the second: 0.45 - 0.1, 1.35 + 0.3, 0.8
        expected = []
        for weight, signs in ((1.0, (1, 1)), (-2.0, (1, 1)), (4.0, (0, 1))):
            for sign in signs:
                weight -= 0.1 * (sign + 0.2 * weight)
            expected.append(weight)
        assert parameter.tolist() == pytest.approx(expected)


class TestReadingResults:
    def test_the_frames_hold_what_the_files_say(self, play):
        played = play("reading-results.md")
        rows = played.names["by_length"]
        first = rows[rows["run"].str.startswith("RNNsearch")].iloc[0]
        assert first["value"] == played.score("search", "by_length", "bleu", first=1)["value"]

    def test_sums_of_sentences_are_the_corpus_score(self, play):
        played = play("reading-results.md")
        names = played.names
        rows = names["sentences"]["search"]
        bleu = importlib.import_module("nmt.evaluation.bleu").bleu
        total = bleu(names["pd"].DataFrame(rows["bleu_stats"].tolist()).sum())
        expected = played.score("search", "by_length", "bleu")["value"]
        assert total == pytest.approx(expected)
        assert names["gain"].notna().all()


class TestFirstHour:
    def test_the_ten_lines_translate_and_draw(self, play):
        played = play("first-hour.md")
        names = played.names
        assert len(names["result"].nbest) == 2
        assert names["result"].source[0] == "We"
        assert names["pair"].tokens[:2] == ["Le", "vieil"]
        assert names["pair"].score < 0
        assert (played.folder / "alignment.png").stat().st_size > 5000

    def test_the_frames_hold_what_the_files_say(self, play):
        played = play("first-hour.md")
        names = played.names
        result = played.score("search", "by_length", "bleu")
        both = names["both"].set_index(["run", "set", "score"])
        whole = both[both["from"].isna()]
        assert whole.loc[("RNNsearch-50", "by_length", "bleu"), "value"] == result["value"]
        assert set(names["tests"]["set"]) == {"test", "by_length"}


class TestLightning:
    def test_a_trainer_of_ones_own_trains_what_the_commands_read(self, play):
        played = play("lightning.md")
        names = played.names
        assert names["trainer"].global_step == 20
        [found] = names["translations"]
        assert found.weights is not None
        model = nmt.load(played.folder / "mine.ckpt").trained.model
        for name, weight in names["model"].state_dict().items():
            assert torch.equal(weight, model.state_dict()[name]), name
        logged = pd.read_csv(next(played.folder.glob("lightning_logs/*/metrics.csv")))
        scores = logged.set_index("step")["valid/bleu"].dropna()
        assert list(scores.index) == [10, 20]
        assert scores.max() == pytest.approx(float(names["best"].best_model_score))
        assert logged["train/nll_per_word"].count() == 4
        found = names["trainer"].callback_metrics
        assert {name for name in found if not is_logged(name, names["config"])} == set()
        with pytest.raises(nmt.InputError, match=r"is loaded by nmt\.load\('mine\.ckpt'\)"):
            type(model).load_from_checkpoint("mine.ckpt")
