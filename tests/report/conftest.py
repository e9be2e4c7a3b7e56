from pathlib import Path

import pytest

from nmt.report.comparison import Comparison, compare_finished
from nmt.report.runs import FinishedRun, find_runs
from tests.helpers.run_folders import make_run


@pytest.fixture(scope="session")
def sweep(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Makes the folder of a sweep: four finished jobs (two models, two seeds), and one unfinished job."""
    folder = tmp_path_factory.mktemp("sweep")
    jobs = [(model, seed) for model in ("RNNencdec", "RNNsearch") for seed in (1, 2)]
    for number, (model, seed) in enumerate(jobs):
        sets = ("newstest", "mine")
        make_run(folder / str(number), model=model, seed=seed, pairs=220, kept=12, sets=sets)
    (folder / "4" / ".hydra").mkdir(parents=True)
    return folder


@pytest.fixture(scope="session")
def runs(sweep: Path) -> list[FinishedRun]:
    return find_runs([sweep])


@pytest.fixture(scope="session")
def comparison(runs: list[FinishedRun]) -> Comparison:
    return compare_finished(runs, resamples=200)
