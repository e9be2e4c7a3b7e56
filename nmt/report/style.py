"""The style of all figures: `figures.mplstyle`, and colours that colour-blind readers can distinguish.

Figures are created without pyplot, which would open windows and keep global state.
"""

from __future__ import annotations

import io
import logging
import re
import struct
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib import font_manager
from matplotlib.figure import Figure

from nmt.utils.files import write_atomically
from nmt.utils.text import file_name

log = logging.getLogger(__name__)

MISSING = r"Glyph \d+ .*missing from"  # matplotlib's warning
# Okabe and Ito's colours without yellow, which is too pale for a line on white
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
LINES = ("-", "--", ":")
GREY = "#555555"
SCREEN_DPI = 140  # pixels per inch of a figure in a notebook


@cache
def _installed_families() -> set[str]:
    return set(font_manager.get_font_names())


@contextmanager
def style() -> Iterator[None]:
    """Applies the project's style to figures that are drawn and saved in this context.

    Decorate each function that draws with `@style()`.
    """
    sheet = Path(__file__).with_name("figures.mplstyle")
    with matplotlib.rc_context(fname=sheet), warnings.catch_warnings():
        families = matplotlib.rcParams["font.family"]
        families = [family for family in families if family in _installed_families()]
        matplotlib.rcParams["font.family"] = families
        # Hides matplotlib's warnings about characters without a font, because `save_figure` reports these.
        warnings.filterwarnings("ignore", message=MISSING)
        warnings.filterwarnings("ignore", message="Matplotlib currently does not support")
        yield


class Drawing(Figure):
    """A figure that notebooks show without pyplot; with pyplot, they would show it twice."""

    @style()
    def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
        """Returns the PNG and its display size, which is half its size in pixels, so that it looks sharp."""
        file = io.BytesIO()
        self.savefig(file, format="png", dpi=2 * SCREEN_DPI, bbox_inches="tight", pad_inches=0.05)
        width, height = struct.unpack(">II", file.getvalue()[16:24])
        return file.getvalue(), {"width": width // 2, "height": height // 2}


@style()
def save_figure(figure: Figure, path: Path, formats: Sequence[str]) -> list[Path]:
    """Writes the figure in each of matplotlib's `formats`, as `path`.png, `path`.svg and so on; returns the files."""
    if engine := figure.get_layout_engine():
        engine.execute(figure)
        figure.set_layout_engine(None)  # keeps this layout for all files
    undated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
    written = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.filterwarnings("always", message=MISSING)
        box = figure.get_tightbbox().padded(0.05)
        for name in formats:
            file = path.with_name(f"{file_name(path.name)}.{name}")
            metadata = undated.get(name)
            draw = partial(figure.savefig, format=name, bbox_inches=box, metadata=metadata)
            write_atomically(file, draw)
            written.append(file)
    for each in caught:
        if re.match(MISSING, str(each.message)):
            advise_font()
        else:
            warnings.warn_explicit(each.message, each.category, each.filename, each.lineno)
    return written


@cache
def advise_font() -> None:
    """Warns once that figures have characters without a font, and suggests packages."""
    log.warning(
        "no installed font has some of the characters, so figures show boxes instead; install Noto fonts, "
        "such as the packages fonts-noto-core and fonts-noto-cjk"
    )


def run_style(place: int) -> dict[str, Any]:
    """Returns colour, marker and line style for run number `place` (from 0) of a figure."""
    return {
        "color": COLOURS[place % len(COLOURS)],
        "marker": MARKERS[place % len(MARKERS)],
        "linestyle": LINES[place // len(COLOURS) % len(LINES)],
    }
