import numpy as np

from nmt.evaluation.buckets import bucket_name, buckets, split_by_length

EDGES = [10, 20, 30, 40, 50, 60]


def test_every_length_falls_between_the_ends_of_its_bucket():
    names = [bucket_name(*each) for each in buckets(EDGES)]
    assert names == ["1-10", "11-20", "21-30", "31-40", "41-50", "51-60", "61+"]
    lengths = np.arange(1, 200)
    for first, last, inside in split_by_length(lengths, EDGES):
        assert lengths[inside].tolist() == list(range(first, (last or 199) + 1))


def test_no_edge_is_one_open_bucket():
    ((first, last, inside),) = split_by_length(np.array([1, 500]), [])
    assert (first, last, inside.tolist()) == (1, None, [True, True])
