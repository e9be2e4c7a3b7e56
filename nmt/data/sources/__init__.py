"""Where parallel text comes from: files, remote data sets, the built-in grammar."""
