"""The phrase-based system: its tuning, and its translations, which `nmt.compare` reads."""

import json
import random
import sys

import pytest

from benchmarks import phrase_based as program
from benchmarks.phrase_based import PhraseBased, moved, train_system, tune
from benchmarks.records import SYSTEM

NOUNS = {"cat": "chat", "dog": "chien", "bird": "oiseau", "house": "livre", "||": "||"}
COLOURS = {"red": "rouge", "black": "noir", "green": "vert"}
VERBS = {"sees": "voit", "likes": "aime", "finds": "trouve"}
REFERENCE = [f"w{n}" for n in range(200)]


def sentences(count: int, seed: int) -> list[tuple[str, str]]:
    """Draws sentence pairs of two noun phrases and a verb. In the target, colours follow the noun."""
    draw = random.Random(seed)
    pairs = []
    for _ in range(count):
        (a, x), (b, y) = draw.choices(list(NOUNS.items()), k=2)
        (c, u), (d, v) = draw.choices(list(COLOURS.items()), k=2)
        verb, verbe = draw.choice(list(VERBS.items()))
        pairs.append((f"the {c} {a} {verb} the {d} {b}", f"le {x} {u} {verbe} le {y} {v}"))
    return pairs


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


def test_tune_finds_weights_in_each_direction_and_below_zero():
    system = Fake({1: 2.25, 2: -0.3})
    before, after = tune(system, [["a"]], [REFERENCE])
    assert before < 30 < 90 < after
    assert abs(system.weights[1] - 2.25) < 0.2
    assert abs(system.weights[2] + 0.3) < 0.2
    assert [w for n, w in enumerate(system.weights) if n not in (1, 2)] == [1.0] * 5 + [0.0]


def test_tune_keeps_weights_without_a_gain():
    system = Fake({})
    before, after = tune(system, [["a"]], [REFERENCE])
    assert before == after > 99.9
    assert system.weights == (1.0,) * 7 + (0.0,)
    assert len(system.seen) == 1 + 3 * 7 * 2


def test_only_length_penalties_may_be_negative():
    weights = (0.1,) * 8
    assert moved(weights, 0, -1.0)[0] == -0.1
    assert moved(weights, 1, -1.0) == weights
    assert moved(weights, 1, -0.25)[1] == 0.05


def test_missing_packages_are_named_with_their_group(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "machine", None)
    monkeypatch.setattr(sys, "argv", ["phrase_based"])
    with pytest.raises(SystemExit, match="2"):
        program.main()
    assert "type uv run --group phrase-based" in capsys.readouterr().err


@pytest.fixture
def thot():
    pytest.importorskip("thot", reason="the dependency group 'phrase-based' is not installed")
    pytest.importorskip("machine", reason="the dependency group 'phrase-based' is not installed")


@pytest.mark.slow
def test_train_system_reorders_phrases_and_copies_unknown_words(thot, tmp_path):
    train_system(sentences(600, 1), tmp_path)
    system = PhraseBased(tmp_path)
    found = system.translate(
        [
            ["the", "red", "cat", "likes", "the", "black", "dog"],
            ["the", "green", "||", "sees", "the", "red", "Smith"],
        ]
    )
    assert found[0] == ["le", "chat", "rouge", "aime", "le", "chien", "noir"]
    assert {"Smith", "||"} <= set(found[1])
    sources = [pair[0].split() for pair in sentences(25, 7)] + [["no", "such", "||"]]
    filtered = PhraseBased(tmp_path, sources=sources)
    assert filtered.translate(sources) == system.translate(sources)
    filtered.close()
    assert {path.name for path in tmp_path.iterdir()} == {"lm", "tm"}
    system.weights = (1.0, 2.0, *system.weights[2:])
    assert system.weights[1] == 2.0
    system.close()


@pytest.mark.slow
@pytest.mark.parametrize("tokenised", [True, False])
def test_script_writes_a_file_per_test_set(tokenised, thot, tmp_path, monkeypatch, capsys):
    """On a second call, it refuses the folder."""
    overrides = ["regime=tiny", "data=text", f"data.cache={tmp_path / 'cache'}"]
    for name, (count, seed) in {"train": (600, 1), "valid": (20, 2), "test.t": (30, 3)}.items():
        plus = "+" if "." in name else ""
        for column, side in enumerate(("source", "target")):
            path = tmp_path / f"{name}.{side}"
            path.write_text("".join(f"{pair[column]}\n" for pair in sentences(count, seed)))
            overrides.append(f"{plus}data.{name}.{side}={path}")
        overrides.append(f"{plus}data.{name}.tokenised={str(tokenised).lower()}")
    folder = tmp_path / "phrases"
    typed = [*overrides, "--tune=10", "--output", str(folder)]
    monkeypatch.setattr(sys, "argv", ["phrase_based", *typed])
    program.main()
    assert {path.name for path in folder.iterdir()} == {"t.txt", SYSTEM}
    wanted = [target for _, target in sentences(30, 3)]
    lines = (folder / "t.txt").read_text().splitlines()
    pairs = zip(lines, wanted, strict=True)
    right = [line == target for line, target in pairs if "||" not in target]  # is two tokens
    assert sum(right) > 0.9 * len(right) > 10
    about = json.loads((folder / SYSTEM).read_text())
    assert about["valid"]["bleu"] > 90
    assert len(about["train"]["weights"]) == 8
    assert about["command"].startswith("python -m benchmarks.phrase_based regime=tiny data=text ")
    with pytest.raises(SystemExit, match="2"):
        program.main()
    assert "already contains a system" in capsys.readouterr().err
