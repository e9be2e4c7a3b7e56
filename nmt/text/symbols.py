"""The special symbols: their ids and their spelling.

No word of a text is read as a special symbol. A word `<unk>` in a text is an ordinary word.
"""

from __future__ import annotations

END = 0  # ends a sentence
UNKNOWN = 1  # stands for every word outside the shortlist
END_SYMBOL = "</s>"
UNKNOWN_SYMBOL = "<unk>"
SPECIAL = (END_SYMBOL, UNKNOWN_SYMBOL)  # indexed by id
