import pandas as pd
import pytest

from nmt.evaluation.scores_csv import COLUMNS, read_scores, score_table, write_scores
from nmt.utils.errors import InputError

ROWS = [
    {"set": "mine", "subset": "all", "score": "bleu", "value": 100 / 3, "low": 30.0, "high": 40.0}
    | {"sentences": 9, "interval": "sentences"},
    {"set": "mine", "subset": "no_unk", "score": "bleu", "from": 61, "value": 1.5, "sentences": 1},
    {"set": "NA", "subset": "all", "score": "nll_per_word", "from": 1, "to": 10, "value": 0.1},
]


def test_scores_csv_round_trips(tmp_path):
    written = score_table(ROWS)
    assert tuple(written.columns) == (*COLUMNS, "key", "bucket")
    assert written["bucket"].tolist() == ["all", "61+", "1-10"]
    assert written["key"].tolist() == ["bleu", "bleu_no_unk", "nll_per_word"]
    write_scores(tmp_path, written)
    read = read_scores(tmp_path)
    pd.testing.assert_frame_equal(read, written)
    whole, open_bucket, unnamed = written.itertuples(index=False)
    assert whole.value == 100 / 3
    assert open_bucket[3] == 61
    assert [*map(pd.isna, (whole[3], whole.to, open_bucket.to, open_bucket.low))] == [True] * 4
    assert (unnamed.set, unnamed.interval) == ("NA", "")


HEAD = ",".join(COLUMNS)


@pytest.mark.parametrize("text", [None, "set,score\na,b\n", "\0", f"{HEAD}\na,all,bleu,x,,1,,,,\n"])
def test_refuses_a_broken_table(tmp_path, text):
    if text is not None:
        (tmp_path / "scores.csv").write_text(text)
    with pytest.raises(InputError, match=r"scores\.csv"):
        read_scores(tmp_path)


def test_refuses_a_set_name_that_is_a_path(tmp_path):
    (tmp_path / "scores.csv").write_text(f"{HEAD}\n../x,all,bleu,,,1,,,,\n")
    with pytest.raises(InputError, match=r"\.\./x"):
        read_scores(tmp_path)
