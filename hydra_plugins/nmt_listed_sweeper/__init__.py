"""`hydra/sweeper=listed`: the jobs of a sweep are those of a file, each with overrides of its own."""
