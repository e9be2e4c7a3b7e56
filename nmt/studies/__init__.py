"""Studies: runs that are found or trained, and claims decided by rules registered before."""
