from dataclasses import replace
from pathlib import Path

from nmt.report.groups import MOST_PAIRED, grouped, paired, paired_note
from nmt.report.runs import FinishedRun, label_apart


def run(label: str, seed: int, **keys: object) -> FinishedRun:
    return FinishedRun(label, {"seed": seed, "config": {"seed": seed, **keys}})


def test_a_group_is_what_only_seeds_tell_apart() -> None:
    runs = [run("a seed 1", 1, lr=1), run("b", 1, lr=2), run("a seed 2", 2, lr=1)]
    groups = grouped(runs)
    assert list(groups) == ["a", "b"]
    assert groups["a"] == [runs[0], runs[2]]


def test_no_group_takes_the_name_of_another() -> None:
    labels = ("a (2)", "a", "a", "a")
    runs = [run(label, 1, lr=number) for number, label in enumerate(labels)]
    assert list(grouped(runs)) == ["a (2)", "a", "a (3)", "a (4)"]


def test_of_many_runs_the_best_and_the_outside_systems_are_compared_in_pairs() -> None:
    scores = {f"run {n}": float(n) for n in range(MOST_PAIRED + 3)} | {"outside": -1.0}
    assert paired(scores, ["outside"]) == [*[*scores][4:-1], "outside"]
    assert paired(scores, [*scores][:-1]) == [*scores][3:-1]
    assert "(outside systems first)" in str(paired_note(len(scores), "runs"))
    few = dict([*scores.items()][-MOST_PAIRED:])
    assert paired(few, []) == [*few]
    assert paired_note(len(few), "runs") is None
    assert "Of the 26 runs these are the 25 of the highest BLEU" in str(paired_note(26, "runs"))


def test_a_key_is_named_before_the_seed() -> None:
    grid = [(lr, seed) for lr in (1, 2) for seed in (1, 2)]
    runs = label_apart([run("a", seed, lr=lr) for lr, seed in [*grid, (3, 1)]])
    assert [one.label for one in runs] == [
        "a (lr 1) seed 1",
        "a (lr 1) seed 2",
        "a (lr 2) seed 1",
        "a (lr 2) seed 2",
        "a (lr 3)",
    ]
    assert list(grouped(runs)) == ["a (lr 1)", "a (lr 2)", "a (lr 3)"]


def test_groups_of_one_name_are_numbered() -> None:
    runs = [run(f"a seed {seed}", seed, lr=lr) for seed, lr in ((1, 1), (2, 1), (3, 2), (4, 3))]
    assert {name: len(alike) for name, alike in grouped(runs).items()} == {
        "a": 2,
        "a (2)": 1,
        "a (3)": 1,
    }


def test_a_seed_counts_once_in_a_group() -> None:
    made = [run("a", seed, lr=1) for seed in (1, 1, 2, 3, 2)]
    runs = label_apart(
        [replace(one, folder=Path(f"runs/{place}")) for place, one in enumerate(made)]
    )
    assert runs[1].label == "a seed 1 [runs/1]"
    assert grouped(runs) == {"a": [runs[0], runs[2], runs[3]], "a (2)": [runs[1], runs[4]]}
    assert list(grouped(runs[:4])) == ["a", "a seed 1 [runs/1]"]


def test_a_copy_of_a_run_is_no_second_seed() -> None:
    trained = run("a", 1, lr=1)
    runs = label_apart([trained, trained])
    assert grouped(runs) == {"a": [runs[0]], "a #2": [runs[1]]}
