"""Linear probes of the vectors that a trained model hands to its decoder."""
