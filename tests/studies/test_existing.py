"""Which runs there are: of the same configuration, code and text; and what a sweep has chosen."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from nmt.config import BaselineConfig
from nmt.config.schema import to_containers
from nmt.report.runs import FinishedRun
from nmt.studies.existing import RUNS, ExistingRun, find_existing
from nmt.utils.errors import InputError
from tests.helpers.hostile import Attack, attacks, outcomes
from tests.studies.conftest import CLAIM, TEXT, asked, make, planned


def test_the_studys_own_runs_are_found(tiny, finished, look):
    found = look(tiny, finished)
    assert found.missing() == []
    for group in tiny.groups.values():
        assert [each.run.seed for each in found.of_group(group)] == [1, 2]
        assert not any(each.taken for each in found.of_group(group))


def test_what_is_missing_is_asked_for_in_the_order_of_groups(tiny, tmp_path, look):
    first, second = (group.runs for group in tiny.groups.values())
    make(tiny, tmp_path, first[1])
    (tmp_path / RUNS / second[0].folder_name).mkdir()  # begun
    assert look(tiny, tmp_path).missing() == [first[0], *second]


@pytest.mark.parametrize(
    ("made", "taken", "accepted"),
    [
        ({}, True, True),
        ({"code": "another"}, False, True),
        ({"text": {**TEXT, "training": "other"}}, False, True),
        ({"text": None}, False, True),
    ],
)
def test_runs_from_elsewhere(tiny, tmp_path, look, made, taken, accepted):
    study = asked(tiny, take=[f"{tmp_path}/else"])
    run = study.groups["rnnencdec50"].runs[0]
    (tmp_path / "else").mkdir()
    shutil.move(make(study, tmp_path, run, **made), tmp_path / "else" / "0")
    found = look(study, tmp_path)
    assert (found.of(run) is not None) == taken
    if taken:
        assert found.of(run).taken
    study = asked(study, accept="configuration")
    assert (look(study, tmp_path).of(run) is not None) == accepted


def test_a_run_of_another_configuration_is_not_taken(tiny, swept, tmp_path, look):
    make(swept, tmp_path, swept.groups["fixed"].points[2].run)
    assert len(look(tiny, tmp_path).missing()) == 4


@pytest.mark.parametrize("step", [5, pytest.param(1, marks=pytest.mark.slow)])
def test_a_strangers_configuration_is_used_or_refused_in_a_line(tiny, tmp_path, step):
    """Every section and every key of it made wrong in every way, or in some ways in turn."""
    stored = to_containers(tiny.groups["rnnencdec50"].runs[0].config)
    tried = [attack for attack in attacks(stored, most=1) if 0 < len(attack.path) < 3]
    keys = {tuple(attack.path) for attack in tried}
    tried = tried[::step]
    assert keys == {tuple(attack.path) for attack in tried}
    config: dict[str, Any] = {}

    def write(attack: Attack) -> None:
        config.update(attack.of(stored))

    def use() -> None:
        run = FinishedRun("theirs", {"config": dict(config)}, tmp_path)
        config.clear()
        assert len(ExistingRun(run, taken=True).identity) == 64

    found = outcomes(tried, write, use, "results.json: config")
    assert not found["raised"]
    assert len(found["refused"]) > 10 // step
    assert (
        len(found["used"]) > 1000 // step
    )  # verdicts need no more of it than that it is the planned one


def test_an_evaluation_is_no_training(tiny, tmp_path, look):
    run = tiny.groups["rnnencdec50"].runs[0]
    file = make(tiny, tmp_path, run) / "results.json"
    results = json.loads(file.read_text())
    file.write_text(json.dumps({**results, "sources": {"checkpoint": "best.ckpt"}}))
    assert look(tiny, tmp_path).of(run) is None


def test_a_folder_that_is_not_there(tiny, tmp_path):
    with pytest.raises(InputError, match=r"study\.take: nothing matches"):
        find_existing(asked(tiny, take=[f"{tmp_path}/no*"]), tmp_path)


def test_a_sweep_chooses_when_all_of_it_is_there(swept, tmp_path, look):
    group = swept.groups["fixed"]
    scores = [1.5, 1.25, 1.75]
    for point, score in zip(group.points, scores, strict=True):
        assert look(swept, tmp_path).chosen(group) is None
        make(swept, tmp_path, point.run, valid={"nll_per_word": score})
    found = look(swept, tmp_path)
    assert found.chosen(group).values == {"optimizer.lr": 0.002}
    missing = [(run.group, run.seed, run.config.optimizer.lr) for run in found.missing()]
    assert missing == [("fixed", 2, 0.002), ("search", 1, 0.001), ("search", 2, 0.001)]


def test_folders_of_runs_say_what_they_are(tiny, swept, monkeypatch):
    runs = [run for group in tiny.groups.values() for run in group.runs]
    runs += [point.run for point in swept.groups["fixed"].points]
    names = [run.folder_name for run in runs]
    assert len(set(names)) == 7
    assert names[0].startswith("rnnencdec50-seed1-")
    monkeypatch.setattr("nmt.studies.planned.code_fingerprint", lambda: "another")
    assert not {run.folder_name for run in runs} & set(names)


def test_evaluations_are_known_when_their_models_are_there(evaluated, tmp_path, look):
    trained = evaluated.groups["search"]
    each, all_of_them = evaluated.groups["argmax"], evaluated.groups["ensemble"]
    found = look(evaluated, tmp_path)
    assert found.final(each) == found.final(all_of_them) == ()
    folders = [make(evaluated, tmp_path, trained.runs[0])]
    found = look(evaluated, tmp_path)
    assert [run.seed for run in found.final(each)] == [1]
    assert found.final(all_of_them) == ()
    folders.append(make(evaluated, tmp_path, trained.runs[1]))
    found = look(evaluated, tmp_path)
    assert [run.seed for run in found.final(each)] == [1, 2]
    (ensemble,) = found.final(all_of_them)
    files = [folder / "checkpoints" / "best.ckpt" for folder in folders]
    assert ensemble.typed == [
        f"checkpoint=[{files[0]},{files[1]}]",
        *("logger=none", "report.heatmaps=0"),
    ]
    assert ensemble.command == (
        "python -m nmt.evaluate 'checkpoint=[FILE,...]' logger=none report.heatmaps=0"
    )
    assert found.final(each)[0].command.startswith("python -m nmt.evaluate checkpoint=FILE ")


def test_links_of_both_directions_wait_for_both_models(tmp_path, look):
    groups = {"there": {}, "back": {"overrides": ["data.languages=[fr,en]"]}}
    both = {"command": "evaluate", "of": "there", "overrides": ["sets=[test]"]}
    study = planned(
        runs={**groups, "both": {**both, "reverse": "back"}, "alone": both},
        claims={"c": {**CLAIM, "runs": ["both"], "set": "test"}},
    )
    group = study.groups["both"]
    for number in (0, 1):
        make(study, tmp_path, study.groups["there"].runs[number])
    assert look(study, tmp_path).final(group) == ()
    folder = make(study, tmp_path, study.groups["back"].runs[1])
    found = look(study, tmp_path)
    (run,) = found.final(group)
    reverse = "evaluation.alignment.reverse_checkpoint="
    best = found.of(study.groups["there"].runs[1]).checkpoint
    assert run.seed == 2
    assert run.typed[:2] == [
        f"checkpoint={best}",
        f"{reverse}{folder}/checkpoints/best.ckpt",
    ]
    assert run.command.startswith(f"python -m nmt.evaluate checkpoint=FILE {reverse}FILE ")
    (alone,) = [each for each in found.final(study.groups["alone"]) if each.seed == 2]
    assert alone.models == run.models
    assert alone.identity.split("-")[-1] != run.identity.split("-")[-1]
    edit_results(folder, text={**TEXT, "training": "new"})
    changed = look(asked(study, accept="configuration"), tmp_path)
    (other,) = changed.final(group)
    assert other.identity != run.identity


def test_an_evaluation_is_one_of_these_very_models(evaluated, tmp_path, look):
    trained, group = evaluated.groups["search"], evaluated.groups["argmax"]
    for run in trained.runs:
        make(evaluated, tmp_path, run)
    found = look(evaluated, tmp_path)
    first, second = found.final(group)
    assert first.identity != second.identity
    assert found.missing()[:2] == [first, second]
    folder = make(evaluated, tmp_path, first)
    edit_results(folder, sources={"checkpoint": "elsewhere"})
    found = look(evaluated, tmp_path)
    assert [each.run.folder for each in found.of_group(group)] == [folder]
    assert second in found.missing()
    assert first not in found.missing()
    edit_results(tmp_path / RUNS / trained.runs[0].folder_name, text={**TEXT, "training": "new"})
    assert look(evaluated, tmp_path).of_group(group) == []
    asked_so = asked(evaluated, accept="configuration")
    assert look(asked_so, tmp_path).of_group(group) == []  # of the model that was there


def test_evaluations_from_elsewhere_are_not_taken(evaluated, tmp_path, look):
    for run in evaluated.groups["search"].runs:
        make(evaluated, tmp_path, run)
    run = look(evaluated, tmp_path).final(evaluated.groups["argmax"])[0]
    folder = make(evaluated, tmp_path, run)
    edit_results(folder, sources={"checkpoint": "elsewhere"})
    (tmp_path / "else").mkdir()
    shutil.move(folder, tmp_path / "else" / folder.name)
    study = asked(evaluated, take=[f"{tmp_path}/else"])
    assert look(study, tmp_path).of_group(study.groups["argmax"]) == []


def test_a_phrase_based_system_is_found_by_its_configuration(evaluated, tmp_path, look):
    group = evaluated.groups["phrase_based"]
    (run,) = group.runs
    assert run.command.startswith("python -m nmt.baseline ")
    folder = make(evaluated, tmp_path, run)
    stored = to_containers(run.config)
    edit_results(folder, config={name: stored[name] for name in BaselineConfig.sections})
    assert [each.run.folder for each in look(evaluated, tmp_path).of_group(group)] == [folder]
    stored["phrase_based"]["tune_sentences"] = 77
    edit_results(folder, config={name: stored[name] for name in BaselineConfig.sections})
    assert look(evaluated, tmp_path).of_group(group) == []


def edit_results(folder: Path, **values: Any) -> None:
    file = folder / "results.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | values), encoding="utf-8")
