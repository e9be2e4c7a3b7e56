"""What an item has found, on disk as soon as it is found."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nmt.utils.files import write_text


@dataclass
class Findings:
    """Figures, checks and targets of one item, written to `path` at every change.

    An item is right when no check failed. A target is a speed to reach: missing one is reported,
    and is no failure.

    Attributes:
        path: where they are kept; None for nowhere.
        figures: by name.
        checks: by name: `value`, and `at_most`, `at_least` or `equals`.
        failed: names of the checks that did not hold.
        targets: as `checks`, each with `met`.
        left_out: what could not be looked at here, and why.
    """

    path: Path | None = None
    figures: dict[str, Any] = field(default_factory=dict)
    checks: dict[str, dict[str, Any]] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)
    targets: dict[str, dict[str, Any]] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)

    def note(self, **figures: Any) -> None:
        """Figures that nothing is asked of."""
        self.figures |= {name: rounded(value) for name, value in figures.items()}
        self._write()

    def check(self, name: str, value: Any, **bound: Any) -> bool:
        """Whether a value is `at_most`, `at_least` or `equals` the one given; NaN never is."""
        self.checks[name] = {"value": rounded(value), **bound}
        holds = within(value, **bound)
        if not holds:
            self.failed.append(name)
        self._write()
        return holds

    def target(self, name: str, value: float, **bound: Any) -> None:
        """A speed to reach."""
        self.targets[name] = {"value": rounded(value), **bound, "met": within(value, **bound)}
        self._write()

    def leave_out(self, name: str, reason: str) -> None:
        """What cannot be looked at on this machine."""
        self.left_out[name] = reason
        self._write()

    def content(self) -> dict[str, Any]:
        """For a line of JSON."""
        named = ("figures", "checks", "failed", "targets", "left_out")
        return {name: getattr(self, name) for name in named}

    def _write(self) -> None:
        if self.path is not None:
            write_text(self.path, json.dumps(self.content()))


def within(value: Any, **bound: Any) -> bool:
    """Whether a value keeps its one bound."""
    ((kind, limit),) = bound.items()
    if kind == "equals":
        return bool(value == limit)
    if not math.isfinite(value):
        return False
    return bool({"at_most": value <= limit, "at_least": value >= limit}[kind])


def rounded(value: Any) -> Any:
    """Four digits of every number, which is more than a measurement has."""
    if isinstance(value, float):
        return float(f"{value:.4g}") if math.isfinite(value) else str(value)
    if isinstance(value, dict):
        return {str(name): rounded(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(inner) for inner in value]
    return value
