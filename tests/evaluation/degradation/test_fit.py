import numpy as np
import pytest

from nmt.evaluation.degradation.findings import _breakpoint
from nmt.evaluation.degradation.fit import LengthAxis


def axis(sentences, lengths):
    """Buckets of 5 words with so many sentences (M, B) of these mean lengths."""
    count = np.shape(lengths)[-1]
    first = 5 * np.arange(count) + 1
    return LengthAxis(first, first + 4, np.array(sentences, float), np.array(lengths, float))


@pytest.fixture
def uneven():
    """Three samples of 14 buckets, 1-5 to 66-70."""
    draw = np.random.default_rng(3)
    middle = 5 * np.arange(14) + 3.0
    return axis(draw.integers(20, 90, (3, 14)), middle + draw.uniform(-1, 1, (3, 14)))


def test_slope_over_all_is_that_of_weighted_least_squares(uneven):
    scores = np.random.default_rng(4).normal(30, 5, (3, 14))
    found = (uneven.slope("all", 50) * scores).sum(1)
    for sample in range(3):
        fit = np.polyfit(
            uneven.lengths[sample], scores[sample], 1, w=np.sqrt(uneven.weights[sample])
        )
        assert found[sample] == pytest.approx(10 * fit[0])


def test_either_side_of_a_cap_has_a_line_of_its_own(uneven):
    scores = np.random.default_rng(5).normal(30, 5, (3, 14))
    sides = {"to_cap": slice(0, 9), "beyond_cap": slice(10, 14)}  # 46-50 lies on both sides of 47
    drawn = []
    for part, side in sides.items():
        found = (uneven.slope(part, 47) * scores).sum(1)
        for sample in range(3):
            x, root = uneven.lengths[sample, side], np.sqrt(uneven.weights[sample, side])
            slope, level = np.polyfit(x, scores[sample, side], 1, w=root)
            assert found[sample] == pytest.approx(10 * slope)
            if sample == 0:
                drawn += [(end, level + slope * end) for end in (x[0], x[-1])]
    assert np.array(uneven.lines(scores[0], 47)) == pytest.approx(np.array(drawn))


def test_a_curve_that_flattens_out_and_goes_on_falling_is_not_said_to_rise():
    middle = 5 * np.arange(14) + 3.0
    falling = axis(np.full((1, 14), 100), middle[None])
    scores = 6 + 30 * np.exp(-middle / 12)[None]
    for part in ("all", "to_cap", "beyond_cap"):
        assert (falling.slope(part, 50) * scores).sum() < 0


def test_a_range_with_fewer_than_three_buckets_has_no_slope_and_leaves_the_other_as_it_is(uneven):
    assert uneven.slope("beyond_cap", 60) is None  # 61-65 and 66-70
    assert uneven.slope("to_cap", 14) is None  # 11-15 ends beyond the cap
    assert uneven.slope("beyond_cap", None) is uneven.slope("to_cap", None) is None
    scores = np.random.default_rng(6).normal(30, 5, (3, 14))
    found = (uneven.slope("to_cap", 60) * scores).sum(1)[1]
    x, w = uneven.lengths[1, :12], uneven.weights[1, :12]
    assert found == pytest.approx(10 * np.polyfit(x, scores[1, :12], 1, w=np.sqrt(w))[0])
    drawn = np.polynomial.Polynomial.fit(
        uneven.lengths[0, :12], scores[0, :12], 1, w=np.sqrt(uneven.weights[0, :12])
    )
    ends = uneven.lengths[0, [0, 11]]
    assert uneven.lines(scores[0], 60) == [pytest.approx((end, drawn(end))) for end in ends]


def test_a_bucket_without_sentences_in_a_resample_counts_for_nothing():
    lengths = [[3.0, 8, 13, 18], [3.0, 8, 13, 18]]
    two = axis([[30, 30, 30, 30], [30, 0, 30, 30]], lengths)
    scores = np.array([[40.0, 30, 20, 10], [40.0, 0, 20, 10]])
    assert (two.slope("all", None) * scores).sum(1) == pytest.approx([-20, -20])


