"""Trains a model, saves checkpoints, then translates and scores the test sets.

python -m nmt.train +experiment=rnnsearch50
python -m nmt.train +experiment=rnnencdec50 regime=tiny seed=2
python -m nmt.train -m +experiment=rnnencdec50,rnnsearch50
python -m nmt.train resume=outputs/2026-01-31/12-00-00
python -m nmt.train +experiment=rnnsearch50 initial_checkpoint=outputs/2026-01-31/12-00-00
"""

from __future__ import annotations

import logging
from functools import partial

from nmt.cli.application import command
from nmt.config.commands import TrainConfig
from nmt.data.in_background import preparing
from nmt.utils.environment import rank

log = logging.getLogger(__name__)


@command("train")
def main(composed: TrainConfig) -> float | None:
    """Starts or resumes a training run, evaluates the model and writes results.json.

    Returns the best checkpoint's score, so that a sweeper can optimise it.
    """
    with preparing(composed):
        from nmt.inference.held_out import evaluate, read_sets
        from nmt.training.fit import Training
        from nmt.training.outcome import describe_model, describe_run, write_results
        from nmt.training.ranks import on_every_rank
        from nmt.training.run import make_training_run

        run = make_training_run(composed)
        training = Training(run)
    text = run.prepare_text()
    sets = read_sets(run.config, text.test.values())
    with run.logging_run():
        training.fit(text)
        if run.config.trainer.get("fast_dev_run"):
            return None
        model, outcome = training.finish()
        evaluated = on_every_rank(
            training.trainer,
            model.network,
            lambda: evaluate(model, sets, run.folder.path),
        )
        # What only the end of a run needs is imported here, so that the training starts earlier.
        from nmt.inference.live_export import export_live
        from nmt.training.next_steps import next_steps
        from nmt.training.publish import publish

        export_live(model, run.folder.path)
        objective = training.best_score()
        describe = partial(
            describe_run, run, evaluated, objective=objective, **describe_model(model)
        )
        publish(run.folder.path, run.config, describe(**outcome), evaluated, run.loggers)
        outcome = training.complete(model, outcome)
        write_results(run.folder.path, describe(**outcome))
        if rank() == 0 and (steps := next_steps(run)):
            log.info("%s", steps)
        return objective


if __name__ == "__main__":
    main()
