"""Links of files, scored against gold links."""

from __future__ import annotations

import pytest

from nmt.config import TextConfig
from nmt.evaluation.alignment import Gold
from nmt.evaluation.outside_links import alignment_scores, read_links
from nmt.utils.errors import InputError

PAIRS = [
    {"line": 0, "source": ["a", "b"], "target": ["x"], "alignment": "0-0"},
    {"line": 2, "source": ["c"], "target": ["y", "z"], "alignment": "0-1"},
]


def test_lines_are_those_of_the_pairs(tmp_path):
    (tmp_path / "links").write_text("0-0 1p0\n0-0\n\n")
    text = TextConfig(links={"giza": "links"})
    found = read_links(text, str(tmp_path), "data.test.t", PAIRS)
    assert found == [{"giza": frozenset({(0, 0), (1, 0)})}, {"giza": frozenset()}]


@pytest.mark.parametrize(
    ("content", "pairs", "said"),
    [
        ("0-0\n0-0\n", PAIRS, "2 lines; the test set has a line 3"),
        ("0-0\n\n0-2\n", PAIRS, ":3: '0-2' lies outside the sentence"),
        ("0-0\n", [{**PAIRS[0], "alignment": None}], "there are no gold links"),
    ],
)
def test_what_does_not_fit_is_refused(tmp_path, content, pairs, said):
    (tmp_path / "links").write_text(content)
    text = TextConfig(links={"giza": f"{tmp_path}/links"})
    with pytest.raises(InputError, match=r"^data\.test\.t\.links\.giza") as refused:
        read_links(text, None, "data.test.t", pairs)
    assert said in str(refused.value)


def test_scores_of_links():
    gold = Gold(frozenset({(0, 0)}), frozenset({(0, 0), (1, 0)}))
    found = alignment_scores([({(0, 0), (1, 1)}, gold, 2), ({(1, 0)}, gold, 1)], 50, 0.9)
    assert found["sentences"] == 2
    assert found["alignment_error_rate"]["score"] == pytest.approx(1 - (1 + 2) / (3 + 2))
    assert found["precision"]["score"] == pytest.approx(2 / 3)
    assert found["recall"]["score"] == pytest.approx(1 / 2)
    assert found["recall"]["low"] <= 1 / 2 <= found["recall"]["high"]
