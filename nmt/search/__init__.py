"""Greedy and beam search."""

from nmt.search.beam import Searchable, beam_search
from nmt.search.candidates import NOT_NUMBERS
from nmt.search.hypothesis import Hypothesis

__all__ = ["NOT_NUMBERS", "Hypothesis", "Searchable", "beam_search"]
