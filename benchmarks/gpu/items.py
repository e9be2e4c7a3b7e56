"""The items, in the order in which they matter: what is right, what has a speed to reach, the rest."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.gpu.findings import Findings
from benchmarks.gpu.setting import Setting


@dataclass(frozen=True)
class Item:
    """One thing to settle.

    Attributes:
        name: by which it is asked for.
        place: `module:function` of this package; called with `Setting` and `Findings`.
        seconds: after which its process is ended.
    """

    name: str
    place: str
    seconds: float

    def function(self) -> Callable[[Setting, Findings], None]:
        """What is called."""
        module, _, name = self.place.partition(":")
        found: Callable[[Setting, Findings], None] = getattr(
            importlib.import_module(f"benchmarks.gpu.{module}"), name
        )
        return found


ITEMS = {
    item.name: item
    for item in (
        Item("machine", "machine:machine", 60),
        Item("kernels", "kernels:kernels", 90),
        Item("gradients", "gradients:gradients", 60),
        Item("graphs", "recorded:graphs", 60),
        Item("two_shapes", "recorded:two_shapes", 60),
        Item("shapes", "speed:shapes", 120),
        Item("trainer", "trainer:throughput", 120),
        Item("search", "search:search", 120),
        Item("sync", "trainer:sync", 60),
        Item("repeat", "updates:repeat", 60),
        Item("eviction", "recorded:eviction", 60),
        Item("accumulation", "updates:accumulation", 60),
        Item("out_of_memory", "recorded:out_of_memory", 60),
        Item("resume", "runs:resume", 120),
        Item("ranks", "runs:ranks", 120),
        Item("parts", "speed:parts", 60),
        Item("profile", "speed:profile", 60),
        Item("memory", "memory:memory", 60),
    )
}
