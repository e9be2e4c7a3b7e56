"""`nmt.load`, and a model's translations, likelihoods and alignments."""

from __future__ import annotations

import dataclasses
import importlib
import math
import multiprocessing
import sys

import numpy as np
import pytest
import torch
from PIL import Image

import nmt
from tests.helpers.models import small_checkpoint

LINES = ["the red cat sees a bird .", "", "a cat sees the unknown bird ."]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    small_checkpoint(folder / "checkpoints" / "best.ckpt")
    return folder


@pytest.fixture(scope="module")
def model(run):
    return nmt.load(run)


def log_probability(model, source: list[str], target: list[str]) -> float:
    """Decodes the target step by step, and sums the log-probabilities of its words."""
    translator = model.network
    ids = torch.tensor([model.source.encode(source)])
    memory = translator.encode(ids, torch.ones_like(ids, dtype=torch.bool))
    state = translator.decoder.initial(memory)
    total = 0.0
    for word in model.target.encode(target):
        readout, attended = translator.decoder.step(state, memory)
        logits = translator.output.logits(readout)[0, 0].double()
        total += float(logits[word] - logits.exp().sum().log())
        state = translator.decoder.advance(state, attended, torch.tensor([[word]]))
    return total


@torch.no_grad()
def test_translate_returns_the_probability_of_its_words(model):
    results = model.translate(LINES, beam=2, nbest=3)
    assert [len(result.nbest) for result in results] == [3, 0, 3]
    sources = [result.source for result in results]
    assert sources == [LINES[0].split(), [], LINES[2].split()]
    for result in (results[0], *results[2].nbest):
        by_hand = log_probability(model, result.source, result.tokens)
        ended = 3 * (len(result.source) + 1) > len(result.tokens)
        if ended:  # otherwise the search stopped before </s>
            assert result.log_probability == pytest.approx(by_hand, abs=1e-4)
        assert result.word_log_probabilities.sum() == pytest.approx(by_hand, abs=1e-4)
        assert result.weights.shape == (len(result.tokens) + 1, len(result.source) + 1)
        np.testing.assert_allclose(result.weights.sum(1), 1, atol=1e-5)
    best = results[0]
    assert best.nbest[0].text == best.text
    scores = [each.log_probability for each in best.nbest]
    assert scores == sorted(scores, reverse=True)
    empty = results[1]
    assert (empty.text, empty.tokens, empty.weights) == ("", [], None)
    assert math.isnan(empty.log_probability)


@torch.no_grad()
def test_score_equals_the_steps_of_the_decoder(model):
    pairs = [
        ("the red cat .", "le chat rouge ."),
        ("a bird", "un oiseau qui voit le chat"),
        ("", ""),
    ]
    results = model.score(pairs)
    for (source, target), result in zip(pairs, results, strict=True):
        assert (result.text, result.tokens, result.source) == (
            target,
            target.split(),
            source.split(),
        )
        assert result.log_probability == pytest.approx(
            log_probability(model, source.split(), target.split()), abs=1e-5
        )
        assert result.log_probability == pytest.approx(
            result.word_log_probabilities.sum(), abs=1e-5
        )
        assert result.weights.shape == (len(target.split()) + 1, len(source.split()) + 1)
        assert result.nbest == ()


def test_score_keeps_the_spelling_of_unknown_words(model):
    pairs = [("the cat", "le <unk>"), ("the cat", "le zèbre")]
    known, unknown = model.score(pairs, tokenised=True)
    assert unknown.tokens == ["le", "zèbre"]
    [other] = model.score([("the cat", "le girafe")])
    assert unknown.log_probability == pytest.approx(other.log_probability, abs=1e-5)
    assert known.log_probability == pytest.approx(
        unknown.log_probability, abs=1e-5
    )  # as text, "<unk>" is a word outside the vocabulary


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize(
    ("precision", "dtype"), [("32", torch.float32), ("bf16-mixed", torch.bfloat16)]
)
def test_threads_use_the_precision_and_no_gradients(model, threads, precision, dtype):
    trainer = {**model.config.trainer, "precision": precision}
    config = dataclasses.replace(model.config, trainer=trainer, threads=threads)
    ones = torch.ones(2, 2, requires_grad=True)

    def work(places):
        product = ones @ ones
        return [(product.dtype, product.requires_grad)] * len(places)

    found = dataclasses.replace(model, config=config).map_sentences([3] * 200, work)
    assert set(found) == {(dtype, False)}


def test_translate_uses_the_given_search_settings(model):
    greedy = model.translate(LINES[0], beam=1)
    [beam] = model.translate(LINES[:1], beam=12)
    assert beam.log_probability >= greedy.log_probability
    [short] = model.translate(LINES[:1], beam=2, max_ratio=0.25)
    assert len(short.tokens) <= 2
    [tokenised] = model.translate(["the cat's"], tokenised=True)
    assert tokenised.source == ["the", "cat's"]
    [again] = model.translate(LINES[:1])
    assert (
        again.log_probability == model.translate(LINES[:1], beam=3)[0].log_probability
    )  # 3 is the beam size in the checkpoint


@pytest.mark.parametrize(
    ("search", "said"),
    [
        ({"beam": 0}, "search.beam_size=0: must be at least 1"),
        ({"nbest": 0}, "search.nbest=0: must be at least 1"),
        ({"beam": "many"}, "search.beam_size: Value 'many'"),
        ({"penalty": 1}, "search.penalty: "),
        ({"replace_unk": "dictionary"}, "best.ckpt holds no dictionary, and it cannot be learnt"),
    ],
)
def test_translate_refuses_bad_settings_by_name(model, search, said):
    with pytest.raises(nmt.InputError) as refused:
        model.translate(LINES, **search)
    assert said in str(refused.value)


