"""Looking for the most probable translation: greedy and beam search."""

from nmt.search.beam import Searchable, beam_search
from nmt.search.corpus import search_sentences
from nmt.search.hypothesis import Hypothesis

__all__ = ["Hypothesis", "Searchable", "beam_search", "search_sentences"]
