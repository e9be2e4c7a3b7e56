"""What was measured on a text: runs and evaluations made, kept in docs/results/, shown in the documentation."""
