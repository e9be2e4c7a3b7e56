"""Applies trained models: force-decoding, test sets, translation, streams of lines."""
