"""From configuration to model: sizes, initialisation's place, and code that is not run."""

from __future__ import annotations

import dataclasses

import pytest
import torch
from hydra.utils import get_object
from torch import Tensor, nn

from nmt.config import Config, ModelConfig
from nmt.config.targets import LISTED, own_targets
from nmt.models import RNNencdec, RNNsearch, build_model
from nmt.models.build import reject_untrusted_targets
from nmt.models.parts import build_attention
from nmt.utils.errors import InputError

ADDITIVE = {"_target_": "nmt.layers.scoring.Additive"}
PAPER = {"hidden": 1000, "embedding": 620, "alignment": 1000, "maxout": 500}
SMALL = {"hidden": 5, "embedding": 4, "alignment": 7, "maxout": 3}


def config(**model) -> Config:
    settings = {"scoring": ADDITIVE, **SMALL, **model}
    return Config(model=ModelConfig(**settings))


@pytest.mark.parametrize(
    ("model", "millions"),
    [
        ({"_target_": "nmt.models.RNNsearch"}, 80.40),
        ({"_target_": "nmt.models.RNNencdec", "scoring": None}, 68.54),
    ],
)
def test_the_papers_sizes_have_the_papers_parameters(model, millions):
    """Counted without biases and without the two special symbols, as the design does."""
    with torch.device("meta"):
        built = build_model(config(**PAPER, **model), 30_002, 30_002)
    count = 0
    for name, parameter in built.named_parameters():
        if parameter.dim() == 1 and not name.endswith("v_a"):
            continue  # a bias
        shape = [size - 2 if size == 30_002 else size for size in parameter.shape]
        count += torch.Size(shape).numel()
    assert round(count / 1e6, 2) == millions


def test_the_classes_of_the_two_models():
    assert type(build_model(config(), 11, 13)) is RNNsearch
    encdec = build_model(config(_target_="nmt.models.RNNencdec", scoring=None), 11, 13)
    assert type(encdec) is RNNencdec
    assert (encdec.source_size, encdec.target_size) == (11, 13)
    assert (build_model(config(), 11, 13).network.attends, encdec.network.attends) == (True, False)


@pytest.mark.parametrize(
    ("scoring", "parameters", "compared"),
    [
        ("Additive", {"W_a": (7, 5), "U_a": (7, 9), "scoring.v": (7,)}, 7),
        ("Dot", {"W_a": (7, 5), "U_a": (7, 9)}, 7),
        ("General", {"W_a": (9, 5)}, 9),
        ("Cosine", {"W_a": (7, 5), "U_a": (7, 9), "scoring.log_scale": (1,)}, 7),
    ],
)
def test_what_a_scoring_compares(scoring, parameters, compared):
    """States of 5 entries and annotations of 9, in an alignment space of 7."""
    target = {"_target_": f"nmt.layers.scoring.{scoring}"}
    built = build_attention(config(scoring=target, projection_lr_exponent=-0.5).model, 9)
    assert type(built.scoring).__name__ == scoring
    assert {name: tuple(p.shape) for name, p in built.named_parameters()} == parameters
    assert built.lr_factor == pytest.approx(compared**-0.5)
    queries, keys = built.queries(torch.zeros(2, 3, 5)), built.keys(torch.zeros(2, 4, 9))
    assert (queries.shape[2], keys.shape[2]) == (compared, compared)
    assert built.scoring(queries, keys).shape == (2, 3, 4)


class Summed(nn.Module):
    """Scores that would be broadcast over the source words."""

    def __init__(self, query_size: int, key_size: int) -> None:
        super().__init__()

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        return query.sum(2, keepdim=True)


class LookingAtValues(Summed):
    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        scores = query @ keys.transpose(1, 2)
        return scores - scores.max().item()


