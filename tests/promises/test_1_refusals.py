"""Promise 1: a wrong command line ends with exit code 2, and one or two lines.

The message names the key, or the file and line number. Nothing is trained; there is no traceback.
"""

from __future__ import annotations

import pytest

TEXT = "data=text data.languages=[en,fr] data.cache=cache"
FILES = " ".join(
    f"data.{part}.{side}=a.{end}"
    for part in ("train", "valid")
    for side, end in (("source", "en"), ("target", "fr"))
)
PLATEAU = "torch.optim.lr_scheduler.ReduceLROnPlateau"


@pytest.mark.parametrize(
    ("typed", "named"),
    [
        ("train trainr.seed=1", "trainr.seed: no such key"),
        ("train data.batch_sise=1", "did you mean data.batch_size"),
        ("train data.batch_size=many", "data.batch_size takes: int, at least 1"),
        ("train data.batch_size=0", "data.batch_size=0: must be at least 1"),
        ("train experiment=rnnsearch40", "experiment=rnnsearch40: no such option; available: rnn"),
        ("translate", "checkpoint: must be given"),
        ("translate checkpoint=x.ckpt seed=4", "seed: no such key; it belongs to the training run"),
        ("evaluate checkpoint=x.ckpt model=rnnencdec", "model: no such key; it belongs to the"),
        ("train test=false", "test: no such key; a run is tested at its end"),
        ("train train=false", "train: no such key; to test without training, type nmt.evaluate"),
        ("train print_config=true", "print_config: no such key; add --cfg job"),
        ("train extras.print_config=true", "extras.print_config: no such key; add --cfg job"),
        ("train paths.output_dir=x", "paths.output_dir: no such key; type hydra.run.dir=FOLDER"),
        ("evaluate ckpt_path=x.ckpt", "ckpt_path: no such key; type checkpoint=FILE"),
        ("translate runs/search", "runs/search: type checkpoint=runs/search"),
        ("translate checkpoint=x beam=5", "beam: no such key; type search.beam_size=NUMBER"),
        ("train evaluation.edges=[20,10]", "evaluation.edges=[20, 10]: must be increasing"),
        ("compare runs=[x&y,z]", """quote special characters twice: 'runs=["x&y","z"]'"""),
        ("compare systems={a:x&y}", """quote special characters twice: 'systems={a:"x&y"}'"""),
        ("compare long=1000000001", "long=1000000001: must be at most 1000000000"),
        (
            "train +data.train.skip=99999999999999999999",
            "data.train.skip=99999999999999999999: must be below 2^63",
        ),
        ("train seeed=1", "did you mean seed?"),
        ("train +foo=1", "foo: no such key"),
        ("train quite.another=5", "quite.another: no such key"),
        ("train model=seq2seq", "available: rnnencdec, rnnsearch"),
        ("train callbacks=[ema,early]", "callbacks=early: no such option"),
        ("train seed", "seed"),
        ("train name=a=b", "'name=\"a=b\"'"),
        ("train data.languages=en", "data.languages takes: list[str]"),
        ("train data.languages=en-fr", "must be a list, [a,b]"),
        ("train seed=1,2", "put -m before the overrides"),
        ("train data.train=foo", "data.train"),
        ("train optimizer.lr=nan", "optimizer.lr=nan: must be a finite number"),
        ("train data.languages=[en]", "data.languages"),
        ("train model=rnnencdec scoring=dot", "RNNencdec has no attention"),
        ("train scoring=none", "scoring=none: RNNsearch needs"),
        ("train model=rnnencdec search.replace_unk=dictionary", "needs a model with attention and"),
        (
            "train tokenizer=bpe search.replace_unk=dictionary",
            "search.replace_unk=dictionary: needs",
        ),
        ("train +data.test.mine.sorce=f", "data.test.mine"),
        ("train name=${nope}", "name"),
        ("translate checkpoint=f search.nbest=0", "nbest=0: must be at least 1"),
        ("translate checkpoint=f alignments=moses", "must be one of pharaoh, json"),
        ("evaluate checkpoint=f set=[a]", "did you mean sets"),
        ("evaluate checkpoint=f +experiment=rnnencdec50", "experiment"),
        ("translate checkpoint=f data.test.test.pairs=3", "data.test.test.pairs: no such key"),
        ("compare runs=a", "runs takes: list[str]"),
    ],
)
def test_refuses_wrong_keys_and_types(check, typed, named):
    """Checks the configuration as the command does, without starting a process."""
    command, *words = typed.split()
    code, message = check(*words, command=command)
    assert code == 2
    assert named in message
    assert 1 <= message.count("\n") <= 2


