"""The training loop: Trainer, checkpoints, validation, progress, loggers, signals."""
