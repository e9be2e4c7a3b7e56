"""Promise 10: code of your own, of each kind, is one file and one YAML outside the package.

docs/architecture.md counts the files; here they are, in a folder of the reader's own, and one run
is trained with all of them. A new kind of thing is an entry of `FILES`, a row of that table, and a
test of what came of it.
"""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
import torch

from nmt.grammar import draw
from tests.helpers import ROOT
from tests.helpers.processes import SILENT, TINY, run
from tests.helpers.produced import score

FILES = {
    "scoring function": {
        "my_score.py": """
            from torch import Tensor, nn

            class Distance(nn.Module):
                def __init__(self, query_size: int, key_size: int, power: float) -> None:
                    super().__init__()
                    self.power = power

                def forward(self, query: Tensor, keys: Tensor) -> Tensor:
                    apart = query.unsqueeze(2) - keys.unsqueeze(1)
                    return -apart.abs().pow(self.power).sum(3)
        """,
        "my_conf/scoring/distance.yaml": """
            # @package model.scoring
            _target_: my_score.Distance
            power: 1.5
        """,
    },
    "model": {
        "my_model.py": """
            from nmt.layers import BidirectionalEncoder
            from nmt.models import RNNsearch
            from nmt.models.networks import make_attention

            class MeanEncoder(BidirectionalEncoder):
                def forward(self, source, mask):
                    states, _ = super().forward(source, mask)
                    real = mask.unsqueeze(2).to(states.dtype)
                    return states, ((states * real).sum(1) / real.sum(1))[:, : self.size // 2]

            class RNNmeansearch(RNNsearch):
                @staticmethod
                def parts(model, source_size):
                    encoder = MeanEncoder(source_size, model.embedding, model.hidden)
                    return encoder, make_attention(model, encoder.size)
        """,
        "my_conf/model/mean.yaml": """
            _target_: my_model.RNNmeansearch
            title: RNNmeansearch
        """,
    },
    "data set": {
        "my_conf/data/mine.yaml": """
            title: ours
            languages: [en, fr]
            train: {source: train.en, target: train.fr, tokenised: true}
            valid: {source: valid.en, target: valid.fr, tokenised: true}
            test:
              mine: {source: test.en, target: test.fr, tokenised: true}
        """,
    },
    "score": {
        "my_exact.py": """
            import numpy as np
            from nmt.evaluation.scores import Score

            class Exact(Score):
                key, title, unit, digits = "exact", "Exact words, %", "", 1

                def statistics(self, record):
                    written, wanted = record["hypothesis"], record["reference"]
                    return [sum(a == b for a, b in zip(written, wanted)), len(wanted)]

                def combine(self, sums):
                    return 100 * sums[..., 0] / np.maximum(sums[..., 1], 1)
        """,
    },
    "figure": {
        "my_figure.py": """
            from matplotlib.figure import Figure

            def counts(run, bins=4):
                figure = Figure(figsize=(2, 1))
                rows = run.translations("mine")
                figure.subplots().hist([row["length"] for row in rows], bins)
                return figure
        """,
    },
    "optimizer": {
        "my_optimizer.py": """
            import torch

            class Sign(torch.optim.Optimizer):
                def __init__(self, parameters, lr, scale):
                    super().__init__(parameters, {"lr": lr, "scale": scale})

                @torch.no_grad()
                def step(self, closure=None):
                    loss = None if closure is None else torch.enable_grad()(closure)()
                    for group in self.param_groups:
                        for p in (p for p in group["params"] if p.grad is not None):
                            p -= group["lr"] * group["scale"] * p.grad.sign()
                    return loss
        """,
        "my_conf/optimizer/sign.yaml": """
            _target_: my_optimizer.Sign
            lr: 0.001
            options: {scale: 0.5}
        """,
    },
    "callback": {
        "my_callback.py": """
            import json
            from pathlib import Path
            import pytorch_lightning as pl
            import torch

            class Steps(pl.Callback):
                def __init__(self, file):
                    self.file, self.rows = file, []

                def on_train_batch_start(self, trainer, pl_module, batch, batch_idx):
                    self.before = pl_module.network.decoder.W_s.detach().clone()

                def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
                    moved = (pl_module.network.decoder.W_s.detach() - self.before).abs()
                    self.rows.append([trainer.global_step, float(moved.max())])

                def on_train_end(self, trainer, pl_module):
                    Path(self.file).write_text(json.dumps(self.rows))
        """,
        "my_conf/callbacks/steps.yaml": """
            steps:
              _target_: my_callback.Steps
              file: steps.json
        """,
    },
}
PAIRS = {"train": 40, "valid": 9, "test": 7}
TYPED = (
    *("model=mean", "scoring=distance", "data=mine", "optimizer=sign", "callbacks=steps"),
    *("trainer.max_steps=3", "data.batch_size=8", "hydra.run.dir=run"),
    *("evaluation.scores=[chrf,my_exact.Exact]", "evaluation.resamples=50"),
    *("+report.own.counts._target_=my_figure.counts", "+report.own.counts.bins=3"),
)
MODULES = sorted({name[:-3] for files in FILES.values() for name in files if name.endswith(".py")})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With the files, a text, and a run `run` that was trained with all of them."""
    folder = tmp_path_factory.mktemp("extension")
    for files in FILES.values():
        for name, content in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(dedent(content).strip() + "\n")
    for split, count in PAIRS.items():
        pairs = [draw(1, split, k, mean_length=7) for k in range(count)]
        for language, lines in {
            "en": [pair.source for pair in pairs],
            "fr": [pair.target for pair in pairs],
        }.items():
            text = "".join(f"{' '.join(words)}\n" for words in lines)
            (folder / f"{split}.{language}").write_text(text)
    ended = run("train", "--config-dir=my_conf", *TINY, *TYPED, cwd=folder, figures=True)
    assert ended.code == 0, ended.err
    return folder


def results(folder: Path, name: str = "run") -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / name / "results.json").read_text())
    return found


def test_each_takes_as_many_files_as_the_documentation_says():
    page = (ROOT / "docs/architecture.md").read_text()
    rows = dict(re.findall(r"^\| an? ([\w ]+) \| (\d+) \|", page, re.MULTILINE))
    assert {thing: int(count) for thing, count in rows.items()} == {
        thing: len(files) for thing, files in FILES.items()
    }


def test_the_command_that_makes_it_again_names_the_folder_of_its_options(folder):
    """Of Hydra's own settings nothing else."""
    typed = [override for override in (*TINY, *TYPED) if not override.startswith("hydra.")]
    expected = ["python", "-m", "nmt.train", "--config-dir", "my_conf", *typed]
    assert shlex.split(results(folder)["command"]) == expected


