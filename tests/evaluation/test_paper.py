from nmt.evaluation.paper import ROWS


def test_the_papers_figures():
    rows = {row.name: row for row in ROWS}
    assert len(rows) == len(ROWS) == 6
    assert rows["RNNsearch-50"].bleu_all == 26.75
    assert rows["RNNsearch-50"].bleu_no_unk == 34.16
    assert rows["RNNencdec-30"].updates == 846_000
    assert rows["RNNencdec-30"].device == "TITAN Black"
    assert rows["RNNsearch-50*"].hours == 252
    assert rows["RNNencdec-50"].valid_nll == 43.6
    assert rows["Moses"].bleu_all == 33.30
    assert rows["Moses"].updates is None


def test_attention_gains_most_in_the_papers_table():
    bleu = {row.name: row.bleu_all for row in ROWS}
    assert bleu["RNNsearch-50"] - bleu["RNNencdec-50"] > 8.9
    assert bleu["RNNsearch-30"] > bleu["RNNencdec-50"]
