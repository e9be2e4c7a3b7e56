"""Linear probes: which source words can be read from what a trained model hands to its decoder."""
