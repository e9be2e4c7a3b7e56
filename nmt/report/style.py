"""The style of all figures: sizes for print, colours that colour-blind readers tell apart.

Figures are `matplotlib.figure.Figure` objects of their own: no window, no display, no global state.
Text that comes from data is shown as it is: no dollar sign or backslash starts a formula.
"""

from __future__ import annotations

import re
import unicodedata
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib import font_manager
from matplotlib.figure import Figure

from nmt.utils.errors import InputError
from nmt.utils.files import write_atomically

FORMATS = ("png", "svg", "pdf")
MAX_STEM = 200  # letters of a file's name

# Okabe and Ito's colours, the yellow left out (too pale for a line on white)
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
LINES = ("-", "--", ":")

GREY = "#555555"

# tried in this order for each glyph; the first is part of matplotlib
_FAMILIES = (
    "DejaVu Sans",
    "Noto Sans",
    "Noto Sans CJK SC",
    "Noto Sans CJK JP",
    "WenQuanYi Zen Hei",
    "Noto Sans Arabic",
    "Noto Sans Hebrew",
    "Noto Sans Devanagari",
    "Noto Sans Thai",
    "Arial Unicode MS",
)


@cache
def _families() -> list[str]:
    installed = set(font_manager.get_font_names())
    return [family for family in _FAMILIES if family in installed]


# a serif face that is part of matplotlib and goes with Times, which most papers are set in
PAPER = {
    "font.family": ["STIXGeneral"],
    "axes.titlesize": 7.5,
    "legend.fontsize": 7.5,
    "savefig.dpi": 300,
}


@contextmanager
def style(changes: Mapping[str, Any] | None = None) -> Iterator[None]:
    """Everything drawn and saved inside has the project's look.

    Args:
        changes: settings of matplotlib that differ, such as `PAPER`; the families of a font come
            before the usual ones, which have the glyphs that it lacks.
    """
    look: dict[Any, Any] = {
        "font.family": _families(),
        "font.size": 8,
        "axes.titlesize": 8,
        "axes.labelsize": 8,
        "xtick.labelsize": 7,
        "ytick.labelsize": 7,
        "legend.fontsize": 7,
        "legend.frameon": False,
        "axes.linewidth": 0.6,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "xtick.major.width": 0.6,
        "ytick.major.width": 0.6,
        "lines.linewidth": 1.3,
        "lines.markersize": 4,
        "text.parse_math": False,
        "text.usetex": False,
        "axes.unicode_minus": True,
        "svg.fonttype": "none",  # words stay words: they can be found, copied and edited
        "svg.hashsalt": "nmt",  # the same results give the same file
        "pdf.fonttype": 42,
        "savefig.dpi": 200,
        "savefig.facecolor": "white",
        **(changes or {}),
    }
    look["font.family"] = list(dict.fromkeys([*look["font.family"], *_families()]))
    with matplotlib.rc_context(look), warnings.catch_warnings():
        # a script that no installed font covers is drawn as boxes
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        warnings.filterwarnings("ignore", message="Matplotlib currently does not support")
        yield


def draw_figure(
    make: Callable[[], Figure | None],
    path: Path,
    formats: Sequence[str],
    changes: Mapping[str, Any] | None = None,
) -> list[Path]:
    """Draws what `make` returns, if anything, and returns its files.

    Args:
        make: draws the figure.
        path: of the files, without their endings.
        formats: some of `FORMATS`.
        changes: as in `style`.
    """
    with style(changes):
        figure = make()
        return [] if figure is None else save_figure(figure, path, formats)


def save_figure(figure: Figure, path: Path, formats: Sequence[str]) -> list[Path]:
    """Writes `path`.png, `path`.svg, ...; to be called inside `style()`.

    Raises:
        InputError: a format that is not among `FORMATS`.
    """
    for name in formats:
        if name not in FORMATS:
            endings = ", ".join(f".{known}" for known in FORMATS)
            given = f"{path}.{name}" if name else path
            raise InputError(f"{given} must end in one of {endings}")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.draw_without_rendering()
    figure.set_layout_engine(None)  # laid out and measured once, and not again for each file
    box = figure.get_tightbbox().padded(0.05)
    written = []
    for name in formats:
        file = path.with_name(f"{file_name(path.name)}.{name}")
        undated = {"png": {}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}[name]
        draw = partial(figure.savefig, format=name, bbox_inches=box, metadata=undated)
        write_atomically(file, draw)
        written.append(file)
    return written


def file_name(text: str) -> str:
    """The start of a text with everything but letters, digits, dots and dashes turned into `_`."""
    return re.sub(r"[^\w.-]", "_", text[:MAX_STEM]) or "_"


def shown(text: str, longest: int = 24) -> str:
    """A token as it is written in a figure: control characters made visible, overlong ones cut."""
    visible = "".join(
        "\N{REPLACEMENT CHARACTER}" if unicodedata.category(c) in ("Cc", "Cs", "Cn") else c
        for c in text
    )
    return visible if len(visible) <= longest else f"{visible[: longest - 1]}…"


def run_style(place: int) -> dict[str, Any]:
    """Colour, marker and line of the run at `place` of a figure."""
    return {
        "color": COLOURS[place % len(COLOURS)],
        "marker": MARKERS[place % len(MARKERS)],
        "linestyle": LINES[place // len(COLOURS) % len(LINES)],
    }
