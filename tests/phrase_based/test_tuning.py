from nmt.phrase_based.training import moved, tune

REFERENCE = [f"w{n}" for n in range(200)]


class Fake:
    """A system whose score rises as its weights approach `best`. `seen` records the weights that were tried."""

    def __init__(self, best: dict[int, float]) -> None:
        self.weights = (1.0,) * 7 + (0.0,)
        self.best = best
        self.seen: list[tuple[float, ...]] = []

    def translate(self, sources):
        self.seen.append(self.weights)
        off = sum(abs(self.weights[feature] - value) for feature, value in self.best.items())
        wrong = min(190, round(60 * off))
        return [["x"] * wrong + REFERENCE[wrong:] for _ in sources]


def test_coordinate_search_finds_weights_up_down_and_below_zero():
    system = Fake({1: 2.25, 2: -0.3})
    before, after = tune(system, [["a"]], [REFERENCE])
    assert before < 30 < 90 < after
    assert abs(system.weights[1] - 2.25) < 0.2
    assert abs(system.weights[2] + 0.3) < 0.2
    assert [w for n, w in enumerate(system.weights) if n not in (1, 2)] == [1.0] * 5 + [0.0]


def test_what_helps_nothing_stays_and_is_asked_for_once_a_direction():
    system = Fake({})
    before, after = tune(system, [["a"]], [REFERENCE])
    assert before == after > 99.9
    assert system.weights == (1.0,) * 7 + (0.0,)
    assert len(system.seen) == 1 + 3 * 7 * 2


def test_only_lengths_may_weigh_negatively():
    weights = (0.1,) * 8
    assert moved(weights, 0, -1.0)[0] == -0.1
    assert moved(weights, 1, -1.0) == weights
    assert moved(weights, 1, -0.25)[1] == 0.05
