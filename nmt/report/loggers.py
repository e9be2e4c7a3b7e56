"""What loggers get at the end of a run: curves over length, scores, tables, figures, page.

One interface, `Sink`, has three implementations: W&B, TensorBoard, and any other logger of
Lightning's, whose run has the same as files. A logger that fails (no network, a full disk) is
reported and never stops a training.
"""

from __future__ import annotations

import io
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from PIL import Image
from pytorch_lightning.loggers import Logger, TensorBoardLogger, WandbLogger

from nmt.evaluation.records import Record
from nmt.evaluation.scores import NO_UNK
from nmt.evaluation.table import COLUMNS
from nmt.report.comparison import Comparison, only
from nmt.report.curves import LEFT
from nmt.report.heatmap import heatmap_figure
from nmt.report.runs import FinishedRun
from nmt.report.style import style

log = logging.getLogger(__name__)

LENGTH = "length/words"
UPDATE = "trainer/global_step"
SCORES = "scores"
TRANSLATIONS = "translations"
PAGE = "page"
FIGURES = "figures"
HEATMAPS = "valid/alignment"
CURVES = ("bleu", NO_UNK.key, "alignment_error_rate")  # over length; the table has all scores
SUMMARY = (*CURVES, "sacrebleu", "chrf", "nll_per_word", "length_ratio", "eos_weight")
BEST = ("update", "bleu", "nll_per_word")  # of the validation of the best checkpoint

Images = Mapping[str, Image.Image]


@contextmanager
def warn_on_error(doing: str) -> Iterator[None]:
    """Turns any error inside into a warning."""
    try:
        yield
    except Exception as error:
        log.warning("%s failed (%s: %s); continuing", doing, type(error).__name__, error)


class Sink:
    """A logger of any kind: it gets numbers; pictures and tables are files of the run."""

    def __init__(self, logger: Any) -> None:
        self.logger = logger

    def curves(self, rows: Sequence[Mapping[str, float]], update: int) -> None:
        """Curves over length, a row a bucket: `LENGTH` and the scores."""
        for row in rows:
            self.logger.log_metrics(dict(row), step=update)

    def summary(self, values: Mapping[str, Any], config: dict[str, Any], update: int) -> None:
        """Single numbers of the whole run, and its configuration."""
        self.logger.log_metrics(_numbers(values), step=update)

    def images(self, key: str, images: Images, update: int) -> None:
        """Pictures by their name; here as PNG files in the folder of the logger."""
        if folder := getattr(self.logger, "log_dir", None):
            for name, image in images.items():
                file = Path(folder, f"{key}-{update}-{name}.png")
                file.parent.mkdir(parents=True, exist_ok=True)
                image.save(file)

    def table(self, key: str, table: pd.DataFrame) -> None:
        """A table; a cell may be a PIL image or None."""

    def page(self, path: Path) -> None:
        """The page of the run."""

    def close(self) -> None:
        """Writes what is still held."""
        self.logger.save()


class TensorBoardSink(Sink):
    """Curves over length have the length as their step."""

    def curves(self, rows: Sequence[Mapping[str, float]], update: int) -> None:
        for row in rows:
            values = {key: value for key, value in row.items() if key != LENGTH}
            self.logger.log_metrics(values, step=int(row[LENGTH]))

    def summary(self, values: Mapping[str, Any], config: dict[str, Any], update: int) -> None:
        self.logger.log_hyperparams(config, _numbers(values), step=update)

    def images(self, key: str, images: Images, update: int) -> None:
        for name, image in images.items():
            pixels = np.asarray(image.convert("RGB"))
            self.logger.experiment.add_image(f"{key}/{name}", pixels, update, dataformats="HWC")


class WandbSink(Sink):
    """W&B draws curves over length with `LENGTH` as their axis, so that they overlay runs."""

    def curves(self, rows: Sequence[Mapping[str, float]], update: int) -> None:
        run = self.logger.experiment
        run.define_metric(LENGTH, summary="none")
        for key in {key for row in rows for key in row} - {LENGTH}:
            # by its full name, after WandbLogger's rule for *; its last value is no summary
            run.define_metric(key, step_metric=LENGTH, step_sync=False, summary="none")
        for row in rows:
            run.log(dict(row))

    def summary(self, values: Mapping[str, Any], config: dict[str, Any], update: int) -> None:
        self.logger.experiment.summary.update(dict(values))

    def images(self, key: str, images: Images, update: int) -> None:
        sizes = zip(*(image.size for image in images.values()), strict=True)
        width, height = map(max, sizes)
        canvases = [Image.new("RGB", (width, height), "white") for _ in images]
        for canvas, image in zip(canvases, images.values(), strict=True):
            canvas.paste(image)  # W&B wants one size for all pictures of a key
        self.logger.log_image(key, canvases, update, caption=list(images))

    def table(self, key: str, table: pd.DataFrame) -> None:
        import wandb

        cells = table.map(lambda c: wandb.Image(c) if isinstance(c, Image.Image) else c)
        self.logger.log_table(key, list(table), cells.to_numpy().tolist())

    def page(self, path: Path) -> None:
        import wandb

        # inject=False: W&B would add a style sheet of its own servers
        self.logger.experiment.log({PAGE: wandb.Html(path, inject=False)})


