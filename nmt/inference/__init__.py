"""A trained model at work: force-decoding, the test loop, translation, streams of lines."""
