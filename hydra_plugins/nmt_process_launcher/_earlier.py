"""What a sweep folder already holds, when a sweep is started again in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml
from hydra.core.override_parser.overrides_parser import OverridesParser

RESUME = "resume"


def signature(overrides: Sequence[str]) -> tuple[str, ...]:
    """What a job is known by: its overrides as Hydra reads them, in any order.

    `resume` is left out, since it says how a job is started and not which one it is. Comparing
    parsed values makes `lr=1e-3` and `lr=0.001`, or `name=a` and `name='a'`, the same job.
    """
    parsed = OverridesParser.create().parse_overrides(list(overrides))
    return tuple(
        sorted(
            f"{override.get_key_element()}={override.value()!r}"
            for override in parsed
            if override.key_or_group != RESUME
        )
    )


@dataclass(frozen=True)
class Earlier:
    """A job that an earlier start of the sweep has left."""

    folder: Path
    signature: tuple[str, ...]
    finished: bool


def find_earlier(sweep: Path, output_subdir: str | None, results: str) -> list[Earlier]:
    """The jobs that lie in a sweep folder, in the order of their folders' names.

    Args:
        sweep: the sweep's folder; it need not exist.
        output_subdir: where Hydra keeps a job's overrides (`.hydra`); without it none is found.
        results: name of the file that a finished job has written.
    """
    if output_subdir is None or not sweep.is_dir():
        return []
    found = []
    for file in sorted(sweep.glob(f"**/{output_subdir}/overrides.yaml")):
        folder = file.parents[len(Path(output_subdir).parts)]
        if folder == sweep:
            continue
        try:
            overrides = yaml.safe_load(file.read_text(encoding="utf-8")) or []
            known = signature([str(override) for override in overrides])
        except Exception:  # a file cut short by a crash: the job counts as never started
            continue
        found.append(Earlier(folder, known, (folder / results).is_file()))
    return found
