"""Reports from run folders: figures, tables, the comparison page and W&B."""
