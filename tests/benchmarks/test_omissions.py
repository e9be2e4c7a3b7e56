"""`python -m benchmarks.omissions`: what is cut out, and the table."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import omissions
from benchmarks.omissions import Cut, cuts, rates
from nmt.data.grammar import draw
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


def test_shares_of_what_is_unread(monkeypatch):
    """Two pairs; the first rates by the attention mass, the second by plain coverage."""
    low, high = 0.1, 0.9
    planted = [
        Cut(["a"] * 3, ["x"] * 3, ["x"] * 2, 0, linked={0, 1, 2}, lost={1}),
        Cut(["a"] * 2, ["x"] * 2, ["x"] * 1, 0, linked={1}, lost={1}),
    ]
    whole = [([high, high, low], [high, high, high]), ([low, high], [low, high])]
    left = [([low, low, high], [high, high, low]), ([low, low], [low, low])]

    def made(trained, pairs):
        chosen = whole if pairs[0][1] == planted[0].whole else left
        return [(np.array(a), np.array(b)) for a, b in chosen]

    monkeypatch.setattr(omissions, "masses", made)
    mass, coverage = rates(None, planted, 0.2)
    assert mass == pytest.approx([1 / 4, 2 / 2, 2 / 3])
    assert coverage == pytest.approx([0, 1 / 2, 1 / 2])


def test_the_table(tmp_path, monkeypatch, capsys):
    checkpoint = small_checkpoint(tmp_path / "a.ckpt")
    monkeypatch.setattr("sys.argv", ["omissions", str(checkpoint), "--pairs", "4"])
    omissions.main()
    head, _, *rows = capsys.readouterr().out.splitlines()
    assert head.startswith("| words cut out |")
    assert [row.split("|")[1].strip() for row in rows] == ["1", "2", "4", "8"]
    for row in rows:
        assert all(0 <= int(cell) <= 100 for cell in row.split("|")[2:-1])