def test_load_refuses_files_that_are_no_model(tmp_path):
    with pytest.raises(nmt.InputError, match=r"or of a run folder with checkpoints/best"):
        nmt.load(tmp_path)
    (tmp_path / "x").write_text("words")
    with pytest.raises(nmt.InputError, match="not a checkpoint of nmt"):
        nmt.load(tmp_path / "x")


def test_plot_alignment_draws_words_and_weights(model, tmp_path):
    [result] = model.score([("the red cat .", "le chat rouge .")])
    figure = nmt.plot_alignment(result, tmp_path / "cat.png")
    axes = figure.axes[0]
    words = [*result.source, "</s>", *result.tokens, "</s>"]
    assert [text.get_text() for text in axes.texts] == words
    np.testing.assert_array_equal(axes.images[0].get_array(), result.weights)
    assert Image.open(tmp_path / "cat.png").width > 200
    [empty] = model.translate([""])
    with pytest.raises(ValueError, match="no attention"):
        nmt.plot_alignment(empty)
    with pytest.raises(ValueError, match="'bmp' is not supported"):
        nmt.plot_alignment(result, tmp_path / "cat.bmp")


@torch.no_grad()
def test_ensemble_averages_word_probabilities(tmp_path):
    """The ensemble has two RNNsearch models and an RNNencdec model."""
    files = [
        small_checkpoint(tmp_path / f"{seed}.ckpt", seed, attends=seed < 3) for seed in (1, 2, 3)
    ]
    alone = [nmt.load(file) for file in files]
    model = nmt.load(files)
    source, target = "the red cat .", "le chat rouge ."
    expected = np.zeros(5)
    for each in alone:
        expected += np.exp(each.score([(source, target)])[0].word_log_probabilities) / 3
    [pair] = model.score([(source, target)])
    np.testing.assert_allclose(pair.word_log_probabilities, np.log(expected), atol=1e-5)
    weights = [each.score([(source, target)])[0].weights for each in alone[:2]]
    np.testing.assert_allclose(pair.weights, np.mean(weights, 0), atol=1e-6)

    for found in model.translate(["a bird sees the cat .", source], beam=4, nbest=3)[0].nbest:
        if 3 * (len(found.source) + 1) > len(found.tokens):
            again = model.score([(" ".join(found.source), " ".join(found.tokens))], tokenised=True)
            assert found.log_probability == pytest.approx(again[0].log_probability, abs=1e-4)
    [best] = model.translate([source], beam=8)
    for each in alone:  # the ensemble prefers its own translation to those of its members
        [single] = each.translate([source], beam=8)
        given = (" ".join(single.source), " ".join(single.tokens))
        assert (
            best.log_probability >= model.score([given], tokenised=True)[0].log_probability - 1e-4
        )
    [same], [one] = nmt.load([files[0], files[0]]).translate([source]), alone[0].translate([source])
    assert (same.tokens, same.log_probability) == (
        one.tokens,
        pytest.approx(one.log_probability, abs=1e-5),
    )


def test_ensemble_refuses_other_vocabularies_and_languages(tmp_path):
    one = small_checkpoint(tmp_path / "one.ckpt")
    other = small_checkpoint(tmp_path / "other.ckpt", french=("le", "chat"))
    content = torch.load(one, weights_only=True)
    content["hyper_parameters"]["config"]["data"]["languages"] = ["en", "zh"]
    torch.save(content, tmp_path / "chinese.ckpt")
    for file in (other, tmp_path / "chinese.ckpt"):
        with pytest.raises(nmt.InputError, match=f"^checkpoint={file}: its vocabularies, "):
            nmt.load([one, file])


def test_rnnencdec_sentences_have_no_weights(tmp_path):
    model = nmt.load(small_checkpoint(tmp_path / "x.ckpt", attends=False))
    [found] = model.translate(LINES[:1])
    assert found.weights is None
    assert len(found.word_log_probabilities) == len(found.tokens) + 1
    with pytest.raises(ValueError, match="no attention"):
        nmt.plot_alignment(found)


def test_thai_source_is_split_into_characters(run, tmp_path):
    content = torch.load(run / "checkpoints/best.ckpt", weights_only=True)
    content["hyper_parameters"]["config"]["data"]["languages"] = ["th", "en"]
    torch.save(content, tmp_path / "th.ckpt")
    assert nmt.load(tmp_path / "th.ckpt").translate("我们认为").source == list("我们认为")


def test_load_and_translate_keep_the_random_state(run):
    state = torch.get_rng_state()
    nmt.load(run).translate("the cat")
    assert torch.equal(torch.get_rng_state(), state)


def translate_anew(run):
    """Imports nmt again, translates, and checks that no library for training was imported."""
    training = {"pytorch_lightning", "torchmetrics", "wandb", "datasets", "matplotlib"}
    for name in list(sys.modules):
        if name.partition(".")[0] in {"nmt", *training}:
            del sys.modules[name]
    importlib.import_module("nmt.translate")
    importlib.import_module("nmt").load(run).translate("the cat")
    assert not training & sys.modules.keys()


def test_translate_imports_no_training_library(run):
    process = multiprocessing.get_context("fork").Process(target=translate_anew, args=(run,))
    process.start()
    process.join()
    assert process.exitcode == 0


def test_run_folder_without_a_best_checkpoint_is_read_from_its_last(tmp_path):
    small_checkpoint(tmp_path / "checkpoints" / "last.ckpt")
    assert len(nmt.load(tmp_path).translate(LINES[:1])) == 1
