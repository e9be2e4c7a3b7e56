"""What a W&B run shows beside Lightning's scalars: curves over length, alignments, table, figures, page.

Every function takes the W&B run (`WandbLogger.experiment`) and does its best: W&B that fails (no
network, a full disk, a bad key) is reported once and never stops a training. On ranks other than 0,
where Lightning hands out a dummy, nothing happens.
"""

from __future__ import annotations

import io
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from nmt.report.heatmap import heatmap_figure
from nmt.report.lengths import bucket_name
from nmt.report.style import style

log = logging.getLogger(__name__)

LENGTH = "length/words"
UPDATE = "trainer/global_step"
TABLE = "test/by_length"
PAGE = "test/page"
ALIGNMENT = "valid/alignment"
FIGURES = "figures"

# column of the table and metric over length -> its path in an entry of `by_length`
LENGTH_SCORES = {
    "bleu": "score",
    "bleu_low": "low",
    "bleu_high": "high",
    "sentences": "sentences",
    "bleu_no_unk": "no_unk.score",
    "bleu_no_unk_low": "no_unk.low",
    "bleu_no_unk_high": "no_unk.high",
    "sentences_no_unk": "no_unk.sentences",
    "brevity_penalty": "brevity_penalty",
    "length_ratio": "length_ratio",
    "nll_per_word": "nll_per_word",
    "spread": "spread",
    "alignment_error_rate": "error_rate",
}
# value of the run's summary -> its path in a test set's results
SET_SCORES = {
    "bleu": "bleu.all.score",
    "bleu_low": "bleu.all.low",
    "bleu_high": "bleu.all.high",
    "bleu_no_unk": "bleu.no_unk.score",
    "sacrebleu": "sacrebleu.score",
    "chrf": "chrf.score",
    "nll_per_sentence": "nll_per_sentence",
    "perplexity": "perplexity",
    "length_ratio": "length_ratio",
    "brevity_penalty": "brevity_penalty",
    "alignment_error_rate": "alignment.error_rate",
    "on_end_of_sentence": "alignment.on_end_of_sentence",
}

_reported: set[str] = set()


@contextmanager
def warn_on_error(doing: str) -> Iterator[None]:
    """Turns any error inside into a warning, the first time for each `doing`."""
    try:
        yield
    except Exception as error:
        if doing not in _reported:
            _reported.add(doing)
            log.warning("W&B: %s failed (%s: %s); going on", doing, type(error).__name__, error)


def define_metrics(run: Any) -> None:
    """Which axis each metric is drawn over; to be called after `WandbLogger` set its `*` rule."""
    with warn_on_error("defining metrics"):
        run.define_metric(UPDATE)
        run.define_metric("valid/*", step_metric=UPDATE, step_sync=True)
        run.define_metric(LENGTH)
        run.define_metric("length/*", step_metric=LENGTH, step_sync=False)


def log_validation(
    run: Any,
    update: int,
    scalars: Mapping[str, float],
    rows: Sequence[Mapping[str, Any]] = (),
) -> None:
    """Logs a validation: scalars under their names, and the alignment of each of `rows`.

    Args:
        update: number of updates so far.
        rows: the same (four) lines in the form of alignments/<set>.jsonl at every validation; those
            without weights (a model without attention) are passed over.
    """
    with warn_on_error("logging a validation"):
        images = {
            f"{ALIGNMENT}/{place}": _heatmap(row)
            for place, row in enumerate(rows, 1)
            if row["weights"] is not None
        }
        run.log({UPDATE: update, **scalars, **images})


def log_test(
    run: Any, results: Mapping[str, Any], figures: Iterable[Path] = (), page: Path | None = None
) -> None:
    """Logs the end of a run, once: curves over length, a table, the summary, figures and page.

    The curves are `length/<set>/bleu` and the like over `length/words`, the last length of a bucket
    (of the open one: as if it were as wide as the one before): a line panel with that axis overlays
    runs. The table `test/by_length` carries counts and intervals.

    Args:
        results: content of results.json.
        figures: files of `draw_run`; the PNG among them are shown.
        page: the run's own page, which is shown as it is.
    """
    with warn_on_error("logging the test"):
        import wandb

        columns: list[str | int] = ["set", "words", "from", "to", *LENGTH_SCORES]
        table = wandb.Table(columns=columns)
        for name, result in results.get("test", {}).items():
            for score, path in SET_SCORES.items():
                value = value_at(result, path)
                if value is not None:
                    run.summary[f"test/{name}/{score}"] = value
            for (words, values), bucket in zip(
                length_curves(result), result.get("by_length", []), strict=True
            ):
                table.add_data(
                    name, bucket_name(bucket), bucket["from"], bucket["to"], *values.values()
                )
                curves = {
                    length_metric(name, score): value
                    for score, value in values.items()
                    if value is not None
                }
                run.log({LENGTH: words, **curves})
        run.log({TABLE: table})
        shown = [Path(file) for file in figures if Path(file).suffix == ".png"]
        if shown:
            run.log({f"{FIGURES}/{file.stem}": wandb.Image(str(file)) for file in shown})
        for name in ("parameters", "max_length", "model", "scoring"):
            if results.get(name) is not None:
                run.summary[name] = results[name]
        if page is not None:
            log_page(run, page)


def log_page(run: Any, page: Path, key: str = PAGE) -> None:
    """Shows a self-contained page as it is: W&B would add a style sheet of its own servers."""
    import wandb

    run.log({key: wandb.Html(page, inject=False)})


def length_metric(test_set: str, score: str) -> str:
    """Name of the curve of a score, among `LENGTH_SCORES`, over `LENGTH`."""
    return f"length/{test_set}/{score}"


def _heatmap(row: Mapping[str, Any]) -> Any:
    """One alignment as a wandb.Image with the sentence pair as its caption."""
    import wandb
    from PIL import Image

    drawn = io.BytesIO()
    with style():
        heatmap_figure(dict(row)).savefig(drawn, format="png", dpi=120, bbox_inches="tight")
    caption = f"{' '.join(row['source'])} → {' '.join(row['target'])}"
    return wandb.Image(Image.open(drawn), caption=caption)


def length_curves(result: Mapping[str, Any]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Each bucket of a test set's results: its place on the axis and its `LENGTH_SCORES`."""
    aligned = (result.get("alignment") or {}).get("by_length") or []
    error_rates = {(bucket["from"], bucket["to"]): bucket["error_rate"] for bucket in aligned}
    width = 10
    for bucket in result.get("by_length", []):
        if bucket["to"] is not None:
            width = bucket["to"] - bucket["from"] + 1
        error_rate = error_rates.get((bucket["from"], bucket["to"]))
        known = {**bucket, "error_rate": error_rate}
        values = {score: value_at(known, path) for score, path in LENGTH_SCORES.items()}
        yield bucket["from"] - 1 + width, values


def value_at(tree: Mapping[str, Any], path: str) -> Any:
    """The value at a dotted path; none where a part of it is missing."""
    value: Any = tree
    for name in path.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    return value
