"""What probes have read, as a table and as curves over position and length."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from nmt.evaluation.buckets import bucket_name
from nmt.report.style import COLOURS, GREY, run_style, save_figure, shown, style
from nmt.report.table import Column, Table, levels

ORDERS = {"from_start": "from the start", "from_end": "from the end"}
READERS = {"probe": "probe", "shuffled": "shuffled words", "chance": "chance"}
LOOKS: dict[str, dict[str, Any]] = {
    "shuffled": {"color": GREY, "linestyle": ":", "lw": 1.0},
    "chance": {"color": GREY, "linestyle": "--", "lw": 1.0},
}


def readings_table(content: Mapping[str, Any]) -> Table:
    """Shares of words read, in per cent: a row for all words and for each length.

    Args:
        content: of probe.json.
    """
    rows = []
    for reading in content["readings"]:
        head = {
            "set": reading["set"],
            "vectors": reading["vectors"],
            "order": ORDERS[reading["order"]],
        }
        for part in (reading, *reading["by_length"]):
            name = "all" if part is reading else bucket_name(part)
            scores = {reader: _percent(part[reader]) for reader in READERS}
            rows.append({**head, "length": name, "words": part["words"], **scores})
    settings, confidence = content["settings"], levels([content["confidence"]])
    return Table(
        "probe",
        f"Source words read from the vectors of {content['name']}, in per cent",
        [
            Column("set", "test set", text=True),
            Column("vectors", "vectors", text=True),
            Column("order", "positions", text=True),
            Column("length", "source length", text=True),
            Column("words", "words", 0),
            *(Column(reader, title, 1) for reader, title in READERS.items()),
        ],
        rows,
        [
            f"Probes of {settings['sentences']} training sentences, positions 1 to "
            f"{settings['positions']}; in brackets {confidence} bootstrap intervals over sentences.",
            "Chance: the most frequent word at the position. Shuffled words: probes that learnt from "
            "vectors and words of different sentences.",
        ],
    )


def draw_readings(
    content: Mapping[str, Any], test_set: str, path: Path, formats: Sequence[str]
) -> list[Path]:
    """Draws the figure of a test set to `path`, given without its ending.

    Raises:
        InputError: an unknown format.
    """
    with style():
        return save_figure(readings_figure(content, test_set), path, formats)


def readings_figure(content: Mapping[str, Any], test_set: str) -> Figure:
    """A row a kind of vector and order: shares by position, a line for each length, and by length."""
    readings = [each for each in content["readings"] if each["set"] == test_set]
    figure = Figure(figsize=(7.0, 2.2 * len(readings) + 0.5), layout="constrained")
    axes = figure.subplots(len(readings), 2, squeeze=False, sharey=True, width_ratios=[3, 2])
    for row, reading in zip(axes, readings, strict=True):
        _by_position(row[0], reading)
        _by_length(row[1], reading)
        row[0].set_title(f"{reading['vectors']}, {ORDERS[reading['order']]}")
        row[0].set_ylabel("words read (%)")
        row[0].set_ylim(0, 103)
    axes[-1, 0].set_xlabel("position of the word")
    axes[-1, 1].set_xlabel("words of the source sentence")
    lines: dict[str, Any] = {}
    for each in axes.flat:
        handles, labels = each.get_legend_handles_labels()
        lines |= dict(zip(labels, handles, strict=True))
    figure.legend(lines.values(), lines.keys(), loc="outside upper center", ncols=6)
    note = f"{shown(content['name'], 60)}, {shown(test_set, 60)}; bands: "
    note += f"{levels([content['confidence']])} bootstrap intervals"
    figure.supxlabel(note, fontsize=6.5, color=GREY)
    return figure


def _by_position(axes: Axes, reading: Mapping[str, Any]) -> None:
    for place, bucket in enumerate(reading["by_length"]):
        rows = [
            row
            for row in reading["by_length_and_position"]
            if (row["from"], row["to"]) == (bucket["from"], bucket["to"])
        ]
        label = f"{bucket_name(bucket)} words"
        colour = COLOURS[place % len(COLOURS)]
        axes.plot(_numbers(rows), _scores(rows, "probe"), color=colour, lw=1.0, label=label)
    for reader, look in LOOKS.items():
        rows = reading["by_position"]
        axes.plot(_numbers(rows), _scores(rows, reader), label=READERS[reader], **look)


def _by_length(axes: Axes, reading: Mapping[str, Any]) -> None:
    rows = reading["by_length"]
    places = range(len(rows))
    look = {**run_style(0), "color": "black"}
    axes.plot(places, _scores(rows, "probe"), label="all positions", **look)
    for reader, colour in (("probe", "black"), ("shuffled", GREY)):
        low, high = _scores(rows, reader, "low"), _scores(rows, reader, "high")
        axes.fill_between(places, low, high, color=colour, alpha=0.2, lw=0)
    for reader, drawn in LOOKS.items():
        axes.plot(places, _scores(rows, reader), **drawn)
    axes.set_xticks(places, [bucket_name(row) for row in rows], fontsize=6.5)


def _numbers(rows: Sequence[Mapping[str, Any]]) -> list[int]:
    return [row["position"] for row in rows]


def _scores(rows: Sequence[Mapping[str, Any]], reader: str, part: str = "score") -> np.ndarray:
    """In per cent; NaN where there is none."""
    values = [row[reader][part] for row in rows]
    return 100 * np.array([np.nan if value is None else value for value in values], dtype=float)


def _percent(score: Mapping[str, Any]) -> tuple[float | None, ...]:
    ends = (score[part] for part in ("score", "low", "high"))
    return tuple(None if end is None else 100 * end for end in ends)
