"""The checkpoint format: writing, completing at the end of a run, and reading.

A checkpoint is Lightning's, with one key of this program's own, `nmt`, which holds plain containers
only: `format`, `config` (resolved), `source_vocabulary` and `target_vocabulary` (their states),
`fingerprint` (of the data), `text_files` (SHA-256 of the files of each text), `progress` (of the
validations, see `ValidationProgress`),
`wandb` (the run that logs it), `typed` (overrides of the command line), `initial` (the checkpoint
that the training started from, see `nmt.run.sources`). Once a run is finished, its best checkpoint
also has `training` (`train` of results.json) and, with attention and shortlists of words,
`dictionary` (source word to target word).

Format 1 had the progress among the states of Lightning's callbacks; it is read, too.
"""

from __future__ import annotations

import contextlib
import warnings
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, BinaryIO

import torch
from omegaconf import DictConfig, OmegaConf

from nmt.config import Config, TrainConfig
from nmt.config.schema import to_containers
from nmt.config.validation import load, validate
from nmt.data.encode import Vocabularies
from nmt.data.load_vocabulary import load_vocabulary
from nmt.data.vocabulary import Vocabulary
from nmt.models.base import Translator
from nmt.models.build import build_model, reject_untrusted_targets
from nmt.models.checkpoint_schema import check_content, check_shapes, check_state
from nmt.utils.errors import InputError, RunError, first_line
from nmt.utils.files import verify, write_atomically

FORMAT = 2
KEY = "nmt"


@dataclass
class ValidationProgress:
    """The validations of a training, the best one among them, and its duration.

    Attributes:
        history: an entry for each validation: its `update` and what was measured.
        best: the best entry of `history`; None before the first.
        seconds: time spent in training, over all resumes.
        stopped_early: whether the score has not improved for `trainer.patience` validations.
    """

    history: list[dict[str, float]] = field(default_factory=list)
    best: dict[str, float] | None = None
    seconds: float = 0.0
    stopped_early: bool = False


@dataclass
class Checkpoint:
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
    progress: ValidationProgress
    weights: dict[str, torch.Tensor]
    text_files: dict[str, dict[str, str]]  # SHA-256 of the files of a section such as data.valid
    wandb: dict[str, str | None] | None = None  # run that logged it; None: none, or not known
    typed: Sequence[str] = ()  # overrides that the training was started with
    initial: dict[str, Any] | None = None  # checkpoint that the training started from
    artifact: str | None = None  # of W&B, that it was downloaded from

    @property
    def vocabularies(self) -> Vocabularies:
        """Of the source and of the target."""
        return self.source_vocabulary, self.target_vocabulary

    def translator(self, config: Config | None = None) -> Translator:
        """The trained model, ready to evaluate on the CPU, as `config` (or the stored one) says.

        Raises:
            InputError: where the model cannot be built.
        """
        model = build_model(
            config or load(self.config.copy()),
            len(self.source_vocabulary),
            len(self.target_vocabulary),
        )
        model.load_state_dict(self.weights)
        return model.eval()


