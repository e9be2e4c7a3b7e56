"""Prints measurements as lines of JSON."""

from __future__ import annotations

import json
from typing import Any

Line = dict[str, Any]


def print_line(line: Line) -> None:
    print(json.dumps(rounded(line)), flush=True)


def rounded(value: Any) -> Any:
    """Rounds every float to four digits, more than a measurement is accurate."""
    if isinstance(value, float):
        return float(f"{value:.4g}") if abs(value) < float("inf") else str(value)
    if isinstance(value, dict):
        return {str(key): rounded(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(inner) for inner in value]
    return value
