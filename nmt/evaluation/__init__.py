"""Evaluation: scores, scores by length, alignment error rate, intervals, significance.

Nothing here uses a model: the input is records (one dict per sentence), lists of tokens, or arrays.
"""
