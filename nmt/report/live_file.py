"""`live.bin` of a run folder: a trained model as a page takes it, with nothing in it that could be run.

The file holds, one after another:

    MAGIC          8 bytes, the number of the format in the last
    length         of the description in bytes, 4 bytes, the lowest first
    description    JSON in UTF-8, see `LiveDescription`
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
from typing import Annotated, Any, BinaryIO, Literal

import numpy as np
from pydantic import ConfigDict, Field, TypeAdapter, ValidationError, with_config
from typing_extensions import TypedDict

from nmt.data.tokenise import LANGUAGES
from nmt.utils.errors import InputError
from nmt.utils.files import write_atomically

FILE = "live.bin"
FORMAT = 1
MAGIC = b"nmtlive" + bytes([FORMAT])
_HEADER = struct.Struct("<8sI")

_Size = Annotated[int, Field(ge=1, le=100_000)]
_Ratio = Annotated[float, Field(ge=0, le=1000, allow_inf_nan=False)]
_Text = Annotated[str, Field(max_length=1000)]


class Sizes(TypedDict):
    """Entries of a state, an embedded word, the alignment space (none: null) and the maxout layer."""

    hidden: _Size
    embedding: _Size
    alignment: _Size | None
    maxout: _Size


class Words(TypedDict):
    """A shortlist: word i has the id i + 2."""

    kind: Literal["words"]
    words: list[_Text]


class Subwords(TypedDict):
    """Byte-pair encoding: subword i has the id i + 2; merges are pairs of places in `subwords`, the first first."""

    kind: Literal["bpe"]
    subwords: list[_Text]
    merges: list[Annotated[list[int], Field(min_length=2, max_length=2)]]


class SearchSettings(TypedDict):
    """What of `search` a page starts with."""

    beam_size: Annotated[int, Field(ge=1, le=1000)]
    max_ratio: Annotated[float, Field(gt=0, le=1000, allow_inf_nan=False)]
    min_ratio: _Ratio
    length_penalty: _Ratio
    replace_unk: Literal["none", "copy", "dictionary"]


@with_config(ConfigDict(extra="forbid"))
class LiveDescription(TypedDict):
    """All of a model but its weights."""

    model: Literal["RNNencdec", "RNNsearch"]
    scoring: Literal["additive", "dot", "scaled_dot"] | None
    state_input: Literal["previous", "current"]
    sizes: Sizes
    languages: Annotated[list[_Text], Field(min_length=2, max_length=2)]
    normalise: bool
    search: SearchSettings
    source_vocabulary: Annotated[Words | Subwords, Field(discriminator="kind")]
    target_vocabulary: Annotated[Words | Subwords, Field(discriminator="kind")]
    dictionary: dict[_Text, _Text] | None


_DESCRIPTION = TypeAdapter(LiveDescription)


@dataclass(frozen=True)
class LiveModel:
    """A model as a page takes it.

    Attributes:
        about: all but the weights.
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
    """Reads `live.bin` of a run folder that a stranger may have written; None where there is none.

    Raises:
        InputError: naming the file, and what in it is missing, too much or wrong.
    """
    path = Path(folder) / FILE
    if not path.is_file():
        return None
    content = path.read_bytes()
    if len(content) < _HEADER.size or content[: len(MAGIC) - 1] != MAGIC[:-1]:
        raise InputError(f"{path}: damaged: not a model for pages")
    magic, length = _HEADER.unpack_from(content)
    if magic != MAGIC:
        raise InputError(f"{path}: its format is {magic[-1]}, not {FORMAT}")
    end = _HEADER.size + length
    if end > len(content):
        raise InputError(f"{path}: damaged: it ends within its description")
    try:
        about: dict[str, Any] = dict(
            _DESCRIPTION.validate_json(content[_HEADER.size : end], strict=True)
        )
    except ValidationError as error:
        raise InputError(f"{path}: damaged ({'; '.join(str(error).splitlines()[1:3])})") from error
    _check(about, str(path))
    wanted = shapes(about)
    entries = sum(map(math.prod, wanted.values()))
    if len(content) - end != 2 * entries:
        raise InputError(
            f"{path}: damaged: its sizes say {2 * entries} bytes of weights, "
            f"it has {len(content) - end}"
        )
    numbers = np.frombuffer(content, "<f2", offset=end)
    if not np.isfinite(numbers).all():
        raise InputError(f"{path}: damaged: a weight is not a finite number")
    weights, start = {}, 0
    for name, shape in wanted.items():
        weights[name] = numbers[start : start + math.prod(shape)].reshape(shape)
        start += math.prod(shape)
    return LiveModel(about, weights)


def _check(about: dict[str, Any], where: str) -> None:
    """What types cannot say; raises InputError naming file and field."""
    attends = about["model"] == "RNNsearch"
    if attends != (about["scoring"] is not None):
        raise InputError(f"{where}: scoring={about['scoring']}: does not fit {about['model']}")
    if attends != (about["sizes"]["alignment"] is not None):
        raise InputError(f"{where}: sizes.alignment: does not fit {about['model']}")
    for language in about["languages"]:
        if language not in LANGUAGES:
            raise InputError(f"{where}: languages: no Moses rules for {language!r:.40}")
    for side in ("source_vocabulary", "target_vocabulary"):
        entries = entries_of(about[side])
        if len(set(entries)) != len(entries):
            raise InputError(f"{where}: {side}: an entry occurs twice")
        for pair in about[side].get("merges", ()):
            if not all(0 <= place < len(entries) for place in pair):
                raise InputError(f"{where}: {side}.merges: {pair} names no subword")
