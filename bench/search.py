"""What BEAM search finds, beside the heuristic: ``python -m bench search``.

From the empty list of actions it is to reach what the heuristic plans for a softmax, attention, a concatenation and a
product; from the heuristic's list it is to find faster kernels of ResNet-50. Programs that are compared run in turns.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tg_codegen import ProgramSpec, SearchState, compile_ast
from tg_lazy import LazyOp, Ops
from tg_runtime import Buffer, Device
from tg_runtime.device.compiled import Compiled
from tg_runtime.host.processor import core_count
from tg_runtime.kernels import beam
from tg_runtime.kernels.comparison import pattern
from tg_runtime.kernels.runner import CompiledRunner
from tg_shape import upper
from tinytg import Tensor

from .libraries import OURS, open_library
from .workloads.models import resnet, resnet_arrays

LEAST_FROM_NOTHING = 0.95
"""Of the heuristic's speed, which a search that begins with nothing is to reach."""
LEAST_GAIN = 1.05
"""Times the heuristic's speed, which a search is to find for some kernels of ResNet-50."""
GAINS = 3
"""Kernels of ResNet-50 for which it is to find so much."""
KERNELS = 16
"""Kernels of ResNet-50 that are searched at most, those that have most to gain first: until so many gained."""
WIDTH = 3
"""Of a search from the heuristic's list."""
EACH_S = 40.0
"""After which such a search ends with the best so far, when a program has been measured."""
TURNS = 15
"""In which a kernel's time is measured for the order in which kernels are searched."""
MOST_TURNS = 100
TURNS_S = 4.0
"""For which what was found and what is planned run in turns, unless that is fewer turns, or more than above."""
SECONDS = 580.0
"""For all searches that begin with nothing: what one leaves is for those after it.

A search ends with the best so far, at the next program that it measures: a little later.
"""


@dataclass(frozen=True, slots=True)
class Found:
    """What came of a search.

    Attributes:
      ratio: the heuristic's time by that of what was found, the median of the turns in which both ran.
      seconds: that the search took.
      spec: what was found.
    """

    ratio: float
    seconds: float
    spec: ProgramSpec


def kernels(tensor: Tensor) -> list[LazyOp]:
    """The kernels that compute a tensor, each once."""
    steps, _ = tensor.schedule_with_vars()
    return list(dict.fromkeys(step.ast for step in steps if step.ast.op is Ops.SINK))


def empty(*shape: int) -> Tensor:
    """A tensor in memory, of whatever is there."""
    return Tensor.empty(*shape, device="CPU").realize()


def workloads() -> dict[str, LazyOp]:
    """The kernels that a search begins with nothing for."""
    q, k, v = (empty(1, 4, 4096, 64) for _ in range(3))
    made = {
        "softmax 4096x4096": empty(4096, 4096).softmax(-1),
        "concatenation 2048x(1024+512+512)": empty(2048, 1024).cat(empty(2048, 512), empty(2048, 512), dim=1),
        "product 1024": empty(1024, 1024) @ empty(1024, 1024),
        "attention 1x4x4096x64": q.scaled_dot_product_attention(k, v),
    }
    return {name: kernels(tensor)[0] for name, tensor in made.items()}


def runner(device: Compiled, spec: ProgramSpec, buffers: Sequence[Buffer]) -> Callable[[], float]:
    """Runs a program twice, and says how many seconds the second run took: it finds its own data in the caches."""
    program = CompiledRunner(spec, device, cached=False)

    def run() -> float:
        program(buffers, {}, wait=True)
        seconds = program(buffers, {}, wait=True)
        assert seconds is not None
        return seconds

    return run


def filled(device: Compiled, ast: LazyOp) -> list[Buffer]:
    """Memory for a kernel's arguments, of small numbers: denormal ones, which may happen to be there, take longer."""
    buffers = [Buffer(device.device, arg.size, arg.dtype).allocate() for arg in ast.arg if not arg.internal]
    for slot, buffer in enumerate(buffers):
        buffer.copyin(memoryview(pattern(buffer.dtype, buffer.size, signed=True, seed=slot)))
    return buffers


