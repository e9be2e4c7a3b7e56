"""What a checkpoint holds besides weights, and the model it gives back on another machine.

Under the key `nmt`, plain containers only: `format`, `config` (resolved), `source_vocabulary` and
`target_vocabulary` (their states), `fingerprint` (of the data); once a run is finished, the best
checkpoint also has `training` (`train` of results.json) and, where the model has attention,
`dictionary` (source word to target word).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from omegaconf import DictConfig, OmegaConf

from nmt.config.schema import Config, SearchConfig, TrainConfig, plain
from nmt.config.validation import load, validate
from nmt.data.load_vocabulary import load_vocabulary
from nmt.data.vocabulary import Vocabulary
from nmt.models.base import Translator
from nmt.models.build import build, reject_untrusted_targets
from nmt.utils.errors import InputError
from nmt.utils.files import verify, write_atomically

FORMAT = 1


@dataclass
class Stored:
    """A checkpoint, read: everything that translating elsewhere needs."""

    path: Path
    sha256: str
    config: DictConfig
    source_vocabulary: Vocabulary
    target_vocabulary: Vocabulary
    fingerprint: str
    dictionary: dict[str, str] | None  # learnt from attention at the end of training
    training: dict[str, Any] | None  # how it was trained; None until the run has finished
    update: int
    progress: dict[str, Any]  # the `Checkpoints` callback's state: validations, best scores, hours
    weights: dict[str, torch.Tensor]

    def translator(self, config: Config | None = None) -> Translator:
        """The trained model, ready to evaluate on the CPU, as `config` (or the stored one) says.

        Raises:
            InputError: where the model cannot be built, or the weights do not fit it.
        """
        model = build(
            config or load(self.config.copy()),
            len(self.source_vocabulary),
            len(self.target_vocabulary),
        )
        try:
            model.load_state_dict(self.weights)
        except RuntimeError as error:
            reason = " ".join(str(error).split())[:300]
            raise InputError(f"{self.path}: the weights do not fit the model: {reason}") from error
        return model.eval()

    def dictionary_for(self, search: SearchConfig) -> dict[str, str] | None:
        """The dictionary, if `search.replace_unk` asks for one.

        Raises:
            InputError: where it does, and the checkpoint has none.
        """
        if search.replace_unk != "dictionary":
            return None
        if self.dictionary is None:
            raise InputError(
                f"search.replace_unk=dictionary: {self.path} holds no dictionary; a run learns one "
                "at its end (evaluation.dictionary_sample) and keeps it in best.ckpt; or take copy"
            )
        return self.dictionary


def describe_run(
    config: Config,
    source_vocabulary: Vocabulary,
    target_vocabulary: Vocabulary,
    fingerprint: str,
) -> dict[str, Any]:
    """The part of a checkpoint that this file reads back."""
    return {
        "format": FORMAT,
        "config": plain(config),
        "source_vocabulary": source_vocabulary.state(),
        "target_vocabulary": target_vocabulary.state(),
        "fingerprint": fingerprint,
    }


def read_checkpoint(path: str | Path, trust: Sequence[str] = ()) -> Stored:
    """Reads a checkpoint as data: no code of its own is run.

    Raises:
        InputError: when the file is missing, damaged, not a checkpoint of this program, or names code
            outside `nmt` and `trust`.
    """
    path = Path(path)
    if not path.is_file():
        raise InputError(f"checkpoint={path}: no such file")
    sha256 = verify(path)
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
        stored = content["nmt"]
        known = stored["format"] == FORMAT
    except Exception as error:  # the words of torch's own would advise to load it unsafely
        raise InputError(
            f"checkpoint={path}: not a checkpoint of nmt; "
            "a run folder has them in checkpoints/, such as best.ckpt"
        ) from error
    if not known:
        raise InputError(f"checkpoint={path}: its format is {stored['format']}, not {FORMAT}")
    reject_untrusted_targets(stored["config"], trust)
    return Stored(
        path,
        sha256,
        stored_config(stored["config"], path),
        load_vocabulary(stored["source_vocabulary"]),
        load_vocabulary(stored["target_vocabulary"]),
        stored["fingerprint"],
        stored.get("dictionary"),
        stored.get("training"),
        content["global_step"],
        content.get("callbacks", {}).get("Checkpoints", {}),
        content["state_dict"],
    )


def store_ending(
    path: Path, training: dict[str, Any], dictionary: dict[str, str] | None = None
) -> None:
    """Puts what the end of a run says into a checkpoint, atomically, with the checksum beside it."""
    content = torch.load(path, map_location="cpu", weights_only=True)
    content["nmt"]["training"] = training
    if dictionary is not None:
        content["nmt"]["dictionary"] = dictionary
    write_atomically(path, lambda stream: torch.save(content, stream), checksum=True)


def stored_config(values: dict[str, Any], path: Path) -> DictConfig:
    """A stored configuration, checked against the schema like one that was typed."""
    try:
        config = OmegaConf.merge(OmegaConf.structured(TrainConfig), values)
        assert isinstance(config, DictConfig)
        validate(config)
    except Exception as error:
        reason = str(error).strip().splitlines()[0]
        raise InputError(f"checkpoint={path}: its configuration is refused: {reason}") from error
    return config
