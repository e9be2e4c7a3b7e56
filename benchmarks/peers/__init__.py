"""Compares this program with other toolkits on the same work. Each toolkit has its own environment."""
