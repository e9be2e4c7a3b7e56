"""What the probe of a model of subwords counts: lengths in words, positions in what its encoder reads."""

from __future__ import annotations

import dataclasses
import json
from types import SimpleNamespace

import numpy as np
import pytest

from nmt.evaluation.buckets import assign
from nmt.evaluation.examples import Example
from nmt.inference.probing.protocol import ProbeSettings
from nmt.report.probing import gains_figure, readings_figure, readings_table
from nmt.run.folder import RunFolder
from nmt.run.probe import probe
from tests.helpers.live import drawn_model
from tests.helpers.run_folders import ENGLISH, FRENCH

# words of source and target; other buckets by each side, and by the source's subwords
PAIRS = [(1, 6), (2, 1), (3, 7), (5, 2), (7, 3), (4, 5), (6, 1)]
EDGES = [2, 4]
BY_SIDE = {"source": [2, 2, 3], "target": [3, 1, 3]}  # sentences of 1-2, 3-4, and 5 or more words
EXAMPLES = [
    Example(number, ENGLISH[:source], FRENCH[:target])
    for number, (source, target) in enumerate(PAIRS)
]
POSITIONS = 9


def probed(folder, side, *, bpe):
    """probe.json of RNNsearch over RNNencdec, neither of which was trained."""
    models = [drawn_model(name, bpe=bpe) for name in ("RNNsearch", "RNNencdec")]
    config = models[0].config
    config.evaluation = dataclasses.replace(
        config.evaluation, edges=EDGES, bucket_by=side, resamples=20
    )
    config.trainer.progress, config.report.figures = False, ["svg"]
    texts = [" ".join(ENGLISH[: 1 + number % len(ENGLISH)]) for number in range(13)]
    run = SimpleNamespace(
        config=config,
        folder=RunFolder(folder),
        checkpoint=SimpleNamespace(path=folder / "best.ckpt", sha256="0"),
        code=None,
        text=None,
    )
    settings = ProbeSettings(len(texts), POSITIONS, classes=20, epochs=1, seed=1)
    text = SimpleNamespace(train=Lines(texts))
    probe(run, models[0], text, {"mine": EXAMPLES}, settings, models[1])
    return json.loads((folder / "probe.json").read_text()), models[0].codec.source


class Lines(list):
    """Training sentences, as `Train.text` gives them."""

    def text(self, number):
        return self[number], ""


@pytest.mark.parametrize("side", BY_SIDE)
def test_lengths_are_words_of_the_side_that_is_asked_for(tmp_path, side):
    found, vocabulary = probed(tmp_path, side, bpe=True)
    symbols = [len(vocabulary.encode(example.source)) - 1 for example in EXAMPLES]
    assert np.bincount(assign(symbols, EDGES), minlength=3).tolist() not in BY_SIDE.values()
    assert found["bucket_by"] == side
    assert len(found["readings"]) == 3
    for row in (*found["readings"], *found["gains"]):
        heads = [(each["from"], each["to"], each["sentences"]) for each in row["by_length"]]
        assert heads == [
            (low, high, count)
            for (low, high), count in zip([(1, 2), (3, 4), (5, None)], BY_SIDE[side], strict=True)
        ]
    for row in found["readings"]:
        assert row["positions"] == "subwords"
        read = len(row["by_position"])  # as far as training sentences have them
        assert row["words"] == sum(min(read, count) for count in symbols)
    for row in found["gains"]:
        assert row["words"] == sum(len(example.target) for example in EXAMPLES)


def test_what_is_counted_stands_at_tables_and_axes(tmp_path):
    labels, columns = {}, {}
    for bpe in (True, False):
        folder = tmp_path / str(bpe)
        folder.mkdir()
        found, _ = probed(folder, "target", bpe=bpe)
        for kind, figure in (("read", readings_figure), ("gain", gains_figure)):
            *_, left, right = figure(found, "mine").axes
            labels[bpe, kind] = left.get_ylabel(), left.get_xlabel(), right.get_xlabel()
        columns[bpe] = [column.title for column in readings_table(found).columns][3:5]
    lengths = "words of the target sentence"
    assert labels == {
        (True, "read"): ("subwords read (%)", "position, in subwords of the encoder", lengths),
        (False, "read"): ("words read (%)", "position of the word", lengths),
        (True, "gain"): ("gain (nats a word)", "position of the word", lengths),
        (False, "gain"): ("gain (nats a word)", "position of the word", lengths),
    }
    assert columns == {
        True: ["words of the target", "subwords"],
        False: ["words of the target", "words"],
    }
