"""What is refused before a run starts."""

import pytest

from nmt.config import Config, EvaluateConfig, EvaluationConfig
from nmt.config.overrides import apply_typed
from nmt.config.validation import load
from nmt.run.early_checks import check_early, check_training, own_code, refuse_untrusted_scores
from nmt.run.stored_files import EVALUATED_HERE
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
        check_training(config)


def test_a_training_is_tested_without_a_model_of_the_other_direction():
    config = Config()
    config.evaluation.alignment.reverse_checkpoint = "fr-en.ckpt"
    with pytest.raises(InputError, match=r"^evaluation\.alignment\.reverse_checkpoint: a training"):
        check_training(config)


def test_who_trained_a_configuration_trusts_its_scores():
    assert own_code(STORED)[-1] == "mine.scores"


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (["data.grammar.seed=100000000000000000000"], r"data\.grammar\.seed: .* more than 64 bits"),
        (["trainer.log_every=1000000000000000000000"], r"trainer\.log_every: .* more than 64 bits"),
        (['name="a\udcffb"'], r"name: a lone surrogate"),
        (["name=" + "x" * 1001], r"name: 1,001 letters, of at most 1,000"),
        (["name=n", "model.title=" + "x" * 1001], r"model\.title: 1,001 letters, of at most 1,000"),
        (
            [
                f"+data.test.{'s' * 96}.grammar=natural",
                f"+data.test.{'s' * 96}.pairs=3",
                "+stress=lengths",
            ],
            r"-joi: a test set's name is part of file names; it has 105 bytes, of at most 100",
        ),
    ],
)
def test_what_no_file_of_a_run_can_hold_is_refused(composer, typed, said):
    """Checkpoints and results.json would be refused when they are read, after the training."""
    with pytest.raises(InputError, match=said):
        check_early(load(composer(*typed)))


def test_whose_code_runs_is_not_for_a_checkpoint_to_say(composer):
    """A second model is read with the trust of the run, and this one may be a stranger's."""
    stored = composer("trust=[evil]")
    for typed, trusted in (([], []), (["trust=[mine]"], ["mine"])):
        config = apply_typed(stored, composer(*typed), typed, EvaluateConfig, here=EVALUATED_HERE)
        assert config.trust == trusted
