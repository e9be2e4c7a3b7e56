"""Test sets that may be missing."""

from __future__ import annotations

import copy
import logging

import pytest
from omegaconf import OmegaConf

from nmt.config import DataConfig, TextConfig
from nmt.config.validation import load
from nmt.data.sources.optional import leave_out_absent
from nmt.models.checkpoint import stored_config
from nmt.utils.errors import InputError
from tests.helpers import composition
from tests.helpers.models import small_config


def section(root, **tests):
    return DataConfig(
        root=str(root), test={name: TextConfig(**text) for name, text in tests.items()}
    )


def test_what_is_missing_is_left_out_and_named(tmp_path, caplog):
    for name in ("a.en.gz", "a.fr", "b.en", "c.en", "c.fr"):
        (tmp_path / name).touch()
    named = {"source": "c.en", "target": "c.fr"}
    data = section(
        tmp_path,
        whole={"files": ["a"], "optional": True},
        half={"files": ["b"], "optional": True},
        named={**named, "optional": True},
        gold={**named, "alignment": "c.align", "optional": True},
        linked={**named, "links": {"giza": "sub/c.links"}, "optional": True},
        needed={"files": ["b"]},
    )
    with caplog.at_level(logging.INFO):
        leave_out_absent(data)
    assert list(data.test) == ["whole", "named", "needed"]
    assert caplog.messages == [
        f"data.test.half is left out: b.fr is not in {tmp_path} (data.root)",
        f"data.test.gold is left out: c.align is not in {tmp_path} (data.root)",
        f"data.test.linked is left out: sub/c.links is not in {tmp_path} (data.root)",
    ]


def test_only_test_sets_are_optional():
    with pytest.raises(InputError, match=r"data\.valid\.optional=true: only a test set"):
        load(composition.compose("train", ["data.valid.optional=true"]))


def test_multi30k_has_the_later_test_sets_where_they_are(tmp_path):
    data = load(composition.compose("train", ["data=multi30k", f"data.root={tmp_path}"])).data
    there = copy.deepcopy(data)
    leave_out_absent(data)
    assert list(data.test) == ["test2016"]
    for language in ("en", "fr"):
        (tmp_path / f"test_2017_mscoco.{language}.gz").touch()
    leave_out_absent(there)
    assert list(there.test) == ["test2016", "mscoco"]


def test_a_stored_configuration_is_refused_by_the_name_of_its_file(tmp_path):
    values = OmegaConf.to_container(small_config())
    values["data"]["train"]["optional"] = True
    said = rf"^checkpoint={tmp_path}: its configuration is refused: data\.train\.optional=true"
    with pytest.raises(InputError, match=said):
        stored_config(values, tmp_path)
