"""A phrase-based system (Koehn et al., 2003) as a baseline, by Thot (extra `phrase-based`)."""
