"""W&B: what a run logs, artifacts, lineage, and dashboards."""
