"""`nmt.translate` translates standard input to standard output."""

from __future__ import annotations

import json
import os
import select

import pytest

from tests.helpers.produced import BEST, files, last_line

NASTY = [
    b"the cat sees the dog .",
    b"",
    b"   \t ",
    b"\x01\x02\x7f",
    b"a\xe2\x80\xa8b c",
    b"very " * 300,
    b"a bird sings .\r",
    b"\xc2\x85 nel",
    b"<unk> </s> <s>",
    b"last without a line feed",
]
LINE = b"the cat sees the dog .\n"


class TestTranslate:
    def test_prints_one_line_per_input_line(self, program, rnnsearch):
        before = files(program.folder)
        ended = program("translate", "checkpoint=rnnsearch", stdin=b"\n".join(NASTY))
        assert ended.code == 0, ended.err
        found = ended.out.removesuffix("\n").split("\n")
        assert len(found) == len(NASTY)
        assert [bool(line) for line in found[:3]] == [True, False, False]
        assert all(found[4:])
        assert files(program.folder) == before

    @pytest.mark.parametrize(
        ("line", "words"), [(b"a " * 100_000, "100,000"), (b"!" * 6000, "6,000")]
    )
    def test_refuses_a_line_above_5000_words(self, program, rnnsearch, line, words):
        """The time of a search is quadratic in the number of words, so such a line would take too long."""
        ended = program("translate", BEST, stdin=LINE + line + b"\n" + LINE)
        assert ended.code == 2
        assert f"nmt: standard input:2: {words} words; a line may have 5,000" in ended.err
        assert ended.out.count("\n") == 1  # only the line before it is translated

    def test_learns_the_dictionary_of_unknown_words_from_the_training_text(
        self, program, rnnsearch
    ):
        ended = program("translate", BEST, "search.replace_unk=dictionary", stdin=LINE)
        assert ended.code == 0, ended.err
        assert "best.ckpt holds no dictionary of unknown words; learning it from" in ended.err
        assert ended.out.count("\n") == 1

    def test_refuses_text_that_is_not_utf8(self, program, rnnsearch):
        ended = program("translate", BEST, stdin=b"the cat .\nun \xe9t\xe9\n")
        assert ended.code == 2
        assert "standard input:2: not UTF-8" in last_line(ended.err)

    def test_nbest_with_scores_and_links(self, program, rnnsearch):
        given = b"the cat sees the dog .\n\na bird sings .\n"
        typed = (
            "search.nbest=3",
            "search.beam_size=3",
            "scores=true",
            "alignments=pharaoh",
        )
        ended = program("translate", BEST, *typed, "tokenised=true", stdin=given)
        assert ended.code == 0, ended.err
        rows = [line.split("\t") for line in ended.out.splitlines()]
        assert [row[0] for row in rows] == ["1"] * 3 + ["2"] + ["3"] * 3
        assert rows[3] == ["2", "", "", ""]
        for block, words in ((rows[:3], 6), (rows[4:], 4)):
            scores = [float(row[1]) for row in block]
            assert scores == sorted(scores, reverse=True)
            assert max(scores) < 0
            for _, _, text, links in block:
                pairs = [tuple(map(int, link.split("-"))) for link in links.split()]
                assert all(0 <= i < words and 0 <= j < len(text.split()) for i, j in pairs)

    def test_alignments_as_json(self, program, rnnsearch):
        given = b"the cat sees the dog .\n\nthe bird sings ."
        ended = program("translate", BEST, "alignments=json", stdin=given)
        assert ended.code == 0, ended.err
        rows = [json.loads(line) for line in ended.out.splitlines()]
        assert [row["line"] for row in rows] == [1, 2, 3]
        assert rows[0]["source"] == ["the", "cat", "sees", "the", "dog", "."]
        assert rows[1]["translations"] == []
        [found] = rows[2]["translations"]
        assert len(found["weights"]) == len(found["tokens"]) + 1

    def test_a_model_without_attention_has_no_links(self, program, rnnencdec):
        typed = ("checkpoint=rnnencdec/checkpoints/best.ckpt", "alignments=pharaoh")
        ended = program("translate", *typed, stdin=LINE)
        assert ended.code == 0, ended.err
        text, links = ended.out.rstrip("\n").split("\t")
        assert text
        assert links == ""

    def test_beam_size_can_be_overridden(self, program, rnnsearch):
        outs = {
            size: program("translate", BEST, f"search.beam_size={size}", "scores=true", stdin=LINE)
            for size in (1, 6)
        }
        scores = {size: float(ended.out.split("\t")[0]) for size, ended in outs.items()}
        assert scores[6] >= scores[1]

    def test_scores_include_the_length_penalty(self, program, rnnsearch):
        typed = ("search.nbest=3", "search.beam_size=3", "search.length_penalty=1")
        plain = program("translate", BEST, *typed, "scores=true", stdin=LINE + b"\n")
        objects = program("translate", BEST, *typed, "alignments=json", stdin=LINE)
        score = float(plain.out.split("\t")[1])
        assert plain.out.endswith("2\t\t\n")  # an empty line
        best = json.loads(objects.out)["translations"][0]
        symbols = len(best["word_log_probabilities"])
        assert score == pytest.approx(best["log_probability"] / symbols, abs=1e-4)

    def test_translates_each_line_while_the_input_is_open(self, program, rnnsearch, tmp_path):
        given, answers = (tmp_path / name for name in ("in", "out"))
        os.mkfifo(given)
        os.mkfifo(answers)
        process = program.start("nmt.translate", BEST, stdin=given, stdout=answers)
        with given.open("wb", 0) as stdin:
            with answers.open("rb", 0) as stdout:
                for line in (b"a bird sings .\n", b"\n", LINE):
                    stdin.write(line)
                    ready, _, _ = select.select([stdout], [], [], 200)
                    assert ready, "no answer while the input is open"
                    assert stdout.read(4096).count(b"\n") == 1
            stdin.write(LINE)  # stdout is closed, as by `| head`
        ended = process.wait()
        assert (ended.code, "Traceback" in ended.err) == (0, False)
