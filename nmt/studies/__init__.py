"""Studies: the runs that claims need, found or trained, and the claims decided by rules written before."""
