"""The start of a run: what it resumes or evaluates, what is refused, the folder, the text, the logger."""

from __future__ import annotations

import contextlib
import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytorch_lightning as pl
import torch
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig, OmegaConf
from pytorch_lightning.loggers import Logger
from pytorch_lightning.loggers.logger import DummyLogger

from nmt.config import Config, EvaluateConfig, ScoreConfig, TranslateConfig
from nmt.config.keys import is_within
from nmt.config.overrides import FROZEN, apply_typed, refuse_changes, typed_paths
from nmt.config.schema import to_containers
from nmt.config.targets import own_modules
from nmt.config.validation import load, validate
from nmt.data.prepare import Prepared, prepare
from nmt.data.vocabulary import SPECIAL
from nmt.evaluation.scores import choose_scores, modules_of_scores
from nmt.evaluation.statistical_aligners import check_aligners
from nmt.inference.trained import TrainedModel, from_checkpoints, read_members
from nmt.models import build_model
from nmt.models.checkpoint import Checkpoint, read_checkpoint
from nmt.models.optimizer import check_optimizer
from nmt.report.figures import check_own
from nmt.run.failures import machine_errors
from nmt.run.folder import RunFolder
from nmt.run.memory import warn_of_memory
from nmt.run.stored_files import EVALUATED_HERE, refuse_stored_files, say_what_is_read
from nmt.training.callbacks import make_callbacks
from nmt.training.loggers import check_logger, logging_to
from nmt.training.ranks import end_other_ranks, need_no_rank, watch_ranks
from nmt.training.signals import Stop
from nmt.training.trainer import lightning_arguments
from nmt.utils.code import code_fingerprint
from nmt.utils.cores import shared_cores
from nmt.utils.devices import check_accelerator, resolve_threads
from nmt.utils.environment import rank
from nmt.utils.errors import InputError
from nmt.utils.progress import TimeLeft

log = logging.getLogger(__name__)

WORK = (
    *("updates", "validations", "training sample"),
    *("tests", "statistical aligners", "figures", "page"),
)


@dataclass
class Run:
    """A run at work.

    Attributes:
        config: checked.
        folder: what it writes into.
        checkpoint: what it resumes, or evaluates; None where there is none.
        stop: handles the signals that stop a training.
        code: fingerprint of the code that makes it; None where parts of it were made by other code.
        text: fingerprints of what it learns from (`training`) and of each test set, by name (`test`).
        logger: where scores go, on rank 0 and inside `at_work`.
        trainer: of its updates and tests, once there is one.
        left: what it has still to do, in the order in which it does it.
        others: further members of the ensemble that it evaluates.
    """

    config: Config
    folder: RunFolder
    checkpoint: Checkpoint | None = None
    stop: Stop | None = None
    code: str | None = None
    text: dict[str, Any] | None = None
    logger: Logger | None = None
    trainer: pl.Trainer | None = None
    left: TimeLeft = field(default_factory=lambda: TimeLeft(dict.fromkeys(WORK, 0)))
    others: Sequence[Checkpoint] = ()

    @property
    def is_trial(self) -> bool:
        """Whether Lightning's `fast_dev_run` was typed: a few batches, of which nothing is kept."""
        return bool(self.config.trainer.lightning.get("fast_dev_run"))


@contextlib.contextmanager
def training(composed: DictConfig, stop: Stop) -> Iterator[Run]:
    """A training, from its start or from its last checkpoint, which `stop` may end.

    Raises:
        InputError: for what is found wrong before anything is done.
    """
    folder = RunFolder.of_this_command()
    quieten()
    checkpoint, composed = _resumed(composed, folder)
    config = _with_threads(load(composed))
    if checkpoint is not None:
        _compare_threads(config)
    watch(config)
    check_early(config)
    check_training(config)
    warn_of_memory(config, training=True)
    stop.trust = own_code(config)
    with machine_errors(config):
        yield Run(config, folder, checkpoint, stop, _code_of(checkpoint))


@contextlib.contextmanager
def evaluation(composed: DictConfig) -> Iterator[Run]:
    """An evaluation of a checkpoint, in a folder of its own; raises InputError as `training`."""
    folder = RunFolder.of_this_command()
    quieten()
    folder.refuse_used()
    checkpoint, *others = read_members(named_checkpoints(composed), composed.trust)
    typed = HydraConfig.get().overrides.task
    stored = apply_typed(checkpoint.config, composed, typed, EvaluateConfig, here=EVALUATED_HERE)
    if others and "name" not in typed_paths(typed, EvaluateConfig):
        stored.name = f"{stored.name}, {1 + len(others)} models"
    refuse_untrusted_scores(stored, typed, composed.trust)
    config = _with_threads(load(stored, training=False), typed_paths(typed, EvaluateConfig))
    watch(config)
    check_early(config)
    refuse_stored_files(checkpoint, config, list(composed.sets), typed)
    say_what_is_read([checkpoint, *others], config, list(composed.sets), folder.path)
    warn_of_memory(config)
    with machine_errors(config):
        yield Run(config, folder, checkpoint, code=code_fingerprint(), others=others)


