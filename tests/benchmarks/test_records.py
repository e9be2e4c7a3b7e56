"""The tables of the documentation, from the figures on record."""

import copy

import pytest

from benchmarks.records.tables import PAGES, read_records, table_of, with_tables


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_tables_of_the_documentation_are_those_of_its_records(page):
    assert with_tables(page.read_text(), read_records()) == page.read_text()


def test_a_changed_figure_changes_the_page():
    page, records = PAGES[0].read_text(), copy.deepcopy(read_records())
    for row in records["multi30k"]["rows"]:
        for run in row["runs"]:
            run["test"]["test2016"]["scores"]["bleu"]["score"] += 1
    assert with_tables(page, records) != page


@pytest.mark.parametrize("asked", ["multi30k scores newstest en-fr", "claims b", "a"])
def test_an_unknown_table_is_refused(asked):
    with pytest.raises(ValueError, match=r"no such (table|rows)"):
        table_of(asked, read_records())
