"""`nmt.score`: the likelihood and the alignment of given pairs."""

from __future__ import annotations

import json

import pytest

import nmt
from tests.helpers.models import small_checkpoint
from tests.helpers.produced import last_line

PAIRS = [("the red cat .", "le chat rouge ."), ("a bird", "un oiseau qui voit"), ("", "le")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("score")
    for seed in (1, 2):
        small_checkpoint(made / f"{seed}.ckpt", seed)
    for place, side in enumerate(("en", "fr")):
        (made / f"some.{side}").write_text("".join(f"{pair[place]}\n" for pair in PAIRS))
    return made


@pytest.fixture
def typed(folder):
    return (f"source={folder}/some.en", f"target={folder}/some.fr", "search.batch_size=2")


def test_prints_a_log_probability_for_each_pair(program, folder, typed):
    ended = program("score", f"checkpoint={folder}/1.ckpt", *typed)
    assert ended.code == 0, ended.err
    scores = [float(line) for line in ended.out.splitlines()]
    expected = [pair.log_probability for pair in nmt.load(folder / "1.ckpt").score(PAIRS)]
    assert scores == pytest.approx(expected, abs=1e-4)
    assert f"3 pairs: NLL/sentence {-sum(expected) / 3:.3f}, " in ended.err
    assert f"NLL/symbol {-sum(expected) / 12:.4f}" in ended.err


def test_ensemble_prints_json(program, folder, typed):
    files = [folder / "1.ckpt", folder / "2.ckpt"]
    named = f"checkpoint=[{','.join(map(str, files))}]"
    ended = program("score", named, *typed, "alignments=json")
    assert ended.code == 0, ended.err
    for line, found in zip(ended.out.splitlines(), nmt.load(files).score(PAIRS), strict=True):
        record = json.loads(line)
        assert (record["source"], record["tokens"]) == (found.source, found.tokens)
        assert record["log_probability"] == pytest.approx(found.log_probability, abs=1e-5)
        assert record["word_log_probabilities"] == pytest.approx(
            list(found.word_log_probabilities), abs=1e-5
        )
        assert len(record["weights"]) == len(found.tokens) + 1


def test_attention_weights_can_be_replaced(program, folder, typed, tmp_path):
    asked = ("evaluation.attention=uniform", "alignments=json")
    ended = program("score", f"checkpoint={folder}/1.ckpt", *typed, *asked)
    assert ended.code == 0, ended.err
    for row in map(json.loads, ended.out.splitlines()):
        length = len(row["source"]) + 1
        assert row["weights"] == [pytest.approx([1 / length] * length)] * (len(row["tokens"]) + 1)
    fixed = small_checkpoint(tmp_path / "f.ckpt", attends=False)
    ended = program("score", f"checkpoint=[{folder}/1.ckpt,{fixed}]", *typed, *asked)
    assert (ended.code, ended.out) == (2, "")
    assert f"checkpoint={fixed}: cannot replace the weights" in last_line(ended.err)


def test_refuses_files_that_do_not_fit_and_long_lines(program, folder, typed, tmp_path):
    (tmp_path / "short").write_text("le\n")
    named = f"checkpoint={folder}/1.ckpt"
    ended = program("score", named, typed[0], f"target={tmp_path}/short")
    assert (ended.code, ended.out) == (2, "")
    assert f"{folder}/some.en has 3, {tmp_path}/short has 1 lines" in last_line(ended.err)
    (tmp_path / "long").write_text(f"le\n{'a ' * 5001}\nle\n")
    ended = program("score", named, typed[0], f"target={tmp_path}/long")
    assert (ended.code, ended.out) == (2, "")
    assert f"{tmp_path}/long:2: 5,001 words; a line may have 5,000" in last_line(ended.err)
    ended = program("score", named, typed[0], "target=nowhere")
    assert ended.code == 2
    assert "target: no such file: /" in last_line(ended.err)
