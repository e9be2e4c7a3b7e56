"""What W&B shows of a run, and the dashboards that lay runs over one another."""
