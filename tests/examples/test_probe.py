"""The probing example at toy size."""

from examples.probe import probe
from tests.helpers.models import small_checkpoint


def test_annotations_know_their_own_words(tmp_path):
    rows = probe(str(small_checkpoint(tmp_path / "model.ckpt")), sentences=80, positions=2)
    assert len(rows) == 2
    for row in rows:
        assert all(0 <= value <= 1 for value in row.values())
