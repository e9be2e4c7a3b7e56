import base64
import json
import re
import zlib

from nmt.report.page import embed

HOSTILE = "</script><script>alert(1)</script><!-- & \u2028 ' \" 世界"


def content(element: str) -> str:
    return re.fullmatch(r"<script [^>]*>(.*)</script>", element, re.DOTALL)[1]


def test_a_packed_payload_is_base64_of_deflated_json() -> None:
    element = embed.packed("x", [HOSTILE] * 50)
    assert re.fullmatch(r"[A-Za-z0-9+/=]+", content(element))
    assert json.loads(zlib.decompress(base64.b64decode(content(element)))) == [HOSTILE] * 50
    assert len(element) < 50 * len(HOSTILE) / 4


def test_modules_are_mapped_by_name_with_their_imports() -> None:
    text = embed.programs("main.mjs")
    table = json.loads(re.search(r'type="importmap">(.*?)</script>', text)[1])["imports"]
    assert "nmt/alignment.mjs" in table
    for url in table.values():
        source = base64.b64decode(url.removeprefix("data:text/javascript;base64,")).decode()
        names = re.findall(r"""from "([^"]+)";""", source)
        assert all(name in table for name in names), names


def test_the_chart_library_sets_one_global() -> None:
    library = embed.chart_library()
    assert "window.vegaEmbed=" in library
    assert len(zlib.compress(library.encode(), 9)) < 400_000
