import math
from typing import Any

import pytest

from nmt.report.page.sentences import (
    WEIGHT_SCALE,
    alignment_rows,
    decoded,
    decoding,
    sentence_bleu,
    thinned,
    translation_rows,
)
from nmt.report.runs import FinishedRun


def test_weights_survive_packing_to_what_is_shown() -> None:
    weights = [[0.71234, 0.28, 0.00766], [0.00001, 0.0002, 0.99979]]
    row = {"target": ["a", "</s>"], "weights": weights, "log_normaliser": [1.23456, -2.0]}
    packed = decoding(row)
    unpacked = [(code / WEIGHT_SCALE) ** 2 for code in packed["w"]]
    for code, weight in zip(unpacked, [w for step in weights for w in step], strict=True):
        assert code == pytest.approx(weight, abs=5e-4)
        assert math.log(code) == pytest.approx(math.log(weight), abs=0.2)
    assert packed["z"] == [1.235, -2.0]


def test_a_fixed_vector_has_no_weights() -> None:
    row = {
        "target": ["a", "</s>"],
        "weights": None,
        "log_normaliser": None,
        "attention_entropy": None,
    }
    assert {"w", "z", "entropy"}.isdisjoint(decoding(row))


def test_runners_up_are_flat() -> None:
    row = {
        "target": ["a"],
        "log_probability": [-0.12345],
        "runners_up": [[["b", -1.239], ["c", -2]]],
    }
    packed = decoding(row)
    assert packed["runners"] == [["b", -1.24, "c", -2]]
    assert packed["p"] == [-0.123]


def test_sentence_bleu_uses_the_orders_a_sentence_has() -> None:
    assert sentence_bleu([2, 1, 0, 0, 2, 1, 0, 0, 2, 2]) == 100.0
    assert sentence_bleu([0, 0, 0, 0, 3, 2, 1, 0, 3, 3]) == 0.0
    assert sentence_bleu(None) is None


def test_every_run_is_beside_the_others(runs: list[FinishedRun]) -> None:
    table = translation_rows(runs, "newstest")
    assert table["systems"] == [run.label for run in runs]
    assert table["total"] == len(table["rows"]) == 150
    row = table["rows"][20]
    expected = [" ".join(run.translations("newstest")[20]["hypothesis"]) for run in runs]
    assert row["h"] == expected
    assert all(0 <= score <= 100 for score in row["b"])


def test_thinning_keeps_the_lengths_and_what_it_must(runs: list[FinishedRun]) -> None:
    table = translation_rows(runs, "newstest")
    some = thinned(table, 30, keep={0, 1})
    assert 30 <= len(some["rows"]) <= 32
    assert {0, 1} <= {row["id"] for row in some["rows"]}
    lengths = sorted(row["length"] for row in some["rows"])
    everyone = sorted(row["length"] for row in table["rows"])
    assert lengths[15] == pytest.approx(everyone[75], abs=2)
    assert some["total"] == 150
    assert thinned(table, 150, set()) is table


def test_kept_sentences_hold_every_run_by_name(runs: list[FinishedRun]) -> None:
    rows = [decoded(row) for row in alignment_rows(runs, "newstest")]
    assert len(rows) == 12
    assert [row["length"] for row in rows] == sorted(row["length"] for row in rows)
    by = rows[4]["by"]
    assert list(by) == [run.label for run in runs]
    search, encdec = by["RNNsearch-50 seed 1"], by["RNNencdec-50 seed 1"]
    assert len(search["w"]) == len(search["target"]) * len(rows[4]["source"])
    assert "w" not in encdec
    assert "source" not in search


def test_another_tokenisation_keeps_its_own_source() -> None:
    words: dict[str, Any] = {"id": 3, "length": 1, "target": ["x", "</s>"]}
    words |= {"source": ["ab", "</s>"], "weights": None}
    pieces = {**words, "source": ["a@@", "b", "</s>"], "weights": [[0.5, 0.25, 0.25], [0, 0, 1]]}
    made = [
        FinishedRun(
            name, {"test": {"t": {}}}, lines={("alignments", "t"): [row], ("translations", "t"): []}
        )
        for name, row in (("words", words), ("bpe", pieces))
    ]
    by = decoded(alignment_rows(made, "t")[0])["by"]
    assert "source" not in by["words"]
    assert by["bpe"]["source"] == ["a@@", "b", "</s>"]
    assert len(by["bpe"]["w"]) == 6
