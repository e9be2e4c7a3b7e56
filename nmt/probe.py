"""Reads source words back from the vectors of a trained model, with linear probes.

    python -m nmt.probe checkpoint=outputs/2026-01-31/12-00-00/checkpoints/best.ckpt
    python -m nmt.probe checkpoint=FILE sets=[by_length] positions=60
    python -m nmt.probe checkpoint=FILE sentences=2000 epochs=5
    python -m nmt.probe checkpoint=FILE against=FILE
    python -m nmt.probe checkpoint=FILE +data.test.mine.source=FILE +data.test.mine.target=FILE

Of RNNencdec they read the fixed vector, of RNNsearch s_0 and the annotations; beside them stand
chance, the most frequent word at a position, and probes of shuffled words. With `against=` they
stand beside what the model gains over another, in nats a word of the references, by position and
length. Lengths count words of the side `evaluation.bucket_by`, as those of scores do; positions of
what is read count symbols of the encoder, which with `tokenizer=bpe` are subwords. The run folder
holds probe.json, probe.md and figures.
"""

from __future__ import annotations

from omegaconf import DictConfig

from nmt.cli.command import command


@command("probe")
def main(composed: DictConfig) -> None:
    """A run folder of its own, with what the vectors of a checkpoint hold."""
    from nmt.config import ProbeConfig
    from nmt.run import probe, start, test
    from nmt.run.other_model import other_model

    with start.evaluation(composed, ProbeConfig) as run:
        sets = test.chosen_sets(run, list(composed.sets))
        text = start.prepare_text(run)
        other = composed.against and other_model(run, composed.against, "against")
        probe.probe(run, start.model_of(run), text, sets, probe.settings_of(composed, run), other)


if __name__ == "__main__":
    main()
