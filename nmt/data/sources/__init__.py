"""Where parallel text comes from: files, published data sets, the built-in grammar."""
