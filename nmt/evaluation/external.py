"""The record of a sentence that another system translated."""

from nmt.evaluation.bleu import sentence_statistics
from nmt.evaluation.records import Record

# What of a run's record describes the sentence and not the run's translation of it.
_SHARED = (
    *("id", "line", "source", "reference", "raw_reference", "more_references"),
    *("more_raw_references", "length", "no_unk", "unknown_words", "position"),
)


def system_record(sentence: Record, hypothesis: list[str], detokenised: str) -> Record:
    """The record of a sentence that a system without a shortlist translated.

    It lacks what only a model gives (`nll`, `score`, attention). Such a system writes no `<unk>`, so
    a sentence's `hypothesis_no_unk` is its hypothesis.

    Args:
        sentence: a record, or what of it describes the sentence: `id`, `source`, `reference`,
            `raw_reference`, `length`, `no_unk`.
        hypothesis: tokens of the translation.
        detokenised: its text.
    """
    references = [sentence["reference"], *sentence.get("more_references", [])]
    statistics = sentence_statistics(hypothesis, *references).tolist()
    record = {key: sentence[key] for key in _SHARED if key in sentence} | {
        "hypothesis": hypothesis,
        "detokenised": detokenised,
        "bleu_stats": statistics,
    }
    if sentence.get("no_unk"):
        record |= {"hypothesis_no_unk": hypothesis, "bleu_stats_no_unk": statistics}
    return record
