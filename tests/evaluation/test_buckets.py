import numpy as np

from nmt.evaluation.buckets import parts_by_length

EDGES = [10, 20, 30, 40, 50, 60]


def test_lengths_fall_into_their_bucket():
    lengths = np.arange(1, 200)
    (whole, everything), *parts = parts_by_length(lengths, EDGES)
    assert (whole["bucket"], everything.all()) == ("all", True)
    names = [head["bucket"] for head, _ in parts]
    assert names == ["1-10", "11-20", "21-30", "31-40", "41-50", "51-60", "61+"]
    for head, inside in parts:
        expected = list(range(head["from"], (head["to"] or 199) + 1))
        assert lengths[inside].tolist() == expected


def test_buckets_without_edges():
    lengths = np.array([1, 500])
    _, (head, inside) = parts_by_length(lengths, [])
    assert (head, inside.tolist()) == ({"bucket": "1+", "from": 1, "to": None}, [True, True])
    assert len(list(parts_by_length(lengths, None))) == 1
