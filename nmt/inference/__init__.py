"""Applying a trained model: force-decoding, the test loop, translation, streams of lines."""