def test_a_scoring_that_looks_at_values_can_be_checked_without_any():
    """Before text is prepared models are built without memory."""
    model = config(scoring={"_target_": f"{__name__}.LookingAtValues"})
    with torch.device("meta"):
        build_model(model, 11, 13)
    assert type(build_model(model, 11, 13).network.decoder.context.scoring) is LookingAtValues


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ({"_target_": "nmt.models.RNNsaerch"}, "model._target_=nmt.models.RNNsaerch: "),
        ({"_target_": "os.system"}, "model._target_=os.system: "),
        ({"_target_": "torch.nn.Linear"}, "model._target_=torch.nn.Linear: "),
        ({"_target_": ""}, "model._target_=: "),
        ({"scoring": {"_target_": "nmt.layers.Cosin"}}, "model.scoring._target_=nmt.layers.Cosi"),
        ({"scoring": {"_target_": "os.system"}}, "model.scoring._target_=os.system: "),
        ({"scoring": {**ADDITIVE, "heads": 8}}, "model.scoring._target_=nmt.layers.scoring.Addi"),
        (
            {"attention": {"_target_": "nmt.layers.LocalAttention", "window": 0}},
            "model.attention._target_=nmt.layers.local_attention.LocalAttention: window is 0",
        ),
        (
            {"scoring": {"_target_": f"{__name__}.Summed"}},
            f"model.scoring._target_={__name__}.Summed: its scores of a query (2, 3, 7) and keys "
            "(2, 4, 7) must have the shape (2, 3, 4), not (2, 3, 1)",
        ),
        (
            {"attention": {"_target_": "nmt.layers.Dot"}},
            "model.attention._target_=nmt.layers.Dot: n",
        ),
        ({"scoring": {"_target_": None}}, "scoring=none: RNNsearch needs a scoring: additive, dot"),
        ({"alignment": None}, "model.alignment=null: nmt.layers.scoring.Additive needs the size"),
        ({"_target_": "nmt.models.RNNencdec"}, "model.alignment=7: RNNencdec has no attention; "),
        (
            {"_target_": "nmt.models.base.Translator"},
            "model._target_=nmt.models.base.Translator: it lacks make_context, make_encoder",
        ),
        ({"options": {"share": 1}}, "model.options.share: RNNsearch has no such key"),
        ({"unit": {"peepholes": True}}, "model.unit.peepholes: GatedUnit has no such key"),
        (
            {"encoder": {"_target_": "nmt.layers.ForwardEncoder", "layers": 2}},
            "model.encoder.layers: nmt.layers.ForwardEncoder has no such key",
        ),
    ],
)
def test_what_cannot_be_built_is_refused_by_its_key(model, said):
    with pytest.raises(InputError) as refused:
        build_model(config(**model), 11, 13)
    assert str(refused.value).startswith(said)
    assert "\n" not in str(refused.value)


STRANGERS = [
    "os.system",
    "nmt.cli.command.os.system",
    "nmt.cli.command.hydra.main",
    "nmt.models.base.torch.nn.Linear",
    "torch.nn.Linear",
    "builtins.eval",
    "nmtx.models.RNNsearch",
    "nmt.cli.command.command",
    "nmt.utils.files.write_atomically",
    "nmt.config.schema.Config",
    "nmt.models.optimizer.make_optimizer",
    "nmt.models.optimizer.torch.optim.Adam",
    "torch.optim.lr_scheduler.LambdaLR",
    "torch.optim.lr_scheduler.os.system",
    "pytorch_lightning.callbacks.LambdaCallback",
    "pytorch_lightning.callbacks.ModelCheckpoint",
    "pytorch_lightning.callbacks.OnExceptionCheckpoint",
    "pytorch_lightning.callbacks.SpikeDetection",
    "RNNsearch",
    "",
]


