"""What all parts need of a text: its lines, its tokens and the special symbols."""
