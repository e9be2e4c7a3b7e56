"""The command line: composes configurations, prints errors, and ends sweeps."""
