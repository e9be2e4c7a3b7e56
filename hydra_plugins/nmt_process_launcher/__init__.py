"""`hydra/launcher=process`: every job of a sweep is a process of its own, in single-run mode."""
