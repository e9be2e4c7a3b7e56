import pytest

from nmt.evaluation.buckets import Bucket, assign, buckets
from nmt.utils.errors import InputError

EDGES = [10, 20, 30, 40, 50, 60]


def test_the_papers_buckets():
    names = [bucket.name for bucket in buckets(EDGES)]
    assert names == ["1-10", "11-20", "21-30", "31-40", "41-50", "51-60", "61+"]
    assert buckets(EDGES)[-1].row() == {"from": 61, "to": None}


def test_no_edge_is_one_open_bucket():
    assert buckets([]) == [Bucket(1, None)]
    assert assign([1, 500], []).tolist() == [0, 0]


def test_every_length_falls_between_the_ends_of_its_bucket():
    ranges = buckets(EDGES)
    for length, place in enumerate(assign(range(1, 200), EDGES), start=1):
        bucket = ranges[place]
        assert bucket.first <= length <= (bucket.last or 10**9)


@pytest.mark.parametrize("edges", [[10, 10], [20, 10], [0, 5], [-3]])
def test_edges_that_do_not_ascend_are_refused(edges):
    with pytest.raises(InputError, match=r"evaluation\.edges="):
        buckets(edges)
