r"""Tokenises, filters and encodes text once, into a cache; `nmt.train` does so if needed.

python -m nmt.prepare data=grammar
python -m nmt.prepare +experiment=rnnsearch50 regime=paper
python -m nmt.prepare data=text data.train.source=train.en data.train.target=train.fr \
    data.valid.source=valid.en data.valid.target=valid.fr
"""

from __future__ import annotations

from omegaconf import DictConfig

from nmt.cli.command import command
from nmt.config.schema import named_initial
from nmt.config.validation import load


@command("prepare")
def main(composed: DictConfig) -> None:
    from nmt.data.prepare import prepare
    from nmt.data.sources import leave_out_absent
    from nmt.utils.errors import InputError

    if composed.resume not in (None, "auto"):
        raise InputError(
            f"resume={composed.resume}: the text of a run that is resumed is prepared by nmt.train; "
            "type the line that the run was started with"
        )
    config = load(composed)
    leave_out_absent(config.data)
    vocabularies = None
    if named_initial(config) is not None:  # for which alone Lightning is imported
        from nmt.training.initial import given_vocabularies, initial_checkpoint

        vocabularies = given_vocabularies(config, initial_checkpoint(config))
    prepared = prepare(
        config.data, config.tokenizer, config.trainer["enable_progress_bar"], vocabularies
    )
    print(prepared.summary())


if __name__ == "__main__":
    main()
