import pytest

from nmt.evaluation.bleu import sentence_statistics
from nmt.evaluation.external import read_external
from nmt.utils.errors import InputError

SENTENCES = [
    {
        "id": n,
        "source": ["a", "cat"],
        "reference": f"un chat , {word} .".split(),
        "raw_reference": f"un chat, {word}.",
        "hypothesis": ["mine"],
        "length": 2,
        "no_unk": n == 1,
        "nll": 3.0,
        "score": -2.0,
    }
    for n, word in enumerate(["noir", "blanc", "gris"])
]


def tokenise(line):
    return line.replace(",", " ,").replace(".", " .").split()


def detokenise(tokens):
    return " ".join(tokens).replace(" ,", ",").replace(" .", ".")


def read(path, *, tokenised=False, **key):
    tools = {"tokenise": tokenise, "detokenise": detokenise}
    return read_external(path, SENTENCES[::-1], tokenised=tokenised, **tools, **key)


def test_tokenised_and_raw_files_give_the_same_records(tmp_path):
    raw, tokens = tmp_path / "raw.txt", tmp_path / "tokens.txt"
    raw.write_text("un chat, noir.\nun chat, noir.\n\n", "utf-8")
    tokens.write_text("un chat , noir .\r\nun chat , noir .\r\n\r\n", "utf-8")
    records = read(raw)
    assert records == read(tokens, tokenised=True)
    assert [record["id"] for record in records] == [0, 1, 2]
    assert records[0]["bleu_stats"] == [5, 4, 3, 2, 5, 4, 3, 2, 5, 5]
    assert records[1]["bleu_stats"] == [4, 2, 1, 0, 5, 4, 3, 2, 5, 5]
    assert records[2]["bleu_stats"] == sentence_statistics([], SENTENCES[2]["reference"]).tolist()
    assert records[0]["detokenised"] == "un chat, noir."
    assert "nll" not in records[0]
    assert "score" not in records[0]


@pytest.mark.parametrize("tokenised", [True, False])
def test_the_references_themselves_score_100(tmp_path, tokenised):
    """Without a comma or a full stop, and with words that a tokeniser would split."""
    reference = ["n&apos;", "est", "@-@", "il", "rock-n-roll", ",", "ici"]
    sentence = SENTENCES[0] | {"reference": reference if tokenised else tokenise("va, ici")}
    path = tmp_path / "references"
    path.write_text(" ".join(reference) if tokenised else "va, ici")
    tools = {"tokenise": tokenise, "detokenise": detokenise}
    (record,) = read_external(path, [sentence], tokenised=tokenised, **tools)
    assert record["hypothesis"] == sentence["reference"]


def test_the_no_unknown_words_subset_is_the_runs(tmp_path):
    path = tmp_path / "h.txt"
    path.write_text("a .\nb .\nc .\n")
    records = read(path)
    assert ["bleu_stats_no_unk" in record for record in records] == [False, True, False]
    assert records[1]["hypothesis_no_unk"] == ["b", "."]


def test_bad_files_are_refused(tmp_path):
    path = tmp_path / "h.txt"
    path.write_text("a\nb\n")
    with pytest.raises(InputError, match=r"h\.txt: 2 lines, but the test set has 3 sentences"):
        read(path)
    path.write_text("")
    with pytest.raises(InputError, match="0 lines"):
        read(path)
    path.write_bytes(b"a\nb\xe9\nc\n")
    with pytest.raises(InputError, match=r"h\.txt:2: not UTF-8"):
        read(path)
    with pytest.raises(InputError, match=r"external\.moses\.news=.*missing: no such file"):
        read(tmp_path / "missing", key="external.moses.news")
