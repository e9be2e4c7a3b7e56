"""Filters and data selection of training pairs."""
