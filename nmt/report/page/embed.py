"""How data, styles and programs are put inside an HTML file so that nothing in them can be taken for markup."""

from __future__ import annotations

import base64
import functools
import json
import re
import zlib
from html import escape
from importlib import resources
from typing import Any

_IMPORT = re.compile(r"""(from\s+|import\s+)(["'])\./([\w-]+\.mjs)\2""")
_PREFIX = "nmt/"


def packed(identity: str, value: Any) -> str:
    """A JSON payload deflated and in base64, which holds no markup; `unpack` of data.mjs reads it back."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return packed_text(identity, text)


def packed_text(identity: str, text: str) -> str:
    """Text deflated and in base64."""
    content = base64.b64encode(zlib.compress(text.encode("utf-8", "replace"), 9)).decode("ascii")
    return f'<script type="text/plain" id="{escape(identity)}">{content}</script>'


def asset(name: str) -> str:
    """A file of this package."""
    return (resources.files(__package__) / name).read_text(encoding="utf-8")


def stylesheet() -> str:
    return f"<style>{asset('style.css')}</style>"


def programs(main: str) -> str:
    """The JavaScript modules inlined: an import map of data URLs, and the module that starts them.

    Modules import one another by relative path in their files, where tests and editors follow it; a data URL has no
    folder, so that paths become names of the map.
    """
    folder = resources.files(__package__) / "js"
    names = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".mjs"))
    urls = {}
    for name in names:
        text = _IMPORT.sub(rf"\1\2{_PREFIX}\3\2", (folder / name).read_text(encoding="utf-8"))
        content = base64.b64encode(text.encode()).decode("ascii")
        urls[_PREFIX + name] = f"data:text/javascript;base64,{content}"
    table = json.dumps({"imports": urls})
    return (
        f'<script type="importmap">{table}</script>\n'
        f'<script type="module">import "{_PREFIX}{main}";</script>'
    )


@functools.cache
def chart_library() -> str:
    """Vega, Vega-Lite and vega-embed as one program that sets `window.vegaEmbed`."""
    import vl_convert

    return vl_convert.javascript_bundle("window.vegaEmbed=vegaEmbed;")
