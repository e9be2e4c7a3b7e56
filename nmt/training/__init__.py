"""What happens around the updates: the Trainer, checkpoints, validation, progress."""