def sinks(loggers: Iterable[Logger]) -> list[Sink]:
    """The interface of each logger."""
    kinds: dict[type, type[Sink]] = {WandbLogger: WandbSink, TensorBoardLogger: TensorBoardSink}
    return [
        next((sink for kind, sink in kinds.items() if isinstance(logger, kind)), Sink)(logger)
        for logger in loggers
    ]


def log_heatmaps(loggers: Iterable[Logger], rows: Sequence[Record], update: int) -> None:
    """Logs the attention on some sentences at a validation.

    Args:
        rows: `id`, `source` and `target` (symbols with `</s>`) and `weights` (T, S).
        update: of the validation.
    """
    with style():
        images = {str(n): _rendered(heatmap_figure(row)) for n, row in enumerate(rows, 1)}
    for sink in sinks(loggers):
        with warn_on_error(f"logging heatmaps to {type(sink.logger).__name__}"):
            sink.images(HEATMAPS, images, update)


def _rendered(figure: Figure) -> Image.Image:
    stream = io.BytesIO()
    figure.savefig(stream, format="png", dpi=120, bbox_inches="tight")
    return Image.open(stream)


def log_run(
    loggers: Iterable[Logger], comparison: Comparison, figures: Iterable[Path], page: Path | None
) -> None:
    """Logs the end of a run, once: curves over length, summary, tables, figures and page.

    A curve is `length/<set>/<score>` over `length/words`, the last length of a bucket (of the open
    one: as if it were as wide as the one before).

    Args:
        comparison: of the run alone.
        figures: files of `draw_run`; the PNG among them are shown.
        page: the run's own page.
    """
    (run,) = comparison.runs
    update = int((run.results.get("train") or {}).get("updates") or 0)
    pictures = {Path(f).stem: Path(f) for f in figures if Path(f).suffix == ".png"}
    for sink in sinks(loggers):
        with warn_on_error(f"logging the test to {type(sink.logger).__name__}"):
            sink.curves(length_curves(run), update)
            sink.summary(summary_of(run) | retention_of(comparison), run.config, update)
            sink.table(
                SCORES, run.scores[list(COLUMNS)].astype(object).where(lambda c: c.notna(), None)
            )
            if pictures:
                sink.images(FIGURES, {n: Image.open(f) for n, f in pictures.items()}, update)
            sink.table(TRANSLATIONS, _translations(run, pictures))
            if page is not None:
                sink.page(page)
            sink.close()


def length_curves(run: FinishedRun) -> list[dict[str, float]]:
    """The curves of `CURVES` over length: a row a bucket with `LENGTH`."""
    rows: dict[int, dict[str, float]] = {}
    for name in run.sets:
        frame = only(run).by_length(name)
        frame = frame[frame["key"].isin(CURVES)]
        width = 10
        for row in frame.to_dict("records"):
            if not pd.isna(row["to"]):
                width = int(row["to"] - row["from"] + 1)
            words = int(row["from"]) - 1 + width
            rows.setdefault(words, {LENGTH: words})[f"length/{name}/{row['key']}"] = row["value"]
    return [rows[words] for words in sorted(rows)]


def summary_of(run: FinishedRun) -> dict[str, Any]:
    """The scores of whole sets (`test/<set>/<score>`), the best validation, and the run's size."""
    scores = only(run).scores
    whole = scores[(scores["bucket"] == "all") & scores["key"].isin(SUMMARY)]
    keys = "test/" + whole["set"] + "/" + whole["key"]
    values: dict[str, Any] = dict(zip(keys, whole["value"].tolist(), strict=True))
    for name in BEST:
        values[f"best/{name}"] = (run.results.get("valid") or {}).get(name)
    for name in ("parameters", "max_length", "model", "scoring"):
        values[name] = run.results.get(name)
    for name in ("hours", "target_words_per_second", "peak_memory"):
        values[f"train/{name}"] = (run.results.get("train") or {}).get(name)
    return {key: value for key, value in values.items() if value is not None}


def retention_of(comparison: Comparison) -> dict[str, float]:
    """What long sentences keep of BLEU, as a share, with its interval: `test/<set>/bleu_retention`."""
    frame = comparison.retention
    return {
        f"test/{row.set}/bleu_retention{ending}": value
        for row in frame[(frame["key"] == "bleu") & (frame["statistic"] == LEFT)].itertuples()
        for ending, value in (("", row.value), ("_low", row.low), ("_high", row.high))
        if not pd.isna(value)
    }


def _translations(run: FinishedRun, pictures: Mapping[str, Path]) -> pd.DataFrame:
    """Kept sentences of each set with their translations and, where they were drawn, heatmaps."""
    columns = ["set", "id", "words", "source", "reference", "translation", "score", "attention"]
    rows = []
    for name in run.sets:
        # force-decoded translations have <unk> where another word was put in its place
        written = {row["id"]: row["hypothesis"] for row in run.translations(name)}
        kept = sorted(run.alignments(name), key=lambda row: (row["length"], row["id"]))
        for row in kept:
            sides = row["source"][:-1], row["reference"], written[row["id"]]
            texts = (" ".join(words) for words in sides)
            file = pictures.get(f"{name}-heatmap-{row['id']}")
            picture = None if file is None else Image.open(file)
            rows.append([name, row["id"], row["length"], *texts, row.get("score"), picture])
    return pd.DataFrame(rows, columns=columns, dtype=object)


def _numbers(values: Mapping[str, Any]) -> dict[str, float]:
    return {key: value for key, value in values.items() if isinstance(value, int | float)}
