"""`nmt.prepare`, and what every command has: its configuration and its help."""

from __future__ import annotations

import re

import pytest

from tests.helpers.produced import files


class TestPrepare:
    def test_counts_on_standard_output_and_no_folder_of_its_own(self, program, tmp_path):
        (tmp_path / "s").write_text("The cat sees the dog.\n\nA bird sings.\n" + "a " * 60 + "\n")
        (tmp_path / "t").write_text("Le chat voit le chien.\n\nUn oiseau chante.\nb\n")
        typed = [
            f"data.{split}.{side}={tmp_path / side[0]}"
            for split in ("train", "valid")
            for side in ("source", "target")
        ]
        before = files(program.folder)
        ended = program("prepare", "data=text", *typed, f"data.cache={tmp_path}/cache")
        assert ended.code == 0, ended.err
        rows = {row[0]: row[1:] for row in map(str.split, ended.out.splitlines())}
        assert rows["train"][:3] == ["2", "1", "1"]  # pairs kept, empty, too long
        assert rows["valid"][:3] == ["3", "1", "0"]  # the cap is for training alone
        assert files(program.folder) == before


class TestEveryCommand:
    @pytest.mark.parametrize("command", ["train", "evaluate", "translate", "compare", "prepare"])
    def test_shows_its_configuration(self, program, command):
        ended = program(command, "--cfg", "job")
        assert ended.code == 0
        assert re.search(r"^(seed|runs): ", ended.out, re.MULTILINE)
        assert not (program.folder / "outputs").exists()

    @pytest.mark.parametrize(
        ("command", "does", "shown"),
        [
            ("train", "Trains a model", "experiment: rnnencdec30, rnnencdec50, rnnsearch30"),
            ("evaluate", "Runs the whole test protocol", "stress: lengths"),
            ("translate", "Translates standard input", "search: beam, greedy"),
            ("compare", "Compares runs", "resamples: 1000"),
            ("prepare", "Tokenises, filters and encodes text", "tokenizer: bpe, words"),
            ("baseline", "Trains a phrase-based system", "data: grammar, multi30k, text"),
        ],
    )
    def test_helps(self, program, command, does, shown):
        """What it does, three examples or more, what can be chosen, and where the keys are."""
        asked = program(command, "--help")
        assert asked.code == 0, asked.err
        assert asked.out.startswith(f"python -m nmt.{command}: {does}")
        examples = re.findall(rf"^ *python -m nmt\.{command}\b", asked.out, re.MULTILINE)
        assert len(examples) > 3  # the first line is the title
        assert shown in asked.out
        assert "docs/configuration.md" in asked.out
