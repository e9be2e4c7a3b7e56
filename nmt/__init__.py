"""Neural machine translation by jointly learning to align and translate, as experiments."""
