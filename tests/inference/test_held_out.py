"""The records of a test set, compared with a loop over single sentences."""

from unittest import mock

import numpy as np
import pytest
import torch

from nmt.config.schema import TextConfig
from nmt.data.batch import collate
from nmt.evaluation import measured
from nmt.evaluation.scores.bleu import sentence_statistics
from nmt.inference import model
from nmt.inference.held_out import (
    choose_kept,
    evaluate,
    make_record,
    read_sentences,
    translate_set,
)
from nmt.inference.load import intervene
from nmt.inference.sentence import ScoredSentence
from nmt.inference.training_pairs import sampled_nll
from nmt.models.ensemble import Ensemble
from nmt.search import beam_search
from nmt.utils.errors import InputError
from tests.inference.small import (
    SEARCH,
    SENTENCES,
    SOURCE,
    TARGET,
    TEXT,
    make_network,
    make_pairs,
    make_trained,
)


@pytest.fixture(autouse=True)
def no_gradients():
    with torch.no_grad():
        yield


def test_unk_in_a_hypothesis_matches_nothing():
    written = ScoredSentence(["a"], ["<unk>", "a"], "", 0.0, unknown=(0,))
    record = make_record({"reference": ["<unk>", "a"]}, written, written)
    assert record["bleu_stats"][:2] == [1, 0]


def test_refuses_a_sentence_without_a_document(tmp_path):
    file = tmp_path / "documents"
    file.write_text("a\n \n")
    with pytest.raises(InputError, match=f"^{file}:2: empty"):
        read_sentences(make_pairs(TEXT), TextConfig(documents=str(file)))


def test_translations_are_written_even_if_they_cannot_be_scored(tmp_path, monkeypatch):
    trained = make_trained(make_network("Additive"))
    monkeypatch.setattr(measured, "score_set", mock.Mock(side_effect=ArithmeticError))
    with pytest.raises(ArithmeticError):
        evaluate(trained, {"test": SENTENCES}, tmp_path)
    file = tmp_path / "translations/test.jsonl"
    assert len(file.read_text().splitlines()) == len(SENTENCES)


@pytest.mark.parametrize("scoring", ["Additive", "ScaledDot", None])
def test_translate_set_equals_a_loop_over_sentences(scoring):
    network = make_network(scoring)
    records = translate_set(make_trained(network), SENTENCES, "test")
    alignments = [record["alignment"] for record in records if "alignment" in record]
    assert [record["id"] for record in records] == [0, 1, 2, 3, 4]
    assert [record["no_unk"] for record in records] == [True, True, False, False, True]
    for record, (source, target) in zip(records, TEXT, strict=True):
        batch = collate([SOURCE.encode(source.split())], [TARGET.encode(target.split())])
        forced = network(batch.source, batch.source_mask, batch.target, batch.target_mask)
        [[best, *_]] = beam_search(network, batch.source, batch.source_mask, SEARCH)
        [[free, *_]] = beam_search(network, batch.source, batch.source_mask, SEARCH, True)
        assert record["nll"] == pytest.approx(float(forced.nll.sum()))
        assert record["hypothesis"] == TARGET.decode(best.tokens)
        assert record["log_probability"] == pytest.approx(best.log_probability)
        assert record["detokenised"] == " ".join(record["hypothesis"])
        assert record["reference"] == target.split()
        assert "gold" not in record
        expected = sentence_statistics(record["hypothesis"], target.split())
        if "unknown" not in record:
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
    assert len(alignments) == 2
    for row in alignments:
        assert row["target"] == [*records[row["id"]]["hypothesis"], "</s>"]
        assert row["reference"] == records[row["id"]]["reference"]
        assert all(len(others) == 5 for others in row["runners_up"])


