"""The same work here and in other toolkits, each in an environment of its own."""
