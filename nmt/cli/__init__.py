"""What makes a function a command: composition, errors in two lines, --help, the reference of keys."""
