"""The training loop: Trainer, checkpoints, validation, progress, loggers, ranks."""
