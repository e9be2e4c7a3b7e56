"""The built-in corpus: English-French sentence pairs with gold alignments, drawn from a grammar.

The grammar is synchronous: each rule writes a phrase in English and its translation in French. A
rule is a function `write_...` named after the phrase it writes, and its first argument is the
draft of the sentence pair. Functions `pick_...` choose words at random. Read the modules in this
order; each imports only modules above it:

    stream          random numbers and weighted lists
    english, french, french_verbs   word forms; elision and contraction
    lexicon         the words with their forms and semantic classes
    draft           the sentence pair while it is being derived; alignment links
    nouns           determiners, adjectives, nouns and names
    noun_phrases    noun phrases with what follows the noun; places
    verbs           verbs with tense, negation, adverb and pronoun; infinitives
    circumstances   adverbial phrases and infinitive phrases
    descriptions    the verb be with an adjective, a comparison or a place
    predicates      verbs with their complements
    clauses         subjects, main clauses, relative and reported clauses
    sentences       clauses joined into a sentence
    sampling        the sentence pair that is draw k of a split
"""

from nmt.grammar.draft import AlignedPair
from nmt.grammar.sampling import VERSION, draw, draw_by_length

__all__ = ["VERSION", "AlignedPair", "draw", "draw_by_length"]
