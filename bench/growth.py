"""How long a graph of many nodes takes to schedule and to lower.

    python -m bench.growth NODES

The graph is a tower of layers, each a product with a small matrix, a bias and a rectifier; equal kernels are compiled
once. Nothing is run.
"""

from __future__ import annotations

import json
import sys
import time

from tg_lazy import LazyBuffer
from tg_runtime import GlobalCounters, lower
from tinytg import Tensor

WIDTH = 16


def count(*roots: LazyBuffer) -> int:
    """How many nodes a graph has."""
    seen: set[LazyBuffer] = set()
    stack = list(roots)
    while stack:
        node = stack.pop()
        if node not in seen:
            seen.add(node)
            stack.extend(node.srcs)
            if node.base is not node:
                stack.append(node.base)
    return len(seen)


def tower(layers: int) -> Tensor:
    """A network of many layers, which share their weights."""
    weight = Tensor.ones(WIDTH, WIDTH).contiguous().realize()
    bias = Tensor.ones(WIDTH).contiguous().realize()
    x = Tensor.ones(WIDTH, WIDTH).contiguous().realize()
    for _ in range(layers):
        x = (x @ weight + bias).relu()
    return x


def main() -> int:
    wanted = int(sys.argv[1])
    # what is loaded and compiled on first use is no part of the growth
    for item in tower(20).schedule():
        lower(item)
    each = count(tower(20).lazydata) - count(tower(10).lazydata)
    layers = max(1, wanted * 10 // each)
    start = time.process_time()
    out = tower(layers)
    built = time.process_time()
    items = out.schedule()
    scheduled = time.process_time()
    GlobalCounters.reset()
    for item in items:
        lower(item)
    lowered = time.process_time()
    print(json.dumps({
        "wanted": wanted, "nodes": count(out.lazydata), "kernels": len(items), "build_s": built - start,
        "schedule_s": scheduled - built, "lower_s": lowered - scheduled, "compiled": GlobalCounters.compile_count,
        "compile_s": GlobalCounters.compile_time_s,
    }))  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main())
