"""The checkpoint format: Lightning's, with what translating elsewhere needs.

`hyper_parameters` holds the configuration (`config`) and the sizes of the vocabularies; `nmt` holds
`source_vocabulary` and `target_vocabulary` (their states), `fingerprint` (of the training and
development text) and `typed` (overrides of the command line). Once a run is finished, its best
checkpoint also has `outcome` (`train`, `valid` and `history` of results.json) and, with attention
and shortlists of words, `dictionary` (source word to target word). All are plain containers.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from nmt.config import Config, TrainConfig
from nmt.config.loading import load_plain
from nmt.config.targets import reject_untrusted_targets
from nmt.data.vocabulary import Vocabularies, Vocabulary, load_vocabulary
from nmt.layers import Network
from nmt.models.networks import build_network
from nmt.utils.errors import InputError, first_line
from nmt.utils.files import write_atomically

KEY = "nmt"


@dataclass
class Checkpoint:
    """A checkpoint, read: everything that translating elsewhere needs.

    Attributes:
        update: number of updates made.
        outcome: `train`, `valid` and `history` of a finished run; empty before its end.
        typed: overrides that the training was started with.
        dictionary: source word to target word, learnt from attention at the end of training.
    """

    path: Path
    config: TrainConfig
    source_vocabulary: Vocabulary
    target_vocabulary: Vocabulary
    fingerprint: str
    update: int
    weights: dict[str, torch.Tensor]
    outcome: dict[str, Any] = field(default_factory=dict)
    typed: Sequence[str] = ()
    dictionary: dict[str, str] | None = None

    @property
    def vocabularies(self) -> Vocabularies:
        """Of the source and of the target."""
        return self.source_vocabulary, self.target_vocabulary

    def network(self, config: Config | None = None) -> Network:
        """The trained network, ready to evaluate on the CPU, as `config` (or the stored one) says.

        Raises:
            InputError: if the network cannot be built, or the weights do not fit it.
        """
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
    path: Path, outcome: dict[str, Any], dictionary: dict[str, str] | None = None
) -> None:
    """Adds the outcome of a finished run to its best checkpoint."""
    content = torch.load(path, map_location="cpu", weights_only=True)
    content[KEY] |= {"outcome": outcome, "dictionary": dictionary}
    write_atomically(path, lambda stream: torch.save(content, stream))


def read_checkpoint(path: str | Path, trust: Sequence[str] = ()) -> Checkpoint:
    """Reads a checkpoint as data: no code of its own is run.

    Args:
        path: the file.
        trust: modules outside `nmt` that its configuration may name.

    Raises:
        InputError: when the file is missing, damaged, no checkpoint of this program, or names code
            outside `nmt` and `trust`; naming file and field.
    """
    path = Path(path)
    if path.is_dir():
        raise InputError(
            f"checkpoint={path}: a folder without checkpoints/best.ckpt; name a run folder or a file"
        )
    if not path.is_file():
        raise InputError(f"checkpoint={path}: no such file")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of types that no checkpoint of nmt holds
            content = torch.load(path, map_location="cpu", weights_only=True)
        stored, weights, update = content[KEY], content["state_dict"], content["global_step"]
        values = content["hyper_parameters"]["config"]
        vocabularies = [load_vocabulary(stored[f"{s}_vocabulary"]) for s in ("source", "target")]
    except Exception as error:  # torch's own message would advise to load it unsafely
        raise InputError(
            f"checkpoint={path}: damaged, or not a checkpoint of nmt; "
            "a run folder has them in checkpoints/, such as best.ckpt"
        ) from error
    reject_untrusted_targets(values, trust)
    return Checkpoint(
        path=path,
        config=stored_config(values, path),
        source_vocabulary=vocabularies[0],
        target_vocabulary=vocabularies[1],
        fingerprint=stored.get("fingerprint", ""),
        update=update,
        weights=weights,
        outcome=stored.get("outcome") or {},
        typed=stored.get("typed") or (),
        dictionary=stored.get("dictionary"),
    )


def stored_config(values: dict[str, Any], path: Path) -> TrainConfig:
    """A stored configuration, checked against the schema like one that was typed."""
    try:
        return load_plain(values)
    except Exception as error:
        reason = first_line(error)
        raise InputError(f"checkpoint={path}: its configuration is refused: {reason}") from error
