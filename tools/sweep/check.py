"""What a sweep holds a program against: plans that fail, limits that break, shapes that are slow beside their likes."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tg_codegen import ProgramSpec, Renderer, compile_ast
from tg_codegen.emit.kernel import emit
from tg_codegen.ir.uop import UOp
from tg_codegen.ir.verify import verify
from tg_codegen.machine.limits import MAX_UOPS, accumulators, broken_limits
from tg_codegen.nest.lower import lower
from tg_codegen.nest.parts import stated
from tg_codegen.plan.draft import in_order
from tg_codegen.plan.heuristic import applied
from tg_codegen.plan.vocabulary import parse_action
from tg_codegen.rewrite.rules import rewrites
from tg_codegen.search.cycles import cycles
from tg_dtype import dtypes
from tg_lazy import Context, LazyOp
from tg_lazy.settings.collector import Uncollected

from .kernels import kernels
from .machines import CPUS, GPUS, Machine
from .programs import Case, neighbours

SLOWEST = {"cpu": 2.0, "gpu": 4.5}
"""How many times as long as for its neighbour an operation of a program may take, by the cost model; on a GPU, whose
items access several elements at once where a size divides by as many, neighbours among items serve as well."""
LAUNCH_CYCLES = 20_000.0
"""Of a kernel, beside which fewer do not count."""


WIDEST_SCALAR = 8
"""Bytes of a number that a CPU without vectors has in one register: a double, as in the D extension of RISC-V."""
ALONE_CYCLES = 1e6
"""Of a kernel that one thread may do while others are idle."""
MANY = 256
"""Outputs along one dimension that are enough for several threads, whatever tile they are computed in."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Something that is wrong with a program.

    Attributes:
      case: the program, as text.
      machine: the machine's name; ``run`` for results on this machine's CPU.
      problem: what is wrong.
    """

    case: str
    machine: str
    problem: str

    def __str__(self) -> str:
        how = f"--case '{self.case}'" + ("" if self.machine == "run" else f" --machine {self.machine}")
        return f"{self.problem.splitlines()[0]}\n    hatch run sweep {how}"


@dataclass(slots=True)
class Found:
    """What came of one program.

    Attributes:
      failures: what is wrong.
      plans: kernels that were planned.
      runs: programs that ran.
    """

    failures: list[Failure] = field(default_factory=list)
    plans: int = 0
    runs: int = 0


def stages(ast: LazyOp, spec: ProgramSpec, renderer: Renderer) -> Iterator[tuple[str, UOp | Sequence[UOp]]]:
    """A planned kernel after each stage from emission on, as far as what the renderer writes."""
    loops, walks = in_order([parse_action(action) for action in spec.actions])
    sink = emit(applied(stated(lower(ast)), loops), renderer.target)
    yield "emit", sink
    for action in walks:
        sink = action.apply(sink)
        yield str(action), sink
    yield from rewrites(sink, renderer)
    yield "linearize", spec.uops
    yield "render", renderer.written(spec.uops)


def problems(ast: LazyOp, spec: ProgramSpec, machine: Machine) -> Iterator[str]:
    """What is wrong with one kernel."""
    target = machine.renderer.target
    if spec.fallback:
        yield f"the plan failed: {spec.fallback}"
        return
    before = "lower"
    try:
        for stage, kernel in stages(ast, spec, machine.renderer):
            before = stage
            verify(kernel)
    except ValueError as error:
        yield f"after {before}: {type(error).__name__}: {error}"
    yield from broken_limits(spec, machine.renderer)
    arguments = len(spec.buffers) + (len(spec.vars) if target.grid else 0)
    if arguments > target.max_params:
        yield f"{arguments} arguments; the machine takes {target.max_params}"
    if len(spec.uops) > MAX_UOPS:
        yield f"{len(spec.uops)} nodes: no compiler likes kernels beyond {MAX_UOPS}"
    taken = accumulators(spec.uops, 4 if target.grid else max(target.vector_bytes, WIDEST_SCALAR))
    if taken > target.registers:
        yield f"{taken} registers are accumulators of one loop; there are {target.registers}"


def idle(ast: LazyOp, spec: ProgramSpec, takes: float, machine: Machine) -> Iterator[str]:
    """Whether a long kernel with many outputs leaves all threads but one idle."""
    threads = machine.renderer.target.threads
    if spec.threads < threads and takes > ALONE_CYCLES and not spec.fallback:
        most = max((int(r.extent) for r in lower(ast).roots.values() if not r.reduce), default=1)
        if most >= MANY:
            yield f"about {takes:.1e} cycles on {spec.threads} of {threads} threads, with {most} outputs in a row"


def planned(case: Case, machine: Machine, found: Found) -> float:
    """Plans a program's kernels, and says what is wrong with them. Returns about how many cycles they take."""
    total = 0.0
    for ast in kernels(case, machine):
        with Context(FALLBACK=1, DEBUG=0):
            try:
                spec = compile_ast(ast, machine.renderer)
            except Exception as error:
                found.failures.append(Failure(str(case), machine.name, f"{type(error).__name__}: {error}"))
                continue
        found.plans += 1
        found.failures += (Failure(str(case), machine.name, problem) for problem in problems(ast, spec, machine))
        takes = cycles(spec, machine.renderer.target)
        found.failures += (Failure(str(case), machine.name, problem) for problem in idle(ast, spec, takes, machine))
        total += takes + LAUNCH_CYCLES
    return total


