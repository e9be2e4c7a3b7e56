"""Packs the data, style and scripts of a page."""

from __future__ import annotations

import base64
import contextlib
import functools
import json
import os
import posixpath
import re
import zlib
from importlib import resources
from importlib.metadata import version
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

_IMPORT = re.compile(r"""^import \{([^}]*)\} from "(\.[\w./-]+\.mjs)";$""", re.MULTILINE)
_EXPORT = re.compile(r"^export ((?:async )?function\*?|const|let|class) (\w+)", re.MULTILINE)


def packed(value: Any, level: int = 9) -> str:
    """Compresses a text, or a value as JSON, and encodes it in base64; js/data.mjs decodes it."""
    if not isinstance(value, str):
        value = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    content = zlib.compress(value.encode("utf-8", "replace"), level)
    return base64.b64encode(content).decode("ascii")


@functools.cache
def program(main: str) -> str:
    """Joins `main` and all JavaScript modules that it needs into one script.

    Each module becomes a function that returns its exports, and comes after the modules that it imports. Only
    named imports and exports are supported, each on one line.
    """
    modules: dict[str, str] = {}

    def add(name: str) -> None:
        def imported(match: re.Match[str]) -> str:
            module = posixpath.normpath(posixpath.join(posixpath.dirname(name), match[2]))
            if module not in modules:
                add(module)
            return f'const {{{match[1]}}} = modules["{module}"];'

        body = _IMPORT.sub(imported, asset(f"js/{name}"))
        exported = ", ".join(match[2] for match in _EXPORT.finditer(body))
        body = _EXPORT.sub(r"\1 \2", body)
        modules[name] = f"(() => {{\n{body}\nreturn {{ {exported} }};\n}})()"

    add(main)
    lines = [f'modules["{name}"] = {module};' for name, module in modules.items()]
    return "\n".join(['"use strict";', "const modules = {};", *lines])


@functools.cache
def chart_library() -> str:
    """Returns Vega, Vega-Lite and vega-embed as one script that sets `window.vegaEmbed`.

    Bundling takes two seconds, so the script is kept in the user's cache folder.
    """
    cache = Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "nmt")
    path = cache / f"vega-{version('vl-convert-python')}.js"
    with contextlib.suppress(OSError):
        return path.read_text(encoding="utf-8")
    import vl_convert

    script = vl_convert.javascript_bundle("window.vegaEmbed=vegaEmbed;")
    with contextlib.suppress(OSError):  # a home that does not exist, or that cannot be written
        cache.mkdir(parents=True, exist_ok=True)
        # `write_atomically` would share its temporary file with other processes
        with NamedTemporaryFile("w", encoding="utf-8", dir=cache) as file:
            file.write(script)
            file.flush()
            os.link(file.name, path)
    return script


def asset(name: str) -> str:
    """Reads a text file of this package."""
    return (resources.files(__package__) / name).read_text(encoding="utf-8")
