"""Subwords by byte-pair encoding, an alternative to the shortlist (`tokenizer=bpe`).

The pairs merged are of bytes, so that no word is unknown and every word is given back exactly. The
first subword of a word carries the mark `Ġ`, which stands for the space before it; merges never
cross a word's boundary.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from nmt.data.tokenise import SPACE
from nmt.data.vocabulary import END, SPECIAL, UNKNOWN, until_end
from nmt.utils.errors import InputError

WORD_START = "Ġ"
ALPHABET = frozenset(pre_tokenizers.ByteLevel.alphabet())  # a sign for each byte
BYTES = len(ALPHABET)
DECODER = decoders.ByteLevel()


class BpeVocabulary:
    """The subwords of one language, or of both.

    Args:
        model: the model as `tokenizers` writes it (JSON).

    Raises:
        InputError: where `model` cannot be read.
    """

    kind = "bpe"

    def __init__(self, model: str) -> None:
        try:
            self._model = Tokenizer.from_str(model)
            ids = self._model.get_vocab()
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # the library's own, and of its Rust code no Exception
            reason = " ".join(str(error).split())[:200]
            raise InputError(f"vocabulary: not a subword model: {reason}") from error
        self._subwords = sorted(ids, key=ids.__getitem__)
        numbered = all(ids[subword] == place for place, subword in enumerate(self._subwords))
        if not numbered or not all(set(subword) <= ALPHABET for subword in self._subwords):
            raise InputError("vocabulary: its subwords are not numbered bytes and their merges")

    @classmethod
    def learn(cls, sentences: Iterable[str], size: int) -> BpeVocabulary:
        """`size` subwords from tokenised sentences (tokens joined by spaces).

        Raises:
            InputError: for a size that leaves no room beside the 256 bytes.
        """
        if size <= BYTES:
            raise InputError(f"tokenizer: {size} subwords are too few; bpe needs more than {BYTES}")
        model = Tokenizer(models.BPE())
        byte_level = pre_tokenizers.ByteLevel(add_prefix_space=True, use_regex=False)
        model.pre_tokenizer = pre_tokenizers.Sequence(
            [pre_tokenizers.WhitespaceSplit(), byte_level]
        )
        trainer = trainers.BpeTrainer(
            vocab_size=size,
            show_progress=False,
            special_tokens=[],
            initial_alphabet=sorted(ALPHABET),
        )
        model.train_from_iterator(sentences, trainer)
        return cls(model.to_str())

    def __len__(self) -> int:
        return len(SPECIAL) + len(self._subwords)

    def encode(self, tokens: Sequence[str]) -> list[int]:
        encoding = self._model.encode(list(tokens), is_pretokenized=True)
        return [index + len(SPECIAL) for index in encoding.ids] + [END]

    def decode(self, ids: Iterable[int]) -> list[str]:
        return [word for word, _ in self._words(until_end(ids))]

    def word_index(self, ids: Iterable[int]) -> list[int]:
        return [
            number for number, (_, length) in enumerate(self._words(ids)) for _ in range(length)
        ]

    def symbols(self, ids: Iterable[int]) -> list[str]:
        return [
            SPECIAL[index] if index < len(SPECIAL) else _text(self._subword(index)) or WORD_START
            for index in map(int, ids)
        ]

    def unknown(self, tokens: Iterable[str]) -> int:
        return 0

    def state(self) -> dict[str, Any]:
        return {"kind": self.kind, "model": self._model.to_str()}

    def _subword(self, index: int) -> str:
        return self._subwords[index - len(SPECIAL)]

    def _words(self, ids: Iterable[int]) -> Iterator[tuple[str, int]]:
        """Words that the ids spell, with the number of ids of each.

        Ids chosen by a model can spell what no encoding gives, such as half a character or nothing;
        such a word is written with U+FFFD, so that words and groups of ids stay in step.
        """
        ids = [int(index) for index in ids]
        starts = [
            place
            for place, index in enumerate(ids)
            if place == 0
            or index in (END, UNKNOWN)
            or ids[place - 1] in (END, UNKNOWN)
            or self._subword(index).startswith(WORD_START)
        ]
        for start, stop in itertools.pairwise([*starts, len(ids)]):
            if ids[start] in (END, UNKNOWN):
                yield SPECIAL[ids[start]], stop - start
            else:
                spelt = "".join(map(self._subword, ids[start:stop]))
                yield SPACE.sub("\ufffd", _text(spelt)) or "\ufffd", stop - start


def _text(symbols: str) -> str:
    return str(DECODER.decode([symbols.removeprefix(WORD_START)]))
