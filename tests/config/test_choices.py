"""Combinations of options compose: experiments, regimes, data, scorings and tokenizers."""

from __future__ import annotations

import itertools

import pytest
from omegaconf import OmegaConf

from nmt.cli.composition import conf_folder, with_plus
from nmt.config.loading import load

MODELS = {  # model, `data.max_length`, updates in the paper
    "rnnencdec30": ("RNNencdec", 30, 846_000),
    "rnnencdec50": ("RNNencdec", 50, 600_000),
    "rnnsearch30": ("RNNsearch", 30, 471_000),
    "rnnsearch50": ("RNNsearch", 50, 288_000),
    "rnnsearch50_long": ("RNNsearch", 50, 667_000),
}
SCORINGS = {
    "dot": "Dot",
    "scaled_dot": "ScaledDot",
    "general": "General",
    "cosine": "Cosine",
    "none": None,
}


# The rows include all experiments and regimes, and most data sets and scorings.
CHOSEN = [
    ("rnnencdec30", "tiny", "text", "none"),
    ("rnnencdec50", "paper", "europarl_gold", None),
    ("rnnsearch30", "gpu", "multi30k", "dot"),
    ("rnnsearch50", "laptop", "wmt14", "scaled_dot"),
    ("rnnsearch50_long", "tiny", "grammar", "cosine"),
    ("rnnsearch50_long", "laptop", "grammar", "general"),
]
SIZES = {"grammar": (2000, 3000), "multi30k": (6500, 6500)}  # vocabulary sizes; other data: 30,000


@pytest.mark.parametrize(("experiment", "regime", "data", "scoring"), CHOSEN)
def test_experiment_regime_data_and_scoring_compose(composer, experiment, regime, data, scoring):
    title, cap, _ = MODELS[experiment]
    typed = [f"+experiment={experiment}", f"regime={regime}", f"data={data}"]
    config = load(composer(*typed, *([f"scoring={scoring}"] if scoring else [])))
    assert config.model._target_ == f"nmt.models.{title}"
    assert config.data.max_length == cap
    assert (config.experiment, config.regime) == (experiment, regime)
    assert config.name == f"{title}-{cap}" + "*" * (experiment == "rnnsearch50_long")
    target = SCORINGS[scoring or "none"] and f"nmt.layers.scoring.{SCORINGS[scoring]}"
    assert config.model.scoring == {"_target_": target}
    assert ("early_stopping" in config.callbacks) == (experiment == "rnnsearch50_long")
    assert {"tiny": 24, "laptop": 192, "gpu": 1000, "paper": 1000}[regime] == config.model.hidden
    assert bool(config.data.train.hub) == (data in ("wmt14", "multi30k"))
    assert bool(config.data.train.grammar) == (data == "grammar")
    sizes = {"tiny": (300, 300)}.get(regime) or SIZES.get(data, (30_000, 30_000))
    assert (config.tokenizer.source_size, config.tokenizer.target_size) == sizes


def test_max_steps_of_each_experiment_and_regime(composer):
    composer()  # registers the OmegaConf resolvers
    updates = {"tiny": (12, 24), "laptop": (1200, 3600), "gpu": (20_000, 60_000)}
    for regime in ("tiny", "laptop", "gpu", "paper"):
        config = OmegaConf.load(conf_folder() / "regime" / f"{regime}.yaml")
        for experiment, (_, _, number) in MODELS.items():
            config.experiment = experiment
            wanted = updates.get(regime, (number, number))[experiment == "rnnsearch50_long"]
            assert config.trainer.max_steps == wanted


def test_local_attention_takes_its_window_and_is_refused_without_attention(composer, check):
    made = load(composer("attention=local", "model.attention.window=4", "scoring=general")).model
    assert made.attention == {"_target_": "nmt.layers.local_attention.LocalAttention", "window": 4}
    code, message = check("model=rnnencdec", "attention=local")
    assert (code, message.count("\n")) == (2, 1)
    assert "attention=nmt.layers.local_attention.LocalAttention: RNN" in message


