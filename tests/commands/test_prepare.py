"""`nmt.prepare` turns text into encoded pairs."""

from __future__ import annotations

from tests.helpers.produced import files


class TestPrepare:
    def test_prints_counts_and_makes_no_run_folder(self, program, tmp_path):
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
        assert rows["train"][:2] == ["2", "1"]  # two pairs are kept, one is too long
        assert rows["valid"][:2] == ["3", "0"]  # only training text has a limit on length
        assert files(program.folder) == before

    def test_refuses_resume(self, program):
        ended = program("prepare", "resume=outputs/mine")
        assert ended.code == 2
        assert ended.err.startswith("nmt: resume=outputs/mine: nmt.prepare does not read a run")
        assert ended.out == ""
