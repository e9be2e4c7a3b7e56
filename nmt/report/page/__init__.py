"""The comparison page: one HTML file with its data, style and programs inside; it needs no network."""
