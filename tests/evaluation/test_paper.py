from nmt.evaluation.paper import ROWS


def test_the_papers_figures():
    rows = {row["name"]: row for row in ROWS}
    assert len(rows) == len(ROWS) == 6
    assert (rows["RNNsearch-50"]["bleu_all"], rows["RNNsearch-50"]["bleu_no_unk"]) == (26.75, 34.16)
    assert (rows["RNNencdec-30"]["updates"], rows["RNNencdec-30"]["device"]) == (
        846_000,
        "TITAN Black",
    )
    assert (rows["RNNsearch-50*"]["hours"], rows["RNNencdec-50"]["valid_nll"]) == (252, 43.6)
    assert (rows["Moses"]["bleu_all"], rows["Moses"]["updates"]) == (33.30, None)
