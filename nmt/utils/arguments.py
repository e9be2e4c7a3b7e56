"""Arguments of the functions of `import nmt`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any


def as_list(values: Any) -> list[Any]:
    """Several values as a list; a single text or path as a list of one.

    >>> as_list("run"), as_list(("a", "b"))
    (['run'], ['a', 'b'])
    """
    single = isinstance(values, str | Path) or not isinstance(values, Iterable)
    return [values] if single else list(values)