@contextlib.contextmanager
def without_model(composed: DictConfig) -> Iterator[Run]:
    """A run without a model of ours, such as a phrase-based system. Raises as `training`."""
    folder = RunFolder.of_this_command()
    folder.refuse_used()
    config = load(composed)
    choose_scores(config.evaluation.scores)
    check_logger(config.logger)
    quieten()
    yield Run(config, folder, code=code_fingerprint())


def trained_model(
    composed: DictConfig, command: type[TranslateConfig | ScoreConfig] = TranslateConfig
) -> TrainedModel:
    """The model of a checkpoint that a command applies to what it is given; raises InputError."""
    quieten()
    members = read_members(named_checkpoints(composed), composed.trust)
    typed = HydraConfig.get().overrides.task
    paths = typed_paths(typed, command)
    stored = apply_typed(members[0].config, composed, typed, command)
    if command is TranslateConfig:
        if "search.nbest" in paths:
            raise InputError("search.nbest: type nbest= instead, the translations a line")
        stored.search.nbest = composed.nbest
        stored.search.beam_size = max(composed.nbest, stored.search.beam_size)
    if "trainer.accelerator" in paths:  # where it was trained binds nobody
        check_accelerator(stored.trainer.accelerator)
    config = _with_threads(load(stored, training=False), paths)
    warn_of_memory(config)
    return from_checkpoints(members, config)


def named_checkpoints(composed: DictConfig) -> str | list[str]:
    """The files of `checkpoint=FILE` or `checkpoint=[a,b,c]`."""
    named = composed.checkpoint
    return [str(file) for file in named] if OmegaConf.is_list(named) else str(named)


def model_of(run: Run) -> TrainedModel:
    """The model or ensemble that a run evaluates; raises InputError as `from_checkpoints`."""
    assert run.checkpoint is not None
    return from_checkpoints([run.checkpoint, *run.others], run.config)


def prepare_text(run: Run) -> Prepared:
    """The text of a run, prepared or from the cache; raises InputError where it is wrong."""
    config = run.config
    text = prepare(config.data, config.tokenizer, progress=config.trainer.progress)
    log.info("prepared text:\n%s", text.summary())
    run.text = text.identified()
    return text


def refuse_other_text(run: Run, text: Prepared) -> None:
    """Refuses to resume a run on other text than it was started with; raises InputError."""
    if run.checkpoint is not None and run.checkpoint.fingerprint != text.fingerprint:
        raise InputError(
            f"resume: the training or development text is not the one the run was started with "
            f"(fingerprint {text.fingerprint}, was {run.checkpoint.fingerprint}); restore it, or "
            "start a new run"
        )


def _code_of(checkpoint: Checkpoint | None) -> str | None:
    """The code that makes a run, the part before its checkpoint included; None where they differ.

    It is read here, since the files may change while the run trains.
    """
    code = code_fingerprint()
    return code if checkpoint is None or checkpoint.code == code else None


def reopen(run: Run) -> None:
    """Puts right what a killed process left in the folder of a run that is resumed."""
    if run.checkpoint is not None and not rank():
        run.folder.checkpoints.repair(run.checkpoint)


@contextlib.contextmanager
def at_work(run: Run) -> Iterator[None]:
    """Gives a run its logger; however the run ends, the logger is closed and no rank is left.

    From here on files of the run folder change. A trial has a logger that logs nothing, so that
    callbacks which need one are tried, too.
    """
    config, folder = run.config, run.folder.path
    if not rank():
        run.folder.remove_partial()
    with nullcontext(DummyLogger()) if run.is_trial else logging_to(config, folder) as logger:
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


def watch(config: Config) -> None:
    """Watches the other ranks of a run, where it has any."""
    if config.trainer.devices * config.trainer.num_nodes > 1:
        watch_ranks()


