"""The test protocol against a loop that takes one sentence at a time; subwords read as words."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

from nmt.config import Config, EvaluationConfig, ModelConfig, SearchConfig
from nmt.data.batch import collate
from nmt.data.vocabulary import UNKNOWN, BpeVocabulary, WordVocabulary
from nmt.evaluation.alignment import Gold
from nmt.evaluation.bleu import sentence_statistics
from nmt.evaluation.examples import Example
from nmt.inference import test_loop
from nmt.inference.force_decoding import alignment_row, force_decode, weights_between_words
from nmt.inference.test_loop import make_batches, mean_nll, run_test_set
from nmt.inference.trained import Codec, TrainedModel, intervene
from nmt.inference.unknown_words import replace_unknown_words
from nmt.models import build_model
from nmt.models.ensemble import Ensemble
from nmt.search import Hypothesis, beam_search

SOURCE = WordVocabulary(["the", "cat", "red", "dog", "sees"])
TARGET = WordVocabulary(["le", "chat", "rouge", "chien", "voit", "un"])
CODEC = Codec(SOURCE, TARGET, " ".join)
TEXT = [
    ("the red cat sees the dog", "le chat rouge voit le chien"),
    ("the cat", "le chat"),
    ("a cat sees", "un chat voit"),
    ("dog", "un chien noir"),
    ("the cat sees the cat", "le chat voit un chat"),
]
GOLD = Gold(frozenset({(0, 0), (1, 1)}), frozenset({(0, 0), (1, 1)}))
EXAMPLES = [
    Example(n, s.split(), t.split(), t, GOLD if n == 1 else None) for n, (s, t) in enumerate(TEXT)
]
SEARCH = SearchConfig(beam_size=3, max_ratio=2.0, batch_size=2)


def make(scoring="Additive", source=SOURCE, target=TARGET, **options):
    torch.manual_seed(5)
    chosen = {"scoring": {"_target_": f"nmt.layers.scoring.{scoring}"}, **options}
    if scoring is None:
        chosen = {"scoring": None, "_target_": "nmt.models.RNNencdec"}
    sizes = {"hidden": 6, "embedding": 5, "alignment": 7, "maxout": 4}
    config = Config(model=ModelConfig(init="glorot", **sizes, **chosen))
    model = build_model(config, len(source), len(target)).network.eval().double()
    with torch.no_grad():  # sharper than a fresh model, so that translations differ
        for parameter in model.parameters():
            parameter.mul_(2)
    return model


def at_work(model, codec=CODEC, search=SEARCH, evaluation=None):
    return TrainedModel(
        model, codec, Config(search=search, evaluation=evaluation or EvaluationConfig())
    )


@pytest.fixture(autouse=True)
def no_gradients():
    with torch.no_grad():
        yield


@pytest.mark.parametrize("scoring", ["Additive", "ScaledDot", None])
def test_the_protocol_is_that_of_a_plain_loop(scoring):
    model = make(scoring)
    records, alignments = run_test_set(at_work(model), EXAMPLES, kept=[0, 3])
    assert [record["id"] for record in records] == [0, 1, 2, 3, 4]
    assert [record["no_unk"] for record in records] == [True, True, False, False, True]
    assert [sum(record["unknown_words"]) > 0 for record in records] == [
        not record["no_unk"] for record in records
    ]
    for record, (source, target) in zip(records, TEXT, strict=True):
        ids, answer = SOURCE.encode(source.split()), TARGET.encode(target.split())
        alone = collate([ids], [answer], [0])
        forced = model(alone.source, alone.source_mask, alone.target, alone.target_mask)
        nll = forced.nll
        [[best, *_]] = beam_search(model, alone.source, alone.source_mask, SEARCH)
        [[free, *_]] = beam_search(model, alone.source, alone.source_mask, SEARCH, True)
        assert record["nll"] == pytest.approx(float(nll.sum()))
        assert record["hypothesis"] == TARGET.decode(best.tokens)
        assert record["score"] == pytest.approx(best.score)
        assert record["detokenised"] == " ".join(record["hypothesis"])
        assert record["reference"] == target.split()
        expected = sentence_statistics(record["hypothesis"], target.split())
        assert record["bleu_stats"] == expected.tolist()
        if record["no_unk"]:
            assert record["hypothesis_no_unk"] == TARGET.decode(free.tokens)
            assert "<unk>" not in record["hypothesis_no_unk"]
        else:
            assert "hypothesis_no_unk" not in record
        if scoring is None:
            assert "attention_entropy" not in record
        else:
            weights = forced.weights[0].numpy()
            entropy = -(weights * np.log(weights)).sum(1).mean()
            assert record["attention_entropy"] == pytest.approx(entropy)
            assert record["eos_weight"] == pytest.approx(weights[:-1, -1].mean())
            assert ("alignment_counts" in record) == (record["id"] == 1)
    assert [row["id"] for row in alignments] == [0, 3]
    assert alignments[1]["source"] == ["dog", "</s>"]


@pytest.mark.parametrize(("attention", "largest"), [("uniform", None), ("argmax", 1.0)])
def test_weights_that_are_replaced_are_those_everywhere(attention, largest):
    """In likelihood, translation, entropy, weight on </s> and kept alignments, whatever the rest."""
    settings = EvaluationConfig(attention=attention)
    as_trained, _ = run_test_set(at_work(make()), EXAMPLES)
    model = make()
    model.decoder.recurrence = "fused"
    intervene(model, settings)
    records, alignments = run_test_set(at_work(model, evaluation=settings), EXAMPLES, kept=[0, 3])
    changed = [abs(a["nll"] - b["nll"]) for a, b in zip(records, as_trained, strict=True)]
    assert min(changed) > 1e-4
    for record in records:
        share = 1 / (len(record["source"]) + 1)
        if largest is None:
            assert record["attention_entropy"] == pytest.approx(-np.log(share))
            assert record["eos_weight"] == pytest.approx(share)
        else:
            assert record["attention_entropy"] == pytest.approx(0)
    for row in alignments:
        for weights in row["weights"]:
            assert max(weights) == pytest.approx(largest or 1 / len(row["source"]))
    model = make()
    intervene(model, EvaluationConfig())
    assert run_test_set(at_work(model), EXAMPLES)[0] == as_trained


LOCAL = {"_target_": "nmt.layers.local_attention.LocalAttention", "window": 1}


def local_model(attention="as_trained"):
    model = make(attention=LOCAL)
    intervene(model, EvaluationConfig(attention=attention))
    return model


@pytest.mark.parametrize(
    "make_model",
    [
        local_model,
        lambda: local_model("argmax"),
        lambda: local_model("shifted"),
        lambda: Ensemble([local_model(), make()]),
    ],
    ids=["local", "argmax", "shifted", "ensemble"],
)
def test_attention_is_measured_on_one_scale(make_model):
    """A step has one unit of attention to share out, whatever its weights sum to in the context."""
    model = make_model()
    records, rows = run_test_set(at_work(model), EXAMPLES, kept=range(5))
    for record, row in zip(records, rows, strict=True):
        weights = np.array(row["weights"])
        np.testing.assert_allclose(weights.sum(1), 1)
        entropy = -(weights * np.log(np.where(weights > 0, weights, 1))).sum(1)
        np.testing.assert_allclose(row["attention_entropy"], entropy, atol=1e-9)
        assert 0 <= record["eos_weight"] <= 1


def test_uniform_attention_has_the_entropy_of_the_length_whatever_was_trained():
    records, _ = run_test_set(at_work(local_model("uniform")), EXAMPLES)
    for record in records:
        assert record["attention_entropy"] == pytest.approx(np.log(len(record["source"]) + 1))


def test_each_sentence_counts_once_however_many_devices(monkeypatch):
    trained = at_work(make())
    for world in (1, 2, 3, 5):
        rows = []
        for rank in range(world):
            monkeypatch.setattr(
                test_loop, "rank_and_world", lambda rank=rank, world=world: (rank, world)
            )
            rows += [r for batch in make_batches(trained, EXAMPLES) for r in batch.rows.tolist()]
        assert sorted(rows) == [0, 1, 2, 3, 4]


def test_buckets_by_the_target_side():
    evaluation = EvaluationConfig(bucket_by="target")
    records, _ = run_test_set(at_work(make(), evaluation=evaluation), EXAMPLES)
    assert [record["length"] for record in records] == [6, 2, 3, 3, 5]


def test_likelihood_is_the_mean_over_sentences():
    trained = at_work(make())
    records, _ = run_test_set(trained, EXAMPLES)
    mean = np.mean([record["nll"] for record in records])
    assert mean_nll(trained, make_batches(trained, EXAMPLES)) == pytest.approx(mean)


def test_force_decoding_gives_back_the_searchs_probabilities():
    model = make()
    source = SOURCE.encode(["the", "red", "cat"])
    batch = collate([source], [[0]], [0])
    [found] = beam_search(
        model, batch.source, batch.source_mask, dataclasses.replace(SEARCH, nbest=3)
    )
    tokens = [hypothesis.tokens for hypothesis in found]
    assert not any(force_decode(model, [source] * 3, tokens)[0].others)
    decodings = force_decode(model, [source] * 3, tokens, runners_up=5)
    for hypothesis, decoding in zip(found, decodings, strict=True):
        read = decoding.log_probabilities[: len(hypothesis.tokens)]
        assert sum(read) == pytest.approx(hypothesis.score)
        assert decoding.weights.shape == (len(decoding.ids), 4)
        for written, own, others in zip(
            decoding.ids, decoding.log_probabilities, decoding.others, strict=True
        ):
            assert written not in [index for index, _ in others]
            values = [value for _, value in others]
            assert values == sorted(values, reverse=True)
            assert len(values) == 5
            assert np.exp([own, *values]).sum() <= 1 + 1e-6


def test_unknown_words_are_replaced_by_what_was_attended():
    source = ["Smith", "sees", "a", "dog"]
    ids = [TARGET.encode(["le"])[0], UNKNOWN, UNKNOWN, 0]
    [decoding] = force_decode(make(), [SOURCE.encode(source)], [ids])
    weights = np.zeros((4, 5))
    weights[0, 1] = weights[1, 0] = weights[3, 4] = 1.0
    weights[2, 4] = 0.9  # on </s>: its best word is what counts
    weights[2, 3] = 0.1
    decoding = dataclasses.replace(decoding, weights=weights)

    def replaced(mode, dictionary=None):
        search = SearchConfig(replace_unk=mode)
        return replace_unknown_words(decoding, CODEC, source, search, dictionary)

    assert replaced("none") == ["le", None, None]
    copied = replaced("copy")
    assert copied[:2] == ["le", "Smith"]
    assert copied[2] in ("dog", None)
    assert replaced("dictionary", {"Smith": "Dupont"})[1] == "Dupont"
    assert replaced("dictionary", {"dog": "chien"})[1] == "Smith"
    blind = dataclasses.replace(decoding, weights=None)
    assert replace_unknown_words(blind, CODEC, source, SearchConfig(replace_unk="copy")) == [
        "le",
        None,
        None,
    ]


def test_subwords_are_read_as_words():
    learn = ["the cat sees the dog", "catamaran", "dogged cats see"]
    source, target = BpeVocabulary.learn(learn, 262), BpeVocabulary.learn(learn, 270)
    codec = Codec(source, target, " ".join)
    model = make("Dot", source, target)
    words = ["the", "catamaran", "sees"]
    ids, written = source.encode(words), target.encode(["dogged", "cat"])
    assert len(ids) > 4  # some word has more than one subword
    [decoding] = force_decode(model, [ids], [written])
    between = weights_between_words(decoding.weights, codec, words, written)
    assert between.shape == (3, 4)
    groups = np.array(source.word_index(ids))
    rows = np.array(target.word_index(written))
    summed = np.stack([decoding.weights[:, groups == word].sum(1) for word in range(4)], 1)
    assert summed.sum(1) == pytest.approx(np.ones(len(written)))
    # a word of the translation reads as its subwords do on average
    mean = np.stack([summed[rows == word].mean(0) for word in range(3)])
    np.testing.assert_allclose(between, mean, rtol=1e-6)
    row = alignment_row(codec, 7, words, decoding, score=-3.0)
    assert (row["source"], row["target"]) == ([*words, "</s>"], ["dogged", "cat", "</s>"])
    keys = ("weights", "attention_entropy", "log_probability")
    assert [len(row[key]) for key in keys] == [3, 3, 3]
    assert sum(row["log_probability"]) == pytest.approx(sum(decoding.log_probabilities))
    assert source.unknown(words) == 0
    search = SearchConfig(beam_size=2, max_ratio=2.0)
    [record], [row] = run_test_set(
        at_work(model, codec, search), [Example(0, words, ["dogged"])], kept=[0]
    )
    assert record["no_unk"] is record["unknown_words"] is None
    assert record["length"] == 3
    assert len(row["weights"][0]) == 4


@pytest.mark.parametrize(("mode", "matches"), [("none", 1), ("copy", 3)])
def test_the_symbol_and_a_word_spelt_like_it_are_told_apart_by_their_ids(
    monkeypatch, mode, matches
):
    """The text has words spelt `<unk>`: in the target's shortlist, and copied from the source."""
    target = WordVocabulary(["<unk>", "le"])
    symbol, word = UNKNOWN, target.encode(["<unk>"])[0]
    source = ["the", "<unk>", "Smith"]
    model = make(target=target)
    hypothesis = Hypothesis([word, symbol, symbol, 0], -4.0, True)
    decoded = test_loop.force_decode

    def one_to_one(*arguments, **options):
        weights = np.eye(4)[[0, 1, 2, 3]]
        made = decoded(*arguments, **options)
        return [dataclasses.replace(each, weights=weights) for each in made]

    monkeypatch.setattr(test_loop, "beam_search", lambda *_: [[hypothesis]])
    monkeypatch.setattr(test_loop, "force_decode", one_to_one)
    trained = at_work(model, Codec(SOURCE, target, " ".join), SearchConfig(replace_unk=mode))
    reference = ["<unk>", "<unk>", "Smith"]
    [record], _ = run_test_set(trained, [Example(0, source, reference)])
    words = {"none": ["<unk>"] * 3, "copy": reference}[mode]
    assert record["hypothesis"] == words
    assert record["detokenised"] == " ".join(words)
    assert record["bleu_stats"][0] == matches  # words of the reference that were written


@pytest.mark.parametrize("bf16", [False, True])
def test_results_are_the_same_for_any_number_of_workers(bf16):
    """To the bit, in the order of the set, and with the caller's precision and threads."""
    model = make().float()
    alone = dataclasses.replace(at_work(model), config=Config(search=SEARCH))
    alone.config.threads = 1
    shared = dataclasses.replace(at_work(model), config=Config(search=SEARCH))
    shared.config.threads = 3
    assert (alone.workers, shared.workers) == (1, 3)
    many = [dataclasses.replace(EXAMPLES[n % len(EXAMPLES)], id=n) for n in range(23)]
    before = torch.get_num_threads()
    with torch.autocast("cpu", torch.bfloat16, enabled=bf16):
        expected = run_test_set(alone, many, kept=[0, 3, 17])
        assert run_test_set(shared, many, kept=[0, 3, 17]) == expected
        batches = make_batches(alone, many)
        assert mean_nll(shared, batches) == mean_nll(alone, batches)
    assert torch.get_num_threads() == before
    assert [record["id"] for record in expected[0]] == list(range(23))
