"""The built-in corpus: English-French sentence pairs with gold alignments, drawn from a grammar."""

from nmt.grammar.sampling import VERSION, draw, draw_by_length
from nmt.grammar.sentences import AlignedPair

__all__ = ["VERSION", "AlignedPair", "draw", "draw_by_length"]
