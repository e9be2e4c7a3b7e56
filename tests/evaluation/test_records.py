import pytest

from nmt.evaluation.records import (
    in_order,
    read_rows,
    system_record,
    write_alignments,
    write_translations,
)
from nmt.utils.errors import InputError


def record(identity, words=3, **more):
    return {
        "id": identity,
        "source": [f"s{identity}"] * words,
        "reference": ["la", "référence"],
        "hypothesis": ["l'", f"hypothèse{identity}", "."],
        "detokenised": f"l'hypothèse{identity}.",
        "length": words,
    } | more


def test_translations_keep_the_order_of_the_source(tmp_path):
    rows = [record(2), record(0), record(1)]
    write_translations(tmp_path, "news", rows)
    folder = tmp_path / "translations"
    assert (folder / "news.txt").read_text("utf-8").splitlines()[1] == "l' hypothèse1 ."
    assert (folder / "news.detok.txt").read_text("utf-8").splitlines()[2] == "l'hypothèse2."
    assert read_rows(folder / "news.jsonl") == [record(0), record(1), record(2)]
    assert "hypothèse0" in (folder / "news.jsonl").read_text("utf-8")  # not escaped as \u00e8


def test_records_are_one_line_each(tmp_path):
    odd = ["a\u2028b", "c\nd\r\ne", "\x85", "\ud800"]
    write_translations(tmp_path, "x", [record(0, hypothesis=odd, detokenised="a\n\nb"), record(1)])
    for name in ("x.txt", "x.detok.txt", "x.jsonl"):
        content = (tmp_path / "translations" / name).read_bytes()
        assert content.count(b"\n") == 2
        assert b"\r" not in content
    assert read_rows(tmp_path / "translations" / "x.jsonl")[0]["hypothesis"][:3] == odd[:3]


def test_in_order_refuses_repeated_sentences():
    with pytest.raises(ValueError, match="sentence 4 occurs twice"):
        in_order([record(4), record(2), record(4)])


def test_system_record_is_no_unk_only_if_covered():
    for covered in (True, False, None):
        written = system_record(record(1) | {"no_unk": covered}, ["a"], "a", [1] * 10)
        assert written.get("hypothesis_no_unk") == (["a"] if covered else None)


def test_alignments_are_rounded_and_null_without_attention(tmp_path):
    tokens = {"length": 2, "source": ["a", "cat", "</s>"], "target": ["</s>"]}
    attention = {
        **tokens,
        "id": 1,
        "weights": [[0.123456789, 0.876543211, 1.23456789e-12]],
        "runners_up": [[["le", -0.1000001], ["la", -3.0]]],
        "log_probability": -4.2000004,
    }
    none = {"id": 0, "weights": None, "attention_entropy": None} | tokens
    write_alignments(tmp_path, "x", [attention, none])
    first, second = read_rows(tmp_path / "alignments" / "x.jsonl")
    assert first == none
    assert second["weights"] == [[0.12346, 0.87654, 1.2346e-12]]  # 5 significant digits
    assert second["runners_up"] == [[["le", -0.1], ["la", -3.0]]]
    assert second["log_probability"] == -4.2


def test_refuses_a_damaged_line_by_number(tmp_path):
    write_translations(tmp_path, "x", [record(0), record(1)])
    path = tmp_path / "translations" / "x.jsonl"
    path.write_text(path.read_text("utf-8")[:-20], "utf-8")
    with pytest.raises(InputError, match=r"x\.jsonl:2: not an object of JSON"):
        read_rows(path)