def test_lengths_of_losses_lie_between_the_buckets_around_them():
    one = axis([[30] * 5] * 3, [[3.0, 8, 13, 18, 23]] * 3)
    scores = np.array([[30.0, 40, 38, 30, 12], [40, 40, 40, 40, 40], [10, 30, 40, 36, 21]])
    tenth = one.losses(scores, [0.1], higher_is_better=True)[0]
    assert tenth == pytest.approx([13 + 5 * 2 / 8, np.inf, 18])
    half = one.losses(scores, [0.5], higher_is_better=True)[0]
    assert half == pytest.approx([18 + 5 * 10 / 18, np.inf, np.inf])
    rising = np.array([[2.0, 1, 1.05, 1.2, 3]] * 3)
    # 1.05 is best with its neighbours
    assert one.losses(rising, [0.1], higher_is_better=False)[0] == pytest.approx([16.5] * 3)


def test_a_loss_is_read_from_the_nearest_curve_that_never_rises():
    """Pooling of adjacent violators, by hand: 28 and 34 of 60 and 30 sentences are 30."""
    one = axis([[30, 30, 60, 30, 30]], [[3.0, 8, 13, 18, 23]])
    scores = np.array([[44.0, 40, 28, 34, 20]])
    assert one.losses(scores, [0.5], higher_is_better=True)[0] == pytest.approx([18 + 5 * 8 / 10])
    rising = np.array([[30.0, 30, 29, 31, 20]])  # the best bucket is the fourth by itself only
    found = one.losses(rising, [0.1], higher_is_better=True)[0][0]
    assert 18 < found < 23


def test_a_breakpoint_is_where_a_bent_line_fits_best():
    draw = np.random.default_rng(7)
    middle = np.broadcast_to(5 * np.arange(14) + 3.0, (400, 14))
    one = axis(np.full((400, 14), 50), middle)
    for bend in (25, 41):
        bent = 40 - 0.4 * np.maximum(middle - bend, 0)
        noise = draw.normal(0, 0.5, (400, 14))
        noise[0] = 0  # the sample itself: its noise must not decide
        found, p = one.breakpoints(bent + noise)
        assert found[0] == bend
        assert np.median(found) == pytest.approx(bend, abs=1)
        assert p == pytest.approx(1 / 400)
    straight = 40 - 0.2 * middle + draw.normal(0, 1, (400, 14))
    assert one.breakpoints(straight)[1] > 0.05


def test_a_breakpoint_at_the_end_of_what_was_tried_is_outside_the_data():
    middle = np.broadcast_to(5 * np.arange(8) + 3.0, (2, 8))
    early = 40 - 2.0 * np.maximum(10 - middle, 0)
    late = 40 - 2.0 * np.maximum(middle - 33, 0)
    assert axis(np.full((2, 8), 50), middle).breakpoints(early)[0][0] == -np.inf
    assert axis(np.full((2, 8), 50), middle).breakpoints(late)[0][0] == np.inf
    assert axis(np.full((2, 5), 50), middle[:, :5]).breakpoints(early[:, :5]) is None


def test_a_breakpoint_and_its_interval_leave_the_data_on_the_same_side():
    """Resamples whose best place is the last one count as beyond it, not as if there were none."""
    lengths = np.array([np.inf, *[np.inf] * 60, *[40.0] * 39, -np.inf])
    found = _breakpoint((lengths, 0.01), 0.95)
    assert found == {"status": "beyond the data", "score": None, "low": 40.0, "high": None}
    assert _breakpoint((-lengths, 0.01), 0.95)["status"] == "before the data"
    assert _breakpoint((-lengths, 0.01), 0.95)["low"] is None
