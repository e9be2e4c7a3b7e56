"""What is typed and would change nothing."""

from __future__ import annotations

import pytest

from nmt.config.idle import is_of_baseline, refuse_idle, refuse_lists
from nmt.utils.errors import InputError

NONE = ": RNNencdec has no attention; leave it out"
ALONE = ": no effect without evaluation.attention=top_k; leave it out"
TARGET = "model.attention._target_=nmt.layers.attention.Attention"
IDLE = [
    ("model=rnnencdec attention=global", f"attention=global{NONE}"),
    ("+experiment=rnnencdec30 attention=global", f"attention=global{NONE}"),
    (f"model=rnnencdec {TARGET}", f"{TARGET}{NONE}"),
    ("model=rnnencdec +model.attention.window=4", f"+model.attention.window=4{NONE}"),
    ("evaluation.top_k=5", f"evaluation.top_k=5{ALONE}"),
    ("evaluation.top_k=3", f"evaluation.top_k=3{ALONE}"),
    ("evaluation.top_k=2 evaluation.attention=argmax", f"evaluation.top_k=2{ALONE}"),
]


RNNSEARCH = "+experiment=rnnsearch50"
IDLE += [
    (f"{typed} {word}", f"{word}: no effect {why}; leave it out")
    for typed, word, why in (
        ("", "data.train.alignment_base=1", "on training text"),
        ("", "+data.train.links.mine=f", "on training text"),
        ("", "data.in_domain.source=f", "without data.selection=axelrod"),
        ("", "data.selection_order=2", "without data.selection=axelrod"),
        ("", "data.batch_tokens=9", "without data.batch_by=tokens"),
        ("data.batch_by=tokens", "data.batch_size=9", "without data.batch_by=sentences"),
        ("schedule=constant", "optimizer.decay_from=0.2", "without schedule=linear"),
        ("schedule=inverse_sqrt", "optimizer.decay_from=0.2", "without schedule=linear"),
        (f"{RNNSEARCH} scoring=general", "size.alignment=9", "with scoring=general"),
        (
            "scoring=cosine",
            "+model.scoring.query_size=3",
            "on a scoring, which is given the sizes of the model",
        ),
        ("", "stress.pairs=9", "without stress.lengths"),
        *(
            ("initial_checkpoint=f", word, "with initial_checkpoint, whose weights are taken")
            for word in ("model.init=wide", "data.init=wide", "model.projection_init_exponent=1")
        ),
        (
            "",
            "evaluation.alignment.statistical_aligner_pairs=9",
            "without evaluation.alignment.statistical_aligners=true",
        ),
        ("report.live=false", "report.live_bits=8", "with report.live=false"),
        ("logger=none", "logger.project=mine", "without logger=wandb"),
        ("logger=csv", "logger.tags=[a]", "without logger=wandb"),
    )
]
IDLE += [
    (f"{RNNSEARCH} {typed}", said)
    for typed, said in (
        ("size.hidden=9 model.hidden=8", "size.hidden=9: model.hidden is 8 here; leave it out"),
        (
            "updates.rnnsearch50=9 trainer.max_steps=8",
            "updates.rnnsearch50=9: trainer.max_steps is 8 here; leave it out",
        ),
        (
            "updates.rnnencdec30=9",
            "updates.rnnencdec30=9: trainer.max_steps is 1000 here; leave it out",
        ),
    )
]
IDLE += [
    (
        "+experiment=rnnencdec50 size.alignment=9",
        "size.alignment=9: model.alignment is null here; leave it out",
    )
]


@pytest.mark.parametrize(("typed", "said"), IDLE)
def test_what_is_typed_and_changes_nothing_is_refused(composer, typed, said):
    with pytest.raises(InputError) as refusal:
        refuse_idle(composer(*typed.split()), typed.split())
    assert str(refusal.value) == said


@pytest.mark.parametrize(
    "typed",
    [
        "attention=global",
        "model=rnnencdec",
        "model=rnnencdec attention=none",
        "model=rnnencdec search=greedy data.max_length=20",
        "evaluation.top_k=5 evaluation.attention=top_k",
        "evaluation.attention=argmax",
        "updates={custom:3}",
        f"{RNNSEARCH} scoring=general attention=local size.alignment=9",
        f"{RNNSEARCH} size.hidden=9 size.alignment=8 updates.rnnsearch50=7",
        "schedule=linear optimizer.decay_from=0.2 data.valid.alignment_base=1",
        "data.batch_by=tokens data.batch_tokens=9 data.selection=axelrod data.selection_order=2",
        "+stress=lengths stress.pairs=9 report.live_bits=8 logger.project=mine",
    ],
)
def test_what_changes_something_is_not(composer, typed):
    refuse_idle(composer(*typed.split()), typed.split())


def test_a_model_of_ones_own_without_attention_keeps_the_default(composer):
    """Its file need not say that it has none, and what is typed beside it is not about attention."""
    config = composer("scoring=none", "model.alignment=null", "search=greedy")
    assert config.model.attention._target_ == "nmt.layers.attention.Attention"
    refuse_idle(config, ["scoring=none", "search=greedy"])


def test_what_a_phrase_based_system_uses():
    for key in ("experiment", "data", "tokenizer", "seed", "logger", "phrase_based.stack", "name"):
        assert is_of_baseline(key), key
    for key in ("trainer.max_steps", "optimizer", "search", "size.hidden", "trainer"):
        assert not is_of_baseline(key), key


def test_objects_of_translate_hold_what_would_be_printed(composer):
    for word in ("scores=true", "detokenise=false"):
        typed = ["checkpoint=f", "alignments=json", word]
        with pytest.raises(InputError, match=f"{word}: no effect with alignments=json"):
            refuse_idle(composer(*typed, command="translate"), typed)
        typed[1] = "alignments=pharaoh"
        refuse_idle(composer(*typed, command="translate"), typed)


def test_an_evaluation_makes_no_updates(composer):
    word = "+trainer.lightning.fast_dev_run=true"
    typed = ["checkpoint=f", word]
    with pytest.raises(InputError) as refusal:
        refuse_idle(composer(*typed, command="evaluate"), typed)
    said = "no effect without updates, of which an evaluation makes none; leave it out"
    assert str(refusal.value) == f"{word}: {said}"
    refuse_idle(composer(word), [word])
    typed[1] = "+trainer.lightning.profiler=simple"
    refuse_idle(composer(*typed, command="evaluate"), typed)


@pytest.mark.parametrize(
    "word", ["trainer=[cpu]", "logger=[csv,wandb]", "size=[]", "regime=[tiny]", "study=[own,tiny]"]
)
def test_a_group_is_one_choice(word):
    with pytest.raises(InputError) as refusal:
        refuse_lists(["seed=1", word])
    name = word.partition("=")[0]
    assert str(refusal.value) == f"{word}: one option of the group {name}, not a list"
    refuse_lists(["callbacks=[ema,learning_rate_monitor]", "evaluation.edges=[10]", "data=grammar"])
