"""The start of a run: its configuration, checkpoint, folder, text and logger."""

from __future__ import annotations

import contextlib
import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import nullcontext

from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig
from pytorch_lightning.loggers.logger import DummyLogger

from nmt.config import Config, EvaluateConfig, ScoreConfig, TranslateConfig
from nmt.config.overrides import apply_typed, typed_paths
from nmt.config.validation import load
from nmt.data.prepare import Prepared, prepare
from nmt.data.sources.optional import leave_out_absent
from nmt.evaluation.scores import choose_scores
from nmt.inference.trained import TrainedModel, from_checkpoints, read_members
from nmt.report.figures import check_own
from nmt.run.early_checks import (
    check_early,
    check_storable,
    check_training,
    own_code,
    refuse_untrusted_scores,
)
from nmt.run.folder import RunFolder
from nmt.run.initial import given_vocabularies, initial_checkpoint
from nmt.run.resume import resumed_checkpoint, typed_from_start
from nmt.run.run import Run
from nmt.training.loggers import check_logger, logging_to
from nmt.training.ranks import end_other_ranks, need_no_rank, watch_ranks
from nmt.training.signals import Stop
from nmt.utils.devices import check_accelerator, resolve_threads
from nmt.utils.environment import rank
from nmt.utils.errors import InputError

log = logging.getLogger(__name__)

# Keys that an evaluation never takes from a checkpoint, which may come from a stranger.
EVALUATED_HERE = ("trust", "data.cache", "logger", "trainer.lightning")


@contextlib.contextmanager
def training(composed: DictConfig, stop: Stop) -> Iterator[Run]:
    """A training, from its start or from its last checkpoint, which `stop` may end.

    Raises:
        InputError: for what is found wrong before anything is done.
    """
    folder = RunFolder.of_this_command()
    quieten()
    checkpoint, composed = resumed_checkpoint(composed, folder)
    config = _with_threads(load(composed))
    leave_out_absent(config.data)
    watch(config)
    check_early(config)
    check_training(config)
    stop.trust = own_code(config)
    typed = typed_from_start(checkpoint)
    initial = initial_checkpoint(config) if checkpoint is None else None
    if initial is not None:
        log.info("starting from the weights of %s, update %d", initial.path, initial.update)
    yield Run(config, folder, checkpoint, initial, stop, typed=typed)


@contextlib.contextmanager
def evaluation(composed: DictConfig) -> Iterator[Run]:
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
    watch(config)
    check_early(config)
    yield Run(config, folder, checkpoint, others=others, typed=typed)


@contextlib.contextmanager
def without_model(composed: DictConfig) -> Iterator[Run]:
    """A run without a model of ours, such as a phrase-based system. Raises as `training`."""
    folder = RunFolder.of_this_command()
    folder.refuse_used()
    config, typed = load(composed), HydraConfig.get().overrides.task
    leave_out_absent(config.data)
    check_storable(config)
    choose_scores(config.evaluation.scores)
    check_logger(config.logger)
    check_own(config.report)
    quieten()
    yield Run(config, folder, typed=typed)


def trained_model(
    composed: DictConfig, command: type[TranslateConfig | ScoreConfig] = TranslateConfig
) -> TrainedModel:
    """The model of a checkpoint that a command applies to what it is given; raises InputError."""
    quieten()
    members = read_members(composed.checkpoint, composed.trust)
    typed = HydraConfig.get().overrides.task
    paths = typed_paths(typed, command)
    stored = apply_typed(members[0].config, composed, typed, command)
    if command is TranslateConfig:
        if "search.nbest" in paths:
            raise InputError("search.nbest: type nbest= instead, the translations a line")
        if "search.beam_size" in paths and composed.nbest > stored.search.beam_size:
            raise InputError(
                f"nbest={composed.nbest}: must be at most search.beam_size={stored.search.beam_size}"
            )
        stored.search.nbest = composed.nbest
        stored.search.beam_size = max(composed.nbest, stored.search.beam_size)
    if "trainer.accelerator" in paths:  # the stored one need not exist here
        check_accelerator(stored.trainer.accelerator)
    config = _with_threads(load(stored, training=False), paths)
    return from_checkpoints(members, config)


def model_of(run: Run) -> TrainedModel:
    """The model or ensemble that a run evaluates; raises InputError as `from_checkpoints`."""
    assert run.checkpoint is not None
    return from_checkpoints([run.checkpoint, *run.others], run.config)


def prepare_text(run: Run) -> Prepared:
    """The text of a run, prepared now or before; raises InputError as `prepare`."""
    config = run.config
    vocabularies = given_vocabularies(config, run.initial or run.checkpoint)
    text = prepare(config.data, config.tokenizer, config.trainer.progress, vocabularies)
    log.info("prepared text:\n%s", text.summary())
    run.text = text.identified()
    return text


@contextlib.contextmanager
def at_work(run: Run) -> Iterator[None]:
    """Gives a run its logger; at the end the logger is closed, and after an error the other ranks end.

    From here on files of the run folder change. A trial has a logger that logs nothing, so that
    callbacks which need a logger are tried, too.
    """
    if not rank():
        run.folder.remove_partial()
    opened = logging_to(run.config, run.folder.path, _typed_for(run))
    with nullcontext(DummyLogger()) if run.is_trial else opened as logger:
        run.logger = logger
        try:
            yield
        except BaseException as error:
            if isinstance(error, InputError):
                error.at_work = True
            end_other_ranks()
            raise
        finally:
            need_no_rank()


def _typed_for(run: Run) -> Sequence[str]:
    """What was typed for a run; that of an evaluation comes after what its one model was trained with."""
    if run.trains or run.checkpoint is None or run.others:
        return run.typed
    return [*run.checkpoint.typed, *run.typed]


def watch(config: Config) -> None:
    """Watches the other ranks of a run, where it has any."""
    if config.trainer.devices * config.trainer.num_nodes > 1:
        watch_ranks()


def _with_threads(config: Config, typed: Sequence[str] | None = None) -> Config:
    """A configuration with a number of threads, which is what will be stored.

    Args:
        config: of a training, or from a checkpoint.
        typed: keys typed for a command that starts from a checkpoint; the stored number of threads
            counts only if it is among them, since it was chosen for the machine of the training.
    """
    options = config.trainer
    stored = typed is None or "trainer.threads" in typed
    options.threads = resolve_threads(
        options.threads if stored else "auto",
        options.accelerator,
        config.model.hidden,
        options.devices,
    )
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
        ".*resuming from a checkpoint that ended before the epoch ended.*",
        ".*The `srun` command is available.*",
        ".*recommended to use `self.log.*sync_dist=True.*",
        ".*You have overridden `transfer_batch_to_device`.*",
        ".*`isinstance\\(treespec, LeafSpec\\)` is deprecated.*",
    ):
        warnings.filterwarnings("ignore", message)
