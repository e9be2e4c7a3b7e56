"""Loads a `Model` from a checkpoint, or an ensemble from several."""

from __future__ import annotations

import copy
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hydra.core.hydra_config import HydraConfig

from nmt.config.changes import apply_overrides
from nmt.config.code import user_code
from nmt.config.commands import LinesConfig, TrainConfig
from nmt.config.schema import Config
from nmt.data.vocabulary import Vocabularies
from nmt.inference.model import Model
from nmt.inference.training_pairs import learn_missing_dictionary
from nmt.layers import Attention, Intervention, LocalAttention, Network
from nmt.models.checkpoint import Checkpoint, read_checkpoint
from nmt.models.ensemble import Ensemble
from nmt.utils.devices import resolve_accelerator, set_threads, uses_gpu
from nmt.utils.environment import WITHOUT_KEY, has_wandb_key
from nmt.utils.errors import InputError, first_line
from nmt.utils.text import as_list


def load_model(
    path: str | Path | Sequence[str | Path],
    accelerator: str,
    threads: int | str,
    precision: str | None,
    trust: Sequence[str],
) -> Model:
    """Loads a model; see `nmt.load` for the arguments and errors."""
    members = read_members(as_list(path), as_list(trust))
    config = copy.deepcopy(members[0].config)
    config.trainer["accelerator"] = accelerator
    config.threads = threads
    if precision is not None:
        config.trainer["precision"] = precision
    return _on_this_machine(members, config, accelerator)


def load_for_command(composed: LinesConfig) -> Model:
    """Loads the model for `nmt.translate` or `nmt.score`, and applies the command's overrides."""
    members = read_members(as_list(composed.checkpoint), composed.trust)
    config, _ = apply_overrides(
        members[0].config, members[0].about["overrides"], composed, HydraConfig.get().overrides.task
    )
    return _on_this_machine(members, config, composed.trainer["accelerator"])


def _on_this_machine(members: Sequence[Checkpoint], config: Config, accelerator: str) -> Model:
    """Builds the model; raises InputError if `accelerator`, unlike the stored one, does not exist on this machine."""
    resolve_accelerator(accelerator)
    chosen = config.trainer["accelerator"]
    config.threads = set_threads(config.threads, chosen, config.model.hidden)
    model = from_checkpoints(members, config)
    model.network.to("cuda" if uses_gpu(chosen) else "cpu")
    return model.searching()


def read_members(named: Sequence[str | Path], trust: Sequence[str] = ()) -> list[Checkpoint]:
    """Reads one checkpoint, or the checkpoints of an ensemble.

    If the path is a run folder, reads its best checkpoint, or without one its last. A W&B artifact is downloaded.

    Raises:
        InputError: if no checkpoint is named, if `read_checkpoint` fails, or if the members differ in
            vocabularies, languages or tokenizer.
    """
    members = [read_checkpoint(_path_of(str(file)), trust) for file in named]
    if not members:
        raise InputError(f"checkpoint={named}: must be a file, or several: [a,b,c]")
    first, *others = members
    for other in others:
        if _language_of(other) != _language_of(first):
            raise InputError(
                f"checkpoint={other.path}: its vocabularies, languages or tokenizer differ from "
                f"{first.path}; the members of an ensemble must share them"
            )
    return members


def initial_vocabularies(config: TrainConfig) -> Vocabularies:
    """Returns the vocabularies of `initial_checkpoint`, which may use the code that `config` trusts or names."""
    [checkpoint] = read_members(
        [str(config.initial_checkpoint)], [*config.trust, *user_code(config)]
    )
    return checkpoint.vocabularies


def _language_of(checkpoint: Checkpoint) -> list[Any]:
    """Returns the settings that all members of an ensemble must share."""
    config = checkpoint.config
    states = [vocabulary.state() for vocabulary in checkpoint.vocabularies]
    return [*states, config.data.languages, config.tokenizer]


def _path_of(file: str) -> Path:
    if file.startswith("wandb:"):
        return download(file)
    path = Path(file).expanduser()
    of_run = (path / "checkpoints" / name for name in ("best.ckpt", "last.ckpt"))
    return next(filter(Path.is_file, of_run), path)


def download(name: str) -> Path:
    """Downloads the checkpoint of an artifact logged by `WandbLogger(log_model=true)`.

    Raises:
        InputError: if there is no W&B key, or if W&B does not provide exactly one checkpoint file.
    """
    if not has_wandb_key():
        raise InputError(f"checkpoint={name}: {WITHOUT_KEY}, or name a file")
    import wandb
    from wandb.env import get_cache_dir

    try:
        artifact = wandb.Api().artifact(name.removeprefix("wandb:"))
        files = artifact.manifest.entries
        [entry] = [files[file] for file in files if re.fullmatch(r"[\w=.-]+\.ckpt", file)]
        folder = get_cache_dir() / "nmt" / re.sub(r"\W", "_", name) / str(artifact.version)
        folder.mkdir(parents=True, exist_ok=True)
        return Path(entry.download(root=str(folder), skip_cache=True))
    except Exception as error:  # such as network errors or a wrong name
        raise InputError(f"checkpoint={name}: not downloaded: {first_line(error)}") from error


def from_checkpoints(members: Sequence[Checkpoint], config: Config) -> Model:
    """Builds the model of a checkpoint, or the ensemble of several, on the CPU.

    Args:
        members: the checkpoint, or the checkpoints of an ensemble.
        config: configuration of the first member, with overrides.

    Raises:
        InputError: if a model cannot be built, its weights do not fit, or its attention cannot be replaced.
    """
    first, *others = members
    networks = [first.network(config), *(member.network() for member in others)]
    for member, network in zip(members, networks, strict=True):
        intervene(network, config.evaluation.attention, str(member.path))
    dictionaries = (member.about["dictionary"] for member in members)
    return Model(
        Ensemble(networks).eval() if others else networks[0],
        *first.vocabularies,
        config,
        dictionary=next((each for each in dictionaries if each is not None), None),
        checkpoints=[member.path for member in members],
        learn=learn_missing_dictionary,
    )


def intervene(network: Network, kind: str, checkpoint: str) -> None:
    """Applies the intervention `kind` (`evaluation.attention`) to the attention weights; may raise InputError."""
    context = network.decoder.context
    if kind == "as_trained":
        return
    if not isinstance(context, Attention) or isinstance(context, LocalAttention):
        raise InputError(
            f"checkpoint={checkpoint}: cannot replace the weights of local attention, or of a model "
            f"without attention; leave out evaluation.attention={kind}"
        )
    network.decoder.context = Intervention(context, kind)
