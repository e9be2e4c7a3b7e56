"""Greedy and beam search."""

from nmt.search.beam import Searchable, beam_search
from nmt.search.hypothesis import Hypothesis
from nmt.search.sentences import search_sentences

__all__ = ["Hypothesis", "Searchable", "beam_search", "search_sentences"]
