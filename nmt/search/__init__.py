"""Greedy and beam search."""

from nmt.search.beam import Hypothesis, Searchable, beam_search
from nmt.search.candidates import NOT_NUMBERS

__all__ = ["NOT_NUMBERS", "Hypothesis", "Searchable", "beam_search"]
