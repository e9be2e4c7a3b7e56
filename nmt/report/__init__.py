"""Output for people, from run folders: figures, the comparison page, tables, W&B."""
