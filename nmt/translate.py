"""Translates standard input to standard output: one line out for each line in.

    python -m nmt.translate checkpoint=FILE < source.txt > translation.txt
    python -m nmt.translate checkpoint=FILE nbest=5 scores=true alignments=pharaoh < source.txt
    python -m nmt.translate checkpoint=FILE heatmap=DIR page=FILE.html < source.txt

With `nbest` above 1 a line gives up to that many, each after the line's number and a tab; `scores`
and `alignments=pharaoh` add columns, tabs between them. `alignments=json` writes an object a line.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig
from tqdm import tqdm

from nmt.cli.command import command
from nmt.config.overrides import apply_typed, typed_paths
from nmt.config.validation import load, validate_keys
from nmt.evaluation.alignment import format_links, hard_links
from nmt.inference.stream import batches_of_lines
from nmt.inference.translation import Sentence, Translation, Translations
from nmt.models.checkpoint import read_checkpoint
from nmt.report.heatmap import draw_heatmap
from nmt.report.page import build_explorer
from nmt.run import start as job
from nmt.run import test
from nmt.utils.devices import check_accelerator
from nmt.utils.errors import InputError

OVERRIDABLE = ("search", "trainer", "evaluation.alignment")
COMMAND_KEYS = (
    "checkpoint",
    "trust",
    "nbest",
    "scores",
    "detokenise",
    "tokenised",
    "alignments",
    "heatmap",
    "page",
)


@command("translate")
def main(composed: DictConfig) -> None:
    job.silence_warnings()
    validate_keys(composed)
    stored = read_checkpoint(composed.checkpoint, composed.trust)
    typed = HydraConfig.get().overrides.task
    paths = typed_paths(typed, OVERRIDABLE, COMMAND_KEYS)
    if "search.nbest" in paths:
        raise InputError("search.nbest: type nbest= instead, the translations a line")
    stored_config = apply_typed(stored.config, composed, typed, OVERRIDABLE, COMMAND_KEYS)
    stored_config.search.nbest = composed.nbest
    if "trainer.accelerator" in paths:  # where it was trained binds nobody
        check_accelerator(stored_config.trainer.accelerator)
    stored_config.search.beam_size = max(composed.nbest, stored_config.search.beam_size)
    config = load(stored_config, training=False)
    wants_attention = bool(composed.alignments or composed.heatmap or composed.page)
    translations = Translations(
        stored.translator(config),
        test.make_codec(config, stored.source_vocabulary, stored.target_vocabulary),
        config,
        tokenised=composed.tokenised,
        attention=wants_attention,
        dictionary=stored.dictionary_for(config.search),
    )
    rows: list[dict[str, Any]] = []
    bar = tqdm(unit="line", disable=not sys.stderr.isatty(), dynamic_ncols=True)
    for lines in batches_of_lines(sys.stdin.buffer, most=16 * config.search.batch_size):
        for sentence in translations.of(lines):
            if sentence.translations and (composed.heatmap or composed.page):
                rows.append(draw(sentence, composed.heatmap))
            write(sentence, composed, config.evaluation.alignment.null)
            bar.update(1)
        sys.stdout.flush()
    bar.close()
    if composed.page:
        build_explorer([row for row in rows if row], composed.page, label=config.name)


def write(sentence: Sentence, options: Any, null: float) -> None:
    """Writes the translations of one line in the form that was asked for."""
    if options.alignments == "json":
        described = [describe(sentence, found, null) for found in sentence.translations]
        record = {"line": sentence.number, "source": sentence.words, "translations": described}
        sys.stdout.write(json.dumps(record, ensure_ascii=False, allow_nan=False) + "\n")
        return
    number = [str(sentence.number)] if options.nbest > 1 else []
    lines = []
    if not sentence.translations:  # an empty line: as many columns as any other
        lines = [[*number, *[""] * (1 + options.scores + bool(options.alignments))]]
    for found in sentence.translations:
        score = [f"{found.score:.4f}"] if options.scores else []
        text = found.text if options.detokenise else " ".join(found.words)
        links = [pharaoh(found, null)] if options.alignments else []
        lines.append([*number, *score, text, *links])
    for columns in lines:
        sys.stdout.write("\t".join(column.replace("\t", " ") for column in columns) + "\n")


def pharaoh(found: Translation, null: float) -> str:
    """Links i-j from source word i to target word j, from 0; empty without attention."""
    weights = None if found.row is None else found.row["weights"]
    return "" if weights is None else format_links(hard_links(weights, null))


def describe(sentence: Sentence, found: Translation, null: float) -> dict[str, Any]:
    """One translation as an object: text, tokens, score, links and weights of attention."""
    assert found.row is not None
    return {
        "text": found.text,
        "tokens": found.words,
        "score": found.score,
        "links": pharaoh(found, null),
        "weights": found.row["weights"],
        "log_probability": found.row["log_probability"],
    }


def draw(sentence: Sentence, folder: str | None) -> dict[str, Any]:
    """The best translation's alignment, drawn to `folder` where one is given.

    Raises:
        InputError: where there is nothing to draw: the model has no attention.
    """
    row = sentence.translations[0].row
    assert row is not None
    if folder and row["weights"] is None:
        raise InputError("heatmap: the model attends to nothing; leave it out")
    if folder:
        draw_heatmap(row, Path(folder) / f"line-{sentence.number}", ["png"])
    return row


if __name__ == "__main__":
    main()
