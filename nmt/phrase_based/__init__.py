"""A phrase-based baseline (Koehn et al., 2003) with the library Thot (extra `phrase-based`)."""
