"""The scores that the paper reports (Bahdanau, Cho, Bengio, ICLR 2015, Tables 1 and 2).

English to French, WMT'14, newstest2014; tokenised, cased BLEU of multi-bleu. NLL is in nats per sentence.
"""

from typing import Any

SOURCE = "Bahdanau, Cho, Bengio (ICLR 2015), Tables 1 and 2"
TEST_SET = "newstest2014"

_COLUMNS = (
    *("name", "bleu_all", "bleu_no_unk", "updates", "epochs", "hours", "device"),
    *("train_nll", "valid_nll"),
)
_TITAN, _K6000 = "TITAN Black", "Quadro K6000"
_TABLE = (
    ("RNNencdec-30", 13.93, 24.19, 846_000, 6.4, 109, _TITAN, 28.1, 53.0),
    ("RNNsearch-30", 21.50, 31.44, 471_000, 3.6, 113, _TITAN, 26.7, 47.2),
    ("RNNencdec-50", 17.82, 26.71, 600_000, 4.5, 108, _K6000, 44.0, 43.6),
    ("RNNsearch-50", 26.75, 34.16, 288_000, 2.2, 111, _K6000, 40.7, 38.1),
    ("RNNsearch-50*", 28.45, 36.15, 667_000, 5.0, 252, _K6000, 36.7, 35.2),
    ("Moses", 33.30, 35.63, *[None] * 6),
)
ROWS: list[dict[str, Any]] = [dict(zip(_COLUMNS, row, strict=True)) for row in _TABLE]
