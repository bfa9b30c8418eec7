"""Where the processor time of a workload's first runs goes, pass by pass.

    python -m bench.passes WORKLOAD

The first run schedules and compiles, the second one records. The functions that are the passes' entries are wrapped
here, from outside; a pass that another one calls counts for itself alone. The caches on disk should be empty: the
environment says where they are.
"""

from __future__ import annotations

import functools
import importlib
import json
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from .growth import count
from .libraries import OURS, open_library
from .workloads import WORKLOADS, language

TRACED = ("ResNet-50, batch 1", language.NAME, "decode 135M, fp32")
BUILDING, RUNNING, COUNTING = "building the graph", "running", "counting its nodes"
PASSES = {
    "differentiating": ("tg_frontend.tensor:Tensor.backward",),
    "recognising graphs": (
        "tg_lazy.scheduler.template:structure", "tg_lazy.scheduler.template:recall",
        "tg_lazy.scheduler.template:remember",
    ),
    "scheduling and fusion": ("tg_lazy.scheduler.schedule:schedule", "tg_lazy.scheduler.schedule:recognise"),
    "forming kernels": ("tg_lazy.kernel.steps:build_kernel", "tg_lazy.kernel.steps:build_row_kernel"),
    "keys, cache on disk": (
        "tg_lazy.ast.nodes:LazyOp.key", "tg_runtime.cache.diskcache:digest", "tg_runtime.cache.diskcache:get",
        "tg_runtime.cache.diskcache:put", "tg_runtime.kernels.speccache:dump",
        "tg_runtime.kernels.speccache:generator_identity",
    ),
    "lowering to loops": ("tg_codegen.nest.lower:lower",),
    "planning": (
        "tg_codegen.nest.parts:stated", "tg_codegen.plan.heuristic:heuristic", "tg_codegen.plan.draft:Draft.take",
    ),
    "emitting": ("tg_codegen.emit.kernel:emit",),
    "rewriting": ("tg_codegen.rewrite.rules.pipeline:full_rewrite",),
    "linearising": ("tg_codegen.linear.linearize:linearize",),
    "rendering": ("tg_codegen.render.llvm:LLVMRenderer.render",),
    "starting LLVM": ("tg_runtime.compilers.llvm:_binding", "tg_runtime.compilers.llvm:host"),
    "LLVM": ("tg_runtime.compilers.llvm:LLVMCompiler.compile",),
    "loading": ("tg_runtime.kernels.runner:CompiledRunner.__init__",),
    "planning memory, recording": ("tg_frontend.jit.record:Record.__init__",),
    RUNNING: ("tg_runtime.kernels.runner:CompiledRunner.__call__", "tg_runtime.backends.cpu.graph:CPUGraph.__call__"),
}  # fmt: skip
"""What is called where a pass begins. What is in none of them is the frontend's."""


class Meter:
    """Adds up the processor time of passes, of each thread by itself."""

    def __init__(self) -> None:
        self.spent: dict[str, float] = {}
        self._mine = threading.local()

    @contextmanager
    def inside(self, name: str) -> Iterator[None]:
        """A block whose time is the pass's, but for the passes that it calls."""
        stack: list[str] = self._mine.__dict__.setdefault("stack", [])
        self._turn(stack)
        stack.append(name)
        try:
            yield
        finally:
            self._turn(stack)
            stack.pop()

    def _turn(self, stack: list[str]) -> None:
        now = time.thread_time()
        if stack:
            self.spent[stack[-1]] = self.spent.get(stack[-1], 0.0) + now - self._mine.since
        self._mine.since = now

    def wrapped(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """A function that is an entry of a pass."""

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            with self.inside(name):
                return function(*args, **kwargs)

        return call

    def watch(self, name: str, entry: str) -> None:
        """Wraps an entry, ``module:function`` or ``module:class.method``, wherever a module of ours refers to it."""
        module, _, path = entry.partition(":")
        holder: Any = importlib.import_module(module)
        *outer, last = path.split(".")
        for part in outer:
            holder = getattr(holder, part)
        found = vars(holder)[last]
        if isinstance(found, property):
            assert found.fget is not None
            setattr(holder, last, property(self.wrapped(name, found.fget)))
        elif outer:
            setattr(holder, last, self.wrapped(name, found))
        else:
            replace(found, self.wrapped(name, found))


def replace(old: Callable[..., Any], new: Callable[..., Any]) -> None:
    """Puts a function in another one's place in every module of ours."""
    for module in [m for name, m in sys.modules.items() if name.startswith(("tg_", "tinytg"))]:
        for key, value in list(vars(module).items()):
            if value is old:
                setattr(module, key, new)


def main() -> int:
    import tg_runtime
    from tg_runtime import GlobalCounters

    case = WORKLOADS[sys.argv[1]].build(open_library(OURS, 1))
    importlib.import_module("tg_runtime.kernels.generate")  # so that whoever refers to an entry is there
    meter = Meter()
    for name, entries in PASSES.items():
        for entry in entries:
            meter.watch(name, entry)
    nodes = [0]
    realize = tg_runtime.realize

    def counted(outputs: Any) -> None:
        with meter.inside(COUNTING):
            nodes[0] += count(*outputs)
        realize(outputs)

    replace(realize, counted)
    runs = []
    for _ in range(2):
        meter.spent.clear()
        nodes[0] = 0
        before = GlobalCounters.kernel_count, GlobalCounters.compile_count
        wall, used = time.perf_counter(), time.process_time()
        with meter.inside(BUILDING):
            case.run()
        used, wall = time.process_time() - used, time.perf_counter() - wall
        counting = meter.spent.pop(COUNTING, 0.0)
        used, wall = used - counting, wall - counting
        # what no pass had was used by the threads that run kernels
        meter.spent[RUNNING] = meter.spent.get(RUNNING, 0.0) + max(0.0, used - sum(meter.spent.values()))
        passes = {name: meter.spent.get(name, 0.0) for name in (BUILDING, *PASSES)}
        kernels, compiled = GlobalCounters.kernel_count - before[0], GlobalCounters.compile_count - before[1]
        runs.append({
            "wall_s": wall, "cpu_s": used, "passes": passes, "nodes": nodes[0], "kernels": kernels,
            "compiled": compiled,
        })  # fmt: skip
    print(json.dumps({"workload": sys.argv[1], "runs": runs}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
