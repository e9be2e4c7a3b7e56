"""Links of files, scored against gold links."""

from __future__ import annotations

import pytest

from nmt.config import TextConfig
from nmt.evaluation.outside_links import read_links
from nmt.utils.errors import InputError

PAIRS = [
    {"line": 0, "source": ["a", "b"], "target": ["x"], "alignment": "0-0"},
    {"line": 2, "source": ["c"], "target": ["y", "z"], "alignment": "0-1"},
]


def test_lines_are_those_of_the_pairs(tmp_path):
    (tmp_path / "links").write_text("0-0 1p0\n0-0\n\n")
    text = TextConfig(links={"giza": "links"})
    found = read_links(text, str(tmp_path), "data.test.t", PAIRS, 3)
    assert found == [{"giza": frozenset({(0, 0), (1, 0)})}, {"giza": frozenset()}]


def test_no_more_is_read_than_of_a_limited_text(tmp_path):
    """As of its gold alignment: the line behind the third is not looked at."""
    (tmp_path / "links").write_text("0-0\n\n0-1\nwrong\n")
    text = TextConfig(links={"giza": f"{tmp_path}/links"}, pairs=3)
    found = read_links(text, None, "data.test.t", PAIRS, 3)
    assert found == [{"giza": frozenset({(0, 0)})}, {"giza": frozenset({(0, 1)})}]


def test_lines_of_pairs_left_out_are_not_read(tmp_path):
    (tmp_path / "links").write_text("wrong\n0-0\n\n0-2\nwrong\n")
    text = TextConfig(links={"giza": f"{tmp_path}/links"}, skip=1, pairs=3)
    with pytest.raises(InputError, match=r"links:4: '0-2' lies outside the sentence"):
        read_links(text, None, "data.test.t", PAIRS, 3)


def test_a_text_of_the_grammar_has_no_line_behind_its_pairs(tmp_path):
    (tmp_path / "links").write_text("0-0\n\n0-1\n\n")
    text = TextConfig(links={"giza": f"{tmp_path}/links"}, pairs=3, grammar="natural")
    with pytest.raises(InputError, match=r"links: 4 lines; the test set's text has 3$"):
        read_links(text, None, "data.test.t", PAIRS, 3)


@pytest.mark.parametrize(
    ("content", "pairs", "said"),
    [
        ("0-0\n0-0\n", PAIRS, "links: 2 lines; the test set's text has 3"),
        ("0-0\n\n0-1\n\n", PAIRS, "links: 4 lines; the test set's text has 3"),
        ("0-0\n\n", PAIRS[:1], "links: 2 lines; the test set's text has 3"),
        ("0-0\n\n0-2\n", PAIRS, ":3: '0-2' lies outside the sentence"),
        ("0-0\n\n\n", [{**PAIRS[0], "alignment": None}], "there are no gold links"),
    ],
)
def test_what_does_not_fit_is_refused(tmp_path, content, pairs, said):
    (tmp_path / "links").write_text(content)
    text = TextConfig(links={"giza": f"{tmp_path}/links"})
    with pytest.raises(InputError, match=r"^data\.test\.t\.links\.giza") as refused:
        read_links(text, None, "data.test.t", pairs, 3)
    assert said in str(refused.value)
