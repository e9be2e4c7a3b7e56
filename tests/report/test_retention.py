"""Rows of retention, compared with a score that is known at every length."""

from dataclasses import replace

import numpy as np
import pytest

from nmt.evaluation.length_curve import Curve, LengthScale, kernel
from nmt.evaluation.scores import REGISTERED
from nmt.report.retention import retention_rows


def share_at(length):
    """Returns the share of right words in sentences of a length, from which curves are computed exactly."""
    return 0.9 - 0.1 * np.log(length)


def rows_of(longest, constant=None):
    """Returns the rows of a test set with 40 sentences of each length from 4 to `longest`, by statistic.

    Args:
        constant: ids of the sentences of the simulated system, which equals the given one.
    """
    lengths = np.repeat(np.arange(4, longest + 1), 40)
    of = kernel(lengths)
    hits = of.weights @ (lengths * share_at(lengths))
    curve = Curve(of, [(hits / (of.weights @ lengths))[None, None]], np.arange(3))
    curves = {("score", "a"): curve}
    if constant is not None:
        curves["constant", "a"] = replace(curve, ids=np.array(constant))
    rows = retention_rows({"bleu": curves}, {"bleu": REGISTERED["bleu"]}, LengthScale())
    return {row["statistic"]: row for row in rows}


@pytest.mark.parametrize(("longest", "long"), [(36, 33), (90, 50)])
def test_retention_ends_at_the_long_length_or_at_the_end_of_the_curve(longest, long):
    """The curve has a value every 11 %, such as at 10, 30.2, 33.4 and 37.0 words."""
    rows = rows_of(longest)
    kept = rows["retention"]
    assert (kept["from"], kept["to"]) == (10, long)
    assert kept["value"] == pytest.approx(share_at(long) / share_at(10), abs=1e-3)
    assert rows[f"at {long} words"]["value"] == pytest.approx(share_at(long), abs=1e-3)
    assert rows["change"]["value"] == pytest.approx(share_at(long) - share_at(10), abs=1e-3)


def test_excess_retention_is_that_of_the_same_sentences():
    rows = rows_of(60, constant=[0, 1, 2])
    assert rows["excess retention"]["value"] == 0
    assert rows["retention at a constant error rate"]["value"] == rows["retention"]["value"]
    assert "excess retention" not in rows_of(60, constant=[0, 1, 3])