@pytest.mark.slow
def test_each_option_of_each_group_composes(composer):
    """Composes the first options of all groups together, then the second options, and so on."""
    other = ["experiment", "regime", "scoring", "attention", "data", "hydra"]
    groups = []
    for folder in sorted(path for path in conf_folder().iterdir() if path.is_dir()):
        if folder.name not in (*other, "hparams_search"):
            files = sorted(folder.glob("*.yaml"))
            groups.append([f"{folder.name}={file.stem}" for file in files])
    assert len(groups) > 5
    for chosen in itertools.zip_longest(*groups):
        assert load(composer(*filter(None, chosen))).seed == 1


def test_regime_paper_has_the_settings_of_the_paper(composer):
    config = load(composer("+experiment=rnnsearch50", "regime=paper"))
    assert config.trainer["max_steps"] == 288_000
    assert config.model.scoring == {"_target_": "nmt.layers.scoring.Additive"}
    sizes = [getattr(config.model, key) for key in ("hidden", "embedding", "alignment", "maxout")]
    assert sizes == [1000, 620, 1000, 500]
    assert (config.tokenizer.source_size, config.tokenizer.target_size) == (30_000, 30_000)
    data = config.data
    assert data.batch_size == 80
    rule = config.optimizer
    assert (rule._target_, rule.lr) == ("torch.optim.Adadelta", 1.0)
    assert rule.options == {"rho": 0.95, "eps": 1e-6}
    assert rule.schedule == {"_target_": "nmt.models.optimizer.constant"}
    assert (config.model.init, config.model.state_input) == ("paper", "previous")
    assert (config.search.beam_size, config.search.max_ratio) == (12, 3.0)
    assert config.data.train.hub["path"] == "wmt/wmt14"
    assert config.data.valid.files == ["newstest2012", "newstest2013"]
    assert config.data.test["newstest2014"].hub["name"] == "fr-en"
    assert list(config.data.test) == ["newstest2014"]


def test_vocabulary_sizes_of_each_regime(composer):
    """`data` sets the sizes, `regime` overrides `data`, and a typed size overrides both."""
    for typed, sizes in {
        "tokenizer.source_size=66": (66, 3000),
        "tokenizer=bpe tokenizer.target_size=77": (8000, 77),
        "data=europarl": (10_000, 10_000),
        "regime=paper data=grammar": (30_000, 30_000),
    }.items():
        made = load(composer(*typed.split())).tokenizer
        assert (made.source_size, made.target_size) == sizes


def test_a_typed_number_of_sentences_replaces_the_tokens_of_a_batch(composer):
    for typed, sizes in {
        "regime=laptop": (80, 1000),
        "regime=laptop data.batch_size=20": (20, None),
        "regime=laptop ++data.batch_size=20": (20, None),
        "regime=laptop data.batch_tokens=90 data.batch_size=20": (20, 90),
        "regime=laptop data.batch_size=20 data={batch_tokens:90}": (20, 90),
        "regime=tiny": (16, None),
        "regime=tiny data.batch_tokens=300": (16, 300),
    }.items():
        data = load(composer(*with_plus(typed.split()))).data
        assert (data.batch_size, data.batch_tokens) == sizes


def test_typed_values_take_precedence_over_groups(composer):
    """From highest to lowest precedence: the command line, the experiment, the regime, all other groups."""
    of = {
        typed: composer(*typed.split())
        for typed in (
            "",
            "+experiment=rnnsearch30 regime=tiny",
            "+experiment=rnnsearch30 regime=tiny data.max_length=7 data.batch_size=5",
            "regime=tiny size=paper model.maxout=3",
            "regime=paper data=grammar",
        )
    }
    assert [config.data.max_length for config in of.values()] == [50, 30, 7, 50, 50]
    assert [config.data.batch_size for config in of.values()] == [80, 16, 5, 16, 80]
    assert [config.model.hidden for config in of.values()] == [192, 24, 24, 1000, 1000]
    assert of["regime=tiny size=paper model.maxout=3"].model.maxout == 3
    # The sizes of the regime override those of the built-in corpus.
    sizes = [config.tokenizer.source_size for config in of.values()]
    assert sizes == [2000, 300, 300, 300, 30_000]
