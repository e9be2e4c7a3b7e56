"""Instantiates and checks the Lightning callbacks that the configuration names."""

from __future__ import annotations

from collections.abc import Sequence
from traceback import walk_tb

import pytorch_lightning as pl
from hydra.utils import instantiate
from pytorch_lightning import callbacks as known

from nmt.config import Config, TrainerConfig
from nmt.config.keys import is_within
from nmt.config.schema import to_containers
from nmt.config.targets import named_by, own_targets, reason
from nmt.training.averaging import StochasticWeightAveraging
from nmt.training.validation import is_logged
from nmt.utils.errors import InputError

# Callbacks that conflict with this program's own, and their alternatives.
INSTEAD = {
    known.Checkpoint: "checkpoints are this program's own; type trainer.valid_every or checkpoint.minutes",
    known.ProgressBar: "the bars are this program's own; type trainer.progress",
    known.StochasticWeightAveraging: "it counts epochs, and a run here counts updates; take callbacks=swa",
    known.GradientAccumulationScheduler: "type trainer.accumulate",
    known.BatchSizeFinder: "a batch here is an update of fixed size; type data.batch_size",
    known.LearningRateFinder: "it makes updates of its own; sweep over optimizer.lr",
    known.Timer: "a run ends after trainer.max_steps; a batch system's signal ends it earlier",
}
LIBRARIES = ("pytorch_lightning", "torch")
NEED_A_LOGGER = (known.LearningRateMonitor, known.DeviceStatsMonitor)


def misfit(error: Exception, config: Config, callbacks: Sequence[pl.Callback]) -> InputError | None:
    """What is said of an error of a training, if a callback of nmt or of a library raised it.

    None otherwise: of a callback of one's own the traceback is wanted.

    Args:
        callbacks: those of `make_callbacks`.
    """
    running = [frame.f_locals.get("self") for frame, _ in walk_tb(error.__traceback__)]
    for (name, settings), each in zip(config.callbacks.items(), callbacks, strict=True):
        not_own = is_within(type(each).__module__, (*LIBRARIES, "nmt"))
        if not_own and any(one is each for one in running):
            key = f"callbacks.{name}._target_={settings['_target_']}"
            return InputError(f"{key}: does not work in this run: {reason(error)}")
    return None


def make_callbacks(config: Config) -> list[pl.Callback]:
    """The callbacks of `callbacks`, in its order.

    Raises:
        InputError: for what is no callback, cannot be made, or does not work here, for two that
            average weights, of which each would take the other's averages for the trained ones, and
            for two whose states a checkpoint would not tell apart; naming its key.
    """
    made = {name: make_callback(name, config) for name in config.callbacks}
    averaging = [name for name, each in made.items() if isinstance(each, known.WeightAveraging)]
    if len(averaging) > 1:
        first, second = averaging[:2]
        raise InputError(
            f"callbacks.{second}: averages weights, as callbacks.{first} does; take one of them"
        )
    patience = stop_by_patience(config.trainer)
    owners = {patience.state_key: "trainer.patience"} if patience else {}
    for name, each in made.items():
        if type(each).state_dict is pl.Callback.state_dict:
            continue
        owner = owners.setdefault(each.state_key, f"callbacks.{name}")
        if owner != f"callbacks.{name}":
            raise InputError(
                f"callbacks.{name}: a checkpoint cannot tell its state from that of {owner}; leave "
                "one out, or give the class a state_key"
            )
    return list(made.values())


def stop_by_patience(options: TrainerConfig) -> known.EarlyStopping | None:
    """What `trainer.patience` asks for."""
    if not options.patience:
        return None
    by_bleu = options.monitor == "bleu"
    return known.EarlyStopping(
        monitor="valid/bleu" if by_bleu else "valid/nll_per_word",
        mode="max" if by_bleu else "min",
        patience=options.patience,
        check_finite=False,  # an earlier and clearer error is raised for it
    )


def make_callback(name: str, config: Config) -> pl.Callback:
    """The callback of `callbacks.<name>`; raises InputError as `make_callbacks`."""
    settings = config.callbacks[name]
    target = settings.get("_target_") if isinstance(settings, dict) else None
    if not target:
        raise InputError(f"callbacks.{name}: names no class; type +callbacks.{name}._target_=…")
    key = f"callbacks.{name}._target_={target}"
    with named_by(key):
        callback = instantiate(settings)
    if not isinstance(callback, pl.Callback):
        raise InputError(f"{key}: not a pytorch_lightning.Callback")
    for callback_class, instead in INSTEAD.items():
        if isinstance(callback, callback_class):
            raise InputError(f"{key}: {instead}")
    logged = config.logger.name != "none" and (
        config.logger.name != "wandb" or config.logger.mode != "disabled"
    )
    if isinstance(callback, NEED_A_LOGGER) and not logged:
        raise InputError(f"{key}: needs a logger; take logger=csv, wandb or tensorboard")
    updates = config.trainer.max_steps
    if isinstance(callback, StochasticWeightAveraging) and callback.start > updates:
        raise InputError(
            f"callbacks.{name}.start={callback.start}: must be at most trainer.max_steps={updates}, "
            "or no weights are averaged"
        )
    if isinstance(callback, known.EMAWeightAveraging):
        first = callback.update_starting_at_step or 0
        if first >= updates:
            raise InputError(
                f"callbacks.{name}.update_starting_at_step={first}: must be below "
                f"trainer.max_steps={updates}, or the first weights stay the average"
            )
        # all that are taken after the first one, or that one where it is the only update
        later = range(min(1, updates - 1), updates)
        if not any(callback.should_update(step_idx=n) for n in later):
            raise InputError(
                f"callbacks.{name}.update_every_n_steps={callback.update_every_n_steps}: takes no "
                f"weights up to trainer.max_steps={updates} but perhaps the first, which stay the "
                "average"
            )
    if isinstance(callback, known.EarlyStopping):
        monitor = str(callback.monitor)
        # code of one's own may log what it likes
        own = any(not is_within(each, LIBRARIES) for each in own_targets(to_containers(config)))
        if not (own or is_logged(monitor, config)):
            raise InputError(
                f"callbacks.{name}.monitor={monitor}: not logged; take one such as valid/nll_per_word"
            )
    return callback