def _with_threads(config: Config, typed: Sequence[str] | None = None) -> Config:
    """A configuration with a number of threads, which is what will be stored.

    Args:
        config: of a training, or from a checkpoint.
        typed: of a command that starts from a checkpoint the keys typed: where threads are not
            among them they are this machine's, since those of the training bind nobody.
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


def _compare_threads(config: Config) -> None:
    """Says where a resumed run is to use more threads than it would be given here."""
    threads, cores = config.trainer.threads, shared_cores(config.trainer.devices)
    if isinstance(threads, int) and threads > cores:
        log.warning(
            "trainer.threads=%d, as the run has had; it may use %d core(s) here: with trainer.threads=auto"
            " it takes as many, and its weights agree up to float rounding", threads, cores
        )  # fmt: skip


def check_early(config: Config) -> None:
    """Refuses at the start what would be found missing after hours of work.

    Raises:
        InputError: for an extra, a device, a key of W&B, or a class that is not there.
    """
    if config.evaluation.alignment.statistical_aligners:
        check_aligners()
    choose_scores(config.evaluation.scores)
    check_logger(config.logger)
    check_accelerator(config.trainer.accelerator)
    check_own(config.report)
    with torch.device("meta"):
        build_model(config, len(SPECIAL), len(SPECIAL))


def check_training(config: Config) -> None:
    """Refuses at the start what only a training uses.

    Raises:
        InputError: for an optimizer, schedule, callback or argument of Lightning's that cannot be,
            and for weights of attention other than those that will be learnt.
    """
    if config.evaluation.attention != "as_trained":
        raise InputError(
            f"evaluation.attention={config.evaluation.attention}: a training is tested with the "
            "attention that it has learnt; type it to nmt.evaluate"
        )
    check_optimizer(config.optimizer, config.trainer.max_steps)
    make_callbacks(config)
    lightning_arguments(config.trainer, Path())


def own_code(config: DictConfig | Config) -> list[str]:
    """Modules of the code it names: whoever typed or trained a configuration trusts them."""
    return [*own_modules(to_containers(config)), *modules_of_scores(config.evaluation.scores)]


def refuse_untrusted_scores(config: DictConfig, typed: Sequence[str], trust: Sequence[str]) -> None:
    """Refuses scores of modules outside nmt that only a stored configuration names.

    Args:
        config: the stored configuration with what was typed.
        typed: overrides of the command line; scores that stand there may be imported.
        trust: modules that may be.

    Raises:
        InputError: naming the module.
    """
    if any(override.lstrip("+").startswith("evaluation.scores=") for override in typed):
        return
    for module in modules_of_scores(config.evaluation.scores):
        if not is_within(module, trust):
            raise InputError(
                f"evaluation.scores: the checkpoint names code outside nmt, {module}, which is not"
                f" run; if you trust it, add trust=[{module}], or choose scores yourself"
            )


def _resumed(composed: DictConfig, folder: RunFolder) -> tuple[Checkpoint | None, DictConfig]:
    """The checkpoint to resume from, if any, and the configuration to train with.

    Raises:
        InputError: when there is none in a folder that was named, when the folder of a new run
            holds another, or a typed value changes the result.
    """
    asked = composed.resume
    if asked is not None and composed.trainer.lightning.get("fast_dev_run"):
        raise InputError(
            f"resume={asked}: trainer.lightning.fast_dev_run makes a trial, of which nothing is kept; "
            "leave out one of the two"
        )
    named = asked not in (None, "auto")
    if named and Path(asked).resolve() != folder.path.resolve():
        raise InputError(
            f"resume={asked}: a run is resumed in its own folder; leave out hydra.run.dir"
        )
    if asked is None and folder.checkpoints.found():
        raise InputError(
            f"{folder.path}: holds the checkpoints of a run; resume=auto resumes it, "
            "another hydra.run.dir starts a new one"
        )
    path = None if asked is None else folder.checkpoints.newest()
    if path is not None:
        return _resume_from(path, composed)
    if named:
        raise InputError(f"resume={asked}: no checkpoint in {folder.checkpoints.path}")
    folder.refuse_used()
    return None, composed


def _resume_from(path: Path, composed: DictConfig) -> tuple[Checkpoint, DictConfig]:
    """A checkpoint, and its configuration with what was typed; raises InputError as `_resumed`."""
    trusted = [*composed.trust, *own_code(composed)]
    checkpoint = read_checkpoint(path, trusted, resumed=True)
    typed = HydraConfig.get().overrides.task
    config = apply_typed(checkpoint.config, composed, typed, keep=FROZEN)
    refuse_untrusted_scores(config, typed, trusted)
    validate(config)
    refuse_changes(checkpoint.config, config)
    _check_updates(checkpoint, config)
    log.info("resuming from %s, update %d", path, checkpoint.update)
    return checkpoint, config


def _check_updates(checkpoint: Checkpoint, config: DictConfig) -> None:
    """Refuses fewer updates than were made; warns where more of them bend the learning rate."""
    planned, asked = checkpoint.config.trainer.max_steps, config.trainer.max_steps
    if asked < checkpoint.update:
        raise InputError(
            f"trainer.max_steps={asked}: the run has made {checkpoint.update} updates already"
        )
    optimizer = config.optimizer
    begun = checkpoint.update > max(optimizer.decay_from * planned, optimizer.warmup)
    linear = optimizer.schedule._target_ == "nmt.models.optimizer.linear"
    if linear and asked != planned and begun:
        log.warning(
            "trainer.max_steps=%d: the learning rate was falling to 0 at update %d and now falls to "
            "0 at %d; the result differs from that of a run started with this value", asked, planned, asked
        )  # fmt: skip


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
