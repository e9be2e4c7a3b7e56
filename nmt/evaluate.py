"""Runs the whole test protocol on a trained model.

python -m nmt.evaluate checkpoint=outputs/2026-01-31/12-00-00/checkpoints/best.ckpt
python -m nmt.evaluate checkpoint=FILE sets=[by_length] search=greedy
python -m nmt.evaluate checkpoint=FILE +data.test.mine.source=FILE +data.test.mine.target=FILE
python -m nmt.evaluate checkpoint=FILE +stress=lengths
"""

from __future__ import annotations

import logging
from pathlib import Path

from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig

from nmt.cli.command import command
from nmt.config.overrides import apply_typed
from nmt.config.schema import Config
from nmt.config.validation import load
from nmt.data.prepare import prepare, prepare_held_out
from nmt.inference.test_loop import Example
from nmt.models.checkpoint import Stored, read_checkpoint
from nmt.run import finish, test
from nmt.run import start as job
from nmt.run.failures import end_all_ranks_on_error, machine_errors
from nmt.training.loggers import logging_to
from nmt.training.trainer import make_trainer
from nmt.utils.devices import name_of
from nmt.utils.errors import InputError

log = logging.getLogger(__name__)

# What evaluating may change of the configuration that a model was trained with.
OVERRIDABLE = (
    "name",
    "search",
    "evaluation",
    "report",
    "stress",
    "logger",
    "trainer",
    "data.test",
    "data.root",
    "data.cache",
)
COMMAND_KEYS = ("checkpoint", "sets", "trust")


@command("evaluate")
def main(composed: DictConfig) -> None:
    folder = Path(HydraConfig.get().runtime.output_dir)
    job.silence_warnings()
    job.refuse_used_folder(folder)
    stored = read_checkpoint(composed.checkpoint, composed.trust)
    typed = HydraConfig.get().overrides.task
    config = load(
        apply_typed(stored.config, composed, typed, OVERRIDABLE, COMMAND_KEYS), training=False
    )
    sets = chosen_sets(config, stored, list(composed.sets))
    job.check_early(config)
    prepared = None
    if config.evaluation.alignment.statistical_aligners:
        prepared = prepare(config.data, config.tokenizer, progress=config.trainer.progress)
    dictionary = stored.dictionary_for(config.search)
    model = stored.translator(config)
    log.info("%s, trained for %d updates", config.name, stored.update)
    with machine_errors(config), logging_to(config, folder) as logger:
        trainer = make_trainer(config, folder, [], logger)
        codec = test.make_codec(config, stored.source_vocabulary, stored.target_vocabulary)
        with end_all_ranks_on_error(trainer):
            scores = test.test_sets(trainer, model, config, codec, sets, folder, dictionary)
        if trainer.is_global_zero:
            if prepared is not None:
                test.add_statistical_aligners(scores, sets, prepared.train, config)
            content = finish.describe(
                config,
                model,
                train=stored.training or {"updates": stored.update},
                valid=stored.progress.get("best") or {},
                history=stored.progress.get("history", []),
                test=scores,
                sources={
                    "checkpoint": str(stored.path.resolve()),
                    "sha256": stored.sha256,
                    "device": name_of(trainer.strategy.root_device),
                    "devices": trainer.world_size,
                    "precision": str(trainer.precision),
                },
            )
            finish.publish(config, folder, content, trainer.loggers)


def chosen_sets(config: Config, stored: Stored, names: list[str]) -> dict[str, list[Example]]:
    """The test sets named (or all), and those made of joined sentences where asked for."""
    unknown = [name for name in names if name not in config.data.test]
    if unknown:
        known = ", ".join(config.data.test) or "none"
        raise InputError(f"sets: no test set {unknown[0]}; data.test has: {known}")
    if not config.data.test:
        raise InputError(
            "data.test: the checkpoint knows no test set; add +data.test.NAME.source=FILE"
        )
    sets: dict[str, list[Example]] = {}
    for name in names or config.data.test:
        split, _ = prepare_held_out(
            config.data.test[name],
            config.data,
            f"data.test.{name}",
            stored.source_vocabulary,
            stored.target_vocabulary,
            normalise=config.tokenizer.normalise,
            progress=config.trainer.progress,
        )
        sets |= test.example_sets(split, config)
    return sets


if __name__ == "__main__":
    main()
