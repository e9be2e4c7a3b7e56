"""What a W&B run shows besides Lightning's scalars: curves over length, alignments, tables, figures.

Every function takes the W&B run (`WandbLogger.experiment`) and does its best: W&B that fails (no
network, a full disk, a bad key) is reported once and never stops a training. On ranks other than 0,
where Lightning hands out a dummy, nothing happens.
"""

from __future__ import annotations

import io
import logging
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from nmt.evaluation.buckets import bucket_name
from nmt.evaluation.results import SCORE_KEYS, bucket_score, score_of
from nmt.evaluation.scores import REGISTERED
from nmt.report.heatmap import heatmap_figure
from nmt.report.runs import FinishedRun
from nmt.report.style import file_name, style
from nmt.report.table import heading

log = logging.getLogger(__name__)

LENGTH = "length/words"
UPDATE = "trainer/global_step"
TABLE = "test/by_length"
TRANSLATIONS = "test/translations"
PAGE = "test/page"
ALIGNMENT = "valid/alignment"
PICTURED = 4  # sentences whose heatmap is logged at each validation
FIGURES = "figures"
BEST = "best"

_reported: set[str] = set()


@contextmanager
def warn_on_error(doing: str) -> Iterator[None]:
    """Turns any error inside into a warning, the first time for each `doing`."""
    try:
        yield
    except Exception as error:
        if doing not in _reported:
            _reported.add(doing)
            log.warning("W&B: %s failed (%s: %s); continuing", doing, type(error).__name__, error)


def define_metrics(run: Any) -> None:
    """That the summary holds the best score of all validations, where one way is better.

    The axis of every metric is `UPDATE` by `WandbLogger`'s own rule for `*`. W&B is given no second
    rule that matches a metric (it may follow either): others are defined by their whole names.
    """
    with warn_on_error("defining metrics"):
        run.define_metric(UPDATE)
        for key, score in REGISTERED.items():
            if score.higher_is_better is not None:
                best = "max" if score.higher_is_better else "min"
                run.define_metric(f"valid/{key}", step_metric=UPDATE, step_sync=True, summary=best)


def log_alignments(run: Any, update: int, rows: Sequence[Mapping[str, Any]]) -> None:
    """Logs the alignment of each of `rows` at a validation.

    Args:
        update: number of updates so far.
        rows: the same (four) lines in the form of alignments/<set>.jsonl at every validation; those
            without weights (a model without attention) are passed over.
    """
    with warn_on_error("logging alignments"):
        images = {
            f"{ALIGNMENT}/{place}": _heatmap(row)
            for place, row in enumerate(rows, 1)
            if row["weights"] is not None
        }
        if images:
            run.log({UPDATE: update, **images})


def log_test(
    run: Any, results: Mapping[str, Any], figures: Iterable[Path] = (), page: Path | None = None
) -> None:
    """Logs the end of a run, once: curves over length, a table, the summary, figures and page.

    The curves are `length/<set>/bleu` and the like over `length/words`, the last length of a bucket
    (of the open one: as if it were as wide as the one before): a line panel with that axis overlays
    runs. The table `test/by_length` carries counts and intervals. The summary's `best/<score>` are of
    the development set at the update of the best checkpoint, numbers that a sweep can aim at.

    Args:
        results: content of results.json.
        figures: files of `draw_run`; the PNG among them are shown.
        page: the run's own page, which is shown as it is.
    """
    with warn_on_error("logging the test"):
        import wandb

        defined = {LENGTH}
        run.define_metric(LENGTH)
        head = ("set", "words", "from", "to", "sentences", "bleu_no_unk_sentences")
        by_length = score_titles(results, True)
        columns = [column for key in by_length for column in _with_interval(key)]
        table = wandb.Table(columns=[*head, *columns])
        for name, result in results.get("test", {}).items():
            found = summary_of(name, result, score_titles(results))
            for metric, value in found.items():
                run.summary[metric] = value
            for words, bucket, found in length_curves(result, by_length):
                no_unk = (bucket["no_unk"] or {}).get("sentences")
                place = name, bucket_name(bucket), bucket["from"], bucket["to"]
                cells = map(found.get, columns)
                table.add_data(*place, bucket["sentences"], no_unk, *cells)
                found = {"sentences": bucket["sentences"], **found}
                curves = {length_metric(name, column): value for column, value in found.items()}
                for metric in curves.keys() - defined:
                    # the summary would have the last bucket's, as if it were of the set
                    run.define_metric(metric, step_metric=LENGTH, step_sync=False, summary="none")
                    defined.add(metric)
                run.log({LENGTH: words, **curves})
        run.log({TABLE: table})
        shown = [Path(file) for file in figures if Path(file).suffix == ".png"]
        if shown:
            run.log({f"{FIGURES}/{file.stem}": wandb.Image(str(file)) for file in shown})
        for name in ("parameters", "max_length", "model", "scoring"):
            if results.get(name) is not None:
                run.summary[name] = results[name]
        for name, value in (results.get("valid") or {}).items():
            if isinstance(value, int | float):
                run.summary[f"{BEST}/{name}"] = value
        for name in ("hours", "target_words_per_second", "peak_memory"):
            if results.get("train", {}).get(name) is not None:
                run.summary[f"train/{name}"] = results["train"][name]
        if page is not None:
            log_page(run, page)


