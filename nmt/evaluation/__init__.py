"""What a translation is worth: BLEU by length, alignment error, intervals, significance.

Nothing here knows a model: the input is records (one dict a sentence), lists of tokens, or arrays.
"""