def search(
    device: Compiled, ast: LazyOp, planned: bool, width: int = 1, most_s: float = float("inf")
) -> Found:
    """Searches, for ``most_s`` seconds about, and measures what is found beside what the heuristic plans, in turns."""
    renderer = device.renderer
    assert renderer is not None
    begin = time.monotonic()

    def stop(step: SearchState) -> None:
        if time.monotonic() - begin > most_s:
            raise KeyboardInterrupt  # which a search takes for a wish to have what it found so far

    spec = beam.searched(device, renderer, ast, width, planned=planned, progress=stop)
    seconds = time.monotonic() - begin
    buffers = filled(device, ast)
    mine, theirs = (runner(device, s, buffers) for s in (spec, compile_ast(ast, renderer)))
    end, times = time.monotonic() + TURNS_S, list[tuple[float, float]]()
    while len(times) < TURNS or (len(times) < MOST_TURNS and time.monotonic() < end):
        times.append((mine(), theirs()))
    return Found(beam.ratio([t for _, t in times], [m for m, _ in times]), seconds, spec)


def slow(device: Compiled, asts: Sequence[LazyOp]) -> list[LazyOp]:
    """The kernels that lose most time as they are planned: beside one that computes as fast as the best of them."""
    renderer = device.renderer
    assert renderer is not None
    takes: dict[LazyOp, tuple[float, int]] = {}
    for ast in asts:
        buffers = filled(device, ast)
        spec = compile_ast(ast, renderer)
        run = runner(device, spec, buffers)
        takes[ast] = min(run() for _ in range(TURNS)), upper(spec.estimates.flops)
    rate = max((flops / seconds for seconds, flops in takes.values()), default=0.0)
    return sorted(takes, key=lambda ast: takes[ast][1] / rate - takes[ast][0])[:KERNELS]


def from_nothing(device: Compiled, say: Callable[[str], None], only: Sequence[str]) -> list[str]:
    """Searches that begin with the plain kernel; the names of workloads for which they find less than they are to."""
    short, spent = [], 0.0
    asked = {name: ast for name, ast in workloads().items() if chosen(name, only)}
    for number, (name, ast) in enumerate(asked.items()):
        found = search(device, ast, planned=False, most_s=(SECONDS - spent) / (len(asked) - number))
        spent += found.seconds
        say(f"from nothing: {name}: {found.ratio:.2f} of the heuristic's speed after {found.seconds:.0f} s")
        say(f"  {'; '.join(found.spec.actions)}")
        if found.ratio < LEAST_FROM_NOTHING:
            short.append(name)
    say(f"{spent:.0f} s in all; below {LEAST_FROM_NOTHING}: {', '.join(short) or 'none'}")
    return short


def from_plans(device: Compiled, say: Callable[[str], None], only: Sequence[str]) -> int:
    """Searches that begin with the heuristic's list; how many kernels of ResNet-50 gain as much as they are to."""
    library: Any = open_library(OURS, core_count())
    renderer = device.renderer
    assert renderer is not None
    tensors = [library.array(values) for values in resnet_arrays()]
    asts = [ast for ast in kernels(resnet(library, *tensors)) if chosen(compile_ast(ast, renderer).name, only)]
    gains = 0
    for number, ast in enumerate(slow(device, asts), 1):
        found = search(device, ast, planned=True, width=WIDTH, most_s=EACH_S)
        gains += found.ratio >= LEAST_GAIN
        say(f"from the heuristic's list: kernel {number} of ResNet-50, {found.spec.name}: {found.ratio:.2f} times as "
            f"fast after {found.seconds:.0f} s")  # fmt: skip
        say(f"  {'; '.join(found.spec.actions)}")
        if gains == GAINS and not only:
            break
    say(f"{gains} kernels of ResNet-50 by {LEAST_GAIN - 1:.0%} or more")
    return gains


def chosen(name: str, only: Sequence[str]) -> bool:
    """Whether a workload or a kernel is asked for, by a part of its name; all are where nothing is."""
    return not only or any(part in name for part in only)


def main(say: Callable[[str], None], only: Sequence[str] = ()) -> int:
    """Searches and prints; returns 1 where a search finds less than it is to.

    Args:
      say: prints a line.
      only: parts of the names of workloads and kernels; few kernels need not have as many gains.
    """
    device = Device["CPU"]
    short = from_nothing(device, say, only)
    gains = from_plans(device, say, only)
    return int(bool(short) or (gains < GAINS and not only))
