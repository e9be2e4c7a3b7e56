from pathlib import Path

import pytest

from nmt.config import EvaluationConfig
from nmt.config.keys import flatten
from nmt.report.finding import find_runs, read_run
from nmt.report.runs import (
    MISSING,
    FinishedRun,
    differing_keys,
    label_apart,
    outside_system,
)
from nmt.utils.errors import InputError
from nmt.utils.files import sha256, write_atomically
from tests.helpers.run_folders import make_run


def test_a_run_is_read_with_its_results_overrides_and_sentences(sweep: Path) -> None:
    run = read_run(sweep / "2")
    assert run.label == "RNNsearch-50"
    assert run.overrides == ["+experiment=rnnsearch50", "seed=1"]
    assert run.sets == ["newstest", "mine"]
    assert len(run.translations("newstest")) == 150
    alignments = run.alignments("mine")
    assert len(alignments) == 12
    assert len(alignments[3]["weights"]) == len(alignments[3]["target"])
    assert run.translations("absent") == []


def test_a_sweep_is_read_in_the_order_of_its_jobs_without_the_unfinished(sweep: Path) -> None:
    found = find_runs([sweep])
    assert [run.label for run in found.runs] == [
        "RNNencdec-50 seed 1",
        "RNNencdec-50 seed 2",
        "RNNsearch-50 seed 1",
        "RNNsearch-50 seed 2",
    ]
    assert found.unfinished == [sweep / "4"]


def test_unfinished_runs_that_a_glob_matches_are_listed(tmp_path: Path) -> None:
    make_run(tmp_path / "finished", pairs=10, kept=1)
    (tmp_path / "begun/.hydra").mkdir(parents=True)
    (tmp_path / "notes").mkdir()
    found = find_runs([f"{tmp_path}/*"])
    assert [run.folder for run in found.runs] == [tmp_path / "finished"]
    assert found.unfinished == [tmp_path / "begun"]


def test_jobs_come_by_number_not_by_spelling(tmp_path: Path) -> None:
    for number in (10, 9, 2):
        make_run(tmp_path / str(number), seed=number, pairs=10, kept=1)
    assert [run.seed for run in find_runs([tmp_path]).runs] == [2, 9, 10]
    assert [run.seed for run in find_runs([f"{tmp_path}/*"]).runs] == [2, 9, 10]


def test_a_run_named_twice_counts_once(sweep: Path) -> None:
    found = find_runs([sweep / "1", f"{sweep}/*"])
    assert len(found.runs) == 4
    assert found.runs[0].seed == 2


@pytest.mark.parametrize(
    ("pattern", "says"),
    [("nowhere", "nothing matches"), ("4", "not finished"), ("2/translations", "results.json")],
)
def test_what_leads_to_no_finished_run_is_refused(sweep: Path, pattern: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        find_runs([sweep / pattern])


def test_damaged_results_are_refused_by_name(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run", pairs=10, kept=1)
    path = folder / "results.json"
    whole = path.read_text()
    path.write_text(whole[:300])
    with pytest.raises(InputError, match=r"results\.json"):
        read_run(folder)
    path.write_text(whole.replace('"scores"', '"other"'))
    with pytest.raises(InputError, match="results"):
        read_run(folder)


def test_a_damaged_line_is_refused_with_its_number(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run", pairs=10, kept=4)
    path = folder / "alignments" / "newstest.jsonl"
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines[:2], lines[2][:40], *lines[3:]]))
    with pytest.raises(InputError, match=r"newstest\.jsonl:3"):
        read_run(folder).alignments("newstest")


def named(name: str, **config: object) -> FinishedRun:
    return FinishedRun(name, {"config": config, "seed": config.get("seed"), "test": {}})


