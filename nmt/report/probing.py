"""Tables and figures of nmt.probe: accuracy of the probes, and information gain.

Lengths are words of the side that `bucket_by` names. Positions of readings count what the encoder reads,
words or subwords; those of gains count words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from nmt.evaluation.buckets import bucket_name
from nmt.report.style import GREY, run_style, shown
from nmt.report.table import Column, Table, levels

ORDERS = {"from_start": "from the start", "from_end": "from the end"}
FEWEST = 50  # words of a position at which a gain is drawn
POSITION = "position of the word"
READERS = {"probe": "probe", "shuffled": "shuffled words", "chance": "chance"}
LOOKS: dict[str, dict[str, Any]] = {
    "shuffled": {"color": GREY, "linestyle": ":", "lw": 1.0},
    "chance": {"color": GREY, "linestyle": "--", "lw": 1.0},
}


def readings_table(content: Mapping[str, Any]) -> Table:
    """Shares of words, or of subwords, read, in per cent: a row for all of them and for each length.

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
            scores = {reader: _triple(part[reader], 100.0) for reader in READERS}
            rows.append({**head, "length": name, "words": part["words"], **scores})
    settings, confidence = content["settings"], levels([content["confidence"]])
    symbols, side = _symbols(content["readings"]), content["bucket_by"]
    return Table(
        "probe",
        f"Source {symbols} read from the vectors of {content['name']}, in per cent",
        [
            Column("set", "test set", text=True),
            Column("vectors", "vectors", text=True),
            Column("order", "positions", text=True),
            Column("length", f"words of the {side}", text=True),
            Column("words", symbols, 0),
            *(Column(reader, title, 1) for reader, title in READERS.items()),
        ],
        rows,
        [
            f"Probes of {settings['sentences']} training sentences, positions 1 to "
            f"{settings['positions']}; in brackets {confidence} bootstrap intervals over sentences.",
            f"Chance: the most frequent of the {symbols} at the position. Shuffled words: probes that "
            f"learnt from vectors and {symbols} of different sentences.",
        ],
    )


def gains_table(content: Mapping[str, Any]) -> Table:
    """Nats a word gained over another model: a row for all words and for each length.

    Args:
        content: of probe.json.
    """
    rows = [
        {
            "set": gain["set"],
            "length": "all" if part is gain else bucket_name(part),
            "words": part["words"],
            "gain": _triple(part["gain"]),
        }
        for gain in content["gains"]
        if gain["order"] == "from_start"  # the same words as from the end
        for part in (gain, *gain["by_length"])
    ]
    return Table(
        "gain",
        f"Nats a word that {content['name']} gains over {content['against']}",
        [
            Column("set", "test set", text=True),
            Column("length", f"words of the {content['bucket_by']}", text=True),
            Column("words", "words", 0),
            Column("gain", "nats a word", 3),
        ],
        rows,
        [
            f"Of the references, both force-decoded; in brackets {levels([content['confidence']])} "
            "bootstrap intervals over sentences. Words are source words that gold links join with "
            "target words or, in a set without gold links, words of the reference.",
        ],
    )


def readings_figure(content: Mapping[str, Any], test_set: str) -> Figure:
    """A row a kind of vector and order: shares by position, a line for each length, and by length."""
    readings = [each for each in content["readings"] if each["set"] == test_set]
    titles = [f"{each['vectors']}, {ORDERS[each['order']]}" for each in readings]
    symbols = _symbols(readings)
    counted = f"position, in {symbols} of the encoder" if symbols != "words" else POSITION
    panels = Panels("probe", f"{symbols} read (%)", counted, LOOKS, 100.0)
    figure = panels.figure(readings, titles, f"{content['name']}, {test_set}", content)
    for axes in figure.axes:
        axes.set_ylim(0, 103)
    return figure


def gains_figure(content: Mapping[str, Any], test_set: str) -> Figure:
    """A row an order: gains by position, a line for each length, and by length."""
    gains = [each for each in content["gains"] if each["set"] == test_set]
    titles = [f"{each['positions']} words, {ORDERS[each['order']]}" for each in gains]
    panels = Panels("gain", "gain (nats a word)", POSITION, {}, 1.0, FEWEST)
    about = f"{content['name']} over {content['against']}, {test_set}"
    return panels.figure(gains, titles, about, content)


