"""Evaluation: scores, scores by length, alignment error rate, confidence intervals, significance tests.

This package runs no model. Its input is records (one dict per sentence), lists of tokens, or arrays.
"""
