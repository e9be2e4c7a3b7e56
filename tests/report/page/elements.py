"""Parses the HTML of a page."""

import base64
import json
import zlib
from html.parser import HTMLParser
from typing import Any


class Elements(HTMLParser):
    """The elements of a page, and the text of its scripts by id."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: dict[str, str] = {}
        self._open: str | None = None
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        self._open = dict(attrs).get("id") if tag == "script" else None

    def handle_data(self, data: str) -> None:
        if self._open:
            self.scripts[self._open] = self.scripts.get(self._open, "") + data

    def packed(self, identity: str) -> Any:
        return json.loads(zlib.decompress(base64.b64decode(self.scripts[identity])))
