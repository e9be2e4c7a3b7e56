"""Compares `nmt` with other toolkits, each installed in its own Python environment."""
