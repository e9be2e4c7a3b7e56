"""Text utilities for all packages of nmt: lines, tokens and special symbols."""
