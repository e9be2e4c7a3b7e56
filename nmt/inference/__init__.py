"""Applies trained models: translates and scores sentences and test sets."""
