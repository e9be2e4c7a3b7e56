"""Writes the tables and figures of docs/results.md and docs/paper.md from docs/results/*.json.

python -m benchmarks.records
"""

from __future__ import annotations

import argparse

from benchmarks.records.figures import draw_figures
from benchmarks.records.tables import PAGES, read_records, with_tables


def main() -> None:
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    records = read_records()
    for page in PAGES:
        page.write_text(with_tables(page.read_text(encoding="utf-8"), records), encoding="utf-8")
        for file in draw_figures(page, records):
            print(file)


if __name__ == "__main__":
    main()
