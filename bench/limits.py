"""What the machine can do: multiply-adds in registers, products of bfloat16, copying and reading memory.

Each is a kernel in LLVM IR, compiled and run on threads as the device CPU does with any kernel. A workload's limit
takes turns with the libraries (:class:`Machine`): what a busy host gives to one, it gives to the other. Reading is of
as many bytes as the workload reads; copying of as many, or of :data:`FAR`, so that it is memory that copies and not a
cache that by chance keeps what was read. The table of limits has the best of several runs, of one thread and of all.

    python -m bench.limits [BYTES [SECONDS [processor]]]
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tg_runtime.backends.cpu.program import CPUProgram
from tg_runtime.compilers.llvm import LLVMCompiler
from tg_runtime.device.dev import parse_dev
from tg_runtime.host.arch import CPUArch
from tg_runtime.host.processor import core_count
from tg_runtime.memory.host import HostAllocator, HostMemory

from .case import Case, Unsupported
from .workload import Workload

UNROLL = 8
AHEAD = 4096
"""How many elements ahead a loop fetches, where it does."""
BLOCK = 8
"""Squares in each direction of a block."""
WIDTH = 4096
"""Columns, and rows, of a matrix whose squares are moved."""
BF16 = "declare <16 x float> @llvm.x86.avx512bf16.dpbf16ps.512(<16 x float>, <32 x bfloat>, <32 x bfloat>)"
TILES = """declare x86_amx @llvm.x86.tileloadd64.internal(i16, i16, ptr, i64)
declare x86_amx @llvm.x86.tdpbf16ps.internal(i16, i16, i16, x86_amx, x86_amx, x86_amx)
declare void @llvm.x86.tilestored64.internal(i16, i16, ptr, i64, x86_amx)
declare x86_amx @llvm.x86.cast.vector.to.tile.v256f32(<256 x float>)
declare <256 x float> @llvm.x86.cast.tile.to.vector.v256f32(x86_amx)"""
TILE_SUMS = 4
"""Tile registers that add up products, beside two that are multiplied: of eight that there are."""
TILE_OPERATIONS = 2 * 16 * 16 * 32
"""Multiplications and additions of a product of two tiles of bfloat16."""
PREFETCH = "declare void @llvm.prefetch.p0(ptr, i32, i32, i32)"
FAR = 1 << 27
"""Bytes of a block of which a cache keeps little. Of one as large as the cache it keeps all, or by chance nothing."""
FARTHER = 5
"""What is read far is so many times what is read: caches of 32 MB keep a quarter of 128 MB, but nothing of 640."""
LEAST = 1 << 20
"""Bytes of a block where memory is not what limits."""
LONG = 16
"""How many times longer than :data:`ROUNDS` a loop in registers runs where its median counts, not its best."""
ROUNDS = 50_000
"""Of a loop in registers: a run is short, so that some run is not interrupted on any core."""


@dataclass(frozen=True)
class Loop:
    """A kernel that goes around a loop: what is before it, in it and after it, and what it carries around.

    Attributes:
      carried: name, type and first value of each thing that is carried.
      body: lines that define ``NAME.next`` for each of them; ``%i`` counts from ``%first`` to ``%last``.
      step: by how much ``%i`` grows.
      result: lines after the loop; values that are carried are used, so that nothing is optimised away.
    """

    carried: tuple[tuple[str, str, str], ...]
    body: tuple[str, ...]
    step: int
    result: tuple[str, ...]

    def source(self, name: str, declarations: str = "") -> str:
        """LLVM IR of the kernel ``name(out, in, count, threads, core)``."""
        phis = [f"  %{n} = phi {t} [ {v}, %entry ], [ %{n}.next, %loop ]" for n, t, v in self.carried]
        return "\n".join([
            declarations,
            f"define void @{name}(ptr %out, ptr %in, i64 %count, i64 %threads, i64 %core) nounwind {{",
            "entry:",
            "  %each = udiv i64 %count, %threads",
            "  %first = mul i64 %each, %core",
            "  %last = add i64 %first, %each",
            "  br label %loop",
            "loop:",
            "  %i = phi i64 [ %first, %entry ], [ %i.next, %loop ]",
            *phis,
            *(f"  {line}" for line in self.body),
            f"  %i.next = add i64 %i, {self.step}",
            "  %more = icmp ult i64 %i.next, %last",
            "  br i1 %more, label %loop, label %end",
            "end:",
            *(f"  {line}" for line in self.result),
            "  ret void",
            "}",
        ])  # fmt: skip


def _keep(vector: str, names: list[str]) -> tuple[str, ...]:
    """Stores the sum of vectors in the thread's cache lines of ``%out``."""
    lines, total = [], f"%{names[0]}.next"
    for i, name in enumerate(names[1:]):
        lines.append(f"%total.{i} = fadd {vector} {total}, %{name}.next")
        total = f"%total.{i}"
    place = "%place = getelementptr [256 x i8], ptr %out, i64 %core"
    return (*lines, place, f"store {vector} {total}, ptr %place, align 4")


