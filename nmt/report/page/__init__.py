"""The comparison page: one HTML file with its data, styles and programs inside, and no network."""
