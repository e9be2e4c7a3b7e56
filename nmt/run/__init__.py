"""One run from start to end: start, test, finish, and what can fail in between."""
