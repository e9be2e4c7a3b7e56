"""Studies composed in this process, and made-up runs in place of trained ones."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import hydra
import pytest
from hydra.core.hydra_config import HydraConfig
from omegaconf import OmegaConf, flag_override

from nmt.cli.composition import conf_folder, register_configs
from nmt.config import StudyClaim
from nmt.studies.existing import RUNS, FoundRuns, find_existing
from nmt.studies.plan import Study, plan_of
from nmt.studies.planned import PlannedRun
from nmt.utils.code import code_fingerprint
from tests.helpers.run_folders import make_planned

TEXT = {"training": "a text", "test": {"test": "one", "by_length": "another"}}
TINY = ("regime=tiny", "trainer=cpu", "logger=none")


@contextlib.contextmanager
def composed(*typed: str, **section: Any) -> Iterator[Any]:
    """A composed study, with keys of `section` in place of those of its file."""
    register_configs()
    before = HydraConfig.instance().cfg
    with hydra.initialize_config_dir(str(conf_folder()), version_base="1.3"):
        config = hydra.compose("study", overrides=list(typed), return_hydra_config=True)
        for key, value in section.items():
            OmegaConf.update(config, f"study.{key}", value, merge=False, force_add=True)
        HydraConfig.instance().set_config(config)
        with flag_override(config, ["struct", "readonly"], [False, False]):
            del config["hydra"]
        try:
            yield config
        finally:
            HydraConfig.instance().cfg = before


def planned(*typed: str, **section: Any) -> Study:
    """The study `tiny`, or with other keys."""
    with composed("+study=tiny", *typed, **section) as config:
        return plan_of(config)


@pytest.fixture(scope="session")
def tiny() -> Study:
    return planned()


def asked(study: Study, claims: dict[str, StudyClaim] | None = None, **keys: Any) -> Study:
    """The same runs, asked for with other keys, or for other claims."""
    section = dataclasses.replace(study.section, claims=claims or study.section.claims, **keys)
    return dataclasses.replace(study, section=section)


@pytest.fixture(scope="session")
def magic() -> Study:
    """The study `tiny`, asked for the claim that needs the runs of RNNencdec alone."""
    return planned("study.only=[no-magic]")


@pytest.fixture(scope="session")
def swept() -> Study:
    """A study of which one group has a sweep of three points, its best to be found."""
    sweep = {"optimizer.lr": [0.001, 0.002, 0.004]}
    return planned(
        runs={
            "fixed": {"overrides": ["+experiment=rnnencdec50"], "sweep": sweep, "seeds": [1, 2]},
            "search": {"overrides": ["+experiment=rnnsearch50"]},
        },
        claims={"wins": {**CLAIM, "runs": ["search", "fixed"]}},
    )


@pytest.fixture(scope="session")
def evaluated() -> Study:
    """A study whose models are evaluated once more, one by one and together, beside a phrase-based system."""
    return planned(
        runs={
            "argmax": {
                "command": "evaluate",
                "of": "search",
                "overrides": ["evaluation.attention=argmax"],
            },
            "ensemble": {"command": "evaluate", "of": "search", "together": True},
            "search": {"overrides": ["+experiment=rnnsearch50"]},
            "phrase_based": {"command": "baseline", "seeds": [1]},
        },
        overrides=["regime=tiny", "logger=none", "report.heatmaps=0", "model.dropout=0.2"],
        claims={
            "soft": {**CLAIM, "runs": ["search", "argmax"]},
            "together": {**CLAIM, "runs": ["ensemble", "phrase_based"]},
        },
    )


CLAIM = {
    "claim": "One is better",
    "source": "a <b>retelling</b>",
    "statistic": "score",
    "rule": "above",
    "margin": 0,
}


def make(study: Study, folder: Path, run: PlannedRun, **options: Any) -> Path:
    """A finished run where the study would train it."""
    options = {"code": code_fingerprint(), "text": TEXT, "pairs": 120, **options}
    return make_planned(folder / RUNS / run.folder_name, run, **options)


@pytest.fixture(scope="session")
def finished(tiny: Study, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the study `tiny` with all its runs."""
    folder = tmp_path_factory.mktemp("study")
    for group in tiny.groups.values():
        for run in group.runs:
            make(tiny, folder, run, pairs=250)
    return folder


@pytest.fixture(scope="session")
def look() -> Callable[..., FoundRuns]:
    """look(study, folder): the runs that there are, all of the same text."""
    return lambda study, folder: find_existing(study, folder, lambda config: TEXT)