def compared(case: Case, machine: Machine, total: float, rng: random.Random, found: Found) -> None:
    """Holds a program against itself with one size one less or more: none of them may be far slower."""
    for other in neighbours(case, rng):
        theirs = planned(other, machine, found)
        if not total or not theirs:  # the sum of one element takes no kernel
            continue
        mine, likes = total / case.work(), theirs / other.work()
        slow, fast = (case, other) if mine > likes else (other, case)
        ratio = max(mine, likes) / min(mine, likes)
        if ratio > SLOWEST[machine.renderer.target.kind]:
            found.failures.append(Failure(
                str(slow), machine.name, f"an operation takes {ratio:.1f} times as long as in {fast}"))


def checked(case: Case, machines: Iterable[Machine], seed: int) -> Found:
    """Plans a program for machines, and its neighbours for one of these."""
    found, rng, totals = Found(), random.Random(seed), {}
    with Uncollected():
        for machine in machines:
            totals[machine] = planned(case, machine, found)
        if totals and not found.failures:
            machine = rng.choice(list(totals))
            compared(case, machine, totals[machine], rng, found)
    UOp.sweep()
    return found


def some_machines(rng: random.Random, dtype: str) -> list[Machine]:
    """Two CPUs whose vectors differ in width, and two languages for GPUs that have the dtype."""
    widths: dict[int, list[Machine]] = {}
    for machine in CPUS:
        widths.setdefault(machine.renderer.target.vector_bytes, []).append(machine)
    cpus = [rng.choice(many) for many in rng.sample(list(widths.values()), 2)]
    return [*cpus, *rng.sample([m for m in GPUS if has_dtype(m, dtype)], 2)]


def has_dtype(machine: Machine, dtype: str) -> bool:
    """Whether a machine's language has a dtype."""
    return machine.device == "CPU" or machine.renderer.supports_dtype(dtypes.from_name(dtype))


def ran(case: Case, seed: int) -> Found:
    """Runs a program on this machine's CPU, and compares its results with numpy's."""
    from tinytg import Tensor

    found, rng = Found(runs=1), np.random.default_rng(seed)
    places, arrays = case.places(), list[np.ndarray[Any, Any]]()
    for number, shape in enumerate(case.inputs() or ()):
        below = places.get(number)
        arrays.append(
            rng.standard_normal(shape, np.float32) if below is None else rng.integers(0, below, shape, np.int32))
    try:
        with Context(FALLBACK=0):
            got = case.of.compute(case.variant, case.sizes, [Tensor(a, device="CPU").realize() for a in arrays])
            results: list[Any] = [result.numpy() for result in got]
    except Exception as error:
        found.failures.append(Failure(str(case), "run", f"{type(error).__name__}: {error}"))
        return found
    exact = [a if number in places else a.astype(np.float64) for number, a in enumerate(arrays)]
    want = case.of.oracle(case.variant, case.sizes, exact)
    for number, (result, right) in enumerate(zip(results, want, strict=True)):
        wrong = difference(result, right)
        if wrong > 1:
            found.failures.append(Failure(
                str(case), "run", f"result {number} differs by {wrong:.1f} times what rounding explains"))
    return found


def difference(got: np.ndarray[Any, Any], want: np.ndarray[Any, Any]) -> float:
    """The greatest error, in units of what float32 sums are off by at the most; infinite for a NaN."""
    if got.shape != want.shape:
        return float("inf")
    if not got.size:
        return 0.0
    scale = float(np.abs(want).max()) or 1.0
    error = float(np.abs(got.astype(np.float64) - want).max()) / (scale * 5e-5)
    return error if np.isfinite(error) else float("inf")
