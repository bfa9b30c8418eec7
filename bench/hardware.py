"""Probes of the machine model: what instructions and memory cost here, beside what planners take them to cost.

    python -m bench.hardware [PROBE …]

Each probe is a loop in LLVM IR, run on one thread, or times kernels whose plans differ in one choice. Cycles are told
by a chain of additions of integers, each of which takes one; so a clock that changes meanwhile does not count. The
numbers of the model, with their sources, are in
``docs/machine-model.md``.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from tg_codegen import Target, compile_ast
from tg_dtype import dtypes
from tg_lazy import LazyOp
from tg_runtime import Device
from tg_runtime.host.arch import CPUArch

from .limits import (
    BF16,
    PREFETCH,
    ROUNDS,
    TILE_SUMS,
    TILES,
    Bench,
    Loop,
    amx_loop,
    bf16_loop,
    copy_loop,
    fma_loop,
    read_loop,
)
from .search import empty, filled, kernels, runner

CHAIN = 16
"""Dependent instructions of a round, where a latency is measured."""
FAR_TIMES = 4
"""Last-level caches of a block that is read from memory."""
SIDES = 8
"""Rows that are multiplied at a time, beside one by one."""
SIDE = 4096
"""Elements of such a row."""
MOST_FAR = 10
"""Transposed matrices that are added up, at the most, until it is better to write elements far from each other."""
FAR_SHAPE = (1021, 1531)
"""Of each of them: nothing divides it, and they do not fit the second-level cache."""
FAR_TURNS = 7
"""Runs of such a kernel, of which the fastest counts."""
ROW = 4096 + 64
"""Bytes from one row to the next, where columns are read: rows do not share a set of the cache."""


class Measured(NamedTuple):
    """What a probe found.

    Attributes:
      probe: its name.
      value: what was measured.
      unit: of the value.
      model: what the machine model has for it; None where it has no such number.
    """

    probe: str
    value: float
    unit: str
    model: float | None = None


class Probes:
    """The probes, by name.

    Args:
      seconds: for how long each loop is measured.
    """

    def __init__(self, seconds: float = 0.05) -> None:
        self.target: Target = CPUArch().target(1)
        self.last = self.target.last_bytes or self.target.far_bytes
        self.bench = Bench(1 << 20, seconds, time.perf_counter)
        self.lanes = self.bench.lanes
        self.vector = f"<{self.lanes} x float>"
        self.cycle = self.seconds(self.chain(), ROUNDS) / ROUNDS / CHAIN

    def seconds(self, loop: Loop, count: int, declarations: str = "", bench: Bench | None = None) -> float:
        """The fewest seconds of a loop on one thread."""
        bench = bench or self.bench
        return bench.best(bench.call(loop, "probe", count, 1, declarations))

    def cycles(self, loop: Loop, count: int, instructions: float, declarations: str = "") -> float:
        """Cycles of one of a loop's instructions; ``count`` is what its counter runs to."""
        return self.seconds(loop, count, declarations) / self.cycle / (count / loop.step) / instructions

    @staticmethod
    def chain() -> Loop:
        """Additions and exclusive ors of integers, each of what the last one gave."""
        ops = [f"%c{n + 1} = {('add', 'xor')[n % 2]} i64 %c{n or ''}, %i" for n in range(CHAIN)]
        ops[-1] = ops[-1].replace(f"%c{CHAIN} =", "%c.next =")
        return Loop((("c", "i64", "1"),), tuple(ops), 1, ("store i64 %c.next, ptr %out",))

    def fma(self, accumulators: int) -> float:
        """Cycles of a multiply-add among so many chains of them."""
        declared = f"declare {self.vector} @llvm.fma.v{self.lanes}f32({', '.join([self.vector] * 3)})"
        return self.cycles(fma_loop(self.lanes, accumulators), ROUNDS, accumulators, declared)

    def units(self) -> Iterator[Measured]:
        """Multiply-adds that begin in one cycle."""
        yield Measured("units", 1 / self.fma(self.bench.accumulators), "a cycle", self.target.cpu.units)

    def latency(self) -> Iterator[Measured]:
        """Cycles from one multiply-add to the next."""
        yield Measured("latency", self.fma(1), "cycles", self.target.cpu.latency)

    def pairs(self) -> Iterator[Measured]:
        """Products of pairs of bfloat16, added to floats in many chains; nothing where that is no instruction."""
        if any(found.a is dtypes.bfloat16 and found.threads == 1 for found in self.target.matrices):
            many = self.bench.accumulators
            took = self.cycles(bf16_loop(many), ROUNDS, many, BF16)
            yield Measured("pairs", took, "cycles", self.target.cpu.pair_product)

    def tiles(self) -> Iterator[Measured]:
        """Products of tiles of bfloat16, added up in some registers; nothing where there are none."""
        if any(found.tiled for found in self.target.matrices):
            took = self.cycles(amx_loop(TILE_SUMS), ROUNDS, TILE_SUMS, TILES)
            yield Measured("tiles", took, "cycles", self.target.cpu.tile_product)

    def division(self) -> Iterator[Measured]:
        """Vectors of floats, and integers of 32 bits, divided by what no compiler knows."""
        for name, kind, op, model in (
            ("division", self.vector, "fdiv", self.target.cpu.division),
            ("integer division", "i32", "udiv", self.target.cpu.integer_division),
        ):
            start = "zeroinitializer" if kind == self.vector else "2000000000"
            names = [f"a{n}" for n in range(8)]
            body = [f"%any = load volatile {kind}, ptr %in, align 4"]
            by, back = ("%odd", "xor") if op == "udiv" else ("%any", "fadd")
            if op == "udiv":
                body.append("%odd = or i32 %any, 3")
            for n in names:
                body += [f"%{n}.q = {op} {kind} %{n}, {by}", f"%{n}.next = {back} {kind} %{n}.q, {by}"]
            result = tuple(f"store volatile {kind} %{n}.next, ptr %out, align 4" for n in names)
            loop = Loop(tuple((n, kind, start) for n in names), tuple(body), 1, result)
            yield Measured(name, self.cycles(loop, ROUNDS, len(names)), "cycles", model)

    def masks(self) -> Iterator[Measured]:
        """Vectors of which half the elements are read, and written."""
        mask, align, names = f"<{self.lanes} x i1>", "i32 4", [f"a{n}" for n in range(8)]
        kind = f"v{self.lanes}f32.p0"
        declared = "\n".join((
            f"declare {self.vector} @llvm.masked.load.{kind}(ptr, i32, {mask}, {self.vector})",
            f"declare void @llvm.masked.store.{kind}({self.vector}, ptr, i32, {mask})"))
        head = [f"%some = load volatile {self.vector}, ptr %in, align 4",
                f"%mask = fcmp olt {self.vector} %some, splat (float 5.0e-1)"]  # fmt: skip
        body, stores = list(head), list(head)
        for n, name in enumerate(names):
            body += [
                f"%p{n} = getelementptr float, ptr %in, i64 {n * self.lanes}",
                f"%v{n} = call {self.vector} @llvm.masked.load.{kind}(ptr %p{n}, {align}, {mask} %mask, "
                f"{self.vector} %{name})", f"%{name}.next = fadd {self.vector} %{name}, %v{n}"]  # fmt: skip
            stores += [f"%p{n} = getelementptr float, ptr %out, i64 {n * self.lanes}",
                       f"call void @llvm.masked.store.{kind}({self.vector} %some, ptr %p{n}, {align}, {mask} %mask)"]
        result = tuple(f"store volatile {self.vector} %{n}.next, ptr %out, align 4" for n in names)
        carried = tuple((n, self.vector, "zeroinitializer") for n in names)
        for what, loop, model in (
            ("loads", Loop(carried, tuple(body), 1, result), self.target.cpu.masked_load),
            ("stores", Loop((), tuple(stores), 1, ()), self.target.cpu.masked_store),
        ):
            yield Measured(f"masks: {what}", self.cycles(loop, ROUNDS, len(names), declared), "cycles", model)

    def stores(self) -> Iterator[Measured]:
        """Vectors written to the first-level cache; then copying memory past the caches beside copying through them."""
        body = [f"%some = load volatile {self.vector}, ptr %in, align 4"]
        for n in range(8):
            body += [f"%p{n} = getelementptr float, ptr %out, i64 {n * self.lanes}",
                     f"store volatile {self.vector} %some, ptr %p{n}, align 4"]  # fmt: skip
        yield Measured("stores", self.cycles(Loop((), tuple(body), 1, ()), ROUNDS, 8), "cycles", self.target.cpu.store)
        far = Bench(FAR_TIMES * self.last, self.bench.seconds, time.perf_counter)
        through, past = (self.seconds(copy_loop(self.lanes, temporal, False), far.nbytes // 4, bench=far)
                         for temporal in (True, False))
        yield Measured("stores: past the caches", through / past, "times as fast")

    def columns(self) -> Iterator[Measured]:
        """Elements one row apart that become a vector: each from a line of its own, or beside those read before."""
        for what, step, model in (("far", 16, self.target.cpu.scattered), ("near", 1, self.target.cpu.packed)):
            body = [f"%at = urem i64 %i, {ROW // 4}"]
            for n in range(self.lanes):
                last = f"%v{n - 1}" if n else "poison"
                body += [f"%j{n} = add i64 %at, {n * ROW // 4}", f"%p{n} = getelementptr float, ptr %in, i64 %j{n}",
                         f"%e{n} = load float, ptr %p{n}, align 4",
                         f"%v{n} = insertelement {self.vector} {last}, float %e{n}, i32 {n}"]  # fmt: skip
            body += [f"%a.next = fadd {self.vector} %a, %v{self.lanes - 1}"]
            loop = Loop((("a", self.vector, "zeroinitializer"),), tuple(body), step,
                        (f"store {self.vector} %a.next, ptr %out, align 4",))
            yield Measured(f"columns: {what}", self.cycles(loop, ROUNDS, self.lanes), "cycles an element", model)

    def far(self) -> Iterator[Measured]:
        """Sums of more and more transposed matrices: from how many on lanes run along what is read, not written."""
        device = Device["CPU"]
        renderer = device.renderer
        assert renderer is not None

        def takes(ast: LazyOp, weight: int) -> float:
            costs = replace(renderer.target.cpu, far_store=weight)
            spec = compile_ast(ast, renderer.with_target(replace(renderer.target, cpu=costs)))
            run = runner(device, spec, filled(device, ast))
            return min(run() for _ in range(FAR_TURNS))

        for matrices in range(1, MOST_FAR):
            (ast,) = kernels(sum((empty(*FAR_SHAPE).T for _ in range(matrices - 1)), empty(*FAR_SHAPE).T + 1))
            if takes(ast, 0) < takes(ast, MOST_FAR * 2):
                break
        yield Measured("far", 2 * matrices - 1, "loads", self.target.cpu.far_store)

    def caches(self) -> Iterator[Measured]:
        """From one load to the next that needs it, in each cache and beyond: a walk through lines in no order."""
        line, target = self.target.line_bytes, self.target
        for name, nbytes in (
            ("first", target.l1_bytes // 2), ("second", target.l2_bytes // 2), ("last", self.last // 2),
            ("memory", FAR_TIMES * self.last),
        ):
            bench = Bench(nbytes, self.bench.seconds, time.perf_counter)
            order = np.random.default_rng(0).permutation(bench.nbytes // line).astype(np.int64) * line
            words = np.frombuffer(bench.allocator.as_buffer(bench.src, bench.nbytes), np.int64)
            words[order // 8] = np.roll(order, -1)
            chase = [f"%p{n} = getelementptr i8, ptr %in, i64 %c{n or ''}\n  %c{n + 1} = load i64, ptr %p{n}"
                     for n in range(CHAIN)]
            chase[-1] = chase[-1].replace(f"%c{CHAIN} =", "%c.next =")
            loop = Loop((("c", "i64", "0"),), tuple(chase), 1, ("store i64 %c.next, ptr %out",))
            count = max(1000, min(len(order), 1 << 20) // CHAIN)
            yield Measured(
                f"caches: {name}", self.seconds(loop, count, bench=bench) / self.cycle / count / CHAIN, "cycles")

    def reads(self) -> Iterator[Measured]:
        """Vectors read in order from the second-level cache, and lines from beyond."""
        line = self.target.line_bytes // self.target.vector_bytes
        for name, nbytes, unit, many, model in (
            ("second", self.target.l2_bytes // 2, "cycles", 1, self.target.cpu.far_load),
            ("last", self.last // 2, "cycles a line", line, self.target.cpu.last_line),
            ("memory", FAR_TIMES * self.last, "cycles a line", line, self.target.cpu.far_line),
        ):
            bench = Bench(nbytes, self.bench.seconds, time.perf_counter)
            took = self.seconds(read_loop(self.lanes, False, 0), bench.nbytes // 4, bench=bench)
            vectors = bench.nbytes // self.target.vector_bytes
            yield Measured(f"reads: {name}", took / self.cycle / vectors * many, unit, model)

    def rows(self) -> Iterator[Measured]:
        """What a line takes more where several rows are multiplied by a vector at a time, rather than one by one."""
        bench = Bench(min(self.last // 2, 1 << 26), self.bench.seconds, time.perf_counter)
        count = bench.nbytes // 4 // (SIDES * SIDE) * SIDES * SIDE
        declared = f"{PREFETCH}\ndeclare {self.vector} @llvm.fma.v{self.lanes}f32({', '.join([self.vector] * 3)})"
        alone, beside = (
            self.seconds(self.rows_at_once(many), count // many, declared, bench) for many in (1, SIDES))
        lines = count * 4 / self.target.line_bytes
        yield Measured("rows", (beside - alone) / self.cycle / lines, "cycles a line", self.target.cpu.beside_line)

    def rows_at_once(self, many: int) -> Loop:
        """Products of rows and a vector, as plans write them: a row alone fetches ahead and has several sums."""
        vectors, ahead = SIDES // many, self.target.cpu.run_ahead_bytes // 4
        names = [f"a{n}" for n in range(SIDES)]
        body = [f"%in.row = and i64 %i, {SIDE - 1}", "%rows = sub i64 %i, %in.row", f"%from = mul i64 %rows, {many}",
                "%at = add i64 %from, %in.row"]  # fmt: skip
        for n in range(vectors):
            body += [f"%k{n} = add i64 %in.row, {n * self.lanes}", f"%q{n} = getelementptr float, ptr %out, i64 %k{n}",
                     f"%x{n} = load {self.vector}, ptr %q{n}, align 64"]  # fmt: skip
        for n, name in enumerate(names):
            row, vector = divmod(n, vectors)
            by = row * SIDE + vector * self.lanes
            body += [f"%j{n} = add i64 %at, {by}", f"%p{n} = getelementptr float, ptr %in, i64 %j{n}",
                     f"%v{n} = load {self.vector}, ptr %p{n}, align 64",
                     f"%{name}.next = call {self.vector} @llvm.fma.v{self.lanes}f32({self.vector} %v{n}, "
                     f"{self.vector} %x{vector}, {self.vector} %{name})"]  # fmt: skip
            if many == 1 and ahead:
                body += [f"%g{n} = add i64 %j{n}, {ahead}", f"%f{n} = getelementptr float, ptr %in, i64 %g{n}",
                         f"call void @llvm.prefetch.p0(ptr %f{n}, i32 0, i32 3, i32 1)"]  # fmt: skip
        total = [f"%t{n + 1} = fadd {self.vector} %{'t' if n else 'a'}{n}{'' if n else '.next'}, %a{n + 1}.next"
                 for n in range(SIDES - 1)]
        carried = tuple((name, self.vector, "zeroinitializer") for name in names)
        kept = f"store {self.vector} %t{SIDES - 1}, ptr %out, align 4"
        return Loop(carried, tuple(body), vectors * self.lanes, (*total, kept))

    def prefetch(self) -> Iterator[Measured]:
        """Reading memory, and fetching so many bytes ahead."""
        far = Bench(FAR_TIMES * self.last, self.bench.seconds, time.perf_counter)
        for nbytes in (0, 1024, 2048, 4096, 8192, 16384, 32768):
            loop = read_loop(self.lanes, bool(nbytes), nbytes // 4)
            took = self.seconds(loop, far.nbytes // 4, PREFETCH * bool(nbytes), far)
            yield Measured(f"prefetch: {nbytes} bytes ahead", far.nbytes / took / 1e9, "GB/s")

    def threads(self) -> Iterator[Measured]:
        """Cycles of one core from which on all threads are faster: what waking them takes is saved."""
        loop, many = self.chain(), self.bench.threads
        if many < 2:
            return
        took = [self.bench.best(self.bench.call(loop, "probe", n, n)) for n in (1, many)]
        cycles = (took[1] - took[0]) / self.cycle * many / (many - 1)
        yield Measured("threads", cycles, "cycles", self.target.cpu.thread_cycles)


PROBES: dict[str, Callable[[Probes], Iterator[Measured]]] = {
    name: getattr(Probes, name)
    for name in (
        "units", "latency", "pairs", "tiles", "division", "masks", "stores", "columns", "far", "caches", "reads",
        "rows", "prefetch", "threads")
}


def main(argv: Sequence[str] | None = None) -> int:
    """Prints what the probes find, beside the model."""
    wanted = list(sys.argv[1:] if argv is None else argv) or list(PROBES)
    unknown = [name for name in wanted if name not in PROBES]
    if unknown:
        print(f"no probe is called {unknown[0]!r}; there are {', '.join(PROBES)}")
        return 2
    probes = Probes()
    print(f"one cycle: {probes.cycle * 1e9:.3f} ns")
    for name in wanted:
        for found in PROBES[name](probes):
            model = "" if found.model is None else f"   model: {found.model:g}"
            print(f"{found.probe:28s} {found.value:10.2f} {found.unit}{model}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