def fma_loop(lanes: int, accumulators: int) -> Loop:
    """Independent chains of multiply-adds in registers."""
    vector = f"<{lanes} x float>"
    factor = f"<{', '.join(['float 0.5'] * lanes)}>"
    names = [f"a{i}" for i in range(accumulators)]
    fma = f"call {vector} @llvm.fma.v{lanes}f32({vector}"
    body = [f"%{n}.next = {fma} %{n}, {vector} {factor}, {vector} %{n})" for n in names]
    start = f"<{', '.join(['float 1.0'] * lanes)}>"
    return Loop(tuple((n, vector, start) for n in names), tuple(body), 1, _keep(vector, names))


def bf16_loop(accumulators: int) -> Loop:
    """Independent chains of dot products of pairs of bfloat16 (AVX512-BF16)."""
    names = [f"a{i}" for i in range(accumulators)]
    pairs = "<32 x bfloat> %pairs"
    call = "call <16 x float> @llvm.x86.avx512bf16.dpbf16ps.512(<16 x float>"
    body = [
        "%pairs = load volatile <32 x bfloat>, ptr %in, align 2",
        *(f"%{n}.next = {call} %{n}, {pairs}, {pairs})" for n in names),
    ]
    carried = tuple((n, "<16 x float>", "zeroinitializer") for n in names)
    return Loop(carried, tuple(body), 1, _keep("<16 x float>", names))


def amx_loop(sums: int) -> Loop:
    """Independent chains of products of tiles of bfloat16 (AMX), whose operands are loaded each time."""
    names = [f"a{i}" for i in range(sums)]
    tile, operands = "i16 16, i16 64", "x86_amx %x, x86_amx %y"
    body, result = list[str](), ["%place = getelementptr [1024 x i8], ptr %out, i64 %core"]
    for operand in ("x", "y"):
        body.append(f"%{operand} = call x86_amx @llvm.x86.tileloadd64.internal({tile}, ptr %in, i64 64)")
    for n in names:
        body += [
            f"%{n}.tile = call x86_amx @llvm.x86.cast.vector.to.tile.v256f32(<256 x float> %{n})",
            f"%{n}.sum = call x86_amx @llvm.x86.tdpbf16ps.internal({tile}, i16 64, x86_amx %{n}.tile, {operands})",
            f"%{n}.next = call <256 x float> @llvm.x86.cast.tile.to.vector.v256f32(x86_amx %{n}.sum)",
        ]
        result += [
            f"%{n}.last = call x86_amx @llvm.x86.cast.vector.to.tile.v256f32(<256 x float> %{n}.next)",
            f"call void @llvm.x86.tilestored64.internal({tile}, ptr %place, i64 64, x86_amx %{n}.last)",
        ]
    return Loop(tuple((n, "<256 x float>", "zeroinitializer") for n in names), tuple(body), 1, tuple(result))