@pytest.mark.parametrize(("attention", "largest"), [("uniform", None), ("argmax", 1.0)])
def test_translate_set_uses_replaced_weights_everywhere(attention, largest):
    """Likelihoods, entropies, weights on `</s>` and stored alignments use the replaced weights."""
    as_trained = translate_set(make_trained(make_network()), SENTENCES, "test")
    network = make_network()
    intervene(network, attention, "a.ckpt")
    records = translate_set(make_trained(network), SENTENCES, "test")
    alignments = [record["alignment"] for record in records if "alignment" in record]
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


def test_weights_of_an_ensemble_sum_to_one():
    local = {"_target_": "nmt.layers.local_attention.LocalAttention", "window": 1}
    network = Ensemble([make_network(attention=local), make_network()])
    for record in translate_set(make_trained(network, kept=5), SENTENCES, "test"):
        np.testing.assert_allclose(np.sum(record["alignment"]["weights"], 1), 1)


@pytest.mark.parametrize("world", [2, 3, 7])
def test_translate_set_on_several_ranks_equals_one(monkeypatch, world):
    trained = make_trained(make_network())
    expected = translate_set(trained, SENTENCES, "test")
    nothing = dict.fromkeys(range(5))
    parts = []
    monkeypatch.setattr(model, "gather", lambda mine: parts.append(mine) or [nothing, mine])
    for rank in range(world):
        monkeypatch.setattr(model, "rank_and_world", lambda rank=rank: (rank, world))
        translate_set(trained, SENTENCES, "test")
    assert sorted(place for part in parts for place in part) == [0, 1, 2, 3, 4]
    monkeypatch.setattr(model, "gather", lambda _: parts)
    assert translate_set(trained, SENTENCES, "test") == expected


@pytest.mark.parametrize(
    "precision", ["32-true", pytest.param("bf16-mixed", marks=pytest.mark.slow)]
)
def test_translate_set_is_the_same_for_any_number_of_threads(precision):
    """Results are identical to the bit, and in the order of the test set."""
    network = make_network().float()
    alone, shared = (
        make_trained(network, threads=threads, precision=precision) for threads in (1, 3)
    )
    many = [SENTENCES[n % len(SENTENCES)] | {"id": n} for n in range(11)]
    before = torch.get_num_threads()
    expected = translate_set(alone, many, "test")
    assert translate_set(shared, many, "test") == expected
    assert torch.get_num_threads() == before
    pairs = make_pairs(TEXT)
    found = [sampled_nll(trained, pairs, len(TEXT)) for trained in (alone, shared)]
    assert found[0] == found[1]
    if precision == "32-true":
        expected_nll = np.mean([record["nll"] for record in expected[:5]])
        assert found[0] == pytest.approx(expected_nll)


EDGES = [10, 20]


def row(number, words):
    return {"id": number, "source": [f"s{number}"] * words, "length": words}


def test_kept_sentences_cover_all_buckets():
    rows = [row(n, 5) for n in range(50)]
    rows += [row(n, 15) for n in range(50, 54)]
    rows += [row(n, 40) for n in range(54, 100)]
    kept = choose_kept(rows, 16, EDGES)
    assert len(set(kept)) == 16
    assert kept == sorted(kept)
    assert [n for n in kept if 50 <= n < 54] == [50, 51, 52, 53]
    assert sum(n < 50 for n in kept) == sum(n >= 54 for n in kept) == 6
    assert choose_kept(rows[::-1], 16, EDGES) == kept
    assert set(choose_kept(rows, 9, EDGES)) < set(kept)
    assert len(choose_kept(rows, 1000, EDGES)) == 100


def test_kept_sentences_depend_on_the_text_only():
    rows = [row(n, 3) for n in range(30)]
    assert choose_kept(rows, 3, EDGES) == [4, 10, 19]  # chosen by hash, so equal on all machines
    moved = [each | {"id": 29 - each["id"], "hypothesis": []} for each in rows]
    assert choose_kept(moved, 3, EDGES) == [29 - 19, 29 - 10, 29 - 4]
