"""Builds models from configurations: sizes, initialisation, and code that must not run."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from nmt.config.code import reject_untrusted_targets, user_code
from nmt.config.schema import Config, ModelConfig, to_containers
from nmt.data.batch import collate
from nmt.data.vocabulary import WordVocabulary
from nmt.models import build_model
from nmt.models.networks import build_network, make_attention
from nmt.utils.errors import InputError

ADDITIVE = {"_target_": "nmt.layers.scoring.Additive"}
PAPER = {"hidden": 1000, "embedding": 620, "alignment": 1000, "maxout": 500}
ENCDEC = {"_target_": "nmt.models.RNNencdec", "scoring": None, "alignment": None}
SMALL = {"hidden": 5, "embedding": 4, "alignment": 7, "maxout": 3}


def config(**model) -> Config:
    settings = {"scoring": ADDITIVE, **SMALL, **model}
    return Config(model=ModelConfig(**settings))


@pytest.mark.parametrize(
    ("model", "millions"), [({"_target_": "nmt.models.RNNsearch"}, 80.40), (ENCDEC, 68.54)]
)
def test_paper_sizes_give_the_papers_parameter_counts(model, millions):
    """Counts parameters without biases, and without the rows of the two special symbols."""
    with torch.device("meta"):
        built = build_model(config(**PAPER | model), 30_002, 30_002)
    count = 0
    for name, parameter in built.named_parameters():
        if parameter.dim() == 1 and not name.endswith("scoring.v"):
            continue  # a bias
        shape = [size - 2 if size == 30_002 else size for size in parameter.shape]
        count += torch.Size(shape).numel()
    assert round(count / 1e6, 2) == millions


@pytest.mark.parametrize(
    ("scoring", "parameters"),
    [
        ("Additive", {"W_a": (7, 5), "U_a": (7, 9), "scoring.v": (7,)}),
        ("Dot", {"W_a": (7, 5), "U_a": (7, 9)}),
        ("General", {"W_a": (9, 5)}),
        ("Cosine", {"W_a": (7, 5), "U_a": (7, 9), "scoring.log_scale": (1,)}),
    ],
)
def test_scoring_functions_have_the_expected_projections(scoring, parameters):
    """Sizes: 5 for states, 9 for annotations, 7 for the projections of both."""
    target = {"_target_": f"nmt.layers.scoring.{scoring}"}
    built = make_attention(config(scoring=target).model, 9)
    assert type(built.scoring).__name__ == scoring
    assert {name: tuple(p.shape) for name, p in built.named_parameters()} == parameters


@pytest.mark.parametrize(
    "model",
    [
        {"_target_": "nmt.models.RNNsearch"},
        ENCDEC,
        {"encoder": {"_target_": "nmt.layers.ForwardEncoder"}, "state_input": "current"},
        {"unit": {"_target_": "nmt.layers.LstmUnit"}},
        {"attention": {"_target_": "nmt.layers.LocalAttention", "window": 3}},
    ],
)
def test_build_network_equals_build_model(model):
    torch.manual_seed(2)
    within = build_model(config(**model), 11, 13).network
    torch.manual_seed(2)
    alone = build_network(config(**model), 11, 13)
    torch.testing.assert_close(alone.state_dict(), within.state_dict(), rtol=0, atol=0)
    chosen = model.get("attention", {}).get("window")
    assert getattr(alone.decoder.context, "window", None) == chosen


@pytest.mark.parametrize(
    ("model", "key"),
    [
        ({"_target_": "nmt.models.RNNsaerch"}, "model._target_=nmt.models.RNNsaerch: "),
        ({"_target_": "os.system"}, "model._target_=os.system: "),
        ({"scoring": {"_target_": "nmt.layers.Cosin"}}, "model.scoring._target_=nmt.layers.Cosi"),
        ({"scoring": {**ADDITIVE, "heads": 8}}, "model.scoring._target_=Additive: "),
        (
            {"attention": {"_target_": "nmt.layers.LocalAttention", "window": 0}},
            "model.attention._target_=LocalAttention: window is 0",
        ),
        ({"alignment": None, "scoring": None}, "model.alignment=null: "),
        ({"unit": {"_target_": "nmt.layers.Gru"}}, "model.unit._target_=nmt.layers.Gru: "),
        (
            {**ENCDEC, "encoder": {"_target_": "nmt.layers.BidirectionalEncoder"}},
            "encoder=BidirectionalEncoder: ",
        ),
    ],
)
def test_refuses_bad_model_keys(model, key):
    with pytest.raises(InputError) as refused:
        build_model(config(**model), 11, 13)
    assert key in str(refused.value)
    assert "\n" not in str(refused.value)


def test_trusted_targets_are_accepted():
    stored = {"scoring": {"_target_": "torch.nn.Identity"}}
    with pytest.raises(InputError, match=r"add trust=\[torch\.nn\]"):
        reject_untrusted_targets(stored, ["torchvision"])
    for trusted in ("torch.nn", "torch", "torch.nn.Identity"):
        reject_untrusted_targets(stored, [trusted])
    reject_untrusted_targets({"scoring": {"_target_": None}}, [])
    # `mine.Score` is trusted, since the user's own configuration names it.
    own = Config(callbacks={"own": {"_target_": "mine.Score"}})
    reject_untrusted_targets({"callbacks": own.callbacks}, user_code(own))


@pytest.mark.parametrize("value", ["${oc.env:HOME}", "x${oc.decode:1}"])
def test_refuses_interpolations_in_a_checkpoint(value):
    with pytest.raises(InputError, match=r"^logger\.tags\.1=.* may not hold interpolations"):
        reject_untrusted_targets({"logger": {"tags": ["a", value]}}, [])


@pytest.mark.parametrize("end", ["setup", "teardown"])
def test_graphs_are_dropped_before_and_after_fit(end):
    model = build_model(config(_target_="nmt.models.RNNsearch", graphs=True), 9, 9)
    model.graphs.rehearse = True
    model.training_step(collate([[3, 4, 0]], [[3, 4, 0]]), 0)["loss"].backward()
    assert model.graphs.graphs
    getattr(model, end)("fit")
    assert not model.graphs.graphs


@pytest.mark.parametrize("main", [True, False])
def test_only_rank_0_restores_sums_over_ranks(main):
    """A checkpoint contains sums over all ranks, so only one rank may restore them."""
    model = build_model(config(), 7, 9)
    model._trainer = SimpleNamespace(is_global_zero=main)
    vocabulary = WordVocabulary(["a"]).state()
    stored = {"source_vocabulary": vocabulary, "target_vocabulary": vocabulary}
    hyper_parameters = {"config": to_containers(model.config)}
    model.on_load_checkpoint(
        {
            "nmt": stored,
            "log_sums": [12.5, 5.0],
            "hyper_parameters": hyper_parameters,
            "state_dict": {},
        }
    )
    assert model.log_sums.values.tolist() == ([12.5, 5.0] if main else [0.0, 0.0])
