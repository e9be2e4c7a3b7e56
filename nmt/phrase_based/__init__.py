"""A phrase-based baseline (Koehn et al., 2003) that uses the library Thot (extra `phrase-based`)."""
