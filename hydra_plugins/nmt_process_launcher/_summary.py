"""What a sweep says at its end."""

from __future__ import annotations

from collections.abc import Sequence

from hydra_plugins.nmt_process_launcher._job import Job, State
from hydra_plugins.nmt_process_launcher._pool import duration


def summary(jobs: Sequence[Job], sweep: str, command: str) -> str:
    """A table of the jobs; below it those that are not done, where their output lies, how to resume.

    Args:
        jobs: the jobs of the sweep, in order.
        sweep: the sweep's folder.
        command: what starts the sweep again in this folder.
    """
    rows = [("job", "status", "time", "overrides")]
    rows += [
        (
            str(job.number),
            job.outcome,
            duration(job.seconds) if job.seconds else "",
            " ".join(job.overrides),
        )
        for job in jobs
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    lines = [
        "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[3]])
        for row in rows
    ]
    done = sum(job.done for job in jobs)
    lines.append(f"{done} of {len(jobs)} jobs finished, in {sweep}")
    unfinished = [job for job in jobs if not job.done]
    if unfinished:
        started = [job for job in unfinished if job.state is not State.WAITING]
        lines += [f"job {job.number} {job.outcome}, its output: {job.console}" for job in started]
        waiting = [str(job.number) for job in unfinished if job.state is State.WAITING]
        if waiting:
            lines.append(f"not started: {', '.join(waiting)}")
        lines += ["to resume what is unfinished:", f"  {command}"]
    return "\n".join(line.rstrip() for line in lines)
