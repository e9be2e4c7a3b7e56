"""A file that only a checkpoint names is read only where the checkpoint knows its content."""

from __future__ import annotations

import logging
from pathlib import Path
from types import SimpleNamespace

import pytest

from nmt.config import Config, TextConfig
from nmt.config.validation import load
from nmt.data.sources.open import digest_of
from nmt.run.stored_files import evaluated_sections, refuse_stored_files, say_what_is_read
from nmt.utils.errors import InputError


@pytest.fixture
def config(composer, tmp_path: Path) -> Config:
    """That of a model whose test set `mine` is two files."""
    made = load(composer("regime=tiny"))
    for side in ("source", "target"):
        (tmp_path / side).write_text(f"a {side} .\n")
    files = {side: str(tmp_path / side) for side in ("source", "target")}
    made.data.test = {"mine": TextConfig(**files)}
    return made


def known(config: Config) -> dict[str, dict[str, str]]:
    """The digests that a checkpoint holds which was tested on the files."""
    text = config.data.test["mine"]
    return {
        "data.test.mine": {
            f"data.test.mine.{side}": digest_of(Path(getattr(text, side)))
            for side in ("source", "target")
        }
    }


def refuse(checkpoint, config, typed=(), sets=()) -> None:
    sections = evaluated_sections(config, sets, training=False)
    refuse_stored_files(checkpoint, config.data, sections, typed)


def test_the_files_that_it_was_tested_on_are_read(config):
    refuse(SimpleNamespace(text_files=known(config)), config)


@pytest.mark.parametrize("holds", ["nothing", "other content"])
def test_any_other_file_must_be_typed(config, holds):
    checkpoint = SimpleNamespace(text_files=known(config) if holds == "other content" else {})
    source = Path(config.data.test["mine"].source)
    source.write_text("a secret .\n")
    with pytest.raises(InputError, match=r"^data\.test\.mine\.source: the checkpoint names .*type"):
        refuse(checkpoint, config)
    with pytest.raises(InputError, match=r"^data\.test\.mine\.source: "):
        refuse(checkpoint, config, ["data.test.mines.source"], sets=["mine"])
    refuse(checkpoint, config, [f"data.test.mine.{side}" for side in ("source", "target")])


def test_a_missing_file_is_told_as_any_other(config):
    """Whether a file is there is nothing that a stranger's checkpoint is to find out."""
    checkpoint = SimpleNamespace(text_files=known(config))
    Path(config.data.test["mine"].target).unlink()
    with pytest.raises(InputError, match=r"^data\.test\.mine\.target: .*is not the file it was"):
        refuse(checkpoint, config)


def test_a_folder_of_this_machine_is_no_data_set_of_the_hub(config, tmp_path):
    config.data.test = {"mine": TextConfig(hub=str(tmp_path))}
    with pytest.raises(InputError, match=r"^data\.test\.mine\.hub="):
        refuse(SimpleNamespace(text_files={}), config)
    refuse(SimpleNamespace(text_files={}), config, ["data.test.mine.hub"])


def test_a_text_that_nothing_is_compared_with_is_not_said_to_be_read(config, tmp_path, caplog):
    def said(selection: str) -> list[str]:
        config.data.selection = selection
        config.data.in_domain = TextConfig(source="in.en", target="in.fr")
        sections = evaluated_sections(config, [], training=True)
        caplog.clear()
        with caplog.at_level(logging.INFO):
            say_what_is_read([], config.data, sections, tmp_path)
        return [line.split(":")[0] for line in caplog.messages[:-1]]

    read = ["data.train", "data.valid", "data.test.mine"]
    assert said("none") == [f"reading {key}" for key in read]
    assert "reading data.in_domain" in said("axelrod")
