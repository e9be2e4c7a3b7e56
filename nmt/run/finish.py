"""From a trained model to a finished run folder: test sets, figures, page, W&B, results.json."""

from __future__ import annotations

import logging
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import pytorch_lightning as pl
from hydra.core.hydra_config import HydraConfig
from pytorch_lightning.loggers import Logger

from nmt.config.schema import Config, plain, scoring_of
from nmt.data.prepare import Prepared
from nmt.evaluation import results
from nmt.inference.test_loop import Example, Likelihood
from nmt.models import Translator
from nmt.models.checkpoint import read_checkpoint, store_ending
from nmt.report.figures import draw_run
from nmt.report.page import build_page
from nmt.report.runs import Run
from nmt.report.wandb.panels import log_test
from nmt.run import test
from nmt.run.start import TrainingCallbacks, own_code
from nmt.training.checkpoints import BEST
from nmt.training.loggers import ResumableWandbLogger, Row
from nmt.utils.devices import name_of, peak_memory

PAGE = "report.html"

log = logging.getLogger(__name__)


def finish_training(
    config: Config,
    folder: Path,
    trainer: pl.Trainer,
    model: Translator,
    prepared: Prepared,
    sets: Mapping[str, Sequence[Example]],
    watch: TrainingCallbacks,
) -> None:
    """Tests the best checkpoint of a training run and writes all that it leaves behind."""
    trainer.strategy.barrier()
    best = read_checkpoint(folder / "checkpoints" / BEST, own_code(config))
    model.load_state_dict(best.weights)
    codec = test.make_codec(config, prepared.source_vocabulary, prepared.target_vocabulary)
    train = training_summary(config, trainer, model, prepared, watch)
    dictionary = test.own_dictionary(config, trainer, model, prepared, codec)
    if trainer.is_global_zero:
        store_ending(best.path, train, dictionary)
    scores = test.test_sets(trainer, model, config, codec, sets, folder, dictionary)
    if not trainer.is_global_zero:
        return
    if config.evaluation.alignment.statistical_aligners:
        test.add_statistical_aligners(scores, sets, prepared.train, config)
    content = describe(
        config,
        model,
        train=train,
        valid=watch.checkpoints.best or {},
        history=watch.checkpoints.history,
        test=scores,
    )
    publish(config, folder, content, trainer.loggers)


def training_summary(
    config: Config,
    trainer: pl.Trainer,
    model: Translator,
    prepared: Prepared,
    watch: TrainingCallbacks,
) -> dict[str, Any]:
    """`train` of results.json; the NLL is of a fixed sample of the training pairs."""
    updates = trainer.global_step
    summary = {
        "updates": updates,
        "epochs": cast(Any, trainer).datamodule.schedule.epoch(updates),
        "hours": watch.checkpoints.hours(),
        "device": name_of(trainer.strategy.root_device),
        "devices": trainer.world_size,
        "precision": str(trainer.precision),
        **watch.progress.rates(),
        "peak_memory": peak_memory(trainer.strategy.root_device),
        "nll_per_sentence": None,
    }
    if config.evaluation.train_sample:
        likelihood = Likelihood(model)
        sample = test.training_sample(config, prepared, trainer, config.evaluation.train_sample)
        trainer.test(likelihood, sample, verbose=False)
        summary["nll_per_sentence"] = likelihood.nll_per_sentence
    return summary


def describe(config: Config, model: Translator, **measured: Any) -> dict[str, Any]:
    """The content of results.json: what was asked for beside what was `measured`."""
    scoring = scoring_of(config.model) or "none"
    return results.build(
        name=config.name,
        title=config.model.title,
        experiment=config.experiment,
        regime=config.regime,
        model=config.model._target_.rpartition(".")[2],
        scoring=scoring.rpartition(".")[2],
        max_length=config.data.max_length,
        seed=config.seed,
        parameters=sum(parameter.numel() for parameter in model.parameters()),
        config=plain(config),
        overrides=list(HydraConfig.get().overrides.task),
        command=command_line(),
        **measured,
    )


def publish(
    config: Config, folder: Path, content: dict[str, Any], loggers: Sequence[Logger]
) -> None:
    """Figures, page, W&B and, last of all, results.json: where it exists the run is finished."""
    figures: list[Path] = []
    page: Path | None = None
    try:
        figures = draw_run(folder, config.report, content)
        run = Run(config.name, content, folder)
        title = f"{config.name} on {config.data.title}"
        page = build_page([run], folder / PAGE, config.report, title=title)
    except Exception:  # what was measured is not lost over a picture of it
        log.exception("not all figures could be drawn; going on")
    for logger in loggers:
        updates = content["train"]["updates"]
        if isinstance(logger, ResumableWandbLogger) and logger.is_new(updates, Row.TEST):
            log_test(logger.experiment, content, figures, page)
    results.write(folder, content)
    log.info("everything about this run, figures and %s: %s", PAGE, folder)


def command_line() -> str:
    """The command as it can be typed again."""
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    program = f"python -m {spec.name}" if spec else f"python {sys.argv[0]}"
    return " ".join([program, *map(shlex.quote, sys.argv[1:])])
