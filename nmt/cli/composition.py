"""Prepares Hydra to compose `conf/`: finds the folder, registers schemas and resolvers, formats `--help`."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import itertools
import os
import re
import shutil
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path

from hydra.core.config_store import ConfigStore
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig, OmegaConf

from nmt.config.commands import SCHEMAS, CheckpointConfig
from nmt.config.keys import entries
from nmt.utils.environment import job_id, rank
from nmt.utils.errors import InputError
from nmt.utils.quoting import override_key

STARTED = datetime.now()  # start time of this process
PLUS = ("experiment",)  # config groups without a default
LISTS = ("callbacks", "logger")  # config groups that accept several options
REPLACED = {  # what a typed key disables
    "trainer.max_epochs": "trainer.max_steps=-1",
    "data.batch_size": "data.batch_tokens=null",
}


def conf_folder() -> Path:
    """Returns the folder `conf/`, which is next to the package in a checkout and inside it in a wheel."""
    package = Path(__file__).resolve().parents[1]
    packaged = package / "conf"
    return packaged if packaged.is_dir() else package.parent / "conf"


def with_plus(words: Sequence[str]) -> list[str]:
    """Adds the `+` that Hydra requires before config groups without a default.

    Removes `+` and `++` before arguments of the Trainer. Disables the key that a typed key replaces (`REPLACED`).
    Expands `~` at the start of a value, since shells do not expand `~` after `=`.

    >>> with_plus(["experiment=rnnsearch50", "+trainer.max_epochs=1"])
    ['+experiment=rnnsearch50', 'trainer.max_epochs=1', 'trainer.max_steps=-1']
    """
    words = [re.sub(r"^\++(?=trainer\.)", "", word) for word in words]
    home = os.path.expanduser("~")
    words = [re.sub(r"(?<=[=\[{,:\s'\"])~(?=/|$)", lambda _: home, word) for word in words]
    for key, disabling in REPLACED.items():
        other = override_key(disabling)
        given = [w for w in words if not w.startswith("~") and not w.endswith(("=null", "=-1"))]
        keys = [override_key(word) for word in given]
        if key in keys and other not in keys:
            words = [word for word in words if override_key(word) != other]
            words.insert(1 + words.index(given[keys.index(key)]), disabling)
    return [re.sub(r"^(?=experiment=)", "+", word) for word in words]


def options_first(words: Sequence[str]) -> list[str]:
    """Moves options before the overrides, because argparse reads no overrides after an option that follows some.

    >>> options_first(["+experiment=a", "-m", "seed=1,2", "--config-dir", "mine"])
    ['-m', '--config-dir', 'mine', '+experiment=a', 'seed=1,2']
    """
    options: list[str] = []
    overrides: list[str] = []
    for previous, word in itertools.pairwise(["", *words]):
        is_value = previous.startswith("-") and not re.match(r"[~+]|[^-].*=", word)
        (options if word.startswith("-") or is_value else overrides).append(word)
    return [*options, *overrides]


def register_configs(commands: Iterable[str] = SCHEMAS) -> None:
    """Registers the schemas of the commands, and the resolvers used in `conf/`, with Hydra.

    Dictionaries in a schema accept new keys without a `+`. Commands that load a checkpoint also accept
    config groups whose keys are not in the command's schema.
    """
    store = ConfigStore.instance()
    for command in {"train", *commands}:
        schema = OmegaConf.structured(SCHEMAS[command])
        if issubclass(SCHEMAS[command], CheckpointConfig):
            OmegaConf.set_struct(schema, False)
            OmegaConf.set_struct(schema.get("data", schema), False)
        for path, _ in entries(SCHEMAS[command]):
            if isinstance(node := OmegaConf.select(schema, path), DictConfig):
                OmegaConf.set_struct(node, False)
        store.store(name=f"{command}_schema", node=schema)
    # Hydra would copy the store for each group in `--help`. It never modifies a copy, so no copy is needed.
    vars(store)["__deepcopy__"] = lambda copied: store
    for resolver in RESOLVERS:
        OmegaConf.register_new_resolver(resolver.__name__, resolver, replace=True)


def choices(command: str) -> str:
    """Returns the config groups, their options and the keys of a command, formatted for `--help`."""
    loader = GlobalHydra.instance().config_loader()
    fields = {entry.name for entry in dataclasses.fields(SCHEMAS[command])}
    names = {name for name in HydraConfig.get().runtime.choices if not name.startswith("hydra/")}
    groups = [
        f"  {name}: {', '.join(loader.get_group_options(name))}"
        for name in sorted(names | fields.intersection(PLUS + LISTS))
    ]
    lines = ["Choose with group=option:", "", *groups, "", "Set with key=value:", ""]
    for entry in dataclasses.fields(SCHEMAS[command]):
        dots = ".…" if dataclasses.is_dataclass(entry.default_factory) else ""
        text = f"  {entry.name}{dots}: {entry.metadata['meaning']}"
        lines += textwrap.wrap(text, 110, subsequent_indent="    ")
    return "\n".join(lines).replace("$", "$$")  # Hydra's string.Template prints $$ as $


def run_folder(command: str, resume: str | None = None) -> str:
    """Returns the resumed run's folder, or a new folder named after the SLURM or torchrun job or the start time."""
    if resume not in (None, "auto"):
        if not Path(str(resume)).is_dir():
            raise InputError(f"resume={resume}: no such run folder")
        return str(resume)
    name = job_id(command, resume)
    return f"outputs/{name}" if name else _make_new_folder()


@functools.cache
def _make_new_folder() -> str:
    """Creates a folder named after the start time, with the suffix `-1`, `-2`, … if the folder exists."""
    for number in itertools.count():
        name = f"outputs/{STARTED:%Y-%m-%d/%H-%M-%S}" + (f"-{number}" if number else "")
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        try:
            Path(name).mkdir()
        except FileExistsError:
            continue
        return name
    raise AssertionError


def config_subfolder(folder: str) -> str | None:
    """Returns the subfolder for Hydra's files (a new one if the run is resumed); None on ranks above 0."""
    if rank() > 0:
        return None
    resumed = (Path(folder) / ".hydra").exists()
    return f".hydra/again-{STARTED:%Y%m%d-%H%M%S}" if resumed else ".hydra"


@contextlib.contextmanager
def keeping_folder(folder: Path) -> Iterator[None]:
    """Removes the files that Hydra added to a resumed run, if an InputError stops the command before it trains."""
    try:
        yield
    except InputError:
        checkpoints = [file.stat().st_mtime for file in folder.glob("checkpoints/*.ckpt")]
        for configuration in folder.glob(f".hydra/again-{STARTED:%Y%m%d-%H%M%S}"):
            if max(checkpoints, default=0) < configuration.stat().st_mtime:
                shutil.rmtree(configuration)
        raise


def log_file(folder: str, name: str) -> str:
    """Returns the log file of a command; on ranks above 0, returns `os.devnull`."""
    return os.devnull if rank() > 0 else str(Path(folder) / f"{name}.log")


def wandb_offline(mode: str) -> bool:
    """Whether W&B logs only to local files with this value of WANDB_MODE."""
    return mode not in ("online", "run", "shared", "disabled")


def by_experiment(experiment: str, values: Mapping[str, int]) -> int:
    """Returns the entry of `values` for an experiment, or the entry `other` if there is none."""
    return values.get(experiment, values["other"])


RESOLVERS = (choices, run_folder, config_subfolder, log_file, wandb_offline, by_experiment)
