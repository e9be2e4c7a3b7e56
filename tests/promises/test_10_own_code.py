"""Promise 10: each kind of extension is one Python file and one YAML file outside the package.

The files are those of docs/extend.md, plus a model, a unit and a data set. One run uses all of them.
"""

from __future__ import annotations

import json
import shlex
from collections import Counter
from pathlib import Path
from textwrap import dedent

import pandas as pd
import pytest
import torch

from nmt.grammar import draw
from tests.helpers import ROOT
from tests.helpers.documentation import files
from tests.helpers.processes import SILENT, TINY, run
from tests.helpers.produced import results, score

FILES = {
    "my_model.py": """
        from my_encoder import MeanEncoder
        from nmt.models import RNNsearch
        from nmt.models.networks import make_attention

        class RNNmeansearch(RNNsearch):
            @staticmethod
            def parts(model, source_size):
                encoder = MeanEncoder(source_size, model.embedding, model.hidden, share=0.5)
                return encoder, make_attention(model, encoder.size)
    """,
    "my_conf/model/mean.yaml": """
        _target_: my_model.RNNmeansearch
    """,
    "my_unit.py": """
        import torch
        from torch.nn.functional import linear
        from nmt.layers import GatedUnit

        class NoReset(GatedUnit):
            def forward(self, state, projected, context=None, real=None):
                if context is not None:
                    projected = projected + self.project_context(context)
                for_z, _, for_candidate = projected.chunk(3, -1)
                z = torch.sigmoid(for_z + linear(state, self.U_gates.chunk(2)[0]))
                if real is not None:
                    z = z.masked_fill(~real.unsqueeze(-1), 0)
                return (1 - z) * state + z * torch.tanh(for_candidate + linear(state, self.U))
    """,
    "my_conf/unit/no_reset.yaml": """
        # @package model.unit
        _target_: my_unit.NoReset
    """,
    "my_conf/data/mine.yaml": """
        title: ours
        languages: [en, fr]
        train: {source: train.en, target: train.fr, tokenised: true}
        valid: {source: valid.en, target: valid.fr, tokenised: true}
        test:
          mine: {source: test.en, target: test.fr, tokenised: true}
    """,
}
PAIRS = {"train": 40, "valid": 9, "test": 7}
TYPED = (
    "model=mean",
    "scoring=bilinear",
    "unit=no_reset",
    "data=mine",
    "optimizer=lion",
    "callbacks=gradient_log",
    "logger=csv",
    "trainer.profiler=simple",
    "trainer.max_steps=3",
    "data.batch_size=8",
    "data.batch_tokens=null",
    "hydra.run.dir=run",
    "evaluation.scores=[chrf,my_scores.WordRecall]",
    "evaluation.resamples=50",
)
TRUST = "trust=[my_encoder,my_model,my_scores,my_scoring,my_training,my_unit]"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a folder with the extension files, a text, and a run in `run` that uses all of them."""
    folder = tmp_path_factory.mktemp("extension")
    own = {name: dedent(text).lstrip() for name, text in FILES.items()}
    for name, text in (files((ROOT / "docs/extend.md").read_text()) | own).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    for split, count in PAIRS.items():
        pairs = [draw(1, split, k, mean_length=7) for k in range(count)]
        for language, lines in {
            "en": [pair.source for pair in pairs],
            "fr": [pair.target for pair in pairs],
        }.items():
            text = "".join(f"{' '.join(words)}\n" for words in lines)
            (folder / f"{split}.{language}").write_text(text)
    ended = run("train", "--config-dir=my_conf", *TINY, *TYPED, cwd=folder)
    assert ended.code == 0, ended.err
    assert "Profiler Report" in ended.err
    return folder


def test_recorded_command_names_the_config_folder(folder):
    typed = [override for override in (*TINY, *TYPED) if not override.startswith("hydra.")]
    expected = ["python", "-m", "nmt.train", "--config-dir", "my_conf", *typed]
    assert shlex.split(results(folder / "run")["command"]) == expected


def test_user_model_and_scoring_function(folder):
    content = results(folder / "run")
    assert (content["model"], content["scoring"]) == ("RNNmeansearch", "Bilinear")
    weights = torch.load(folder / "run/checkpoints/last.ckpt", weights_only=True)["state_dict"]
    assert content["parameters"] == sum(each.numel() for each in weights.values())
    rows = (folder / "run/alignments/mine.jsonl").read_text().splitlines()
    assert rows
    for row in map(json.loads, rows):
        assert all(sum(weights) == pytest.approx(1, abs=1e-3) for weights in row["weights"])


def test_user_unit(folder):
    """The unit never uses its reset gate, so the gate's matrix stays orthogonal, as initialised."""
    weights = torch.load(folder / "run/checkpoints/last.ckpt", weights_only=True)["state_dict"]
    gates = weights["network.decoder.unit.U_gates"].chunk(2)
    z, r = (float((gate @ gate.T - torch.eye(len(gate))).abs().max()) for gate in gates)
    assert r < 1e-4 < z  # weight decay changes r slightly


def test_user_data_set(folder):
    content = results(folder / "run")
    assert content["config"]["data"]["title"] == "ours"
    assert score(folder / "run", "mine", "bleu")["sentences"] == PAIRS["test"]
    assert content["train"]["epochs"] == pytest.approx(3 * 8 / PAIRS["train"])


def test_user_score(folder):
    """The score is reported for the whole set and by length, with intervals."""
    common = words = 0
    for row in map(json.loads, (folder / "run/translations/mine.jsonl").open()):
        common += (Counter(row["hypothesis"]) & Counter(row["reference"])).total()
        words += len(row["reference"])
    recall = score(folder / "run", "mine", "word_recall")
    assert recall["value"] == pytest.approx(common / words)
    assert recall["low"] <= recall["value"] <= recall["high"]
    assert score(folder / "run", "mine", "word_recall", first=1)["sentences"] > 0
    logged = pd.read_csv(folder / "run/csv/version_0/metrics.csv")["test/mine/word_recall"]
    assert logged.dropna().item() == pytest.approx(recall["value"])


def test_user_optimizer_schedule_and_callback(folder):
    norms = json.loads((folder / "norms.json").read_text())
    assert len(norms) == 3
    assert min(norms) > 0
    content = torch.load(folder / "run/checkpoints/last.ckpt", weights_only=True)
    [optimizer] = content["optimizer_states"]
    assert optimizer["state"][0].keys() == {"mean"}
    assert optimizer["param_groups"][0]["lr"] == pytest.approx(0)  # the end of the cosine schedule


@pytest.mark.slow
def test_checkpoint_with_user_code_needs_trust(folder):
    typed = ("checkpoint=run", "hydra.run.dir=again", *SILENT)
    ended = run("evaluate", *typed, cwd=folder)
    assert ended.code == 2
    assert "trust=" in ended.err
    ended = run("evaluate", *typed, TRUST, cwd=folder)
    assert ended.code == 0, ended.err
    ended = run("translate", "checkpoint=run", TRUST, cwd=folder, stdin=b"the cat sleeps .\n")
    assert (ended.code, ended.out.count("\n")) == (0, 1), ended.err
    again, first = ((folder / name / "scores.csv").read_bytes() for name in ("again", "run"))
    assert again == first
