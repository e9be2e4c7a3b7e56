from nmt.report.groups import grouped
from nmt.report.runs import Run


def run(label: str, seed: int, **keys: object) -> Run:
    return Run(label, {"seed": seed, "config": {"seed": seed, **keys}})


def test_a_group_is_what_only_seeds_tell_apart() -> None:
    runs = [run("a seed 1", 1, lr=1), run("b", 1, lr=2), run("a seed 2", 2, lr=1)]
    groups = grouped(runs)
    assert list(groups) == ["a", "b"]
    assert groups["a"] == [runs[0], runs[2]]


def test_groups_of_one_name_are_numbered() -> None:
    runs = [run(f"a seed {seed}", seed, lr=lr) for seed, lr in ((1, 1), (2, 1), (3, 2), (4, 3))]
    assert {name: len(alike) for name, alike in grouped(runs).items()} == {
        "a": 2,
        "a (2)": 1,
        "a (3)": 1,
    }
