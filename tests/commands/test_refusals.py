"""What commands refuse: in a line or two that name the key, with exit code 2, before any work."""

from __future__ import annotations

import pytest
import yaml

from tests.helpers.produced import BEST, QUICK, files, last_line


class TestRefusals:
    def test_a_working_folder_that_was_removed(self, program):
        hook = "import os; os.mkdir('gone'); os.chdir('gone'); os.rmdir('../gone')"
        ended = program("translate", "checkpoint=x", hook=hook)
        assert ended.code == 2
        said = "the working folder cannot be used (No such file or directory); change to another"
        assert ended.err == f"nmt: {said}\n"

    @pytest.mark.parametrize(
        ("command", "typed"),
        [
            ("train", ("--help",)),
            ("prepare", ()),
            ("score", ("checkpoint=x", "source=y", "target=z")),
            ("translate", ("checkpoint=x",)),
        ],
    )
    def test_a_closed_standard_output(self, program, command, typed):
        ended = program(command, *typed, hook="import sys; sys.stdout = None")
        assert ended.code == 2
        assert ended.err == "nmt: standard output: closed; give it a file, such as `> file.txt`\n"

    @pytest.mark.parametrize(
        ("typed", "said"),
        [
            ("--resolve", "The --resolve flag can only be used in conjunction with --cfg"),
            ("--run -m", "Only one of --run, --multirun, "),
        ],
    )
    def test_flags_of_hydras_that_cannot_be_followed(self, program, typed, said):
        ended = program("train", *typed.split())
        assert (ended.code, ended.out) == (2, "")
        assert ended.err.startswith(f"nmt: {said}")
        assert ended.err.count("\n") == 1

    @pytest.mark.parametrize(
        ("folder", "instead"), [("run/checkpoints", "run"), ("run", "RUN_FOLDER")]
    )
    def test_a_checkpoint_in_place_of_the_folder_of_a_resumed_run(
        self, program, tmp_path, folder, instead
    ):
        file = tmp_path / folder / "last.ckpt"
        file.parent.mkdir(parents=True)
        file.touch()
        ended = program("train", f"resume={file}")
        instead = instead if instead.isupper() else tmp_path / instead
        assert ended.code == 2
        assert ended.err == f"nmt: resume={file}: a file; name the run folder, resume={instead}\n"

    def test_wmt14_without_network_is_refused_within_seconds(self, program):
        ended = program("prepare", "data=wmt14", "data.cache=elsewhere")
        assert ended.cpu_seconds < 20
        assert ended.code == 2
        assert "data.train.hub=wmt/wmt14: no connection to" in ended.err
        assert last_line(ended.err).startswith("nmt: data.train.hub=wmt/wmt14")

    @pytest.mark.parametrize(
        ("source", "target", "said"),
        [
            (None, "a\n", "data.train.source={source}: no such file"),
            ("a\nb\n", "a\n", "{source} has 2, {target} has 1 lines"),
            ("a\n\xff\n", "a\nb\n", "{source}:2: not UTF-8 (byte 0xff at column 1)"),
            ("", "", "data.train"),
        ],
        ids=["missing", "unequal", "not UTF-8", "empty"],
    )
    def test_text_that_is_wrong_is_named_by_file_and_line(
        self, program, tmp_path, source, target, said
    ):
        paths = {"source": tmp_path / "s.en", "target": tmp_path / "t.fr"}
        for side, text in (("source", source), ("target", target)):
            if text is not None:
                paths[side].write_bytes(text.encode("latin-1"))
        typed = [
            f"data.{s}.{side}={path}" for s in ("train", "valid") for side, path in paths.items()
        ]
        ended = program("prepare", "data=text", *typed, f"data.cache={tmp_path}/cache", *QUICK[:1])
        assert ended.code == 2
        assert last_line(ended.err).startswith("nmt: ")
        assert said.format(**paths) in last_line(ended.err)
        assert "Traceback" not in ended.err

    @pytest.mark.parametrize(
        ("command", "typed", "said"),
        [
            ("train", "evaluation.scores=[chrf,blue]", "evaluation.scores: no score 'blue'; there"),
            (
                "train",
                "evaluation.scores=[nowhere.Mine]",
                "evaluation.scores: nowhere.Mine: No mod",
            ),
            (
                "compare",
                "scores=[blue]",
                "scores: no score 'blue'; there are bleu, sacrebleu, chrf",
            ),
        ],
    )
    def test_unknown_scores(self, program, command, typed, said):
        """Before text is prepared or a run is read."""
        where = ["runs=[nowhere]"] if command == "compare" else ["hydra.run.dir=unknown_score"]
        before = files(program.folder)
        ended = program(command, typed, *where)
        assert ended.code == 2
        assert last_line(ended.err).startswith(f"nmt: {said}")
        assert not [
            path for path in set(files(program.folder)) - set(before) if "data/" in str(path)
        ]

    def test_files_that_were_not_named(self, program):
        ended = program("prepare", "data=text")
        assert ended.code == 2
        assert "data.train.source: missing" in ended.err

    def test_a_refused_run_leaves_no_folder_but_what_was_there(self, program):
        typed = ("data=text", "data.train.source=no.en", "data.train.target=no.fr")
        kept = program.folder / "kept"
        kept.mkdir()
        (kept / "notes.txt").write_text("mine")
        for folder in ("refused", "kept"):
            ended = program("train", *typed, f"hydra.run.dir={folder}")
            assert ended.code == 2, ended.err
        assert not (program.folder / "refused").exists()
        assert (kept / "notes.txt").read_text() == "mine"

    def test_gold_links_of_the_development_text_are_read_before_training(self, program, tmp_path):
        for name, content in (("s", "a b\nc d\n"), ("t", "x y\nz w\n"), ("gold", "0-0\n0-7\n")):
            (tmp_path / name).write_text(content)
        texts = [
            f"data.{part}.{side}={tmp_path / side[0]}"
            for part in ("train", "valid")
            for side in ("source", "target")
        ]
        gold = [f"data.valid.alignment={tmp_path}/gold", "data.valid.tokenised=true"]
        ended = program("train", "data=text", *texts, *gold, "hydra.run.dir=gold", *QUICK)
        assert ended.code == 2, ended.err
        assert f"data.valid.alignment={tmp_path}/gold:2: '0-7' lies outside" in ended.err

    @pytest.mark.parametrize(
        ("command", "typed", "said"),
        [
            ("translate", (), "checkpoint: must be given (file of the trained model"),
            ("evaluate", ("checkpoint=nowhere.ckpt",), "checkpoint=nowhere.ckpt: no such file"),
            ("translate", ("checkpoint=nowhere.ckpt",), "checkpoint=nowhere.ckpt: no such file"),
            ("evaluate", (BEST, "model=rnnencdec"), "model: belongs to the training run"),
            ("translate", (BEST, "model.dropout=0.1"), "model.dropout: belongs to the training"),
            ("evaluate", (BEST, "regime=paper"), "regime=paper: the checkpoint is of regime=tiny"),
            ("translate", (BEST, "seed=4"), "seed: belongs to the training run"),
        ],
    )
    def test_what_a_trained_model_cannot_change(self, program, rnnsearch, command, typed, said):
        ended = program(command, *typed, *(["hydra.run.dir=refused"] * (command == "evaluate")))
        assert ended.code == 2
        assert said in ended.err
        assert last_line(ended.err).startswith("nmt: ")
        assert "Traceback" not in ended.err

    @pytest.mark.parametrize(
        ("typed", "said"),
        [
            ("hydra.launcher.n_jobs=0", "hydra.launcher.n_jobs=0: must be at least 1"),
            ("hydra.launcher.grace_seconds=-1", "hydra.launcher.grace_seconds=-1.0: must be at"),
            ("seed=range(1,1)", "seed=range(1,1): no value to sweep over\n"),
            ("+experiment=glob(x*)", "+experiment=glob(x*): no value to sweep over\n"),
            ("hydra/launcher=basic size=glob(x*)", "size=glob(x*): no value to sweep over\n"),
        ],
    )
    def test_a_sweep_whose_launcher_is_set_wrong_or_that_has_no_jobs(self, program, typed, said):
        ended = program("train", "-m", "seed=1,2", *typed.split(), "hydra.sweep.dir=no-jobs")
        assert ended.code == 2, ended.err
        assert ended.err.startswith(f"nmt: {said}")
        assert len(ended.err.splitlines()) == 1
        assert not files(program.folder / "no-jobs")

    def test_a_sweep_without_jobs_that_a_file_asks_for(self, program, tmp_path):
        (tmp_path / "experiment").mkdir()
        asked = {"hydra": {"sweeper": {"params": {"seed": "range(1,1)"}}}}
        text = f"# @package _global_\n{yaml.safe_dump(asked)}"
        (tmp_path / "experiment/none.yaml").write_text(text)
        ended = program("train", "-m", "--config-dir", str(tmp_path), "+experiment=none")
        assert (ended.code, ended.err) == (2, "nmt: seed=range(1,1): no value to sweep over\n")

    @pytest.mark.slow
    def test_a_sweep_over_weights_shares_the_number_that_is_kept(self, program):
        """The job that keeps all of them gets as far as its checkpoint."""
        typed = ("checkpoint=nowhere.ckpt", "evaluation.attention=as_trained,top_k")
        ended = program("evaluate", "-m", *typed, "evaluation.top_k=2", "hydra.sweep.dir=swept")
        assert ended.code != 0
        for job in ("0", "1"):
            said = (program.folder / "swept" / job / "console.log").read_text()
            assert last_line(said) == "nmt: checkpoint=nowhere.ckpt: no such file"

    def test_a_file_that_is_no_checkpoint(self, program, tmp_path):
        (tmp_path / "x.ckpt").write_text("not a checkpoint")
        ended = program("translate", f"checkpoint={tmp_path}/x.ckpt")
        assert ended.code == 2
        assert f"checkpoint={tmp_path}/x.ckpt: not a checkpoint of nmt; a run folder" in ended.err
        assert "weights_only" not in ended.err

    @pytest.mark.parametrize(
        ("command", "word"),
        [
            *((command, "-m") for command in ("prepare", "translate", "score", "compare")),
            ("translate", "--multi"),
            ("score", "hydra.mode=MULTIRUN"),
        ],
    )
    def test_what_has_no_run_folder_is_not_swept(self, program, command, word):
        ended = program(command, word, "data.max_length=10,20")
        assert ended.code == 2
        assert ended.err == f"nmt: -m: nmt.{command} cannot be swept; run it once for each value\n"
        assert not (program.folder / "multirun").exists()

    @pytest.mark.parametrize(
        ("command", "typed"),
        [("train", ("regime=tiny",)), ("evaluate", (BEST,)), ("baseline", ())],
    )
    def test_another_runs_folder_stays_as_it_is(self, program, rnnsearch, command, typed):
        before = {name: (rnnsearch / name).stat().st_size for name in files(rnnsearch)}
        ended = program(command, *typed, "hydra.run.dir=rnnsearch", *QUICK)
        assert ended.code == 2
        assert "holds" in last_line(ended.err)
        assert {name: (rnnsearch / name).stat().st_size for name in files(rnnsearch)} == before

    def test_a_refusal_of_any_kind_leaves_no_folder(self, program):
        before = files(program.folder)
        ended = program("evaluate", "hydra.run.dir=nothing")
        assert ended.code == 2
        assert files(program.folder) == before
        assert not (program.folder / "nothing").exists()

    def test_a_checkpoint_that_was_cut_short(self, program, rnnsearch, tmp_path):
        for ending in ("", ".sha256"):
            content = (rnnsearch / f"checkpoints/best.ckpt{ending}").read_bytes()
            (tmp_path / f"best.ckpt{ending}").write_bytes(content[: -1000 if not ending else None])
        ended = program("translate", f"checkpoint={tmp_path}/best.ckpt")
        assert ended.code == 2
        assert "damaged: its SHA-256 is not the one in best.ckpt.sha256" in ended.err
