"""Compares this program with other toolkits, each of which has its own environment."""
