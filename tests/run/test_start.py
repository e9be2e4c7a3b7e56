"""What a run starts with: its threads, and what it says of those and of the schedule it resumes."""

import logging
from types import SimpleNamespace

import pytest
from omegaconf import OmegaConf

from nmt.config import Config, TrainerConfig
from nmt.models.checkpoint import ValidationProgress
from nmt.run import resume, start


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
    monkeypatch.setattr(resume, "shared_cores", lambda processes: 4 // processes)
    config = Config(trainer=TrainerConfig(threads=4))
    with caplog.at_level(logging.WARNING):
        resume.compare_threads(config)
        assert not caplog.records
        config.trainer.devices = 2
        resume.compare_threads(config)
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
        progress = ValidationProgress()
        checkpoint = SimpleNamespace(config=before, update=update, progress=progress)
        resume._check_updates(checkpoint, after)
    said = "the learning rate was falling to 0 at update 4 and now falls to 0 at 6"
    assert (said in caplog.text) == bent
