"""The same work here and in other toolkits, each in its own environment."""
