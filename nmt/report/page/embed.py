"""Embeds data, styles and programs in an HTML file, escaped so that none is read as markup."""

from __future__ import annotations

import base64
import functools
import hashlib
import json
import posixpath
import re
import zlib
from graphlib import TopologicalSorter
from importlib import resources
from typing import Any

from nmt.report.page.markup import Markup, element

_IMPORT = re.compile(r"""^import \{([^}]*)\} from "(\.[\w./-]+\.mjs)";$""", re.MULTILINE)
_EXPORT = re.compile(r"^export ((?:async )?function\*?|const|let|class) (\w+)", re.MULTILINE)


def packed(identity: str, value: Any) -> Markup:
    """A JSON payload deflated and in base64, which holds no markup; `unpack` of data.mjs reads it back."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return packed_text(identity, text)


def packed_text(identity: str, text: str) -> Markup:
    """Text deflated and in base64."""
    return packed_bytes(identity, text.encode("utf-8", "replace"), 9)


def packed_bytes(identity: str, content: bytes, level: int) -> Markup:
    """Bytes deflated at a level of zlib's and in base64."""
    written = base64.b64encode(zlib.compress(content, level)).decode("ascii")
    return element("script", written, type="text/plain", id=identity)


def asset(name: str) -> str:
    """A file of this package."""
    return (resources.files(__package__) / name).read_text(encoding="utf-8")


def stylesheet() -> Markup:
    return element("style", Markup(asset("style.css")))


@functools.cache
def program(main: str) -> str:
    """The JavaScript modules joined into one script, so that a page can name it by its hash.

    Each becomes a function that returns what it exports, after those that it imports from; `main` is the last one.
    Imports and exports must stand on one line each and by name, as in the files of `js`.
    """
    sources: dict[str, str] = {}
    imports: dict[str, list[str]] = {}
    pending = [main]
    while pending:
        name = pending.pop()
        if name not in sources:
            sources[name] = asset(f"js/{name}")
            imports[name] = [_beside(name, found[2]) for found in _IMPORT.finditer(sources[name])]
            pending += imports[name]
    parts = ['"use strict";', "const modules = {};"]
    for name in TopologicalSorter(imports).static_order():
        exported = ", ".join(found[2] for found in _EXPORT.finditer(sources[name]))
        named = iter(imports[name])
        body = _IMPORT.sub(
            lambda found, named=named: f'const {{{found[1]}}} = modules["{next(named)}"];',  # type: ignore[misc]
            sources[name],
        )
        body = _EXPORT.sub(r"\1 \2", body)
        parts.append(f'modules["{name}"] = (() => {{\n{body}\nreturn {{ {exported} }};\n}})();')
    return "\n".join(parts)


def _beside(name: str, imported: str) -> str:
    """A module's path in `js` from the path that another one imports it by.

    >>> _beside("search/beam.mjs", "../dom.mjs")
    'dom.mjs'
    """
    return posixpath.normpath(posixpath.join(posixpath.dirname(name), imported))


def script(source: str) -> Markup:
    """A script that a page runs when all before it is there.

    Raises:
        ValueError: where the source would end its element.
    """
    if re.search(r"</script|<!--", source, re.IGNORECASE):
        raise ValueError("a script holds what would end it")
    return element("script", Markup(source), type="module")


def allowed(*sources: str) -> str:
    """Sources of scripts as a Content-Security-Policy allows them: by the hash of their text."""
    digests = (hashlib.sha256(source.encode()).digest() for source in sources)
    return " ".join(f"'sha256-{base64.b64encode(digest).decode('ascii')}'" for digest in digests)


@functools.cache
def chart_library() -> str:
    """Vega, Vega-Lite and vega-embed as one program that sets `window.vegaEmbed`."""
    import vl_convert

    return vl_convert.javascript_bundle("window.vegaEmbed=vegaEmbed;")
