"""The start of a run: its configuration, checkpoint, folder, text and loggers."""

from __future__ import annotations

import contextlib
import logging
import warnings
from collections.abc import Iterator, Sequence

from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig

from nmt.config import Config, EvaluateConfig
from nmt.config.overrides import apply_typed, typed_paths
from nmt.config.validation import load
from nmt.data.prepare import Prepared, prepare
from nmt.data.sources import leave_out_absent
from nmt.inference.load import from_checkpoints, read_members
from nmt.inference.model import Model
from nmt.training.early_checks import check_early, own_code, refuse_untrusted_scores
from nmt.training.folder import RunFolder
from nmt.training.initial import given_vocabularies, initial_checkpoint
from nmt.training.loggers import closing_wandb, make_loggers
from nmt.training.resume import checkpoint_to_go_on_from, typed_from_start
from nmt.training.run import Run
from nmt.training.signals import Stop
from nmt.training.trainer import make_callbacks, make_trainer
from nmt.utils.devices import resolve_threads, use_threads
from nmt.utils.environment import rank
from nmt.utils.errors import InputError

log = logging.getLogger(__name__)

# Keys that an evaluation never takes from a checkpoint, which may come from a stranger.
EVALUATED_HERE = ("trust", "data.cache", "logger", "callbacks")


def training(composed: DictConfig, stop: Stop) -> Run:
    """A training, from its start or from a checkpoint, which `stop` may end.

    Raises:
        InputError: for what is found wrong before anything is done.
    """
    folder = RunFolder.of_this_command()
    quieten()
    checkpoint, composed = checkpoint_to_go_on_from(composed, folder)
    config = _with_threads(load(composed))
    leave_out_absent(config.data)
    check_early(config)
    if config.evaluation.attention != "as_trained":
        raise InputError(
            f"evaluation.attention={config.evaluation.attention}: type it to nmt.evaluate; a training "
            "is tested with the attention that it has learnt"
        )
    stop.trust = own_code(config)
    initial = initial_checkpoint(config) if checkpoint is None else None
    if initial is not None:
        log.info("starting from the weights of %s, update %d", initial.path, initial.update)
    callbacks = make_callbacks(config, folder.path)
    make_trainer(config, folder.path)  # what Lightning refuses, before the text is prepared
    typed = typed_from_start(checkpoint)
    return Run(config, folder, checkpoint, initial, stop, callbacks=callbacks, typed=typed)


def evaluation(composed: DictConfig) -> Run:
    """An evaluation of a checkpoint, in a folder of its own; raises InputError as `training`."""
    folder = RunFolder.of_this_command()
    quieten()
    folder.refuse_used()
    checkpoint, *others = read_members(composed.checkpoint, composed.trust)
    typed = HydraConfig.get().overrides.task
    stored = apply_typed(checkpoint.config, composed, typed, EvaluateConfig, here=EVALUATED_HERE)
    paths = typed_paths(typed, EvaluateConfig)
    if others and "name" not in paths:
        stored.name = f"{stored.name}, {1 + len(others)} models"
    refuse_untrusted_scores(stored, typed, composed.trust)
    config = _with_threads(load(stored, training=False), paths)
    leave_out_absent(config.data)
    check_early(config)
    return Run(config, folder, checkpoint, others=others, typed=typed)


def without_model(composed: DictConfig) -> Run:
    """A run without a model of ours, such as a phrase-based system. Raises as `training`."""
    folder = RunFolder.of_this_command()
    folder.refuse_used()
    config = load(composed)
    leave_out_absent(config.data)
    check_early(config)
    quieten()
    return Run(config, folder, typed=HydraConfig.get().overrides.task)


def model_of(run: Run) -> Model:
    """The model or ensemble that a run evaluates; raises InputError as `from_checkpoints`."""
    assert run.checkpoint is not None
    return from_checkpoints([run.checkpoint, *run.others], run.config)


def prepare_text(run: Run) -> Prepared:
    """The text of a run, prepared now or before; raises InputError as `prepare`."""
    config = run.config
    vocabularies = given_vocabularies(config, run.initial or run.checkpoint)
    shown = config.trainer["enable_progress_bar"]
    text = prepare(config.data, config.tokenizer, shown, vocabularies)
    log.info("prepared text:\n%s", text.summary())
    run.text = text.identified()
    return text


@contextlib.contextmanager
def at_work(run: Run) -> Iterator[None]:
    """Gives a run its loggers, which are closed at the end. From here on its folder changes."""
    with closing_wandb():
        trial = run.config.trainer.get("fast_dev_run")
        run.loggers = [] if trial else make_loggers(run.config, run.folder.path)
        yield


def _with_threads(config: Config, typed: Sequence[str] | None = None) -> Config:
    """A configuration with a number of threads, which is what will be stored.

    Args:
        config: of a training, or from a checkpoint.
        typed: keys typed for a command that starts from a checkpoint; the stored number of threads
            counts only if it is among them, since it was chosen for the machine of the training.
    """
    stored = typed is None or "threads" in typed
    devices, accelerator = config.trainer["devices"], config.trainer["accelerator"]
    config.threads = resolve_threads(
        config.threads if stored else "auto",
        accelerator,
        config.model.hidden,
        devices if isinstance(devices, int) else 1,
    )
    use_threads(config.threads)
    return config


def quieten() -> None:
    """Silences Lightning's warnings about intended settings, and ranks that repeat the first."""
    if rank():
        logging.getLogger("nmt").setLevel(logging.WARNING)
    for name in ("pytorch_lightning", "lightning_fabric"):
        logging.getLogger(name).setLevel(logging.WARNING)
    for message in (
        ".*does not have many workers.*",
        ".*GPU available but not used.*",
        ".*compute.* method of metric.*was called before the.*update.*",
        ".*Checkpoint directory.*exists and is not empty.*",
        ".*Experiment logs directory.*exists and is not empty.*",
        ".*Trying to infer the `batch_size` from an ambiguous collection.*",
        ".*The `srun` command is available.*",
        ".*recommended to use `self.log.*sync_dist=True.*",
        ".*`isinstance\\(treespec, LeafSpec\\)` is deprecated.*",
    ):
        warnings.filterwarnings("ignore", message)
