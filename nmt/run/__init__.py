"""One run from start to end: start, fit, test, finish, and errors of the machine."""