def log_translations(run: Any, finished: FinishedRun, figures: Iterable[Path] = ()) -> None:
    """Logs the table `test/translations`: kept sentences of each set with their translations.

    Args:
        finished: the run whose sentences they are.
        figures: files of `draw_run`; the heatmaps among them stand beside their sentences.
    """
    with warn_on_error("logging the translations"):
        import wandb

        drawn = {Path(file).stem: Path(file) for file in figures if Path(file).suffix == ".png"}
        columns = ("set", "id", "words", "source", "reference", "translation", "score", "attention")
        table = wandb.Table(columns=list(columns))
        for name in finished.sets:
            # force-decoded translations have `<unk>` where another word was put in its place
            written = {row["id"]: row["hypothesis"] for row in finished.translations(name)}
            rows = finished.alignments(name)
            for row in sorted(rows, key=lambda row: (row["length"], row["id"])):
                heatmap = drawn.get(file_name(f"{name}-heatmap-{row['id']}"))
                picture = None if heatmap is None else wandb.Image(str(heatmap))
                sides = row["source"][:-1], row["reference"], written[row["id"]]
                texts = map(" ".join, sides)
                table.add_data(name, row["id"], row["length"], *texts, row.get("score"), picture)
        if table.data:
            run.log({TRANSLATIONS: table})


def log_page(run: Any, page: Path, key: str = PAGE) -> None:
    """Shows a self-contained page as it is: W&B would add a style sheet of its own servers."""
    import wandb

    run.log({key: wandb.Html(page, inject=False)})


def length_metric(test_set: str, score: str) -> str:
    """Name of the curve of a score over `LENGTH`."""
    return f"length/{test_set}/{score}"


def summary_metric(test_set: str, score: str) -> str:
    """Name of a score of a whole set in the run's summary."""
    return f"test/{test_set}/{score}"


def score_titles(results: Mapping[str, Any], by_length: bool = False) -> dict[str, str]:
    """Titles of the scores of results.json, by key; BLEU without unknown words after BLEU.

    Args:
        by_length: only those that are given by length.
    """
    titles: dict[str, str] = {}
    for key, about in results.get("scores", {}).items():
        if about["by_length"] or not by_length:
            titles[key] = heading(about)
            if key == "bleu":
                titles["bleu_no_unk"] = f"{heading(about)}, no unknown words"
    return titles


def summary_of(test_set: str, result: Mapping[str, Any], scores: Iterable[str]) -> dict[str, float]:
    """The scores of a whole set with their intervals, by metric."""
    found = _columns({key: score_of(result, key) for key in scores})
    return {summary_metric(test_set, column): value for column, value in found.items()}


def length_curves(
    result: Mapping[str, Any], scores: Collection[str]
) -> Iterator[tuple[int, Mapping[str, Any], dict[str, float]]]:
    """Each bucket of a test set's results: its place on the axis, its row, its scores and intervals."""
    width = 10
    for row in result.get("by_length", []):
        if row["to"] is not None:
            width = row["to"] - row["from"] + 1
        found = _columns({key: bucket_score(row, key) for key in scores})
        yield row["from"] - 1 + width, row, found


def _with_interval(key: str) -> tuple[str, str, str]:
    return key, f"{key}_low", f"{key}_high"


def _columns(scores: Mapping[str, Mapping[str, Any] | None]) -> dict[str, float]:
    """`key`, `key_low` and `key_high` of each score, those that are not known left out."""
    return {
        column: score[part]
        for key, score in scores.items()
        if score is not None
        for column, part in zip(_with_interval(key), SCORE_KEYS, strict=True)
        if score[part] is not None
    }


def _heatmap(row: Mapping[str, Any]) -> Any:
    """One alignment as a wandb.Image with the sentence pair as its caption."""
    import wandb
    from PIL import Image

    drawn = io.BytesIO()
    with style():
        heatmap_figure(dict(row)).savefig(drawn, format="png", dpi=120, bbox_inches="tight")
    caption = f"{' '.join(row['source'])} → {' '.join(row['target'])}"
    return wandb.Image(Image.open(drawn), caption=caption)
