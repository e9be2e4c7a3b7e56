"""Checkpoints in Lightning's format, plus everything that translation on another machine needs.

The entry `hyper_parameters` has the configuration (`config`) and the vocabulary sizes. The entry `nmt` has:

    version                               version of nmt
    source_vocabulary, target_vocabulary  serialised vocabularies
    fingerprint                           hash of the training and development text
    overrides                             overrides of the command line
    initial                               entry `initial_checkpoint` of results.json; None if the weights were new
    way (on a GPU)                        whether updates use `kernels` and `graphs`, and whether a kernel has `failed`
    outcome                               `train`, `valid`, `history` and `initial_checkpoint` of results.json
    dictionary                            translations of source words, if trained with search.replace_unk=dictionary

Of a finished run, only the best checkpoint (without one, the last) has `outcome` and `dictionary`. All values
have standard Python types. A compact checkpoint (`compact`) has no optimizer and stores each matrix in 7 bits.
"""

from __future__ import annotations

import io
import warnings
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from nmt.config.code import reject_untrusted_targets
from nmt.config.commands import TrainConfig
from nmt.config.loading import load_plain
from nmt.config.schema import Config
from nmt.data.vocabulary import Vocabularies, load_vocabulary
from nmt.layers import Network
from nmt.models.networks import build_network
from nmt.utils.errors import InputError, first_line
from nmt.utils.files import write_atomically
from nmt.utils.version import __version__

KEY = "nmt"
COMPACT_ENTRIES = (
    "state_dict",
    "hyper_parameters",
    KEY,
    "global_step",
    "pytorch-lightning_version",
)


@dataclass(frozen=True)
class Checkpoint:
    """The content of a checkpoint file.

    Attributes:
        vocabularies: source and target vocabulary.
        update: number of updates before the checkpoint was saved.
        weights: state_dict of the LightningModule.
        about: the entries of `nmt`. A missing `outcome` is {}, and a missing `dictionary` is None.
    """

    path: Path
    config: TrainConfig
    vocabularies: Vocabularies
    update: int
    weights: dict[str, torch.Tensor]
    about: dict[str, Any]

    def network(self, config: Config | None = None) -> Network:
        """Returns the trained network on the CPU, in evaluation mode.

        `config` replaces the stored configuration.

        Raises:
            InputError: if the network cannot be built, or if the stored weights do not fit it.
        """
        with torch.random.fork_rng(devices=[]):  # keeps the random state of the caller
            network = build_network(config or self.config, *map(len, self.vocabularies))
        prefix = "network."
        weights = {
            name.removeprefix(prefix): weight
            for name, weight in self.weights.items()
            if name.startswith(prefix)
        }
        try:
            network.load_state_dict(weights)
        except RuntimeError as error:
            raise InputError(f"checkpoint={self.path}: {first_line(error)}") from error
        return network.eval()


def complete_checkpoint(
    path: Path, outcome: dict[str, Any], dictionary: Mapping[str, str] | None = None
) -> None:
    """Adds the outcome of a finished run to its best checkpoint."""
    content = torch.load(path, map_location="cpu", weights_only=True)
    content[KEY] |= {"outcome": outcome, "dictionary": dictionary and dict(dictionary)}
    write_atomically(path, lambda stream: torch.save(content, stream))


def compact(path: str | Path, output: str | Path) -> None:
    """Writes a small copy of a checkpoint, which can translate but not resume; nothing else in it changes."""
    content = torch.load(path, map_location="cpu", weights_only=True)
    small = {name: content[name] for name in COMPACT_ENTRIES} | {"log_sums": [0.0, 0.0]}
    for name, weight in content["state_dict"].items():
        if weight.ndim == 2:
            codes, scale = quantised(weight.float().numpy(), most=63)
            small["state_dict"][name] = (torch.from_numpy(codes), torch.from_numpy(scale))
    saved = io.BytesIO()
    torch.save(small, saved)
    with (
        zipfile.ZipFile(saved) as plain,
        zipfile.ZipFile(output, "w", zipfile.ZIP_DEFLATED) as file,
    ):
        for name in plain.namelist():
            file.writestr(name, plain.read(name), compresslevel=9)


def quantised(matrix: np.ndarray, most: int = 127) -> tuple[np.ndarray, np.ndarray]:
    """Rounds a matrix (m, n) to int8 codes (m, n) and a scale (m,) per row; matrix ≈ codes * scale[:, None].

    `most` is the largest absolute code: 127 for 8 bits, 63 for 7.
    """
    scale = np.abs(matrix).max(1) / most
    divisor = np.where(scale > 0, scale, 1.0)[:, None]
    return np.rint(matrix / divisor).astype(np.int8), scale


def expanded(weights: Mapping[str, Any]) -> dict[str, torch.Tensor]:
    """Returns the state_dict of a checkpoint, with the matrices of a compact one as floats."""
    return {
        name: weight if isinstance(weight, torch.Tensor) else weight[0] * weight[1][:, None]
        for name, weight in weights.items()
    }


def read_checkpoint(path: str | Path, trust: Sequence[str] = ()) -> Checkpoint:
    """Reads a checkpoint as data, without running any code from it.

    Raises:
        InputError: if the file is missing, damaged or not a checkpoint of nmt, or if its configuration
            is invalid or names code outside nmt that `trust` does not list.
    """
    path = Path(path)
    if not path.is_file():
        raise InputError(
            f"checkpoint={path}: no such file; type the path of a checkpoint, or of a run folder "
            "with checkpoints/best.ckpt"
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch warns about types in files of other programs
            content = torch.load(path, map_location="cpu", weights_only=True)
        stored, update = content[KEY], content["global_step"]
        weights = expanded(content["state_dict"])
        values = content["hyper_parameters"]["config"]
        source, target = (load_vocabulary(stored[f"{s}_vocabulary"]) for s in ("source", "target"))
    except Exception as error:  # replaces torch's message, which suggests unsafe loading
        raise InputError(
            f"checkpoint={path}: damaged, or not a checkpoint of nmt; "
            "the checkpoints of a run are in its folder checkpoints/"
        ) from error
    reject_untrusted_targets(values, trust)
    try:
        config = load_plain(values)
    except Exception as error:
        made = stored.get("version")
        other = f" (made by version {made}, read by {__version__})"
        by = other if made and made != __version__ else ""
        reason = first_line(error)
        raise InputError(
            f"checkpoint={path}: its configuration is refused{by}: {reason}"
        ) from error
    about = {"fingerprint": "", "overrides": [], "initial": None, "dictionary": None} | stored
    about.setdefault("outcome", {})
    return Checkpoint(path, config, (source, target), update, weights, about)
