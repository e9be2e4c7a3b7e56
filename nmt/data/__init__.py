"""Turns text into length-sorted batches: reads, tokenises, encodes, cuts."""
