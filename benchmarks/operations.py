"""Measures the time of each PyTorch operation in an update and in a search."""

from __future__ import annotations

import argparse
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from benchmarks.work import (
    POOL,
    PRODUCTS,
    Line,
    Net,
    Size,
    Trainer,
    pool,
    rectangle,
    search,
    seconds,
)

SHOWN = 0.01  # an operation is printed if it takes more than this share of the time
NOTHING_MOVED = (  # operations that read and write no bytes
    "_unsafe_view",
    "empty",
    "empty_like",
    "new_empty",
    "empty_strided",
    "promote_types",
)
COPIED = 2**26  # number of elements that are copied to measure memory bandwidth


class Operations(TorchDispatchMode):
    """Records the calls and seconds of each operation in `work`, and the bytes that it reads or writes."""

    def __init__(self, work: Callable[[], object], threads: int) -> None:
        super().__init__()
        self.clock = time.process_time if threads == 1 else time.perf_counter
        self.found: dict[str, list[float]] = defaultdict(lambda: [0, 0.0, 0])
        with self:
            work()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        start = self.clock()
        result = func(*args, **(kwargs or {}))
        took = self.clock() - start
        name = func.overloadpacket.__name__.rstrip("_")
        returned = [part.alias_info for part in func._schema.returns]
        is_view = name in NOTHING_MOVED or any(part and not part.is_write for part in returned)
        entry = self.found["views" if is_view else name]
        entry[0] += 1
        entry[1] += took
        if not is_view:
            tensors = [x for x in tree_leaves((args, kwargs, result)) if isinstance(x, Tensor)]
            entry[2] += sum({id(x): x.numel() * x.element_size() for x in tensors}.values())
        return result


def operations(size: Size, args: argparse.Namespace) -> Iterable[Line]:
    """Measures each operation of a fused update and of searches with a beam of 12.

    The last line of a workload compares its time with a lower bound: the time of the matrix products,
    plus the time of a memory copy that reads and writes as many bytes as all other operations. The time outside
    of operations is spent in Python and autograd.
    """
    words = pool(size)[POOL // 2]
    net = Net(size, "fused").eval()
    works: dict[str, Callable[[], object]] = {}
    for bf16 in (False, True):
        precision = "bf16" if bf16 else "float32"
        works[f"update {precision}"] = partial(
            Trainer(Net(size, "fused"), size, bf16, "cpu").update, words
        )
        for sentences in args.sentences:
            batch = rectangle(size, sentences, round(size.words) + 1)
            works[f"beam 12 of {sentences} {precision}"] = partial(search, net, batch, 12, bf16)
    source, target = torch.ones(COPIED), torch.ones(COPIED)
    copy = [seconds(partial(target.copy_, source), args.threads) for _ in range(1 + args.rounds)]
    bytes_per_s = 8 * COPIED / min(copy)
    for version, work in works.items():
        for _ in range(2):
            work()
        whole, noted = [], []
        for _ in range(args.rounds):
            whole.append(seconds(work, args.threads))
            noted.append(Operations(work, args.threads).found)
        ms = 1e3 * statistics.median(whole)
        found = {
            name: {
                "calls": calls,
                "ms": 1e3 * statistics.median(each[name][1] for each in noted),
                "mib": bytes_ / 2**20,
            }
            for name, (calls, _, bytes_) in noted[0].items()
        }
        for name in sorted(found, key=lambda each: -found[each]["ms"]):
            if found[name]["ms"] > SHOWN * ms:
                yield {"version": version, "operation": name, **found[name]}
        products = sum(found[name]["ms"] for name in found if name in PRODUCTS)
        traffic = sum(found[name]["mib"] for name in found if name not in PRODUCTS)
        moved = 1e3 * traffic * 2**20 / bytes_per_s
        yield {
            "version": version,
            "ms": ms,
            "calls": sum(each["calls"] for each in found.values()),
            "operations_ms": sum(each["ms"] for each in found.values()),
            "products_ms": products,
            "other_mib": traffic,
            "other_at_speed_of_copy_ms": moved,
            "over_limit": ms / (products + moved),
        }
