"""From text to length-sorted batches: read, tokenise, encode, cut."""
