"""The special symbols: their ids, and how they are written.

The ids are never parsed from text: a word `<unk>` in the text is an ordinary word.
"""

from __future__ import annotations

END = 0  # ends a sentence
UNKNOWN = 1  # stands for every word outside the shortlist
END_SYMBOL = "</s>"
UNKNOWN_SYMBOL = "<unk>"
SPECIAL = (END_SYMBOL, UNKNOWN_SYMBOL)  # indexed by id
