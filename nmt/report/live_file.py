"""`live.bin` of a run folder: a trained model as a page takes it, with nothing in it that could be run.

The file holds, one after another:

    MAGIC          8 bytes, the number of the format in the last
    length         of the description in bytes, 4 bytes, the lowest first
    description    JSON in UTF-8: `about` of `LiveModel`
    weights        float16, the lowest byte first, the tensors of `shapes` in that order

Names and shapes of the tensors are those of a checkpoint (`nmt.layers`); they are not in the file, since the
description says what they must be.
"""

from __future__ import annotations

import json
import math
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from nmt.utils.errors import InputError, first_line
from nmt.utils.files import write_atomically

FILE = "live.bin"
MAGIC = b"nmtlive1"
_HEADER = struct.Struct("<8sI")


@dataclass(frozen=True)
class LiveModel:
    """A model as a page takes it.

    Attributes:
        about: all but the weights: `model`, `scoring`, `state_input`, `sizes` (hidden, embedding,
            alignment, maxout), `languages`, `normalise`, `search`, `source_vocabulary` and
            `target_vocabulary` (`kind` words with `words`, or bpe with `subwords` and `merges`, whose
            entry i has the id i + 2), `dictionary`.
        weights: float16 arrays by name, in the order of `shapes(about)`.
    """

    about: dict[str, Any]
    weights: dict[str, np.ndarray]

    @property
    def parameters(self) -> int:
        return sum(array.size for array in self.weights.values())


def entries_of(vocabulary: dict[str, Any]) -> list[str]:
    """The words or subwords of a vocabulary of a description."""
    entries: list[str] = vocabulary["words" if vocabulary["kind"] == "words" else "subwords"]
    return entries


def symbols(vocabulary: dict[str, Any]) -> int:
    """Ids of a vocabulary of a description, `</s>` and `<unk>` included."""
    return 2 + len(entries_of(vocabulary))


def shapes(about: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    """The tensors of a described model, by their names in a checkpoint, in the order of the file."""
    sizes = about["sizes"]
    hidden, embedding, maxout = sizes["hidden"], sizes["embedding"], sizes["maxout"]
    directions = 2 if about["model"] == "RNNsearch" else 1
    annotation = directions * hidden
    found: dict[str, tuple[int, ...]] = {
        "encoder.embedding.weight": (symbols(about["source_vocabulary"]), embedding)
    }
    for direction in range(directions):
        found |= _unit(f"encoder.units.{direction}", embedding, hidden)
    found["decoder.embedding.weight"] = (symbols(about["target_vocabulary"]), embedding)
    found |= {"decoder.W_s": (hidden, hidden), "decoder.bias_s": (hidden,)}
    if about["scoring"] is not None:
        found["decoder.context.W_a"] = (sizes["alignment"], hidden)
        found["decoder.context.U_a"] = (sizes["alignment"], annotation)
    if about["scoring"] == "additive":
        found["decoder.context.scoring.v"] = (sizes["alignment"],)
    found |= _unit("decoder.unit", embedding, hidden)
    found["decoder.unit.C"] = (3 * hidden, annotation)
    found |= {
        "decoder.readout.U_o": (2 * maxout, hidden),
        "decoder.readout.V_o": (2 * maxout, embedding),
        "decoder.readout.C_o": (2 * maxout, annotation),
        "decoder.readout.bias": (2 * maxout,),
        "output.W_o": (symbols(about["target_vocabulary"]), maxout),
        "output.bias": (symbols(about["target_vocabulary"]),),
    }
    return found


def _unit(name: str, embedding: int, hidden: int) -> dict[str, tuple[int, ...]]:
    return {
        f"{name}.W": (3 * hidden, embedding),
        f"{name}.U_gates": (2 * hidden, hidden),
        f"{name}.U": (hidden, hidden),
        f"{name}.bias": (3 * hidden,),
    }


def write_live(folder: str | Path, model: LiveModel) -> Path:
    """Writes `live.bin` in a run folder, whole or not at all."""
    path = Path(folder) / FILE
    described = json.dumps(model.about, ensure_ascii=False, separators=(",", ":")).encode()

    def write(stream: BinaryIO) -> None:
        stream.write(_HEADER.pack(MAGIC, len(described)))
        stream.write(described)
        for name in shapes(model.about):
            stream.write(model.weights[name].astype("<f2").tobytes())

    write_atomically(path, write)
    return path


def read_live(folder: str | Path) -> LiveModel | None:
    """Reads `live.bin` of a run folder; None where there is none.

    Raises:
        InputError: naming the file, if it is not as described above or not complete.
    """
    path = Path(folder) / FILE
    if not path.is_file():
        return None
    try:
        content = path.read_bytes()
        magic, length = _HEADER.unpack_from(content)
        end = _HEADER.size + length
        about = json.loads(content[_HEADER.size : end])
        numbers = np.frombuffer(content, "<f2", offset=end)
        wanted = shapes(about)
        complete = len(numbers) == sum(map(math.prod, wanted.values()))
        if magic != MAGIC or not complete or not np.isfinite(numbers).all():
            raise ValueError("not complete")
    except (ValueError, KeyError, TypeError, struct.error) as error:
        raise InputError(f"{path}: not a model for pages: {first_line(error)}") from error
    weights, start = {}, 0
    for name, shape in wanted.items():
        weights[name] = numbers[start : start + math.prod(shape)].reshape(shape)
        start += math.prod(shape)
    return LiveModel(about, weights)
