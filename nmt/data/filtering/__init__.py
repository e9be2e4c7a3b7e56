"""Training pairs that are left out for what they are."""
