"""`nmt.translate`: standard input to standard output."""

from __future__ import annotations

import json
import os
import select

import pytest
import torch

import nmt
from tests.helpers.models import small_checkpoint
from tests.helpers.produced import BEST, files, last_line

NASTY = [
    b"the cat sees the dog .",
    b"",
    b"   \t ",
    b"\x01\x02\x7f",
    b"a\xe2\x80\xa8b c",
    b"bad \xff\xfe bytes",
    b"very " * 300,
    b"a bird sings .\r",
    b"\xc2\x85 nel",
    b"<unk> </s> <s>",
    b"last without a line feed",
]


class TestTranslate:
    def test_one_line_out_for_each_line_in(self, program, rnnsearch):
        before = files(program.folder)
        ended = program("translate", BEST, stdin=b"\n".join(NASTY))
        assert ended.code == 0, ended.err
        assert ended.out.endswith("\n")
        found = ended.out.removesuffix("\n").split("\n")
        assert len(found) == len(NASTY)
        assert [bool(line) for line in found[:3]] == [True, False, False]
        assert all(found[4:])
        assert not any(set(line) & set("\r\x85\u2028\0") for line in found)
        assert files(program.folder) == before

    def test_the_number_of_translations_is_its_own_key(self, program, rnnsearch):
        ended = program("translate", BEST, "search.nbest=2", stdin=b"the cat .\n")
        assert (ended.code, ended.out) == (2, "")
        assert "search.nbest: type nbest= instead" in ended.err

    def test_more_translations_than_the_beam_that_is_typed_are_refused(self, program, rnnsearch):
        ended = program("translate", BEST, "nbest=3", "search.beam_size=2", stdin=b"the cat .\n")
        assert (ended.code, ended.out) == (2, "")
        assert ended.err == "nmt: nbest=3: must be at most search.beam_size=2\n"

    def test_a_run_folder_is_its_best_checkpoint(self, program, rnnsearch):
        line = b"the cat sees the dog .\n"
        ended = program("translate", "checkpoint=rnnsearch", stdin=line)
        assert ended.code == 0, ended.err
        assert ended.out == program("translate", BEST, stdin=line).out
        ended = program("translate", "checkpoint=rnnsearch/checkpoints")
        assert ended.code == 2
        assert "a folder without checkpoints/best.ckpt; name a run folder or a file" in ended.err

    def test_nothing_in_nothing_out(self, program, rnnsearch):
        ended = program("translate", BEST)
        assert (ended.code, ended.out) == (0, "")

    @pytest.mark.parametrize(
        ("hook", "said"),
        [
            (
                "os.dup2(os.open(os.devnull, os.O_WRONLY), 0)",
                "cannot be read (Bad file descriptor)",
            ),
            ("os.dup2(os.open('/', os.O_RDONLY), 0)", "cannot be read (Is a directory)"),
            ("import sys; sys.stdin = None", "closed; give it text"),
        ],
    )
    def test_an_input_that_cannot_be_read(self, program, rnnsearch, hook, said):
        ended = program("translate", BEST, hook=hook, timeout=60)
        assert (ended.code, ended.out) == (2, "")
        assert last_line(ended.err).startswith(f"nmt: standard input: {said}")
        assert "Traceback" not in ended.err

    def test_the_output_is_utf_8_whatever_the_terminal_says(self, program, rnnsearch):
        """And a closed standard error, where bars would be drawn, is no hindrance."""
        hook = "import sys; sys.stdout.reconfigure(encoding='ascii'); sys.stderr = None"
        ended = program("translate", BEST, "alignments=json", hook=hook, stdin="漢字 é\n".encode())
        assert ended.code == 0
        assert json.loads(ended.out)["source"][:3] == ["漢", "字", "é"]

    def test_several_translations_with_scores_and_links(self, program, rnnsearch):
        given = b"the cat sees the dog .\n\na bird sings .\n"
        typed = ("nbest=3", "scores=true", "alignments=pharaoh", "detokenise=false")
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

    def test_objects_heatmaps_and_a_page(self, program, rnnsearch, tmp_path):
        given = b"the cat sees the dog .\n\nthe bird sings ."
        typed = (f"heatmap={tmp_path}/maps", f"page={tmp_path}/page.html", "alignments=json")
        ended = program("translate", BEST, *typed, stdin=given)
        assert ended.code == 0, ended.err
        rows = [json.loads(line) for line in ended.out.splitlines()]
        assert [row["line"] for row in rows] == [1, 2, 3]
        assert rows[0]["source"] == ["the", "cat", "sees", "the", "dog", "."]
        assert rows[1]["translations"] == []
        [found] = rows[2]["translations"]
        assert len(found["weights"]) == len(found["tokens"]) + 1
        assert [len(each) for each in found["weights"]] == [5] * len(found["weights"])
        assert {path.name for path in (tmp_path / "maps").iterdir()} == {"line-1.png", "line-3.png"}
        assert (tmp_path / "page.html").read_text().startswith("<!doctype html>")

    def test_a_model_without_attention_writes_empty_links(self, program, rnnencdec):
        typed = ("checkpoint=rnnencdec/checkpoints/best.ckpt", "alignments=pharaoh")
        ended = program("translate", *typed, stdin=b"a bird sings .\n")
        assert ended.code == 0, ended.err
        text, links = ended.out.rstrip("\n").split("\t")
        assert text
        assert links == ""

    def test_what_cannot_be_had_is_refused(self, program, rnnencdec, tmp_path):
        typed = ("checkpoint=rnnencdec/checkpoints/best.ckpt",)
        ended = program("translate", *typed, f"heatmap={tmp_path}/maps", stdin=b"a bird .\n")
        assert ended.code == 2
        assert (
            last_line(ended.err) == "nmt: heatmap: the model has no attention to draw; leave it out"
        )
        if not torch.cuda.is_available():
            ended = program("translate", *typed, "trainer=gpu", stdin=b"a bird .\n")
            assert ended.code == 2
            assert "trainer.accelerator=gpu: no GPU found" in ended.err

    def test_greedy_and_beam_are_what_was_typed(self, program, rnnsearch):
        given = b"the cat sees the dog .\n"
        outs = {
            size: program("translate", BEST, f"search.beam_size={size}", "scores=true", stdin=given)
            for size in (1, 6)
        }
        scores = {size: float(ended.out.split("\t")[0]) for size, ended in outs.items()}
        assert scores[6] >= scores[1]
        # a group that is typed replaces all of its keys, also those the run had set
        greedy = program("translate", BEST, "search=greedy", "scores=true", stdin=given)
        typed = ("search.beam_size=1", "search.max_ratio=3", "scores=true")
        assert greedy.out == program("translate", BEST, *typed, stdin=given).out

    def test_a_line_is_answered_before_the_end_of_the_input(self, program, rnnsearch):
        process = program.start("translate", BEST, pipes=True)
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            for line in (b"a bird sings .\n", b"\n", b"the cat sees the dog .\n"):
                process.stdin.write(line)
                process.stdin.flush()
                ready, _, _ = select.select([process.stdout], [], [], 200)
                assert ready, "no answer while the input is open"
                answer = os.read(process.stdout.fileno(), 4096)
                assert answer.count(b"\n") == 1
            process.stdin.close()
            assert process.wait().code == 0
        finally:
            process.end()

    def test_a_person_is_asked_line_by_line(self, program, tmp_path):
        """Standard input is a terminal, at which two lines and Ctrl-D were typed."""
        file = small_checkpoint(tmp_path / "x.ckpt")
        terminal = (
            "import os, tty; keys, screen = os.openpty()\n"
            "os.write(keys, b'a bird sees the cat\\n\\nthe cat\\n\\x04'); os.dup2(screen, 0)"
        )
        ended = program("translate", f"checkpoint={file}", hook=terminal, timeout=60)
        assert ended.code == 0, ended.err
        expected = nmt.load(file).translate(["a bird sees the cat", "", "the cat"])
        assert ended.out.splitlines() == [each.text for each in expected]
        assert expected[0].text
        assert "translating each line you type; Ctrl-D ends" in ended.err
        assert 2 <= ended.err.count("en> ") <= 4  # lines that were typed ahead are taken together

    def test_other_weights_of_attention(self, program, tmp_path):
        file = small_checkpoint(tmp_path / "1.ckpt")
        typed = ("evaluation.attention=argmax", "alignments=json")
        ended = program("translate", f"checkpoint={file}", *typed, stdin=b"the red cat .\n")
        assert ended.code == 0, ended.err
        [found] = json.loads(ended.out)["translations"]
        for row in found["weights"]:
            assert sum(weight > 0 for weight in row) == 1
            assert sum(row) == pytest.approx(1)

    def test_an_ensemble_of_several_checkpoints(self, program, tmp_path):
        files = [small_checkpoint(tmp_path / f"{seed}.ckpt", seed) for seed in (1, 2)]
        named = f"checkpoint=[{','.join(map(str, files))}]"
        ended = program("translate", named, "scores=true", stdin=b"the red cat .\n")
        assert ended.code == 0, ended.err
        score, text = ended.out.rstrip("\n").split("\t")
        [expected] = nmt.load(files).translate(["the red cat ."])
        assert text == expected.text
        assert float(score) == pytest.approx(expected.score, abs=1e-4)
        other = small_checkpoint(tmp_path / "other.ckpt", french=("le",))
        ended = program("translate", f"checkpoint=[{files[0]},{other}]", stdin=b"the cat\n")
        assert (ended.code, ended.out) == (2, "")
        assert f"checkpoint={other}: its target vocabulary is not" in last_line(ended.err)
