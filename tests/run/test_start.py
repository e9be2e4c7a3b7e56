"""What a run refuses before it starts."""

import logging
from types import SimpleNamespace

import pytest
from omegaconf import OmegaConf

from nmt.config import Config, EvaluationConfig, TrainerConfig
from nmt.run import start
from nmt.run.start import own_code, refuse_untrusted_scores
from nmt.utils.errors import InputError

STORED = Config(evaluation=EvaluationConfig(scores=["chrf", "mine.scores.Exact"]))


@pytest.mark.parametrize(
    ("typed", "trust"),
    [
        ((), ["mine.scores"]),
        ((), ["mine"]),
        (("seed=2", "evaluation.scores=[mine.scores.Exact]"), []),
        (("++evaluation.scores=null",), []),
    ],
)
def test_scores_that_are_typed_or_trusted_may_be_imported(typed, trust):
    refuse_untrusted_scores(STORED, typed, trust)


@pytest.mark.parametrize(
    ("typed", "trust"), [((), []), (("evaluation.edges=[5]",), ["mine.score", "chrf"])]
)
def test_scores_that_only_a_stored_configuration_names_are_refused(typed, trust):
    with pytest.raises(InputError, match=r"code outside nmt, mine\.scores, which is not run"):
        refuse_untrusted_scores(STORED, typed, trust)


def test_a_training_is_tested_with_the_attention_it_learns():
    config = Config(evaluation=EvaluationConfig(attention="uniform"))
    with pytest.raises(InputError, match=r"^evaluation\.attention=uniform: a training is tested"):
        start.check_training(config)


def test_who_trained_a_configuration_trusts_its_scores():
    assert own_code(STORED)[-1] == "mine.scores"


@pytest.mark.parametrize(
    ("stored", "typed", "taken"),
    [
        ("auto", None, 3),  # a training that begins
        (7, None, 7),  # one that is resumed, or typed
        (7, [], 3),  # an evaluation: on this machine
        (7, ["trainer.threads", "search"], 7),
        ("auto", ["trainer.threads"], 3),
    ],
)
def test_threads_are_a_number_before_anything_is_stored(monkeypatch, stored, typed, taken):
    asked = []
    monkeypatch.setattr("nmt.utils.devices.choose_threads", lambda *given: asked.append(given) or 3)
    config = Config(trainer=TrainerConfig(threads=stored, accelerator="cpu", devices=2))
    config.model.hidden = 512
    assert start._with_threads(config, typed).trainer.threads == taken
    assert asked == ([] if taken == 7 else [(512, 2)])


def test_a_resumed_run_says_that_it_uses_more_threads_than_cores(monkeypatch, caplog):
    monkeypatch.setattr(start, "shared_cores", lambda processes: 4 // processes)
    config = Config(trainer=TrainerConfig(threads=4))
    with caplog.at_level(logging.WARNING):
        start._compare_threads(config)
        assert not caplog.records
        config.trainer.devices = 2
        start._compare_threads(config)
    assert "trainer.threads=4, as the run has had; it may use 2 core(s) here" in caplog.text


@pytest.mark.parametrize(("update", "bent"), [(4, True), (2, False)])
def test_a_schedule_that_more_updates_bend_is_said_to_be(caplog, update, bent):
    """A rate that falls from update 2 of 4 on."""
    before = OmegaConf.structured(Config)
    before.optimizer.schedule = {"_target_": "nmt.models.optimizer.linear"}
    before.optimizer.decay_from, before.trainer.max_steps = 0.5, 4
    after = before.copy()
    after.trainer.max_steps = 6
    with caplog.at_level(logging.WARNING):
        start._check_updates(SimpleNamespace(config=before, update=update), after)
    said = "the learning rate was falling to 0 at update 4 and now falls to 0 at 6"
    assert (said in caplog.text) == bent
