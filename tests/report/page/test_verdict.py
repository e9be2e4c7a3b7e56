from types import SimpleNamespace

from nmt.report.page.verdict import verdict


def fitted(score: float, low: float, high: float) -> dict:
    slope = {"score": score, "low": low, "high": high}
    return {part: {"slope": slope} for part in ("all", "to_cap")} | {"beyond_cap": {"slope": None}}


def compared(**slopes: tuple[float, float, float]) -> SimpleNamespace:
    groups = {name: fitted(*slope) for name, slope in slopes.items()}
    falls = SimpleNamespace(of_groups={"bleu": groups}, caps=dict.fromkeys(groups, 50))
    return SimpleNamespace(falls=falls)


def test_a_fall_is_said_where_the_interval_shows_one():
    said = verdict(compared(steep=(-3.1, -3.9, -2.2), level=(-0.3, -0.9, 0.2)))
    assert said is not None
    assert said.startswith("steep: BLEU falls by 3.10 [2.20, 3.90] for each 10 words")
    assert "level: BLEU is not shown to fall or rise" in said


def test_of_many_lines_the_steepest_and_the_least_steep_are_told():
    said = verdict(compared(**{f"run{k}": (-1.0 - k, -2.0 - k, -0.5 - k) for k in range(8)}))
    assert said is not None
    assert said.startswith("run7: ")
    assert "run0: " in said
    assert "run3" not in said


def test_nothing_fitted_is_nothing_said():
    nothing = {part: {"slope": None} for part in ("all", "to_cap", "beyond_cap")}
    falls = SimpleNamespace(of_groups={"bleu": {"short": nothing}}, caps={"short": None})
    assert verdict(SimpleNamespace(falls=falls)) is None
