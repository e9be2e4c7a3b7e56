"""The comparison page: one HTML file that contains its data, style and scripts, and needs no network."""