@pytest.mark.parametrize(
    ("typed", "named"),
    [
        ("train trainr.seed=1", "trainr.seed: no such key"),
        ("train trainer.max_steps=0", "trainer.max_steps=0: must be at least 1"),
        ("train trainer.max_steps=-5", "trainer: `max_steps` must be"),
        ("train trainer.devices=0 trainer.accelerator=cpu", "trainer: `Trainer(devices=0)`"),
        ("train trainer.max_steps=abc", "trainer.max_steps=abc: must be int"),
        ("train +trainer.max_stepz=1", "of Trainer; did you mean trainer.max_steps?"),
        ("translate checkpoint=no.ckpt", "checkpoint=no.ckpt: no such file"),
        ("train resume=no/such/run", "nmt: resume=no/such/run: no such run folder"),
        (f"train {TEXT} {FILES}", "data.train.source: no such file: /"),
        (
            f"prepare {TEXT} {FILES}",
            "a relative name starts in the current folder, or in data.root",
        ),
        ("train evaluation.scores=[blue] regime=tiny", "evaluation.scores: no score 'blue'"),
        ("train evaluation.scores=[nowhere.Mine]", "evaluation.scores: nowhere.Mine"),
        ("train optimizer._target_=torch.optim.Adan", "optimizer._target_=torch.optim.Adan: "),
        (f"train optimizer.schedule._target_={PLATEAU}", "ReduceLROnPlateau needs a score; choose"),
        ("train trainer.accelerator=gpu regime=tiny", "trainer.accelerator=gpu: no GPU found"),
        ("translate checkpoint=x.ckpt", "checkpoint=x.ckpt: damaged, or not a checkpoint"),
        ("train -m hydra/launcher=dask seed=1,2", "more with uv sync --extra sweeps"),
        ("train model.scoring._target_=my.Scoring", "model.scoring._target_=my.Scoring: Module"),
        ("compare scores=[blue] runs=[nowhere]", "scores: no score 'blue'"),
        ("train --config-path {folder} --config-name stored", "in its .hydra/overrides.yaml"),
        (
            "prepare --config-dir {folder} data=mine",
            "data.languages=[False, en]: YAML reads no, off",
        ),
        ("compare runs=[nowhere] output=run/figures", "run is a run; choose another folder"),
        ("score checkpoint=x.ckpt source=a target=b", "source: no such file: /"),
    ],
)
def test_refuses_wrong_values_files_and_options(program, typed, named):
    (program.folder / "x.ckpt").write_text("not a checkpoint")
    (program.folder / "stored.yaml").write_text("seed: 1\n")
    (program.folder / "data").mkdir(exist_ok=True)
    (program.folder / "run").mkdir(exist_ok=True)
    (program.folder / "run/results.json").write_text("{}")
    (program.folder / "data/mine.yaml").write_text("title: mine\nlanguages: [no, en]\n")
    command, *words = typed.format(folder=program.folder).split()
    ended = program(command, *words)
    assert (ended.code, ended.out) == (2, "")
    assert named in ended.err
    assert 1 <= ended.err.count("\n") <= 2


@pytest.mark.parametrize(
    ("source", "target", "named"),
    [
        (b"a\nb\n", b"a\n", "a.en has 2, a.fr has 1 lines"),
        (b"a\nb\xff\n", b"a\nb\n", "a.en:2: not UTF-8"),
        (b"", b"", "data.train: empty corpus"),
    ],
)
def test_refuses_malformed_text_by_file_and_line(program, source, target, named):
    for name, content in (("a.en", source), ("a.fr", target)):
        (program.folder / name).write_bytes(content)
    ended = program("prepare", *TEXT.split(), *FILES.split())
    for name in ("a.en", "a.fr"):
        (program.folder / name).unlink()
    assert (ended.code, ended.out) == (2, "")
    assert named in ended.err.splitlines()[-1]
    assert "Traceback" not in ended.err