def ahead(lanes: int, by: int = AHEAD) -> list[str]:
    """Fetches what a loop will load ``by`` elements later."""
    lines = []
    for u in range(UNROLL):
        lines += [
            f"%k{u} = add i64 %i, {by + u * lanes}",
            f"%f{u} = getelementptr float, ptr %in, i64 %k{u}",
            f"call void @llvm.prefetch.p0(ptr %f{u}, i32 0, i32 3, i32 1)",
        ]
    return lines


def copy_loop(lanes: int, temporal: bool, fetching: bool) -> Loop:
    """Loads and stores, past the caches where ``temporal`` is false; ``fetching`` ahead or not."""
    vector = f"<{lanes} x float>"
    hint = "" if temporal else ", !nontemporal !{i32 1}"
    body = ahead(lanes) if fetching else []
    for u in range(UNROLL):
        body += [
            f"%j{u} = add i64 %i, {u * lanes}",
            f"%p{u} = getelementptr float, ptr %in, i64 %j{u}",
            f"%v{u} = load {vector}, ptr %p{u}, align 64",
            f"%q{u} = getelementptr float, ptr %out, i64 %j{u}",
            f"store {vector} %v{u}, ptr %q{u}, align 64{hint}",
        ]
    return Loop((), tuple(body), UNROLL * lanes, ())


def read_loop(lanes: int, fetching: bool, by: int = AHEAD) -> Loop:
    """Loads, added up; ``fetching`` ``by`` elements ahead or not."""
    vector = f"<{lanes} x float>"
    names = [f"a{i}" for i in range(UNROLL)]
    body = ahead(lanes, by) if fetching else []
    for u, n in enumerate(names):
        body += [
            f"%j{u} = add i64 %i, {u * lanes}",
            f"%p{u} = getelementptr float, ptr %in, i64 %j{u}",
            f"%v{u} = load {vector}, ptr %p{u}, align 64",
            f"%{n}.next = fadd {vector} %{n}, %v{u}",
        ]
    return Loop(tuple((n, vector, "zeroinitializer") for n in names), tuple(body), UNROLL * lanes, _keep(vector, names))


def tile_loop(lanes: int, width: int) -> Loop:
    """Moves squares of a matrix of ``width`` columns to where transposing puts them, without turning them.

    It goes by blocks of 8 by 8 squares, past the caches, and fetches ahead: what transposing takes at least.
    """
    vector, side = f"<{lanes} x float>", BLOCK * lanes
    across = width // side
    body = [
        f"%b = urem i64 %i, {BLOCK}", f"%i.1 = udiv i64 %i, {BLOCK}", f"%a = urem i64 %i.1, {BLOCK}",
        f"%i.2 = udiv i64 %i.1, {BLOCK}", f"%B = urem i64 %i.2, {across}", f"%A = udiv i64 %i.2, {across}",
        f"%A.1 = mul i64 %A, {side}", f"%a.1 = mul i64 %a, {lanes}", "%row = add i64 %A.1, %a.1",
        f"%B.1 = mul i64 %B, {side}", f"%b.1 = mul i64 %b, {lanes}", "%column = add i64 %B.1, %b.1",
        f"%from.1 = mul i64 %row, {width}", "%from = add i64 %from.1, %column",
        f"%to.1 = mul i64 %column, {width}", "%to = add i64 %to.1, %row",
    ]  # fmt: skip
    for u in range(lanes):
        body += [
            f"%j{u} = add i64 %from, {u * width}",
            f"%p{u} = getelementptr float, ptr %in, i64 %j{u}",
            f"%f{u} = getelementptr float, ptr %p{u}, i64 {2 * lanes}",
            f"call void @llvm.prefetch.p0(ptr %f{u}, i32 0, i32 3, i32 1)",
            f"%v{u} = load {vector}, ptr %p{u}, align 64",
        ]
    for u in range(lanes):
        body += [
            f"%k{u} = add i64 %to, {u * width}",
            f"%q{u} = getelementptr float, ptr %out, i64 %k{u}",
            f"store {vector} %v{u}, ptr %q{u}, align 64, !nontemporal !{{i32 1}}",
        ]
    return Loop((), tuple(body), 1, ())


