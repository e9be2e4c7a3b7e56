"""The built-in corpus: English-French sentence pairs with gold alignments, drawn from a grammar.

The grammar is synchronous: each rule writes a phrase in English and its translation in French. A
rule is a function whose name begins with `write_`. Its first argument is the draft of the sentence
pair. Functions whose names begin with `pick_` choose words at random. Read the modules in this order,
because each module imports only modules above it:

    stream          random numbers and weighted lists
    english, french, french_verbs   word forms; elision and contraction
    lexicon         the words with their forms and semantic classes
    draft           the draft of a sentence pair; alignment links
    nouns           determiners, adjectives, nouns and names
    noun_phrases    noun phrases with their modifiers; phrases of place
    verbs           verbs with tense, negation, adverb and pronoun; infinitives
    circumstances   adverbial phrases and infinitive phrases
    descriptions    `be` with an adjective, a comparison or a place
    predicates      verbs with their complements
    clauses         subjects, main clauses, relative and reported clauses
    sentences       clauses joined into a sentence
    sampling        sentence pair number k of a split
"""

from nmt.grammar.draft import AlignedPair
from nmt.grammar.sampling import VERSION, draw, draw_by_length

__all__ = ["VERSION", "AlignedPair", "draw", "draw_by_length"]
