"""Trains a model, saves checkpoints, then translates and scores the test sets.

python -m nmt.train +experiment=rnnsearch50
python -m nmt.train +experiment=rnnencdec50 regime=tiny seed=2
python -m nmt.train -m +experiment=rnnencdec50,rnnsearch50
python -m nmt.train resume=outputs/2026-01-31/12-00-00
python -m nmt.train +experiment=rnnsearch50 initial_checkpoint=outputs/2026-01-31/12-00-00
"""

from __future__ import annotations

import contextlib
import logging
import multiprocessing
import sys
from collections.abc import Iterator
from functools import partial

from nmt.cli.application import command
from nmt.config.commands import TrainConfig
from nmt.utils.environment import rank
from nmt.utils.processes import follow_parent

log = logging.getLogger(__name__)


@command("train")
def main(composed: TrainConfig) -> float | None:
    """Starts or resumes a training run, evaluates the model and writes results.json.

    Returns the best checkpoint's score, so that a sweeper can optimise it.
    """
    with preparing(composed):
        from nmt.data.preparation import prepare
        from nmt.inference.held_out import evaluate, read_sets
        from nmt.training.fit import Training
        from nmt.training.loggers import logging_run
        from nmt.training.outcome import describe_model, describe_run, write_results
        from nmt.training.ranks import on_every_rank
        from nmt.training.run import make_training_run

        run = make_training_run(composed)
        training = Training(run)
    text = prepare(run.config.data, run.config.tokenizer, run.vocabularies, run.fingerprint)
    log.info("prepared text:\n%s", text.summary())
    for doubt in text.doubts():
        log.warning("%s", doubt)
    sets = read_sets(run.config, text.test.values())
    with logging_run(run.loggers, run.config):
        training.fit(text)
        if run.config.trainer.get("fast_dev_run"):
            return None
        objective = training.best_score()
        model, outcome = training.finish()
        evaluated = on_every_rank(
            training.trainer,
            model.network,
            lambda: evaluate(model, sets, run.folder.path),
        )
        # What only the end of a run needs is imported here, so that the training starts earlier.
        from nmt.inference.live_export import export_live
        from nmt.training.publish import next_steps, publish

        export_live(model, run.folder.path)
        describe = partial(
            describe_run, run, evaluated, text, objective=objective, **describe_model(model)
        )
        publish(run, describe(**outcome), evaluated)
        outcome = training.complete(model, outcome)
        write_results(run.folder.path, describe(**outcome))
        if rank() == 0 and (steps := next_steps(run)):
            log.info("%s", steps)
        return objective


@contextlib.contextmanager
def preparing(config: TrainConfig) -> Iterator[None]:
    """Fills the cache with the text of a new training run while the block runs; at its end, waits for the text.

    Nothing is prepared on ranks above 0, or if a checkpoint decides what text is needed. An error is left to the
    preparation after the block, which finds what this one has not cached. If the block raises, the process ends.
    """
    decided = (config.resume, config.ckpt_path, config.initial_checkpoint)
    # A process must not fork after torch has started threads. Elsewhere than on Linux, it must not fork at all.
    if rank() or any(decided) or sys.platform != "linux" or "torch" in sys.modules:
        yield
        return
    process = multiprocessing.get_context("fork").Process(target=_prepare, args=(config,))
    process.start()
    try:
        yield
        process.join()
    finally:
        process.kill()
        process.join()


def _prepare(config: TrainConfig) -> None:
    follow_parent()
    from nmt.data.preparation import prepare

    with contextlib.suppress(Exception):
        prepare(config.data, config.tokenizer)


if __name__ == "__main__":
    main()