@dataclass(frozen=True)
class Run:
    """A limit, ready to be measured.

    Attributes:
      call: reaches it once.
      work: operations or bytes of a call.
    """

    call: Callable[[], None]
    work: float


class Bench:
    """The kernels, compiled, and the memory that they work on.

    Args:
      nbytes: size of each of the two blocks of memory; far more than the caches hold.
      seconds: for how long each limit is measured.
      clock: what measures.
    """

    def __init__(self, nbytes: int, seconds: float, clock: Callable[[], float]) -> None:
        self.threads, self.seconds, self.clock = core_count(), seconds, clock
        entries = parse_dev(os.environ.get("DEV", ""))
        self.arch = arch = CPUArch.parse(entries[0].arch) if entries else CPUArch()
        target = arch.target(self.threads)
        self.lanes = target.vector_bytes // 4
        self.accumulators = 24 if target.registers >= 32 else 12
        self.compiler = LLVMCompiler(arch)
        self.allocator = HostAllocator("CPU")
        chunk = self.threads * UNROLL * self.lanes * 4
        self.nbytes = nbytes // chunk * chunk
        self.out, self.src = self.block(self.nbytes), self.block(self.nbytes)

    def block(self, nbytes: int) -> HostMemory:
        """Memory full of numbers: a machine may be faster with zeros than with anything else."""
        block: HostMemory = self.allocator.alloc(nbytes)
        numbers = np.random.default_rng(0).random(nbytes // 4, np.float32)
        self.allocator.as_buffer(block, nbytes)[:] = numbers.view(np.uint8).data
        return block

    def call(self, loop: Loop, name: str, count: int, threads: int, declarations: str = "") -> Callable[[], None]:
        """What runs a loop, each thread doing ``count / threads`` rounds."""
        program = CPUProgram(name, self.compiler.compile(loop.source(name, declarations)))

        # on one thread a kernel is called directly, and is told that it is the first
        values = (count, threads, 0) if threads == 1 else (count, threads)
        out, src = self.out, self.src

        def call() -> None:
            program(out, src, global_size=(threads, 1, 1), vals=values)

        return call

    def best(self, call: Callable[[], None]) -> float:
        """The fewest seconds of a call."""
        return least(call, self.seconds, self.clock)

    def fma(self, threads: int, times: int = 1) -> Run:
        """Multiply-adds in registers, ``times`` :data:`ROUNDS`."""
        loop, count = fma_loop(self.lanes, self.accumulators), ROUNDS * times * threads
        declarations = f"declare <{self.lanes} x float> @llvm.fma.v{self.lanes}f32" + (
            f"({', '.join([f'<{self.lanes} x float>'] * 3)})"
        )
        call = self.call(loop, "fma_peak", count, threads, declarations)
        return Run(call, 2.0 * self.lanes * self.accumulators * count)

    def bf16(self, threads: int, times: int = 1) -> Run | None:
        """Products of bfloat16 in registers, ``times`` :data:`ROUNDS`; None where there is no such instruction.

        It is those of tiles, those of pairs or multiply-adds of floats, whichever are fastest.
        """
        if not self.arch.has("avx512bf16"):
            return None
        loop, count = bf16_loop(self.accumulators), ROUNDS * times * threads
        ways = [
            Run(self.call(loop, "bf16_peak", count, threads, BF16), 2.0 * 32 * self.accumulators * count),
            self.fma(threads, times),
        ]
        if self.arch.has("amx-bf16"):
            call = self.call(amx_loop(TILE_SUMS), "amx_peak", count, threads, TILES)
            ways.append(Run(call, float(TILE_OPERATIONS) * TILE_SUMS * count))
        return max(ways, key=lambda run: run.work / self.best(run.call))

    def copy(self, threads: int) -> Run:
        """Copying a block in the fastest of some ways; bytes read and bytes written."""
        count = self.nbytes // 4
        ways = [
            self.call(copy_loop(self.lanes, temporal, fetching), "copy_all", count, threads, PREFETCH * fetching)
            for temporal, fetching in ((True, False), (False, False), (False, True))
        ]
        return Run(min(ways, key=self.best), 2.0 * self.nbytes)

    def read(self, threads: int) -> Run:
        """Reading a block in the faster of two ways."""
        ways = [
            self.call(read_loop(self.lanes, fetching), "read_all", self.nbytes // 4, threads, PREFETCH * fetching)
            for fetching in (False, True)
        ]
        return Run(min(ways, key=self.best), float(self.nbytes))


    def tiles(self, threads: int) -> Run | None:
        """Moving the squares of a matrix; bytes read and bytes written. None where vectors are shorter than lines."""
        if self.lanes < 16:
            return None
        squares = (WIDTH // self.lanes) ** 2
        call = self.call(tile_loop(self.lanes, WIDTH), "move_tiles", squares, threads, PREFETCH)
        return Run(call, 2.0 * 4 * WIDTH * WIDTH)


class Machine:
    """The machine itself, taking turns as a library does: what it does with a workload is the workload's limit.

    Args:
      threads: how many threads it may use.
    """

    version = ""

    def __init__(self, threads: int) -> None:
        self.threads = threads

    def open(self, workload: Workload) -> Case:
        """The limit as a case. A run gives how much it does, in operations or bytes.

        Raises:
          Unsupported: the machine has no such limit.
        """
        moved = {"copy": max(workload.work / 2, FAR), "read": max(workload.work, FAR)}.get(workload.limit, LEAST)
        bench = Bench(int(moved), 0.05, time.perf_counter)
        if workload.limit == "fma":
            found: Run | None = bench.fma(self.threads, LONG)
        elif workload.limit == "bf16":
            found = bench.bf16(self.threads, LONG)
        else:
            found = bench.copy(self.threads) if workload.limit == "copy" else bench.read(self.threads)
        if found is None:
            raise Unsupported(f"the processor has no instruction for {workload.limit}")
        call, work = found.call, found.work

        def run() -> float:
            call()
            return work

        return Case(run, np.array, "limit")


def least(call: Callable[[], None], seconds: float, clock: Callable[[], float]) -> float:
    """The fewest seconds of a call, of those that fit into ``seconds``, three at least."""
    call()
    end = time.perf_counter() + seconds
    found, rounds = float("inf"), 0
    while rounds < 3 or time.perf_counter() < end:
        start = clock()
        call()
        found = min(found, clock() - start)
        rounds += 1
    return found


def measure(
    nbytes: int = FAR, seconds: float = 0.2, clock: Callable[[], float] = time.perf_counter
) -> dict[str, float]:
    """Every limit, on one thread (``NAME 1``) and on all of them (``NAME``), in operations or bytes a second."""
    bench, far = Bench(nbytes, seconds, clock), Bench(FARTHER * nbytes, seconds, clock)
    found: dict[str, float] = {}
    limits: dict[str, Callable[[int], Run | None]] = {
        "fma": bench.fma, "bf16": bench.bf16, "copy": bench.copy, "tiles": far.tiles, "read": bench.read,
        "read far": far.read,
    }  # fmt: skip
    for name, limit in limits.items():
        for key, threads in ((f"{name} 1", 1), (name, bench.threads)):
            run = limit(threads)
            if run is not None:
                found[key] = run.work / bench.best(run.call)
    return found


def main() -> int:
    nbytes, seconds, shown = [*sys.argv[1:], *("", "", "")][:3]
    clock = time.process_time if shown == "processor" else time.perf_counter
    print(json.dumps(measure(int(nbytes or FAR), float(seconds or 0.2), clock)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
