"""Counts of what was kept and dropped of a text: a summary table, and manifest.json in the cache."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from nmt.config import DataConfig, TokenizerConfig
from nmt.config.schema import to_containers
from nmt.data.splits import HeldOut
from nmt.data.tokenised import TokenisedText
from nmt.data.vocabulary import UNKNOWN
from nmt.data.word_vocabulary import WordVocabulary
from nmt.utils.files import write_json

NAME = "manifest.json"
SCHEMA = 1
HISTOGRAM_EDGES = (10, 20, 30, 40, 50, 60, 80, 100)  # last length of each range

Array = npt.NDArray[Any]


def write_manifest(
    folder: Path,
    data: DataConfig,
    tokenizer: TokenizerConfig,
    text: TokenisedText,
    counts: Mapping[str, Any],
    words: Array,
) -> None:
    """Writes `manifest.json` beside encoded pairs, where it does not lie there yet.

    It says what depends on nothing but the training text and the vocabularies; the cap on length
    and the held-out sets, which can change from run to run, are not in it.

    Args:
        folder: of the encoded pairs.
        data: section `data` of the configuration.
        tokenizer: section `tokenizer`.
        text: the training text they were encoded from.
        counts: `train` and `vocabulary`, as they were counted when the pairs were encoded.
        words: (pairs, 2) words of source and target.
    """
    path = folder / NAME
    if path.exists():
        return
    manifest = {
        "schema": SCHEMA,
        "fingerprint": folder.name.removeprefix("pairs-"),
        "text_fingerprint": text.fingerprint,
        "settings": {
            "languages": list(data.languages),
            "train": _given(data.train),
            "filters": to_containers(data.filters),
            "selection": data.selection,
            "selection_target_words": data.selection_target_words,
            "selection_order": data.selection_order,
            "in_domain": _given(data.in_domain),
            "tokenizer": to_containers(tokenizer),
        },
        "lines": text.lines,
        "empty": text.empty,
        "dropped": dict(text.dropped),
        "pairs": len(text.rows),
        "words": {side: counts["train"][f"{side}_words"] for side in ("source", "target")},
        "coverage": {side: 1 - counts["train"][f"{side}_unknown"] for side in ("source", "target")},
        "vocabulary": counts["vocabulary"],
        "lengths": length_histogram(words),
    }
    write_json(path, manifest)


def length_histogram(words: Array) -> list[dict[str, int | None]]:
    """How many pairs lie in each range of lengths, by each side and by the longer one.

    Args:
        words: (pairs, 2) words of source and target.

    Returns:
        For each range `from`, `to` (None for the open one), `source`, `target` and `longer`: the
        sum of `longer` up to n is the number of pairs that `data.max_length=n` keeps.
    """
    sides = {"source": words[:, 0], "target": words[:, 1], "longer": words.max(axis=1)}
    counts = {
        name: np.bincount(
            np.searchsorted(HISTOGRAM_EDGES, lengths), minlength=len(HISTOGRAM_EDGES) + 1
        ).tolist()
        for name, lengths in sides.items()
    }
    starts = [1, *(edge + 1 for edge in HISTOGRAM_EDGES)]
    return [
        {"from": start, "to": end, **{name: count[place] for name, count in counts.items()}}
        for place, (start, end) in enumerate(zip(starts, [*HISTOGRAM_EDGES, None], strict=True))
    ]


def held_out_counts(split: HeldOut, text: TokenisedText) -> dict[str, Any]:
    """Counts of a split that a model is measured on: nothing of it is filtered or too long."""
    counts: dict[str, Any] = {
        "lines": text.lines,
        "empty": text.empty,
        "too_long": 0,
        "pairs": len(split),
    }
    pairs = [split.ids(number) for number in range(len(split))]
    for side, name in enumerate(("source", "target")):
        ids = np.concatenate([pair[side] for pair in pairs])
        counts[f"{name}_words"] = int(split.words[:, side].sum(dtype=np.int64))
        counts[f"{name}_unknown"] = np.count_nonzero(ids == UNKNOWN) / (len(ids) - len(split))
    return counts


def summary_table(manifest: Mapping[str, Any], fingerprint: str) -> str:
    """A short table of counts, for people; `manifest` as `Prepared` has it."""
    splits = manifest["splits"]
    width = max(map(len, [*splits, "split"]))
    lines = [
        f"{'split':<{width}} {'pairs':>10} {'empty':>8} {'too long':>9}"
        f" {'words (source / target)':>23} {'unknown':>17}"
    ]
    for name, counts in splits.items():
        words = f"{counts['source_words']:,} / {counts['target_words']:,}"
        unknown = f"{100 * counts['source_unknown']:.2f} / {100 * counts['target_unknown']:.2f} %"
        lines.append(
            f"{name:<{width}} {counts['pairs']:>10,} {counts['empty']:>8,}"
            f" {counts['too_long']:>9,} {words:>23} {unknown:>17}"
        )
    for side, counts in manifest["vocabulary"].items():
        of = f" of {counts['types']:,} types" if counts["types"] else ""
        symbols = "words" if counts["kind"] == WordVocabulary.kind else "subwords"
        lines.append(f"{side} vocabulary: {counts['size']:,} {symbols}{of}, </s> and <unk>")
    dropped = dict(splits["train"]["dropped"])
    not_selected = dropped.pop("not_selected", 0)
    filtered = ", ".join(f"{name} {count:,}" for name, count in dropped.items()) or "none"
    lines.append(f"training pairs left out by data.filters: {filtered}")
    if manifest["selection"] != "none":
        said = f"data.selection={manifest['selection']}: {not_selected:,}"
        lines.append(f"training pairs left out by {said}")
    lines.append(f"fingerprint: {fingerprint}")
    return "\n".join(lines)


def _given(section: Any) -> dict[str, Any]:
    """The keys of a section of text that say something."""
    return {name: value for name, value in to_containers(section).items() if value}