@pytest.mark.parametrize("target", STRANGERS)
@pytest.mark.parametrize("place", ["model", "scoring", "deep"])
def test_code_that_a_checkpoint_names_is_not_run(target, place):
    stored = {"model": {"_target_": "nmt.models.RNNsearch", "scoring": dict(ADDITIVE)}}
    where = "model._target_"
    if place == "scoring":
        stored["model"]["scoring"]["_target_"] = target
        where = "model.scoring._target_"
    elif place == "deep":
        stored["data"] = {"test": [{"_target_": target}]}
        where = "data.test.0._target_"
    else:
        stored["model"]["_target_"] = target
    with pytest.raises(InputError) as refused:
        reject_untrusted_targets(stored, [])
    assert str(refused.value).startswith(f"{where}={target}: ")


def test_own_and_trusted_code_is_accepted():
    stored = {"model": {"_target_": "nmt.models.RNNsearch", "scoring": dict(ADDITIVE)}}
    reject_untrusted_targets(stored, [])
    reject_untrusted_targets({"scoring": {"_target_": None}}, [])
    stored["model"]["scoring"]["_target_"] = "torch.nn.Identity"
    with pytest.raises(InputError, match=r"add trust=\[torch\.nn\]"):
        reject_untrusted_targets(stored, ["torchvision"])
    reject_untrusted_targets(stored, ["torch.nn"])
    reject_untrusted_targets(stored, ["torch.nn.Identity"])
    reject_untrusted_targets(stored, ["torch"])


def test_code_that_a_trusted_module_has_from_another_is_trusted_by_its_own_name():
    """A stranger may know what a module imports; who has trained with a name trusts it."""
    stored = {"callbacks": {"mine": {"_target_": "tests.models.test_build.get_object"}}}
    with pytest.raises(InputError, match=r"add trust=\[tests\.models\.test_build\.get_object\]$"):
        reject_untrusted_targets(stored, ["tests.models.test_build"])
    reject_untrusted_targets(stored, own_targets(stored))


def test_listed_code_is_accepted_and_exists():
    assert "pytorch_lightning.callbacks.EarlyStopping" in LISTED
    for target in LISTED:
        reject_untrusted_targets({"callbacks": {"a": {"_target_": target}}}, [])
        assert get_object(target).__name__ == target.rpartition(".")[2]


@pytest.mark.parametrize("value", ["${oc.env:HOME}", "x${oc.decode:1}", "${hydra:job.name}"])
def test_interpolations_in_a_checkpoint_are_refused(value):
    with pytest.raises(InputError, match=r"^logger\.project: .* holds an interpolation"):
        reject_untrusted_targets({"logger": {"project": value}}, [])
    with pytest.raises(InputError, match=r"^logger\.tags\.1: .* holds an interpolation"):
        reject_untrusted_targets({"logger": {"tags": ["a", value]}}, [])


def test_every_size_is_taken_from_the_configuration():
    sizes = {name: 2 * size + 1 for name, size in SMALL.items()}
    shapes = {tuple(each.shape) for each in build_model(config(**sizes), 17, 19).parameters()}
    hidden, embedding, alignment, maxout = sizes.values()
    assert (17, embedding) in shapes
    assert (19, embedding) in shapes
    assert any(set(shape) == {19, maxout} for shape in shapes)
    assert any(set(shape) == {alignment, 2 * hidden} for shape in shapes)
    assert dataclasses.replace(config().model, **sizes) == config(**sizes).model


@pytest.mark.parametrize("end", ["setup", "teardown"])
def test_graphs_are_dropped_at_both_ends_of_a_fit(end):
    model = build_model(config(_target_="nmt.models.RNNsearch", graphs=True), 9, 9)
    model.network.encoder.graph_cache.eager = model.network.decoder.graph_cache.eager = True
    words, mask = torch.tensor([[3, 4, 0]]), torch.ones(1, 3, dtype=torch.bool)
    memory = model.network.decoder.memory(*model.network.encoder(words, mask), mask)
    model.network.decoder(words, mask, memory).readout.sum().backward()
    assert model.network.encoder.graph_cache.graphs
    assert model.network.decoder.graph_cache.graphs
    getattr(model, end)("fit")
    assert not model.network.encoder.graph_cache.graphs
    assert not model.network.decoder.graph_cache.graphs
