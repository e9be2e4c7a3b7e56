"""Runs `nmt.baseline` from text to results.json, and checks its error if the extra is not installed."""

import json
import random
import sys
from types import SimpleNamespace

import pytest

from nmt.config.commands import BaselineConfig, PhraseBasedConfig
from nmt.phrase_based import training
from nmt.phrase_based.system import PhraseBased, check_installed, train_system
from nmt.utils.errors import InputError
from tests.helpers.produced import score

NOUNS = {"cat": "chat", "dog": "chien", "bird": "oiseau", "house": "livre", "||": "||"}
COLOURS = {"red": "rouge", "black": "noir", "green": "vert"}
VERBS = {"sees": "voit", "likes": "aime", "finds": "trouve"}


def sentences(count: int, seed: int) -> list[tuple[str, str]]:
    """Draws sentence pairs of two noun phrases and a verb. In the target, colours follow the noun."""
    draw = random.Random(seed)
    pairs = []
    for _ in range(count):
        (a, x), (b, y) = draw.choices(list(NOUNS.items()), k=2)
        (c, u), (d, v) = draw.choices(list(COLOURS.items()), k=2)
        verb, verbe = draw.choice(list(VERBS.items()))
        pairs.append((f"the {c} {a} {verb} the {d} {b}", f"le {x} {u} {verbe} le {y} {v}"))
    return pairs


def importing_without(absent: str):
    """Returns a fake `import_module` that imports nothing. It raises an error for the module `absent`."""

    def import_module(name: str):
        if name == absent:
            raise ModuleNotFoundError(f"No module named {name!r}")

    return import_module


@pytest.mark.parametrize("module", ["thot.translation", "machine.translation.thot"])
def test_without_the_packages_the_extra_is_named(monkeypatch, module):
    monkeypatch.setattr("importlib.import_module", importing_without(module))
    with pytest.raises(InputError, match=r"nmt.baseline: No module named"):
        check_installed()


@pytest.fixture
def extra():
    pytest.importorskip("thot", reason="the extra 'phrase-based' is not installed")
    pytest.importorskip("machine", reason="the extra 'phrase-based' is not installed")


@pytest.mark.slow
def test_phrases_reorder_and_unknown_words_are_copied(extra, tmp_path):
    config = PhraseBasedConfig()
    train_system(sentences(600, 1), tmp_path, config)
    system = PhraseBased(tmp_path, config)
    assert len(system.weights) == 8
    found = system.translate(
        [
            ["the", "red", "cat", "likes", "the", "black", "dog"],
            ["the", "green", "||", "sees", "the", "red", "Smith"],
        ]
    )
    assert found[0] == ["le", "chat", "rouge", "aime", "le", "chien", "noir"]
    assert {"Smith", "||"} <= set(found[1])
    sources = [pair[0].split() for pair in sentences(25, 7)] + [["no", "such", "||"]]
    filtered = PhraseBased(tmp_path, config, sources)
    assert filtered.translate(sources) == system.translate(sources)
    filtered.close()
    assert {path.name for path in tmp_path.iterdir()} == {"lm", "tm"}
    system.weights = (1.0, 2.0, *system.weights[2:])
    assert system.weights[1] == 2.0
    system.close()


@pytest.mark.slow
@pytest.mark.parametrize("tune_sentences", [0, 5])
def test_tables_are_removed_after_the_block(tune_sentences, extra, tmp_path):
    pairs = sentences(620, 1)
    split = [dict(zip(("source", "target"), map(str.split, pair), strict=True)) for pair in pairs]
    config = BaselineConfig()
    config.phrase_based.tune_sentences = tune_sentences
    config.trainer["enable_progress_bar"] = False
    text = SimpleNamespace(train=split[:600], valid=split[600:610], test={"t": split[610:]})
    folder = tmp_path / "phrase_based"
    with training.tuned_system(config, text, folder) as (made, about, valid):
        found = made.translate([pair["source"] for pair in split[610:]])
        assert about["hours"] > 0
    assert not folder.exists()
    assert valid == {} if tune_sentences == 0 else valid["bleu"] > 90
    assert found[0] == split[610]["target"]


@pytest.mark.slow
def test_the_run_folder_is_that_of_other_runs(extra, tmp_path, monkeypatch):
    from nmt import baseline
    from nmt.report.runs import read_run

    options = {"logger": "none", "regime": "tiny", "data": "text", "data.cache": tmp_path / "cache"}
    for name, (count, seed) in {"train": (600, 1), "valid": (20, 2), "test.t": (30, 3)}.items():
        pairs = sentences(count, seed)
        for column, side in enumerate(("source", "target")):
            path = tmp_path / f"{name}.{side}"
            path.write_text("".join(f"{pair[column]}\n" for pair in pairs))
            options[f"{'+' if '.' in name else ''}data.{name}.{side}"] = path
    options["hydra.run.dir"] = tmp_path / "run"
    options |= {"phrase_based.tune_sentences": 10}
    options |= {"trainer.enable_progress_bar": "false"}
    monkeypatch.setattr(sys, "argv", ["baseline", *(f"{k}={v}" for k, v in options.items())])
    baseline.main()
    run = read_run(tmp_path / "run")
    assert run.results["title"] == "phrase-based (Thot)" == run.label
    bleu = score(tmp_path / "run", "t", "bleu")
    assert bleu["sentences"] == 30
    assert bleu["value"] > 90
    assert score(tmp_path / "run", "t", "bleu", "no_unk")["sentences"] == 30
    assert run.results["valid"]["bleu"] > 90
    assert len(run.results["train"]["weights"]) == 8
    assert not (tmp_path / "run" / "phrase_based").exists()
    row = json.loads((tmp_path / "run" / "translations" / "t.jsonl").read_text().splitlines()[0])
    assert row["hypothesis_no_unk"] == row["hypothesis"]
    assert "nll" not in row
