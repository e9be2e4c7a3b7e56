"""What people look at: figures, the comparison page, tables and W&B panels, all read from run folders."""
