"""Tests a trained model: translates and scores all test sets.

python -m nmt.evaluate checkpoint=outputs/2026-01-31/12-00-00/checkpoints/best.ckpt
python -m nmt.evaluate checkpoint=FILE sets=[by_length] search=greedy
python -m nmt.evaluate checkpoint=FILE +data.test.mine.source=FILE +data.test.mine.target=FILE
python -m nmt.evaluate checkpoint=wandb:my-team/nmt/model-1a2b3c4d:best
python -m nmt.evaluate checkpoint=[a.ckpt,b.ckpt,c.ckpt] name=ensemble
"""

from __future__ import annotations

from nmt.cli.application import command
from nmt.config.commands import EvaluateConfig


@command("evaluate")
def main(composed: EvaluateConfig) -> None:
    """Evaluates a checkpoint and writes a new run folder."""
    from nmt.inference.held_out import evaluate, held_out_splits, read_sets
    from nmt.inference.live_export import export_live
    from nmt.inference.load import from_checkpoints
    from nmt.training.loggers import logging_run
    from nmt.training.outcome import (
        describe_model,
        describe_run,
        stored_outcome,
        write_results,
    )
    from nmt.training.publish import publish
    from nmt.training.ranks import on_every_rank
    from nmt.training.run import make_evaluation_run
    from nmt.training.trainer import make_trainer

    run = make_evaluation_run(composed)
    run.trainer = make_trainer(run.config.trainer, run.folder.path)
    model = from_checkpoints(run.members, run.config)
    vocabularies = model.source, model.target
    sets = read_sets(run.config, held_out_splits(run.config, vocabularies, composed.sets))
    with logging_run(run.loggers, run.config):
        model = on_every_rank(run.trainer, model.network, model.searching)
        evaluated = on_every_rank(
            run.trainer,
            model.network,
            lambda: evaluate(model, sets, run.folder.path),
        )
        export_live(model, run.folder.path)
        about = describe_run(run, evaluated, **stored_outcome(run), **describe_model(model))
        publish(run, about, evaluated)
        write_results(run.folder.path, about)


if __name__ == "__main__":
    main()
