"""BLEU by length compared with sacrebleu, in one process and in several."""

import json
import math

import numpy as np
import pytest
import torch
import torch.distributed

from nmt.evaluation.buckets import parts_by_length
from nmt.evaluation.scores.bleu import sentence_statistics
from nmt.models.score_by_length import ScoreByLength
from tests.helpers.bleu import corpus, sacrebleu

EDGES = [10, 25, 40, 60]


def expected_scores(pairs, edges=EDGES):
    """Returns sacrebleu's BLEU of all sentences, and of each bucket that is not empty."""
    lengths = np.array([len(reference) for _, reference in pairs])
    scores = {}
    for head, inside in parts_by_length(lengths, edges):
        chosen = [pairs[place] for place in np.flatnonzero(inside)]
        if chosen:
            scores[head["bucket"]] = sacrebleu(chosen).score
    return scores


def tensors(pairs):
    statistics = torch.stack([torch.from_numpy(sentence_statistics(*pair)) for pair in pairs])
    return statistics, torch.tensor([len(reference) for _, reference in pairs])


SHARES = {2: [31, 49], 3: [17, 63, 0]}  # number of processes -> sentences per process


def process(rank, world, folder, statistics, lengths):
    torch.set_num_threads(1)
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{folder}/store", rank=rank, world_size=world
    )
    metric = ScoreByLength(edges=EDGES)
    own = statistics.split(SHARES[world])[rank], lengths.split(SHARES[world])[rank]
    for start in range(0, SHARES[world][rank], 7):
        metric.update(*(part[start : start + 7] for part in own))
    scores = metric.compute()
    (folder / f"{rank}.json").write_text(json.dumps(scores))
    torch.distributed.destroy_process_group()


def test_bleu_by_length_in_one_process():
    pairs = corpus(80, seed=1)
    metric = ScoreByLength(edges=EDGES)
    statistics, lengths = tensors(pairs)
    for start in range(0, 80, 9):
        metric.update(statistics[start : start + 9], lengths[start : start + 9])
    assert metric.compute() == pytest.approx(expected_scores(pairs), abs=1e-9)
    metric.reset()
    assert metric.sums.sum() == 0


@pytest.mark.filterwarnings("ignore:The ``compute`` method")
@pytest.mark.parametrize("world", [2, 3])
def test_bleu_by_length_over_processes(tmp_path, world):
    pairs = corpus(80, seed=world)
    torch.multiprocessing.start_processes(
        process, (world, tmp_path, *tensors(pairs)), nprocs=world, start_method="fork"
    )
    expected = expected_scores(pairs)
    assert len(expected) == len(EDGES) + 2
    for rank in range(world):
        scores = json.loads((tmp_path / f"{rank}.json").read_text())
        assert scores == pytest.approx(expected, abs=1e-9)


@pytest.mark.filterwarnings("ignore:The ``compute`` method")
def test_alignment_error_rate_metric():
    """The sums of `counts` are 20 predicted links, 18 sure links, 12 sure hits and 15 possible hits."""
    counts = [[9, 6, 5, 7, 2, 11], [4, 3, 1, 1, 0, 5], [0, 2, 0, 0, 3, 4], [7, 7, 6, 7, 1, 8]]
    metric = ScoreByLength("alignment_error_rate", 6, [])
    assert math.isnan(metric.compute()["all"])
    for row in counts:
        metric.update(torch.tensor([row]), torch.tensor([4]))
    assert metric.compute()["all"] == pytest.approx(1 - (12 + 15) / (20 + 18))


def test_buckets_without_sentences_or_matches():
    pairs = [([], ["a"] * 5), (["b"] * 4, ["a"] * 15), (["a"] * 30, ["a"] * 30)]
    metric = ScoreByLength(edges=EDGES)
    metric.update(*tensors(pairs))
    scores = metric.compute()
    assert list(scores) == ["all", "1-10", "11-25", "26-40"]
    assert scores["1-10"] == scores["11-25"] == 0.0
    assert scores == pytest.approx(expected_scores(pairs), abs=1e-9)


def test_counts_are_exact_beyond_float32():
    metric = ScoreByLength(edges=[10])
    for row in (torch.full((1, 10), 2**24), torch.ones(1, 10, dtype=torch.int64)):
        metric.update(row, torch.tensor([3]))
    assert metric.half().sums[0, 0] == 2**24 + 1
