"""Links against gold links, and the list of whose were scored."""

from __future__ import annotations

import pytest

from nmt.evaluation.alignment import Gold
from nmt.evaluation.link_scores import alignment_scores, links_beside, scored_links


def test_scores_of_links():
    gold = Gold(frozenset({(0, 0)}), frozenset({(0, 0), (1, 0)}))
    found = alignment_scores([({(0, 0), (1, 1)}, gold, 2), ({(1, 0)}, gold, 1)], 50, 0.9)
    assert found["sentences"] == 2
    assert found["alignment_error_rate"]["score"] == pytest.approx(1 - (1 + 2) / (3 + 2))
    assert found["precision"]["score"] == pytest.approx(2 / 3)
    assert found["recall"]["score"] == pytest.approx(1 / 2)
    assert found["recall"]["low"] <= 1 / 2 <= found["recall"]["high"]


def test_the_models_own_come_first_and_each_section_after():
    def rate(score):
        return {"sentences": 3, "alignment_error_rate": {"score": score, "low": None, "high": None}}

    aligned = {
        **rate(0.3),
        "statistical_aligners": {"training_pairs": 40, "hmm": rate(0.2)},
        "symmetrised": {"reverse": rate(0.4)},
        "systems": {"hmm": rate(0.1), "training_pairs": rate(0.5)},
    }
    found = scored_links({"alignment": aligned})
    rates = [(*links[:2], links.scores["alignment_error_rate"]["score"]) for links in found]
    assert rates == [
        ("attention", None, 0.3),
        ("systems", "hmm", 0.1),
        ("systems", "training_pairs", 0.5),
        ("statistical_aligners", "hmm", 0.2),
        ("symmetrised", "reverse", 0.4),
    ]
    assert links_beside({"alignment": aligned}) == found[1:]


@pytest.mark.parametrize("result", [{}, {"alignment": None}, {"alignment": {"systems": None}}])
def test_without_gold_links_there_are_none(result):
    assert scored_links(result) == []


def test_a_model_without_attention_has_none_of_its_own():
    result = {"alignment": {"systems": {"giza": {"sentences": 2}}}}
    assert [links.name for links in scored_links(result)] == ["giza"]