def test_a_scoring_function(folder):
    found = results(folder)
    assert found["scoring"] == "Distance"
    assert found["config"]["model"]["scoring"] == {"_target_": "my_score.Distance", "power": 1.5}
    rows = (folder / "run/alignments/mine.jsonl").read_text().splitlines()
    assert rows
    for row in map(json.loads, rows):  # weights of attention that this function has made
        assert all(sum(weights) == pytest.approx(1, abs=1e-3) for weights in row["weights"])


def test_a_model(folder):
    found = results(folder)
    assert (found["model"], found["title"]) == ("RNNmeansearch", "RNNmeansearch")
    weights = torch.load(folder / "run/checkpoints/last.ckpt", weights_only=True)["state_dict"]
    assert found["parameters"] == sum(each.numel() for each in weights.values())


def test_a_data_set(folder):
    found = results(folder)
    assert found["config"]["data"]["title"] == "ours"
    assert score(folder / "run", "mine", "bleu")["sentences"] == PAIRS["test"]
    assert found["train"]["epochs"] == pytest.approx(3 * 8 / PAIRS["train"])


def test_a_score(folder):
    """For the whole set and for each length, with intervals, and described for those without it."""
    found = results(folder)
    assert found["scores"]["exact"] == {
        **{"title": "Exact words, %", "unit": "", "digits": 1},
        **{"higher_is_better": True, "by_length": True},
    }
    lines = (folder / "run/translations/mine.jsonl").read_text().splitlines()
    right = words = 0
    for row in map(json.loads, lines):
        right += sum(a == b for a, b in zip(row["hypothesis"], row["reference"], strict=False))
        words += len(row["reference"])
    exact = score(folder / "run", "mine", "exact")
    assert exact["value"] == pytest.approx(100 * right / words)
    assert exact["low"] <= exact["value"] <= exact["high"]
    assert score(folder / "run", "mine", "exact", first=1)["sentences"] > 0


def test_a_figure(folder):
    assert (folder / "run/figures/counts.png").stat().st_size > 500
    trust = f"trust=[{','.join(MODULES)}]"
    typed = ("resume=run", trust, "+report.own.other._target_=nowhere.draw")
    ended = run("train", *typed, cwd=folder)
    assert ended.code == 2
    assert "report.own.other._target_=nowhere.draw" in ended.err


def test_an_optimizer_and_a_callback(folder):
    """What the callback saw is the step that the optimizer makes: half the learning rate."""
    rows = json.loads((folder / "steps.json").read_text())
    assert [update for update, _ in rows] == [1, 2, 3]
    assert [moved for _, moved in rows] == pytest.approx([0.0005] * 3, rel=1e-3)


def test_the_checkpoint_is_read_where_all_of_it_is_trusted(folder):
    typed = ("checkpoint=run/checkpoints/best.ckpt", "hydra.run.dir=again", *SILENT)
    ended = run("evaluate", *typed, cwd=folder)
    assert ended.code == 2
    assert "trust=" in ended.err
    trust = f"trust=[{','.join(MODULES)}]"
    ended = run("evaluate", *typed, trust, cwd=folder)
    assert ended.code == 0, ended.err
    ended = run("translate", typed[0], trust, cwd=folder, stdin=b"the cat sleeps .\n")
    assert (ended.code, ended.out.count("\n")) == (0, 1), ended.err
    tables = [(folder / name / "scores.csv").read_bytes() for name in ("again", "run")]
    assert tables[0] == tables[1]