def description(
    config: Config,
    source_vocabulary: Vocabulary,
    target_vocabulary: Vocabulary,
    fingerprint: str,
    *,
    text_files: Mapping[str, Mapping[str, str]] | None = None,
    wandb: Mapping[str, str | None] | None = None,
    typed: Sequence[str] = (),
    initial: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The entries that all checkpoints of a run share (`Translator.description`).

    Args:
        text_files: of `nmt.data.sources.open.file_digests`.
        wandb: of `nmt.training.wandb_logger.ResumableWandbLogger.identity`.
        typed: overrides of the command line.
        initial: of `nmt.run.sources.initial_source`.
    """
    return {
        "format": FORMAT,
        "config": to_containers(config),
        "source_vocabulary": source_vocabulary.state(),
        "target_vocabulary": target_vocabulary.state(),
        "fingerprint": fingerprint,
        "text_files": {key: dict(files) for key, files in (text_files or {}).items()},
        "progress": asdict(ValidationProgress()),  # until `store_progress` says more
        "wandb": None if wandb is None else dict(wandb),
        "typed": list(typed),
        "initial": None if initial is None else dict(initial),
    }


def store_progress(content: dict[str, Any], progress: ValidationProgress) -> None:
    """Stores the progress of a training in the content of a checkpoint that is being made."""
    content.setdefault(KEY, {})["progress"] = asdict(progress)


def stored_progress(content: dict[str, Any]) -> ValidationProgress:
    """The progress in the content of a checkpoint."""
    stored = content[KEY].get("progress", {})
    if content[KEY]["format"] == 1:
        stored = content.get("callbacks", {}).get("Checkpoints", {})
    known = {entry.name for entry in fields(ValidationProgress)}
    return ValidationProgress(**{key: value for key, value in stored.items() if key in known})


def write_checkpoint(content: dict[str, Any], path: Path) -> None:
    """Writes a checkpoint whole or not at all, with its checksum beside it.

    Raises:
        RunError: where it cannot be written.
    """
    with checkpoint_errors(path):
        write_atomically(path, lambda stream: _save(content, stream), checksum=True)


class _Recorded:
    """A stream that keeps the error of a write, which torch replaces by one of its own."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self.flush = stream.flush
        self.error: OSError | None = None

    def write(self, content: bytes) -> int:
        try:
            return self._stream.write(content)
        except OSError as error:
            self.error = self.error or error
            raise


def _save(content: dict[str, Any], stream: BinaryIO) -> None:
    recorded = _Recorded(stream)
    try:
        torch.save(content, recorded)  # type: ignore[arg-type]
    except RuntimeError as error:
        raise recorded.error or error from None


def complete_checkpoint(
    path: Path, training: dict[str, Any], dictionary: dict[str, str] | None = None
) -> None:
    """Adds the results of a finished run to its best checkpoint. Raises as `write_checkpoint`."""
    content = torch.load(path, map_location="cpu", weights_only=True)
    content[KEY]["training"] = training
    if dictionary is not None:
        content[KEY]["dictionary"] = dictionary
    write_checkpoint(content, path)


@contextlib.contextmanager
def checkpoint_errors(path: Path) -> Iterator[None]:
    """Turns an error of writing a checkpoint into a `RunError`."""
    try:
        yield
    except (OSError, RuntimeError) as error:
        reason = getattr(error, "strerror", None) or first_line(error)
        raise RunError(
            f"{path}: cannot write the checkpoint: {reason}; the earlier ones are intact"
        ) from error


def read_checkpoint(
    path: str | Path, trust: Sequence[str] = (), *, resumed: bool = False
) -> Checkpoint:
    """Reads a checkpoint as data: no code of its own is run.

    Args:
        path: the file.
        trust: modules outside `nmt` that its configuration may name.
        resumed: whether a training is to be resumed from it.

    Raises:
        InputError: when the file is missing, damaged, not a checkpoint of this program, names code
            outside `nmt` and `trust`, or a field of it is missing or wrong; naming file and field.
    """
    path = Path(path)
    try:
        is_folder, is_file = path.is_dir(), path.is_file()
    except OSError as error:  # a name that is too long, a folder that may not be looked into
        raise InputError(f"checkpoint={path}: cannot be read ({error.strerror})") from error
    if is_folder:
        raise InputError(
            f"checkpoint={path}: a folder without checkpoints/best.ckpt; name a run folder or a file"
        )
    if not is_file:
        raise InputError(f"checkpoint={path}: no such file")
    sha256 = verify(path)
    content = _loaded(path)
    where = f"checkpoint={path}"
    stored = content[KEY]
    if stored["format"] not in (1, FORMAT):
        raise InputError(f"{where}: its format is {stored['format']!r:.40}, not {FORMAT}")
    check_content(content, where, path.stat().st_size)
    if resumed:
        check_state(content, where)
    reject_untrusted_targets(stored["config"], trust)
    config = stored_config(stored["config"], path)
    vocabularies = [
        _vocabulary(stored[f"{side}_vocabulary"], f"{where}: nmt.{side}_vocabulary")
        for side in ("source", "target")
    ]
    try:
        check_shapes(content["state_dict"], _objects(config), *map(len, vocabularies))
    except InputError as refused:
        raise InputError(f"{where}: {refused}") from refused
    return Checkpoint(
        path=path,
        sha256=sha256,
        config=config,
        source_vocabulary=vocabularies[0],
        target_vocabulary=vocabularies[1],
        fingerprint=stored["fingerprint"],
        dictionary=stored.get("dictionary"),
        training=stored.get("training"),
        update=content["global_step"],
        progress=stored_progress(content),
        weights=content["state_dict"],
        text_files=stored.get("text_files") or {},
        wandb=stored.get("wandb"),
        typed=stored.get("typed") or (),
        initial=stored.get("initial"),
    )


def _loaded(path: Path) -> dict[str, Any]:
    """The content of a file of `torch.save`; raises InputError where it is no checkpoint of nmt.

    torch would unpack what is compressed, and believes the sizes in files of its older formats.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
        if sum(entry.file_size for entry in entries) > path.stat().st_size:
            raise ValueError("it would take more memory than the file has bytes")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of types that no checkpoint of nmt holds
            content = torch.load(path, map_location="cpu", weights_only=True)
        if KEY not in content or "format" not in content[KEY]:
            raise KeyError(KEY)
    except Exception as error:  # torch's own message would advise to load it unsafely
        raise InputError(
            f"checkpoint={path}: not a checkpoint of nmt; "
            "a run folder has them in checkpoints/, such as best.ckpt"
        ) from error
    return dict(content)


def _objects(config: DictConfig) -> Config:
    """A configuration that was checked, as plain objects."""
    objects = OmegaConf.to_object(config)
    assert isinstance(objects, Config)
    return objects


def _vocabulary(state: Any, where: str) -> Vocabulary:
    try:
        return load_vocabulary(state)
    except InputError as refused:
        raise InputError(f"{where}: {refused}") from refused


def updates_of(path: Path) -> int | None:
    """The number of updates of a checkpoint, or None if it cannot be read."""
    try:
        content = torch.load(path, map_location="meta", weights_only=True, mmap=True)
        return int(content["global_step"])
    except Exception:
        return None


def stored_config(values: dict[str, Any], path: Path) -> DictConfig:
    """A stored configuration, checked against the schema like one that was typed."""
    try:
        config = OmegaConf.merge(OmegaConf.structured(TrainConfig), values)
        assert isinstance(config, DictConfig)
        validate(config)
    except Exception as error:
        reason = first_line(error)
        raise InputError(f"checkpoint={path}: its configuration is refused: {reason}") from error
    return config
