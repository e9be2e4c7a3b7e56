r"""Fills the cache with tokenised and encoded text; `nmt.train` also does this if needed.

python -m nmt.prepare data=grammar
python -m nmt.prepare +experiment=rnnsearch50 regime=paper
python -m nmt.prepare data=text data.train.source=train.en data.train.target=train.fr \
    data.valid.source=valid.en data.valid.target=valid.fr
"""

from __future__ import annotations

import logging

from nmt.cli.application import command
from nmt.config.commands import TrainConfig

log = logging.getLogger(__name__)


@command("prepare")
def main(composed: TrainConfig) -> None:
    from nmt.data.preparation import prepare
    from nmt.utils.errors import InputError

    if composed.resume not in (None, "auto"):
        raise InputError(
            f"resume={composed.resume}: nmt.prepare does not read a run folder; "
            "type the overrides of the run instead"
        )
    vocabularies = None
    if composed.initial_checkpoint is not None:  # import torch only in this case
        from nmt.inference.load import initial_vocabularies

        vocabularies = initial_vocabularies(composed)
    text = prepare(composed.data, composed.tokenizer, vocabularies)
    print(text.summary())
    for doubt in text.doubts():
        log.warning("%s", doubt)


if __name__ == "__main__":
    main()
