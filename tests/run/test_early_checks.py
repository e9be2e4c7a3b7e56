"""What is refused before a run starts."""

import pytest

from nmt.config import Config, EvaluationConfig
from nmt.run.early_checks import check_training, own_code, refuse_untrusted_scores
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
