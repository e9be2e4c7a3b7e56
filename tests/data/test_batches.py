"""The order of the data: each epoch visits every pair once, in the same order for any number of devices."""

from __future__ import annotations

import pickle

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.data.batches import TrainingSchedule, evaluation_batches, shuffle


def sizes_of(pairs: int, seed: int = 3) -> np.ndarray:
    return np.random.default_rng(seed).integers(1, 50, (pairs, 2)).astype(np.uint16)


def splitmix64(state: int) -> int:
    """Computes one output of SplitMix64 with Python integers."""
    state = (state + 0x9E3779B97F4A7C15) % 2**64
    state = (state ^ state >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    state = (state ^ state >> 27) * 0x94D049BB133111EB % 2**64
    return state ^ state >> 31


def test_shuffle_is_splitmix64() -> None:
    assert splitmix64(0) == 0xE220A8397B1DCDAF  # the published first output for seed 0
    start = splitmix64(splitmix64(7) + 2)
    expected = sorted(range(1000), key=lambda number: splitmix64((number + start) % 2**64))
    assert shuffle(1000, 7, 2).tolist() == expected
    assert shuffle(10, 1).tolist() == [8, 6, 7, 9, 0, 5, 1, 3, 2, 4]


SCHEDULES = {
    "pairs": st.integers(1, 90),
    "size": st.integers(1, 9) | st.integers(10, 400),
    "pool": st.integers(1, 5),
    "seed": st.integers(0, 2**40),
    "by_tokens": st.booleans(),
}


@settings(max_examples=80, deadline=None)
@given(**SCHEDULES)
def test_schedule_has_each_pair_once_an_epoch(
    pairs: int, size: int, pool: int, seed: int, by_tokens: bool
) -> None:
    sizes = sizes_of(pairs)
    longer = sizes.max(axis=1).astype(int)
    schedule = TrainingSchedule(sizes, size, pool, seed, by_tokens)
    seen: list[int] = []
    update = 0
    while schedule.epoch(update) < 2:
        rows = schedule.rows(update).tolist()
        if by_tokens:
            assert len(rows) == 1 or len(rows) * longer[rows].max() <= size
        else:
            assert len(rows) == size
        # A batch contains a pair twice only if it is larger than the corpus.
        assert np.bincount(rows).max() == -(-len(rows) // pairs)
        seen += rows
        update += 1
        assert schedule.epoch(update) == len(seen) / pairs
    # Sorting changes the order of pairs within a pool, so pools are compared as sets.
    ends = len(seen) - len(seen) % schedule.pool_pairs
    stream = np.tile(shuffle(pairs, seed), len(seen) // pairs + 1)[: len(seen)]
    for start in range(0, ends, schedule.pool_pairs):
        part = slice(start, start + schedule.pool_pairs)
        assert sorted(seen[part]) == sorted(stream[part])


@settings(max_examples=40, deadline=None)
@given(**SCHEDULES, start=st.integers(0, 40))
def test_schedule_depends_on_the_update_number_only(
    pairs: int, size: int, pool: int, seed: int, by_tokens: bool, start: int
) -> None:
    """Batches do not depend on the first batch that is read, on the order of reading, or on pickling."""
    schedule = TrainingSchedule(sizes_of(pairs), size, pool, seed, by_tokens)
    forward = [schedule.rows(update).tolist() for update in range(44)]
    again = pickle.loads(pickle.dumps(schedule))
    assert [again.rows(update).tolist() for update in range(start, 44)] == forward[start:]
    assert [again.rows(update).tolist() for update in reversed(range(44))] == forward[::-1]


def test_schedule_depends_on_the_seed() -> None:
    first, other = (TrainingSchedule(sizes_of(100), 8, seed=seed).rows(0) for seed in (4, 5))
    assert first.tolist() != other.tolist()


def test_pools_are_sorted_by_length_and_span_epochs() -> None:
    sizes = sizes_of(50)
    schedule = TrainingSchedule(sizes, 4, 3, seed=8)
    longer = sizes.max(axis=1)
    for first in (0, 3, 12):  # the pool that starts at batch 12 spans two epochs
        lengths = np.concatenate([longer[schedule.rows(first + k)] for k in range(3)])
        assert (np.diff(lengths.astype(int)) >= 0).all()
    stream = np.tile(shuffle(50, 8), 2)
    pool = np.concatenate([schedule.rows(update) for update in (12, 13, 14)])
    assert sorted(pool) == sorted(stream[48:60])
    assert schedule.epoch(25) == 2.0


@settings(max_examples=40, deadline=None)
@given(size=st.integers(1, 400), by_tokens=st.booleans(), world=st.integers(1, 5),
       accumulate=st.integers(1, 3))  # fmt: skip
def test_shares_add_up_to_the_batch_and_have_similar_lengths(
    size: int, by_tokens: bool, world: int, accumulate: int
) -> None:
    sizes = sizes_of(90).astype(int)
    schedule = TrainingSchedule(sizes, size, 5, by_tokens=by_tokens)
    for update in range(5):
        rows = schedule.rows(update)
        shares = [
            schedule.share(update, micro, accumulate, rank, world)
            for micro in range(accumulate)
            for rank in range(world)
        ]
        assert sorted(np.concatenate(shares)) == sorted(rows)
        assert np.ptp([len(share) for share in shares]) <= 1
        # A share has the pairs of one micro-batch on one rank. If two shares have equally many pairs, their
        # total lengths differ by at most max(length) - min(length).
        longer = sizes.max(axis=1)
        whole = [longer[share].sum() for share in shares if len(share) == len(shares[0])]
        assert np.ptp(whole) <= np.ptp(longer[rows])


def test_batches_by_tokens_have_similar_sizes() -> None:
    """Each batch fills over 80 % of the limit of 1,000 tokens, and the average batch over 94 %."""
    sizes = sizes_of(4000)
    longer = sizes.max(axis=1).astype(int)
    schedule = TrainingSchedule(sizes, 1000, 20, seed=3, by_tokens=True)
    filled = [
        len(rows) * longer[rows].max() for rows in (schedule.rows(update) for update in range(60))
    ]
    assert max(filled) <= 1000
    assert min(filled) > 800
    assert np.mean(filled) > 940


@settings(max_examples=60, deadline=None)
@given(pairs=st.integers(0, 60), batch_size=st.integers(1, 9), world=st.integers(1, 5))
def test_evaluation_batches_have_each_pair_once_for_any_number_of_ranks(
    pairs: int, batch_size: int, world: int
) -> None:
    sizes = sizes_of(pairs)
    whole = [tuple(batch) for batch in evaluation_batches(sizes, batch_size) if len(batch)]
    shares = [
        [tuple(batch) for batch in evaluation_batches(sizes, batch_size, rank, world)]
        for rank in range(world)
    ]
    assert shares == [whole[rank::world] or [()] for rank in range(world)]
    assert sorted(row for batch in whole for row in batch) == list(range(pairs))
    lengths = [tuple(sizes[row].tolist()) for batch in whole for row in batch]
    assert lengths == sorted(lengths, reverse=True)
    assert {len(batch) for batch in whole[:-1]} <= {batch_size}


def test_evaluation_batches_keep_the_order_of_equal_lengths() -> None:
    batches = evaluation_batches([4, 7, 4, 9, 7, 4], 4)
    assert [batch.tolist() for batch in batches] == [[3, 1, 4, 0], [2, 5]]


def test_evaluation_batches_separate_the_first_sentences() -> None:
    lengths = [5, 9, 2, 7, 1, 8, 3]
    batches = evaluation_batches(lengths, 2, apart=3)
    assert [batch.tolist() for batch in batches] == [[1, 0], [2], [5, 3], [6, 4]]
    shares = [evaluation_batches(lengths, 2, rank, 2, apart=3) for rank in range(2)]
    assert sorted(int(n) for share in shares for batch in share for n in batch) == list(range(7))
