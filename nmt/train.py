"""Trains a model, keeps checkpoints, then translates and scores the test sets.

python -m nmt.train +experiment=rnnsearch50
python -m nmt.train +experiment=rnnencdec50 regime=tiny seed=2
python -m nmt.train -m +experiment=rnnencdec50,rnnsearch50
python -m nmt.train resume=outputs/2026-01-31/12-00-00
"""

from __future__ import annotations

import logging
from pathlib import Path

import pytorch_lightning as pl
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig

from nmt.cli.command import command
from nmt.config.schema import TrainConfig
from nmt.config.validation import load
from nmt.data.module import TranslationData
from nmt.data.prepare import describe, prepare
from nmt.models import build
from nmt.models.checkpoint import describe_run
from nmt.run import start as job
from nmt.run import test
from nmt.run.failures import end_all_ranks_on_error, machine_errors
from nmt.run.finish import finish_training
from nmt.training.loggers import logging_to
from nmt.training.signals import Stop, stoppable
from nmt.training.trainer import make_trainer

log = logging.getLogger(__name__)


@command("train")
def main(composed: DictConfig) -> None:
    folder = Path(HydraConfig.get().runtime.output_dir)
    with stoppable(folder, requeue=composed.resume == "auto") as stop:
        train(composed, folder, stop)


def train(composed: DictConfig, folder: Path, stop: Stop) -> None:
    """A run from its start, or from its last checkpoint, to results.json."""
    resumed, composed = job.resume(composed, folder)
    config = load(composed)
    assert isinstance(config, TrainConfig)
    job.check_early(config)
    job.silence_warnings()
    prepared = prepare(config.data, config.tokenizer, progress=config.trainer.progress)
    job.refuse_other_data(resumed, prepared.fingerprint)
    log.info("prepared text:\n%s", describe(prepared))
    sets = {
        name: sentences
        for split in prepared.test.values()
        for name, sentences in test.example_sets(split, config).items()
    }

    pl.seed_everything(config.seed, verbose=False)
    model = build(config, len(prepared.source_vocabulary), len(prepared.target_vocabulary))
    model.stored = describe_run(
        config, prepared.source_vocabulary, prepared.target_vocabulary, prepared.fingerprint
    )
    with machine_errors(config), logging_to(config, folder) as logger:
        watch = job.TrainingCallbacks(config, prepared, folder, stop)
        trainer = make_trainer(config, folder, watch.callbacks, logger)
        log.info(job.headline(config, model, trainer))
        data = TranslationData(prepared, config)
        with end_all_ranks_on_error(trainer):
            with stop.deferring():
                path = resumed.path if resumed else None
                trainer.fit(model, data, ckpt_path=path, weights_only=True)
            finish_training(config, folder, trainer, model, prepared, sets, watch)


if __name__ == "__main__":
    main()
