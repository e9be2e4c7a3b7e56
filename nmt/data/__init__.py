"""Reads, tokenises and encodes text, and groups sentence pairs of similar length into batches."""
