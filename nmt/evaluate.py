"""Runs the whole test protocol on a trained model.

python -m nmt.evaluate checkpoint=outputs/2026-01-31/12-00-00/checkpoints/best.ckpt
python -m nmt.evaluate checkpoint=FILE sets=[by_length] search=greedy
python -m nmt.evaluate checkpoint=FILE +data.test.mine.source=FILE +data.test.mine.target=FILE
python -m nmt.evaluate checkpoint=FILE +stress=lengths
python -m nmt.evaluate checkpoint=wandb:my-team/nmt/model-1a2b3c4d:best
python -m nmt.evaluate checkpoint=[a.ckpt,b.ckpt,c.ckpt] name=ensemble
"""

from __future__ import annotations

from omegaconf import DictConfig

from nmt.cli.command import command


@command("evaluate")
def main(composed: DictConfig) -> None:
    """A run folder of its own, with the scores of a checkpoint."""
    from nmt.inference.live_export import export_live
    from nmt.inference.test_sets import evaluate_model, held_out_splits, read_examples
    from nmt.report.publish import publish
    from nmt.training import start
    from nmt.training.on_every_rank import on_every_rank
    from nmt.training.outcome import Outcome, describe_model, describe_run
    from nmt.training.trainer import make_trainer

    run = start.evaluation(composed)
    model = start.model_of(run)
    vocabularies = model.codec.source, model.codec.target
    sets = read_examples(run.config, held_out_splits(run.config, vocabularies, composed.sets))
    with start.at_work(run):
        run.trainer = make_trainer(run.config, run.folder.path)
        scores = on_every_rank(
            run.trainer, model.network, lambda: evaluate_model(model, sets, run.folder.path)
        )
        export_live(model, run.folder.path)
        about = describe_run(run, Outcome.of_checkpoint(run), **describe_model(model))
        publish(run.folder.path, run.config, about, scores, run.loggers)


if __name__ == "__main__":
    main()