def test_equal_names_are_told_apart_by_what_differs() -> None:
    beams = [named("a", search={"beam_size": size}) for size in (1, 12)]
    assert [run.label for run in label_apart(beams)] == ["a (beam_size 1)", "a (beam_size 12)"]
    scores = [
        named("a", model={"scoring": {"_target_": target}}) for target in ("mine.Bilinear", "n.Dot")
    ]
    labels = [run.label for run in label_apart(scores)]
    assert labels == ["a (scoring Bilinear)", "a (scoring Dot)"]
    swept = [named("a", x=x, twice=2 * x, y=y, z=z) for x in (1, 2) for y in (1, 2) for z in (1, 2)]
    labels = [run.label for run in label_apart(swept)]
    assert labels[0] == "a (x 1, y 1, z 1)"  # `twice` says nothing that x does not
    assert labels[5] == "a (x 2, y 1, z 2)"
    alike = [named("a", x=1), named("a", x=1), named("b", x=1)]
    assert [run.label for run in label_apart(alike)] == ["a", "a #2", "b"]


def test_runs_of_one_experiment_share_a_group_whatever_their_seed() -> None:
    first, second = named("a", seed=1, x=3), named("a", seed=2, x=3)
    assert first.group == second.group
    assert first.group != named("a", seed=1, x=4).group


def test_scores_in_addition_make_no_other_group() -> None:
    more = named("a", seed=2, evaluation={"scores": ["default", "ter"], "edges": [10]})
    usual = named("a", seed=1, evaluation={"scores": None, "edges": [10]})
    assert usual.group == more.group
    assert [run.label for run in label_apart([usual, more])] == ["a seed 1", "a seed 2"]
    assert usual.group != named("a", evaluation={"scores": None, "edges": [20]}).group


def test_where_a_run_was_made_is_neither_in_its_group_nor_in_its_name() -> None:
    places = [
        {"data": {"cache": f"/home/{n}", "workers": n, "root": None}, "trainer": {"threads": n}}
        for n in (1, 2)
    ]
    first, second = (named("a", seed=n, **places[n - 1]) for n in (1, 2))
    assert first.group == second.group
    assert [run.label for run in label_apart([first, second])] == ["a seed 1", "a seed 2"]
    longer = named("a", seed=1, trainer={"threads": 1, "max_steps": 5})
    assert longer.group != named("a", seed=1, trainer={"threads": 1, "max_steps": 6}).group


def test_differing_keys_are_those_of_some_runs_only_or_of_other_values() -> None:
    runs = [named("a", x={"y": 1, "z": 2}), named("b", x={"y": 1, "z": 3}, w=[1])]
    assert differing_keys(runs) == {"x.z": [2, 3], "w": [MISSING, [1]]}
    assert flatten({"x": {"y": {}, "z": [1]}}) == {"x.y": {}, "x.z": [1]}


def test_an_outside_system_is_scored_as_a_run_is(runs: list[FinishedRun]) -> None:
    records = runs[2].translations("newstest")
    settings = {"newstest": EvaluationConfig(resamples=0)}
    moses = outside_system("Moses", {"newstest": records}, settings)
    assert moses.external
    assert moses.translations("newstest") == records
    score = moses.results["test"]["newstest"]["bleu"]["all"]["score"]
    assert score == pytest.approx(runs[2].results["test"]["newstest"]["bleu"]["all"]["score"])


def test_a_run_and_its_evaluation_have_one_model(tmp_path: Path) -> None:
    checkpoint = tmp_path / "checkpoints" / "best.ckpt"
    write_atomically(checkpoint, lambda stream: stream.write(b"weights"), checksum=True)
    trained = FinishedRun("a", {}, tmp_path)
    evaluated = FinishedRun("b", {"sources": {"sha256": sha256(checkpoint)}}, tmp_path / "b")
    assert trained.model == evaluated.model == sha256(checkpoint)
    ensemble = {"sources": {"sha256": "1", "others": [{"sha256": "2"}]}}
    for unknown in (FinishedRun("c", ensemble, tmp_path), FinishedRun("d", {}, tmp_path / "b")):
        assert unknown.model is None