@dataclass(frozen=True)
class Panels:
    """How means by position and by length are drawn.

    Attributes:
        main: name of the table that is drawn for each length.
        unit: of its values.
        counted: what positions are counted in.
        looks: of tables that stand beside it.
        scale: that values are multiplied by.
        fewest: words of a length and position that are drawn.
    """

    main: str
    unit: str
    counted: str
    looks: Mapping[str, Mapping[str, Any]]
    scale: float
    fewest: int = 1

    def figure(
        self,
        measured: Sequence[Mapping[str, Any]],
        titles: Sequence[str],
        about: str,
        content: Mapping[str, Any],
    ) -> Figure:
        """A row for each of `measured` (`nmt.evaluation.positions.means`), a part of probe.json's `content`."""
        figure = Figure(figsize=(7.0, 2.2 * len(measured) + 0.5), layout="constrained")
        axes = figure.subplots(len(measured), 2, squeeze=False, sharey=True, width_ratios=[3, 2])
        for row, each, title in zip(axes, measured, titles, strict=True):
            self._by_position(row[0], each)
            self._by_length(row[1], each)
            row[0].set_title(title)
            row[0].set_ylabel(self.unit)
        axes[-1, 0].set_xlabel(self.counted)
        axes[-1, 1].set_xlabel(f"words of the {content['bucket_by']} sentence")
        lines: dict[str, Any] = {}
        for each in axes.flat:
            handles, labels = each.get_legend_handles_labels()
            lines |= dict(zip(labels, handles, strict=True))
        figure.legend(lines.values(), lines.keys(), loc="outside upper center", ncols=6)
        bands = levels([content["confidence"]])
        note = f"{shown(about, 120)}; bands: {bands} bootstrap intervals"
        figure.supxlabel(note, fontsize=6.5, color=GREY)
        return figure

    def _by_position(self, axes: Axes, measured: Mapping[str, Any]) -> None:
        buckets = measured["by_length"]
        for place, bucket in enumerate(buckets):
            rows = [
                row
                for row in measured["by_length_and_position"]
                if (row["from"], row["to"]) == (bucket["from"], bucket["to"])
                and row["words"] >= self.fewest
            ]
            label = f"{bucket_name(bucket)} words"
            colour = colormaps["viridis"](place / len(buckets))  # in the order of the lengths
            axes.plot(_numbers(rows), self._scores(rows), color=colour, lw=1.0, label=label)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        for name, look in self.looks.items():
            rows = measured["by_position"]
            axes.plot(_numbers(rows), self._scores(rows, name), label=READERS[name], **look)

    def _by_length(self, axes: Axes, measured: Mapping[str, Any]) -> None:
        rows = measured["by_length"]
        places = range(len(rows))
        look = {**run_style(0), "color": "black"}
        axes.plot(places, self._scores(rows), label="all positions", **look)
        shuffled = {"shuffled": GREY} if "shuffled" in self.looks else {}
        for name, colour in ({self.main: "black"} | shuffled).items():
            low, high = self._scores(rows, name, "low"), self._scores(rows, name, "high")
            axes.fill_between(places, low, high, color=colour, alpha=0.2, lw=0)
        for name, drawn in self.looks.items():
            axes.plot(places, self._scores(rows, name), **drawn)
        axes.set_xticks(places, [bucket_name(row) for row in rows], fontsize=6.5)

    def _scores(
        self, rows: Sequence[Mapping[str, Any]], name: str = "", part: str = "score"
    ) -> np.ndarray:
        """NaN where there is none."""
        return self.scale * np.array([row[name or self.main][part] for row in rows], dtype=float)


def _symbols(readings: Sequence[Mapping[str, Any]]) -> str:
    """What positions of readings count: `words`, or `subwords`."""
    return str(readings[0]["positions"])


def _numbers(rows: Sequence[Mapping[str, Any]]) -> list[int]:
    return [row["position"] for row in rows]


def _triple(score: Mapping[str, Any], scale: float = 1.0) -> tuple[float | None, ...]:
    ends = (score[part] for part in ("score", "low", "high"))
    return tuple(None if end is None else scale * end for end in ends)
