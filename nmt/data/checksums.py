"""Checksums of a folder's files in blocks, to detect damage when the folder is opened."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path

import xxhash

from nmt.utils.files import write_json

NAME = "checksums.json"
BLOCK = 1 << 24  # bytes that have a checksum of their own
WHOLE = 1 << 30  # bytes of a folder up to which all of it is read


def write_checksums(folder: Path) -> None:
    """Writes `checksums.json`: size and XXH3 of each block of every file of the folder itself."""
    files = {
        path.name: {"size": path.stat().st_size, "blocks": [hash_of(b) for b in _blocks(path)]}
        for path in sorted(folder.iterdir())
        if path.is_file()
    }
    write_json(folder / NAME, {"block": BLOCK, "files": files})


def damage(folder: Path, *, whole: bool = False) -> str | None:
    """What is wrong with the files of a folder that has checksums, or None.

    Files of at most 1 GiB together are read entirely, and larger ones if `whole`. Otherwise sizes are
    compared, and 1 GiB of randomly chosen blocks is read.
    """
    try:
        listed = json.loads((folder / NAME).read_text("utf-8"))
        block, files = int(listed["block"]), dict(listed["files"])
        for name, about in files.items():
            size = (folder / name).stat().st_size
            if size != about["size"]:
                return f"{name} has {size:,} bytes, not {about['size']:,}"
        numbers = [(name, n) for name, about in files.items() for n in range(len(about["blocks"]))]
        most = max(1, WHOLE // block)
        if len(numbers) > most and not whole:
            numbers = sorted(random.Random().sample(numbers, most))
        for name, number in numbers:
            with (folder / name).open("rb") as stream:
                stream.seek(number * block)
                if hash_of(stream.read(block)) != files[name]["blocks"][number]:
                    return f"{name} is not as it was written"
    except FileNotFoundError as error:
        return f"{Path(str(error.filename)).name} is missing"
    except OSError as error:
        return f"{Path(str(error.filename or NAME)).name} cannot be read ({error.strerror})"
    except (ValueError, ArithmeticError, LookupError, TypeError, AttributeError):
        return f"{NAME} is not as it was written"
    return None


def hash_of(content: bytes) -> str:
    """XXH3, 64 bits, hexadecimal: detects accidental damage, not forgery."""
    return xxhash.xxh3_64_hexdigest(content)


def _blocks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as stream:
        while content := stream.read(BLOCK):
            yield content
