"""What a page holds besides its text: data, style and programs, and the policy that allows no others.

Text enters a page in two ways only: jinja2 escapes it in the templates, and data are deflated JSON in
base64, which the page's program puts into text nodes and attributes.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import json
import posixpath
import re
import zlib
from collections.abc import Mapping
from graphlib import TopologicalSorter
from importlib import resources
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from nmt.utils.files import write_text
from nmt.utils.text import printable

_IMPORT = re.compile(r"""^import \{([^}]*)\} from "(\.[\w./-]+\.mjs)";$""", re.MULTILINE)
_EXPORT = re.compile(r"^export ((?:async )?function\*?|const|let|class) (\w+)", re.MULTILINE)


def write_page(path: str | Path, payloads: Mapping[str, str], **content: Any) -> Path:
    """Fills the template `page.html` and writes the file.

    Args:
        payloads: packed data by the id of their element.
        content: what the templates take: `title`, `subtitle`, `navigation`, `sections`, …
    """
    source = program("main.mjs")
    sources = [source, *([chart_library()] if "library" in payloads else [])]
    digests = [hashlib.sha256(each.encode()).digest() for each in sources]
    allowed = (f"'sha256-{base64.b64encode(digest).decode('ascii')}'" for digest in digests)
    page = _templates().get_template("page.html")
    text = page.render(
        payloads=payloads,
        scripts=Markup(" ".join(allowed)),
        workers="blob:" if "live-program" in payloads else Markup("'none'"),
        style=Markup(asset("style.css")),
        program=Markup(source),
        **content,
    )
    write_text(Path(path), text)
    return Path(path)


@functools.cache
def _templates() -> Environment:
    return Environment(
        loader=PackageLoader(__package__),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
        finalize=lambda value: printable(value) if type(value) is str else value,
    )


def packed(value: Any, level: int = 9) -> str:
    """A value as JSON, text or bytes, deflated and in base64; js/data.mjs reads it back."""
    if not isinstance(value, str | bytes):
        value = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    content = value.encode("utf-8", "replace") if isinstance(value, str) else value
    return base64.b64encode(zlib.compress(content, level)).decode("ascii")


@functools.cache
def program(main: str) -> str:
    """The JavaScript modules joined into one script, so that a page can name it by its hash.

    Each becomes a function that returns what it exports, after those that it imports from; `main` is
    the last one. Imports and exports must stand on one line each and by name.
    """
    sources: dict[str, str] = {}
    imports: dict[str, list[str]] = {}
    pending = [main]
    while pending:
        name = pending.pop()
        if name not in sources:
            sources[name] = asset(f"js/{name}")
            folder = posixpath.dirname(name)
            imports[name] = [
                posixpath.normpath(posixpath.join(folder, match[2]))
                for match in _IMPORT.finditer(sources[name])
            ]
            pending += imports[name]
    parts = ['"use strict";', "const modules = {};"]
    for name in TopologicalSorter(imports).static_order():
        exported = ", ".join(match[2] for match in _EXPORT.finditer(sources[name]))
        body = sources[name]
        for imported in imports[name]:
            body = _IMPORT.sub(rf'const {{\1}} = modules["{imported}"];', body, count=1)
        body = _EXPORT.sub(r"\1 \2", body)
        parts.append(f'modules["{name}"] = (() => {{\n{body}\nreturn {{ {exported} }};\n}})();')
    return "\n".join(parts)


@functools.cache
def chart_library() -> str:
    """Vega, Vega-Lite and vega-embed as one program that sets `window.vegaEmbed`."""
    import vl_convert

    return vl_convert.javascript_bundle("window.vegaEmbed=vegaEmbed;")


def asset(name: str) -> str:
    """The text of a file of this package."""
    return (resources.files(__package__) / name).read_text(encoding="utf-8")
