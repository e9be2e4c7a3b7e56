"""Base class of the translator and the scorer of lines of text."""

from __future__ import annotations

from nmt.data.tokenise import split, tokeniser
from nmt.inference.trained import TrainedModel


class LineProcessor:
    """Processes lines in batches, and counts them.

    Args:
        trained: the model; it is moved to the device of `trainer.accelerator`.
        tokenised: lines hold tokens separated by spaces.
        attention: describe how the words of each pair align (`row` of what is returned).
    """

    def __init__(
        self, trained: TrainedModel, *, tokenised: bool = False, attention: bool = False
    ) -> None:
        config = trained.config
        self.trained = trained
        self.device = trained.place()
        self.attention = attention
        moses = [tokeniser(code, config.tokenizer.normalise) for code in config.data.languages]
        self.source_words, self.target_words = (
            split if tokenised else language.tokenise for language in moses
        )
        self.lines = 0
