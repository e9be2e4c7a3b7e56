"""Basics of text for all packages of nmt: lines, tokens and the special symbols."""
