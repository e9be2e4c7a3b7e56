"""`nmt.compare`."""

from __future__ import annotations

import json
import shutil

import pytest

from tests.helpers.produced import files, lines

TEST = "translations/test.jsonl"


class TestCompare:
    def test_page_shows_runs_and_another_system(self, program, rnnsearch, rnnencdec):
        reference = [
            " ".join(record["reference"]) for record in lines(rnnsearch / "translations/test.jsonl")
        ]
        (program.folder / "moses.txt").write_text("\n".join(reference) + "\n")
        before = files(program.folder)
        ended = program(
            "compare",
            "runs=[rnnsearch,rnnencdec]",
            "output=compared",
            "+systems.moses.test=moses.txt",
            "resamples=20",
        )
        assert ended.code == 0, ended.err
        written = files(program.folder) - before
        assert written
        assert all(name.startswith("compared/") for name in written)
        assert "compared/comparison.html" in written
        page = (program.folder / "compared/comparison.html").read_text()
        for name in ("RNNsearch-50", "RNNencdec-30", "moses"):
            assert name in page
        tables = [name for name in written if name.startswith("compared/tables/")]
        text = "".join((program.folder / name).read_text() for name in tables)
        assert "100.00" in text  # the output of moses equals the references

    @pytest.mark.slow
    def test_figures_have_captions_in_a_file(self, program):
        for name in ("source", "reference", "system"):
            (program.folder / f"{name}.txt").write_text("a b c d\n" * 3)
        texts = (
            "source=source.txt",
            "reference=reference.txt",
            "languages=[en,fr]",
            "+systems.moses=system.txt",
        )
        ended = program("compare", *texts, "output=drawn", "figures=pdf", "resamples=20")
        assert ended.code == 0, ended.err
        drawn = program.folder / "drawn/figures"
        assert list(drawn.glob("*-bleu-by-length.pdf"))
        assert (
            "How BLEU depends on the length of the source sentence"
            in (drawn / "captions.txt").read_text()
        )

    @pytest.mark.slow
    def test_runs_on_different_text_are_not_compared(self, program, rnnsearch, rnnencdec):
        other = program.folder / "other"
        shutil.copytree(rnnsearch, other)
        records = [{**row, "source": row["source"][::-1]} for row in lines(other / TEST)]
        (other / TEST).write_text("".join(f"{json.dumps(row)}\n" for row in records))
        typed = ("runs=[rnnsearch,rnnencdec,other]", "output=apart", "resamples=20")
        ended = program("compare", *typed)
        assert ended.code == 0, ended.err
        page = (program.folder / "apart/comparison.html").read_text()
        assert "test-2: test of RNNsearch-50 [" in page
        differences = (program.folder / "apart/tables/differences.csv").read_text()
        rows = [row.split(",") for row in differences.splitlines()[1:]]
        assert len({tuple(row[2:4]) for row in rows if row[0] == "test"}) == 1
        assert not [row for row in rows if row[0] == "test-2"]

    @pytest.mark.parametrize(
        ("typed", "said"),
        [
            ((), "runs: missing; type runs=FOLDER, or give systems, source and reference"),
            (
                ("runs=[rnnsearch]", "+systems.moses.test=gone.txt"),
                "systems.moses.test: no such file: /",
            ),
            (
                ("runs=[rnnsearch]", "+systems.moses.test=short.txt"),
                "1 lines, but the test set has 12",
            ),
        ],
    )
    def test_refuses_missing_files_and_wrong_line_counts(self, program, rnnsearch, typed, said):
        (program.folder / "short.txt").write_text("une ligne\n")
        ended = program("compare", "output=refused-page", *typed)
        assert ended.code == 2, ended.err
        assert said in ended.err
        assert "Traceback" not in ended.err
        assert not (program.folder / "refused-page").exists()
