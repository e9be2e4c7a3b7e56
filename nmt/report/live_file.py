"""`live.npz` of a run folder: a trained model as a page takes it, with nothing in it that could be run.

It is NumPy's format, read without pickle: the weights by their names in a checkpoint (`nmt.layers`) as
float16, and under `about` the description as JSON.
"""

from __future__ import annotations

import json
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from nmt.utils.errors import InputError, first_line
from nmt.utils.files import write_atomically

FILE = "live.npz"


@dataclass(frozen=True)
class LiveModel:
    """A model as a page takes it.

    Attributes:
        about: all but the weights: `model`, `scoring`, `state_input`, `sizes` (hidden, embedding,
            alignment, maxout), `languages`, `normalise`, `search`, `source_vocabulary` and
            `target_vocabulary` (`kind` words with `words`, or bpe with `subwords` and `merges`, whose
            entry i has the id i + 2), `dictionary`, and `tensors`: name and shape of each weight.
        weights: float16 arrays by name, in the order of `tensors`.
    """

    about: dict[str, Any]
    weights: dict[str, np.ndarray]

    @property
    def parameters(self) -> int:
        return sum(array.size for array in self.weights.values())


def write_live(folder: str | Path, model: LiveModel) -> Path:
    """Writes `live.npz` in a run folder, whole or not at all."""
    path = Path(folder) / FILE
    content: dict[str, Any] = {"about": np.array(json.dumps(model.about)), **model.weights}
    write_atomically(path, lambda stream: np.savez(stream, **content))
    return path


def read_live(folder: str | Path) -> LiveModel | None:
    """Reads `live.npz` of a run folder; None if there is none.

    Raises:
        InputError: naming the file, if it is not as described above or not complete.
    """
    path = Path(folder) / FILE
    if not path.is_file():
        return None
    try:
        with np.load(path, allow_pickle=False) as stored:
            about = json.loads(str(stored["about"]))
            weights = {name: stored[name] for name, _ in about["tensors"]}
        if any(
            list(weights[name].shape) != shape
            or weights[name].dtype != np.float16
            or not np.isfinite(weights[name]).all()
            for name, shape in about["tensors"]
        ):
            raise ValueError("its weights are not those of its description")
    except (ValueError, KeyError, TypeError, EOFError, OSError, zipfile.BadZipFile) as error:
        raise InputError(f"{path}: not a model for pages: {first_line(error)}") from error
    return LiveModel(about, weights)
