"""The figures that the paper reports (Bahdanau, Cho, Bengio, ICLR 2015, Tables 1 and 2).

English to French, WMT'14, newstest2014; tokenised, cased BLEU of multi-bleu.
"""

from dataclasses import dataclass

SOURCE = "Bahdanau, Cho, Bengio (ICLR 2015), Tables 1 and 2"
TEST_SET = "newstest2014"


@dataclass(frozen=True)
class PaperRow:
    """A row of the paper; None where the paper gives no figure.

    Attributes:
        name: as the paper writes it.
        bleu_all: BLEU of all sentences.
        bleu_no_unk: BLEU of the sentences without unknown words.
        updates, epochs, hours, device: how long it was trained, and on what.
        train_nll, valid_nll: nats per sentence.
    """

    name: str
    bleu_all: float
    bleu_no_unk: float
    updates: int | None = None
    epochs: float | None = None
    hours: float | None = None
    device: str | None = None
    train_nll: float | None = None
    valid_nll: float | None = None


_TITAN, _K6000 = "TITAN Black", "Quadro K6000"

ROWS = (
    PaperRow("RNNencdec-30", 13.93, 24.19, 846_000, 6.4, 109, _TITAN, 28.1, 53.0),
    PaperRow("RNNsearch-30", 21.50, 31.44, 471_000, 3.6, 113, _TITAN, 26.7, 47.2),
    PaperRow("RNNencdec-50", 17.82, 26.71, 600_000, 4.5, 108, _K6000, 44.0, 43.6),
    PaperRow("RNNsearch-50", 26.75, 34.16, 288_000, 2.2, 111, _K6000, 40.7, 38.1),
    PaperRow("RNNsearch-50*", 28.45, 36.15, 667_000, 5.0, 252, _K6000, 36.7, 35.2),
    PaperRow("Moses", 33.30, 35.63),
)
