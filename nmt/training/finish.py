"""The end of a run: figures, page, W&B and, last of all, results.json."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hydra.core.hydra_config import HydraConfig

from nmt.config import Config
from nmt.config.schema import scoring_of, to_containers
from nmt.evaluation import results
from nmt.evaluation.scores import choose_scores
from nmt.evaluation.table import score_table, write_scores
from nmt.inference.live_export import live_model
from nmt.inference.model import Model
from nmt.models.checkpoint import Checkpoint
from nmt.report.comparison import compare_runs
from nmt.report.figures import draw_run
from nmt.report.live_file import FILE, write_live
from nmt.report.loggers import log_run
from nmt.report.page import build_page
from nmt.report.page.live import LIMIT, fewest_bytes
from nmt.report.runs import FinishedRun
from nmt.report.tables import length_curve
from nmt.training.run import Run
from nmt.utils.commands import command_line, override_key
from nmt.utils.devices import name_of, processor
from nmt.utils.environment import rank
from nmt.utils.files import NO_ROOM, sha256
from nmt.utils.progress import Stage, timed

log = logging.getLogger(__name__)


@dataclass
class Outcome:
    """The entries of results.json on the training: `train`, `valid`, `history`, `sources`."""

    train: dict[str, Any]
    valid: dict[str, Any] = field(default_factory=dict)
    history: list[dict[str, Any]] = field(default_factory=list)
    sources: dict[str, Any] | None = None

    @classmethod
    def of_checkpoint(cls, run: Run) -> Outcome:
        """The outcome stored in the checkpoint that a run evaluates."""
        checkpoint, trainer = run.checkpoint, run.trainer
        assert checkpoint is not None
        assert trainer is not None
        found = checkpoint.outcome
        return cls(
            train=found.get("train", {"updates": checkpoint.update}),
            valid=found.get("valid", {}),
            history=found.get("history", []),
            sources={
                **named(checkpoint),
                **({"others": [named(each) for each in run.others]} if run.others else {}),
                "device": name_of(trainer.strategy.root_device),
                "devices": trainer.world_size,
                "precision": str(trainer.precision),
            },
        )


def named(checkpoint: Checkpoint) -> dict[str, Any]:
    """A checkpoint by its file and its content."""
    return {"checkpoint": str(checkpoint.path.resolve()), "sha256": sha256(checkpoint.path)}


def finish(run: Run, trained: Model, scores: Sequence[Mapping[str, Any]], outcome: Outcome) -> None:
    """Writes the results of a run with a model of this program; on rank 0.

    Args:
        run: the run.
        trained: what was tested.
        scores: rows of `scores.csv`.
        outcome: of its training.
    """
    if rank():
        return
    config = run.config
    scoring = scoring_of(config.model) or "none"
    parameters = sum(parameter.numel() for parameter in trained.network.parameters())
    export_live(run, trained, parameters)
    publish(
        run,
        outcome,
        scores,
        title=config.model.title,
        model=config.model._target_.rpartition(".")[2],
        scoring=scoring.rpartition(".")[2],
        parameters=parameters,
        config=to_containers(config),
    )


def export_live(run: Run, trained: Model, parameters: int) -> None:
    """Writes the model as pages take it, if `report.live` asks for it and a page can run it."""
    path, wanted = run.folder.path / FILE, run.config.report.live
    path.unlink(missing_ok=True)  # of an earlier end of this run
    if wanted is False or (wanted == "auto" and fewest_bytes(parameters) > LIMIT):
        return
    exported = live_model(trained)
    if isinstance(exported, str):
        log.info("no model in the page: %s", exported)
        return
    try:
        write_live(run.folder.path, exported)
    except OSError as error:
        log.warning("%s cannot be written: %s; the page is without it", path.name, error.strerror)


def publish(
    run: Run, outcome: Outcome, scores: Sequence[Mapping[str, Any]], **described: Any
) -> None:
    """Figures, page, W&B and, last of all, results.json: where it exists the run is finished.

    Args:
        run: the run.
        outcome: of its training.
        scores: rows of `scores.csv`.
        described: further keys of results.json.
    """
    config, folder = run.config, run.folder
    shown = config.trainer["enable_progress_bar"]
    chosen = choose_scores(config.evaluation.scores, language=config.data.languages[1])
    table = score_table(scores)
    known = set(table["score"])
    content = results.as_json(
        dict(
            name=config.name,
            experiment=config.experiment,
            regime=config.regime,
            max_length=config.data.max_length,
            seed=config.seed,
            overrides=list(run.typed),
            command=typed_command(config, run.typed),
            train=outcome.train,
            valid=outcome.valid,
            history=outcome.history,
            commit=run.commit,
            processor=processor(),
            text=run.text,
            scores={each.key: each.description() for each in chosen if each.key in known},
            versions=results.versions(),
            **({} if outcome.sources is None else {"sources": outcome.sources}),
            **described,
        )
    )
    write_scores(folder.path, table)
    finished = FinishedRun(config.name, content, folder.path)
    figures: list[Path] = []
    page: Path | None = None
    # results are written even if a figure or the page fails
    with left_out("figures"), timed("figures"):
        figures = draw_run(finished, config.report, shown)
    title, making = f"{config.name} on {config.data.title}", f"making {folder.page.name}"
    with left_out(folder.page.name), timed("page"), Stage(making, shown=shown):
        page = build_page(compare_runs([finished]), folder.page, config.report, title=title)
    with Stage("logging the test", shown=shown):
        log_run(run.loggers, finished, figures, page)
    results.write(folder.path, content)
    made = ["results", *(["figures"] if figures else []), *([folder.page.name] if page else [])]
    if curve := length_curve(finished):
        log.info("%s", curve)
    log.info("%s: %s", ", ".join(made), folder.path)


@contextlib.contextmanager
def left_out(what: str) -> Iterator[None]:
    """Logs an error inside, and continues without what was to be made there."""
    try:
        yield
    except ModuleNotFoundError as missing:
        log.warning("%s is left out: %s is not installed", what, missing.name)
    except Exception as error:
        full = full_disk(error)
        if full is None:
            log.exception("%s: not all could be made; the run continues without them", what)
        else:
            log.error("%s: %s; the run continues without all of them", what, full.strerror)


def full_disk(error: BaseException | None) -> OSError | None:
    """The error of a full disk in the chain of causes of an error, or None."""
    while error is not None and not (isinstance(error, OSError) and error.errno in NO_ROOM):
        error = error.__cause__ or error.__context__
    return error


def typed_command(config: Config, typed: Sequence[str]) -> str:
    """The command that repeats a run in a new folder, also of a job of a sweep or a resumed run.

    The folder and Hydra's own settings are left out, but for where Hydra finds the user's options.
    """
    hydra = HydraConfig.get()
    searched = [word for word in hydra.overrides.hydra if override_key(word) == "hydra.searchpath"]
    for source in hydra.runtime.config_sources:
        if source.provider == "command-line":
            folder = Path(source.path)
            here = folder.is_relative_to(hydra.runtime.cwd)
            own = folder.relative_to(hydra.runtime.cwd) if here else folder
            searched += ["--config-dir", str(own)]
    return command_line(str(hydra.job.name), [*searched, *typed])
