from nmt.report.page import overview
from nmt.report.page.overview import filters
from nmt.report.runs import FinishedRun


def run(label: str, *overrides: str, **results: object) -> FinishedRun:
    config = {"seed": results.get("seed"), "optimizer": {"lr": 1.0}, "label": label[:1]}
    typed = {"overrides": list(overrides)}
    return FinishedRun(label, {"config": config, "test": {}, **typed, **results})


def test_runs_are_filtered_by_what_was_swept() -> None:
    runs = [
        run(
            "a",
            "seed=1",
            "optimizer.lr=0.1",
            "size=big",
            "data.cache=x",
            "logger.wandb.offline=false",
            seed=1,
            model="E",
        ),
        run("b", "seed=2", "+optimizer.lr=0.3", "size=small", "data.pool=5", seed=2, model="E"),
        run("c", "seed=2", "~x", "size=big", seed=2, model="E"),
        FinishedRun("Moses", {"test": {}}),
    ]
    found = {entry["title"]: entry["values"] for entry in filters(runs)}
    assert found == {
        "Model": ["E", "E", "E", "–"],
        "Seed": ["1", "2", "2", "–"],
        "optimizer.lr": ["0.1", "0.3", "1.0", "–"],
        "size": ["big", "small", "big", "–"],
        "data.pool": ["–", "5", "–", "–"],
    }


def test_a_typed_key_that_cuts_as_another_is_left_out() -> None:
    runs = [run("a", "x=1", "y=p", seed=1), run("b", "x=2", "y=q", seed=2)]
    assert [entry["key"] for entry in filters(runs)] == ["seed"]


def test_of_very_many_runs_whole_sets_are_kept_before_buckets(monkeypatch) -> None:
    monkeypatch.setattr(overview, "MOST_TESTS", 7)

    def rows(*buckets: str) -> list[dict[str, str]]:
        return [{"bucket": bucket} for bucket in buckets for _ in range(2)]

    tested = {"bleu": rows("all", "1-10"), "chrf": rows("all", "1-10", "11-20"), "ter": rows("all")}
    kept = overview._fitting(tested)
    assert kept == {key: rows("all") for key in tested}
    monkeypatch.setattr(overview, "MOST_TESTS", 8)
    assert overview._fitting(tested) == {**kept, "bleu": rows("all", "1-10")}
