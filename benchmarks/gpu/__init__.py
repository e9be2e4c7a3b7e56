"""What only a GPU shows, item by item; see docs/performance.md."""
