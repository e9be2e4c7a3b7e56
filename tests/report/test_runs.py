"""Finding, labelling, grouping and reading run folders."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from nmt.report.runs import FinishedRun, find_runs, grouped, label_apart, read_run, separate_texts
from nmt.utils.errors import InputError
from tests.helpers.run_folders import make_run


def run(label: str = "a", folder: str = "", **config: Any) -> FinishedRun:
    seed = config.get("seed")
    results = {"config": {"name": label, **config}, "seed": seed, "name": label}
    return FinishedRun(label, results, Path(folder) if folder else None)


def test_find_runs_sorts_jobs_and_skips_unfinished(tmp_path: Path) -> None:
    for number in (10, 2):
        make_run(tmp_path / str(number), seed=number, pairs=20, kept=2)
    (tmp_path / "3" / ".hydra").mkdir(parents=True)
    runs = find_runs([tmp_path, tmp_path / "2", str(tmp_path / "*")])
    assert [run.folder.name for run in runs if run.folder] == ["2", "10"]


def test_labels_use_paths_for_nested_folders(tmp_path: Path) -> None:
    for model in ("RNNsearch", "RNNencdec"):
        for seed in (1, 2):
            folder = make_run(tmp_path / model / f"seed-{seed}", model=model, pairs=20, kept=2)
            results = json.loads((folder / "results.json").read_text())
            (folder / "results.json").write_text(json.dumps({**results, "name": "same"}))
    labels = [run.label for run in find_runs([tmp_path])]
    suffixes = ["seed-1]", "seed-2]", "seed-1]", "seed-2]"]
    assert [label.rpartition(" [")[2] for label in labels] == suffixes
    assert len(set(labels)) == 4


def test_labels_show_differences() -> None:
    alike = [
        run(seed=1, optimizer={"lr": 0.1}, size={"hidden": 1}),
        run(seed=2, optimizer={"lr": 0.1}, size={"hidden": 1}),
        run(seed=1, optimizer={"lr": 0.2}, size={"hidden": 2}),
        run("b", seed=1),
    ]
    apart = label_apart(alike)
    labels = ["a (lr 0.1) seed 1", "a (lr 0.1) seed 2", "a (lr 0.2)", "b"]
    assert [each.label for each in apart] == labels
    assert list(grouped(apart)) == ["a (lr 0.1)", "a (lr 0.2)", "b"]
    paths = label_apart([run(folder="/s/x/seed-1", seed=1), run(folder="/s/y/seed-1", seed=1)])
    assert [each.label for each in paths] == ["a [x/seed-1]", "a [y/seed-1]"]


@pytest.mark.parametrize(
    ("key", "values", "groups"),
    [
        ("seed", (1, 2), 1),
        ("seed", (1, 1), 2),  # runs with equal seeds are not independent
        ("trainer", ({"max_steps": 1}, {"max_steps": 2}), 2),
        ("trainer", ({"devices": 1}, {"devices": 2}), 1),
        ("evaluation", ({"scores": ["bleu"]}, {"scores": ["ter"]}), 1),
    ],
)
def test_groups_ignore_seed_and_machine(key: str, values: Any, groups: int) -> None:
    runs = [run(**{"seed": n, key: value}) for n, value in enumerate(values)]
    assert len(grouped(label_apart(runs))) == groups


def test_groups_separate_runs_on_different_text() -> None:
    for text, groups in (("same", 1), ("corrected", 2)):
        runs = [run(seed=1), run(seed=2)]
        for each, training in zip(runs, ("same", text), strict=True):
            each.results["text"] = {"training": training}
        assert len(grouped(label_apart(runs))) == groups


def test_test_sets_of_different_text_are_renamed(tmp_path: Path) -> None:
    """Texts that differ only in spaces, as after tokenisation, count as the same text."""
    changes = (lambda w: w, lambda w: w.replace(".", " ."), lambda w: w[::-1])
    runs = []
    for number, change in enumerate(changes):
        run = read_run(make_run(tmp_path / str(number), seed=number, pairs=12, kept=2))
        for row in run.translations("newstest"):
            row["source"] = list(map(change, row["source"]))
        runs.append(run)
    separate_texts(runs)
    assert [each.sets for each in runs] == [["newstest"], ["newstest"], ["newstest-2"]]
    assert len(runs[2].translations("newstest-2")) == 12
    assert len(runs[2].alignments("newstest-2")) == 2


def test_refuses_a_broken_file_by_line(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run", pairs=5, kept=2)
    found = read_run(folder)
    (folder / "translations/newstest.jsonl").write_text("{\n")
    with pytest.raises(InputError, match=r"newstest\.jsonl:1"):
        found.translations("newstest")
    (folder / "scores.csv").write_text("set,score\n")
    with pytest.raises(InputError, match=r"scores\.csv"):
        read_run(folder)
    (folder / "results.json").write_text("{")
    with pytest.raises(InputError, match=r"results\.json"):
        read_run(folder)
