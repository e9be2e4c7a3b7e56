"""How the development set is translated while a model learns."""

from __future__ import annotations

from pathlib import Path

from tests.helpers.processes import TINY, run

WATCHED = """
import nmt.training.validation as validation
import pathlib, torch
real = validation.beam_search
def watched(*arguments):
    kind = torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else torch.float32
    pathlib.Path("kind").write_text(str(kind))
    return real(*arguments)
validation.beam_search = watched
"""


def test_translations_are_made_in_the_precision_of_the_test(tmp_path: Path) -> None:
    options = (*TINY, "trainer.precision=bf16-mixed", "trainer.max_steps=2")
    ended = run("train", *options, "hydra.run.dir=run", cwd=tmp_path, hook=WATCHED)
    assert ended.code == 0, ended.err
    assert (tmp_path / "kind").read_text() == "torch.bfloat16"
