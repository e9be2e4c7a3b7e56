"""The command line: composing the configuration, error messages, `--help`."""
