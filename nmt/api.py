"""The functions of `import nmt`: compose a configuration, load a model, read and compare runs, draw figures.

Each function imports only the libraries it needs, so that reading scores does not import torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nmt.utils.text import as_list

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from nmt.config.commands import TrainConfig
    from nmt.inference.model import Model
    from nmt.inference.sentence import ScoredSentence
    from nmt.report.comparison import Comparison


def configure(*overrides: str, searchpath: Sequence[str] = ()) -> TrainConfig:
    """Returns the checked configuration that `nmt.train` would run with.

    Args:
        overrides: Hydra overrides, such as `"+experiment=rnnsearch50"`.
        searchpath: your own folders of config groups, such as `"file:///home/me/conf"`, `"pkg://mine.conf"`.

    Raises:
        InputError: if the configuration is invalid; the command prints the same message.
    """
    from hydra import compose, initialize_config_dir

    from nmt.cli.composition import conf_folder, register_configs, with_plus
    from nmt.cli.errors import explaining
    from nmt.config.commands import TrainConfig
    from nmt.config.loading import load

    register_configs(["train"])
    words = with_plus(list(overrides))
    if searchpath:
        words.append(f"hydra.searchpath=[{','.join(as_list(searchpath))}]")
    with explaining(TrainConfig), initialize_config_dir(str(conf_folder()), version_base="1.3"):
        config: TrainConfig = load(compose("train", overrides=words))
    return config


def load(
    path: str | Path | Sequence[str | Path],
    *,
    accelerator: str = "auto",
    threads: int | str = "auto",
    precision: str | None = None,
    trust: Sequence[str] = (),
) -> Model:
    """Loads a trained model, ready to translate.

    Args:
        path: a checkpoint file; a run folder, whose best checkpoint is loaded; or a W&B artifact,
            `wandb:entity/project/name:alias`. Several paths make an ensemble, which averages the
            probabilities of each word (`nmt.models.ensemble`).
        accelerator: `auto` (a GPU if there is one), `gpu` or `cpu`.
        threads: number of CPU threads, or `auto`.
        precision: `32`, `bf16-mixed` or `auto`; None: as in training.
        trust: modules outside nmt whose code the checkpoint may run.

    Raises:
        InputError: if a file is missing, damaged, not a checkpoint of nmt, or does not fit into
            the ensemble; the message names the file.
    """
    from nmt.utils.progress import Stage

    with Stage("loading PyTorch and the model", 2, "step") as stage:
        from nmt.inference.load import load_model

        stage.advance()  # the first step imports PyTorch, the second loads the model
        model = load_model(path, accelerator, threads, precision, trust)
        stage.advance()
    return model


def scores(runs: Sequence[str | Path]) -> pd.DataFrame:
    """Returns the `scores.csv` files of all runs as one DataFrame, with `run` as its first column.

    Args:
        runs: run folders, sweep folders, or glob patterns of such folders.

    Raises:
        InputError: if there is no finished run, or a table cannot be read.
    """
    import pandas as pd

    from nmt.evaluation.scores_csv import COLUMNS
    from nmt.report.runs import find_runs

    tables = [run.scores.assign(run=run.label) for run in find_runs(as_list(runs))]
    table = pd.concat(tables, ignore_index=True)
    return table[["run", *COLUMNS]]


def compare(runs: Sequence[str | Path] = (), **settings: Any) -> Comparison:
    """Compares runs with each other and with other systems, as the command `nmt.compare` does.

    Args:
        runs: run folders, sweep folders, or glob patterns of such folders.
        settings: other keys of the command: `source`, `reference`, `systems` (a list of files, or a
            dict from names to files), `languages`, `lengths`, `edges`, `short`, `long`, `metadata`,
            `document`, `domain`, `scores`, `resamples`.

    Returns:
        An object with four DataFrames. `scores` is like the result of `nmt.scores`. `curves` holds
        scores by length; `nmt.report.retention.CURVES` describes its columns. `retention` holds
        statistics of the curves: a row per score, run, `domain` and `statistic`. `differences` has a row
        per pair of runs, score and length bucket, with `delta`, its confidence interval and p-values.

    Raises:
        InputError: if there is no readable run or system.
        TypeError: for an unknown key.
    """
    from nmt.config.commands import CompareConfig
    from nmt.report.comparison import build_comparison
    from nmt.report.notebook import NotebookComparison

    config = CompareConfig(runs=list(map(str, as_list(runs))), **settings)
    return NotebookComparison.of(build_comparison(config))


def plot_alignment(
    result: ScoredSentence, file: str | Path | None = None, title: str = ""
) -> Figure:
    """Draws the attention of one sentence like the paper's Figure 3, with the source words at the top.

    Args:
        result: returned by `Model.translate` or `Model.score`.
        file: .png, .svg or .pdf file to save the figure to; None: the figure is not saved.
        title: title of the figure; if empty, the title is the translation.

    Raises:
        ValueError: if the model has no attention, or the sentence is empty.
    """
    from nmt.report.heatmap import heatmap_figure

    if result.weights is None:
        raise ValueError("plot_alignment: this result has no attention weights")
    return _saved(heatmap_figure(result.row(1), title or result.text), file)


def plot_by_length(
    comparison: Comparison, test_set: str | None = None, file: str | Path | None = None
) -> Figure:
    """Draws BLEU by sentence length, like the paper's Figure 2.

    Runs that differ only in their seed share a curve. With more than eight curves, each panel shows one
    curve with its confidence band, and the other curves in grey.

    Args:
        comparison: returned by `nmt.compare`.
        test_set: name of a test set; None: the first set of `comparison.sets`.
        file: .png, .svg or .pdf file to save the figure to; None: the figure is not saved.
    """
    from nmt.report.figures import curves_figure

    return _saved(curves_figure(comparison, test_set or comparison.sets[0]), file)


def _saved(figure: Figure, file: str | Path | None) -> Figure:
    from nmt.report.style import save_figure

    if file is not None:
        path = Path(file)
        save_figure(figure, path.with_suffix(""), [path.suffix.removeprefix(".")])
    return figure
