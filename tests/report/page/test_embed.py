import base64
import hashlib
import json
import re
import zlib
from importlib import resources
from pathlib import Path

import pytest

from nmt.report.page import embed

HOSTILE = "</script><script>alert(1)</script><!-- & \u2028 ' \" 世界"


def content(element: str) -> str:
    return re.fullmatch(r"<script [^>]*>(.*)</script>", element, re.DOTALL)[1]


def test_a_packed_payload_is_base64_of_deflated_json() -> None:
    element = embed.packed("x", [HOSTILE] * 50)
    assert re.fullmatch(r"[A-Za-z0-9+/=]+", content(element))
    assert json.loads(zlib.decompress(base64.b64decode(content(element)))) == [HOSTILE] * 50
    assert len(element) < 50 * len(HOSTILE) / 4


def test_modules_are_joined_into_one_script_in_the_order_of_their_imports() -> None:
    folder = Path(str(resources.files("nmt.report.page"))) / "js"
    names = {path.relative_to(folder).as_posix() for path in folder.rglob("*.mjs")}
    placed = set()
    for main in ("main.mjs", "inference/worker.mjs"):
        text = embed.program(main)
        joined = [match[1] for match in re.finditer(r'^modules\["([\w./-]+)"\] = ', text, re.M)]
        assert joined[-1] == main
        for line in re.findall(r'^const \{.*\} = modules\["([\w./-]+)"\];', text, re.M):
            assert text.index(f'modules["{line}"] = ') < text.index(f'= modules["{line}"];')
        assert not re.search(r"^(import|export) ", text, re.M)
        placed |= set(joined)
    assert placed == names


def test_a_script_cannot_end_its_own_element() -> None:
    with pytest.raises(ValueError, match="holds what would end it"):
        embed.script("const a = '</Script>';")


def test_sources_are_allowed_by_their_hash() -> None:
    digest = base64.b64encode(hashlib.sha256(b"1+1").digest()).decode()
    assert embed.allowed("1+1") == f"'sha256-{digest}'"


def test_the_chart_library_sets_one_global() -> None:
    library = embed.chart_library()
    assert "window.vegaEmbed=" in library
    assert len(zlib.compress(library.encode(), 9)) < 400_000
