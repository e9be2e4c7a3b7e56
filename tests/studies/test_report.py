"""study.md says the same of the same runs, and holds nothing of when and where it was written."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace

import pytest

from nmt.studies.page import write_report
from nmt.studies.registration import register_claims
from nmt.studies.report import StudyReport
from nmt.studies.verdicts import decide
from nmt.studies.wording import spoken_of
from tests.studies.conftest import asked, make


def write(study, folder, look, runs=0):
    found = look(study, folder)
    registered = register_claims(study.section, folder, runs, study.name)
    write_report(StudyReport(found, decide(found), registered), folder)
    return {
        name: (folder / name).read_text("utf-8")
        for name in ("study.md", "study.html", "study.json")
    }


@pytest.fixture(scope="module")
def written(tiny, finished, look, tmp_path_factory):
    folder = tmp_path_factory.mktemp("written")
    shutil.copytree(finished, folder, dirs_exist_ok=True)
    return folder, write(tiny, folder, look)


def test_each_verdict_stands_with_figure_interval_rule_and_command(written):
    folder, files = written
    text = files["study.md"]
    assert text.startswith("# Two claims on tiny models\n")
    sha256 = json.loads((folder / "claims.json").read_text())[0]["sha256"]
    assert f"Claims and rules hashed before the first run made here: {sha256}." in " ".join(
        text.split()
    )
    assert "1 supported, 1 refuted, 0 undecided." in text
    part = text.partition("## attention-wins: supported\n")[2].partition("## ")[0]
    assert "- source: the paper, Table 1\n" in part
    assert "- statistic: BLEU of rnnsearch50 less that of rnnencdec50, on by_length\n" in part
    assert re.search(
        r"- figure: \d+\.\d\d \[\d+\.\d\d, \d+\.\d\d\] \(95 % interval, of these", part
    )
    assert "fewer than 3 seeds; 250 sentences, 2 seeds, p = 0.00" in " ".join(part.split())
    assert "- rule: above 0\n" in part
    assert "\n    python -m nmt.study +study=tiny 'study.only=[attention-wins]'\n" in part
    assert max(len(line) for line in text.splitlines() if not line.startswith("|")) <= 120


def test_an_interval_of_few_sentences_is_said_to_be_too_narrow(tiny, finished, look):
    verdict = decide(look(tiny, finished))[0]
    said = "intervals of fewer than 30 sentences are too narrow"
    assert said in spoken_of(replace(verdict, sentences=29))
    assert said not in spoken_of(replace(verdict, sentences=30))


def test_the_same_runs_give_the_same_bytes_wherever_they_lie(written, tiny, look, tmp_path):
    folder, files = written
    assert write(tiny, folder, look) == files
    moved = tmp_path / "another place"
    shutil.copytree(folder, moved)
    assert write(tiny, moved, look)["study.md"] == files["study.md"]
    for found in (str(folder), "/tmp", "20:", "2026", "cpu_count"):
        assert found not in files["study.md"]


def test_study_json_has_all_of_it(written):
    folder, files = written
    content = json.loads(files["study.json"])
    assert content["schema"] == 1
    wins, magic = content["claims"]
    assert (wins["verdict"], magic["verdict"]) == ("supported", "refuted")
    assert wins["low"] < wins["value"] < wins["high"]
    assert wins["claim"]["margin"] == 0
    assert wins["rule"] == "above 0"
    assert [run["seed"] for run in content["runs"]] == [1, 2, 1, 2]
    assert all(run["folder"].startswith(str(folder)) for run in content["runs"])


def test_the_page_is_self_contained_and_takes_no_markup(tiny, finished, look, tmp_path):
    shutil.copytree(finished, tmp_path, dirs_exist_ok=True)
    sentence, source = "</section><script>alert(1)</script>", '"><img src=x>'
    claim = replace(tiny.section.claims["no-magic"], claim=sentence, source=source)
    page = write(asked(tiny, {"c": claim}), tmp_path, look)["study.html"]
    assert "alert(1)</script>" not in page
    assert "<img" not in page
    assert page.count("<script") == 1
    assert "default-src 'none'" in page
    assert re.search(r"script-src 'sha256-[\w+/=]+'; ", page)
    assert "&lt;/section&gt;" in page


def test_a_change_after_runs_existed_is_said(tiny, written, look, tmp_path):
    folder, _ = written
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    changed = {
        **tiny.section.claims,
        "no-magic": replace(tiny.section.claims["no-magic"], margin=60.0),
    }
    text = write(asked(tiny, changed), tmp_path, look, runs=4)["study.md"]
    assert "Claims and rules were changed when there were 4 runs: no-magic: changed." in text


def test_a_sweep_is_shown_with_its_choice(swept, tmp_path, look):
    for point, score in zip(swept.groups["fixed"].points, (1.5, 1.25, 1.75), strict=True):
        make(swept, tmp_path, point.run, valid={"nll_per_word": score})
    for run in look(swept, tmp_path).missing():
        make(swept, tmp_path, run)
    text = write(swept, tmp_path, look)["study.md"]
    assert "- chosen: fixed: optimizer.lr=0.002, of 3 points\n" in text
    assert "| 0.002 | 1.2500 | yes |" in text
    assert "- source: a &lt;b>retelling&lt;/b>\n" in text
    undecided = write(swept, tmp_path / "empty", look)["study.md"]
    assert "- undecided: 4 of 4 runs missing\n" in undecided


def test_runs_that_were_taken_or_made_by_other_code_are_counted(magic, tmp_path, look):
    study = asked(magic, take=[f"{tmp_path}/else/*"], accept="configuration")
    one, two = study.groups["rnnencdec50"].runs
    make(study, tmp_path / "a", one, code="other")
    make(study, tmp_path / "a", two)
    (tmp_path / "else").mkdir()
    for place, run in enumerate(sorted((tmp_path / "a/runs").iterdir())):
        shutil.move(run, tmp_path / "else" / str(place))
    text = write(study, tmp_path, look)["study.md"]
    assert "2 runs taken from elsewhere: made before the claims were hashed." in text
    assert "1 run made by other code than this" in text
    assert "- undecided: 2 of 4 runs missing\n" in text  # of the claim that was not asked for
