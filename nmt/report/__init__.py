"""Output for people, made from run folders: figures, the comparison page, tables, W&B."""
