"""Lineage of W&B runs: which checkpoints and runs a run was made from.

The configuration of a later run names its sources, offline too; online W&B draws the line between a
run and the artifacts that it used, as well.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from nmt.report.runs import FinishedRun
from nmt.report.wandb.artifacts import TYPE, artifact_name
from nmt.report.wandb.panels import log_page, warn_on_error

log = logging.getLogger(__name__)

SOURCES = "sources"  # key of the configuration
COMPARISON = "comparison/page"


def run_path(logged: Mapping[str, Any]) -> str:
    """Address of a W&B run, `entity/project/id`; without an entity it is the default one."""
    return "/".join(str(logged[key]) for key in ("entity", "project", "run") if logged[key])


def artifact_path(logged: Mapping[str, Any], alias: str) -> str:
    """Address of a checkpoint of a W&B run, `entity/project/model-id:alias`."""
    folder = "/".join(str(logged[key]) for key in ("entity", "project") if logged[key])
    return f"{folder}/{artifact_name(logged['run'])}:{alias}"


def log_sources(run: Any, sources: list[dict[str, Any]]) -> None:
    """Stores what a run was made of in its configuration; online W&B draws the line between them, too.

    Args:
        run: the W&B run.
        sources: of each trained model `run` and `artifact` (addresses, or None) and whatever else is
            known of it; `sha256` tells whether the artifact is the file that was read.
    """
    with warn_on_error("logging the sources"):
        run.config.update({SOURCES: sources}, allow_val_change=True)
    for source in sources:
        if source.get("artifact") and not run.offline:
            with warn_on_error(f"using {source['artifact']}"):
                import wandb

                artifact = wandb.Api().artifact(source["artifact"], type=TYPE)
                sha256 = source.get("sha256")
                if sha256 in (None, artifact.metadata.get("sha256")):
                    run.use_artifact(artifact)
                else:
                    log.warning("W&B: %s is another file than was read", source["artifact"])


def sources_of(runs: Sequence[FinishedRun], entity: str, project: str) -> list[dict[str, Any]]:
    """Each run that is compared: its label, its address in W&B, and the checkpoint that was tested.

    An ensemble has an entry for each member.

    Args:
        runs: with a configuration.
        entity, project: where W&B has the runs, whatever they were started with.
    """
    found = []
    for run in runs:
        known = wandb_id(run)
        place = {"entity": entity, "project": project, "run": known}
        head = {"label": run.label, "run": run_path(place) if known else None}
        text = (run.results.get("text") or {}).get("training")
        used = run.results.get("sources") or {}
        tested = [
            ((each.get("wandb") or {}).get("artifact"), each.get("sha256"))
            for each in (used, *used.get("others", ()))
        ]
        if not used and known and (run.config.get("logger") or {}).get("log_checkpoints"):
            tested = [(artifact_path(place, "best"), None)]
        found += [
            {**head, "artifact": artifact, "sha256": sha256, "text": text}
            for artifact, sha256 in tested
        ]
    return found


def log_comparison(
    entity: str, project: str, page: Path, runs: Sequence[FinishedRun], mode: str = "online"
) -> str:
    """Logs the comparison page in a W&B run of its own and returns the run's id.

    Args:
        entity, project: where in W&B.
        page: what is shown.
        runs: that it compares; they are the sources in the run's configuration.
        mode: `online` or `offline`.
    """
    import wandb

    run = wandb.init(
        entity=entity,
        project=project,
        name=f"comparison: {page.parent.resolve().name}",
        job_type="comparison",
        dir=str(page.parent),
        mode=mode,  # type: ignore[arg-type]
        reinit="create_new",
        settings=wandb.Settings(console="off", silent=True),
    )
    try:
        log_sources(run, sources_of(runs, entity, project))
        log_page(run, page, COMPARISON)
    finally:
        run.finish()
    return str(run.id)


def wandb_id(run: FinishedRun) -> str | None:
    """The id that a run logged to W&B under; none where it did not."""
    file = run.folder / "wandb" / "id" if run.folder else None
    return file.read_text().strip() if file and file.is_file() else None
