"""`python -m benchmarks.omissions`: what is cut out, and the table."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import omissions
from benchmarks.omissions import Cut, cuts, masses, rates
from nmt.config.validation import load
from nmt.grammar import draw
from nmt.inference.trained import from_checkpoints, read_members
from tests.helpers.models import small_checkpoint


@pytest.mark.parametrize("span", [1, 3])
def test_lost_words_have_no_other_translation(span):
    planted = list(cuts(30, span))
    assert len(planted) > 25
    pairs = {tuple(pair.target): pair for pair in (draw(1, "test", n) for n in range(30))}
    assert any(len(cut.lost) > 1 for cut in planted) == (span > 1)
    for cut in planted:
        pair = pairs[tuple(cut.whole)]
        end = min(cut.start + span, len(cut.whole))
        assert cut.target == cut.whole[: cut.start] + cut.whole[end:]
        links = {*pair.sure, *pair.possible}
        assert cut.linked == {j for j, _ in links}
        assert cut.lost
        for j, i in links:
            assert cut.start <= i < end or j not in cut.lost
        outside = {j for j, i in links if not cut.start <= i < end}
        assert cut.lost | outside == cut.linked


def test_shares_of_what_is_unread():
    planted = [
        Cut(["a"] * 3, ["x"] * 3, ["x"] * 2, 0, linked={0, 1, 2}, lost={1}),
        Cut(["a"] * 2, ["x"] * 2, ["x"] * 1, 0, linked={1}, lost={1}),
    ]
    whole = [np.array([0.9, 0.9, 0.1]), np.array([0.1, 0.9])]
    left = [np.array([0.1, 0.1, 0.9]), np.array([0.1, 0.1])]
    assert rates(whole, left, planted, 0.2) == pytest.approx((1 / 4, 2 / 2, 2 / 3))
    left[0][1] = 0.9
    assert rates(whole, left, planted, 0.2) == pytest.approx((1 / 4, 1 / 2, 1 / 2))


def test_the_table(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["omissions", str(small_checkpoint(tmp_path / "a.ckpt"))])
    # alike whatever is looked at: all of a mass of 1, none of a coverage of 0
    monkeypatch.setattr(
        omissions,
        "masses",
        lambda _, pairs: (
            [np.ones(len(s)) for s, _ in pairs],
            [np.zeros(len(s)) for s, _ in pairs],
        ),
    )
    omissions.main()
    head, _, *rows = capsys.readouterr().out.splitlines()
    assert head.startswith("| words cut out |")
    cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]
    assert [row[0] for row in cells] == ["1", "2", "4", "8"]
    assert all(row[1:6] == ["0", "0", "0", "100", "100"] for row in cells)
    assert [int(row[6]) for row in cells] == sorted(int(row[6]) for row in cells)
    assert 0 < int(cells[0][6]) < int(cells[-1][6]) < 100


def test_words_that_were_not_expected_count_for_less(tmp_path):
    """And an empty translation reads nothing."""
    members = read_members(small_checkpoint(tmp_path / "a.ckpt"))
    config = load(members[0].config.copy(), training=False)
    trained = from_checkpoints(members, config)
    source = ["the", "cat", "sees", "a", "bird"]
    mass, plain = masses(trained, [(source, ["le", "chat"]), (source, [])])
    assert (mass[0] <= plain[0] + 1e-9).all()
    assert mass[0].sum() < plain[0].sum() <= 2
    assert not mass[1].any()


def test_a_model_without_attention(tmp_path, monkeypatch):
    fixed = small_checkpoint(tmp_path / "a.ckpt", attends=False)
    monkeypatch.setattr("sys.argv", ["omissions", str(fixed)])
    with pytest.raises(SystemExit, match=r"a\.ckpt: RNNencdec has no attention$"):
        omissions.main()
