"""What each thread of a kernel is said to touch holds all that the interpreter sees it touch, and little more."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from tg_codegen import Target, compile_ast
from tg_codegen.ir.builder import LinearBuilder
from tg_codegen.ir.facts import pointer_base
from tg_codegen.ir.program import ProgramSpec
from tg_codegen.ir.scalar import scalar_function
from tg_codegen.ir.shares import shares
from tg_codegen.ir.uop import UOp
from tg_codegen.linear import interpret as interpreter
from tg_codegen.render.c.clang import ClangRenderer
from tg_dtype import DType, dtypes
from tg_lazy import COMPARISONS, ON_INTEGERS, SPEC, LazyBuffer, Ops, schedule

F32 = dtypes.float32


def empty(*shape: int) -> LazyBuffer:
    return LazyBuffer.empty(shape, F32, "CPU")


def doubled(x: LazyBuffer) -> LazyBuffer:
    return x.alu(Ops.ADD, x)


def shifted(x: LazyBuffer) -> LazyBuffer:
    """The element before."""
    return x.pad(((1, 0), *((0, 0),) * (len(x.shape) - 1))).shrink(tuple((0, n) for n in x.shape)).alu(Ops.ADD, x)


def product(rows: int, width: int) -> LazyBuffer:
    """Rows by a square matrix."""
    left = empty(rows, width).reshape((rows, width, 1)).expand((rows, width, width))
    right = empty(width, width).reshape((1, width, width)).expand((rows, width, width))
    return left.alu(Ops.MUL, right).reduce(Ops.ADD, (1,))


KERNELS: dict[str, Callable[[], LazyBuffer]] = {
    "elements": lambda: doubled(empty(131)),
    "even elements": lambda: doubled(empty(128)),
    "rows": lambda: doubled(empty(7, 19)),
    "few": lambda: doubled(empty(3)),
    "shifted": lambda: shifted(empty(131)),
    "turned": lambda: doubled(empty(9, 17).permute((1, 0))),
    "sums of rows": lambda: empty(13, 21).reduce(Ops.ADD, (1,)),
    "sums of columns": lambda: empty(13, 37).reduce(Ops.ADD, (0,)),
    "product": lambda: product(11, 13),
    "padded": lambda: doubled(empty(5, 9).pad(((1, 2), (3, 0)))),
}


def made(kind: str, threads: int) -> ProgramSpec:
    target = Target(vector_bytes=32, threads=threads, awake=True)
    items, _ = schedule([KERNELS[kind]()])
    return compile_ast(next(item.ast for item in items if item.ast.op is Ops.SINK), ClangRenderer(target))


def seen(spec: ProgramSpec, monkeypatch: pytest.MonkeyPatch) -> dict[tuple[int, int], tuple[int, int]]:
    """The first byte that a thread touches of a buffer, and the one after the last, as the interpreter finds them."""
    memory = [memoryview(bytearray(b.size * b.dtype.itemsize)) for b in spec.buffers]
    found: dict[tuple[int, int], tuple[int, int]] = {}

    def noted(original: Callable[..., Any]) -> Callable[..., Any]:
        def touch(self: Any, u: UOp, index: int, *rest: Any) -> Any:
            size = self.dtype.itemsize
            where = pointer_base(u.src[0]).arg, rest[-1].special.get("core_id", 0)
            low, high = found.get(where, (1 << 40, 0))
            found[where] = min(low, index * size), max(high, (index + 1) * size)
            return original(self, u, index, *rest)

        return touch

    monkeypatch.setattr(interpreter._Buffer, "read", noted(interpreter._Buffer.read))
    monkeypatch.setattr(interpreter._Buffer, "write", noted(interpreter._Buffer.write))
    interpreter.interpret(spec.uops, memory, {})
    return found


@pytest.mark.parametrize("threads", [2, 3])
@pytest.mark.parametrize("kind", KERNELS)
def test_threads_touch_their_shares_alone(kind: str, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = made(kind, threads)
    found = seen(spec, monkeypatch)
    if spec.threads == 1:
        assert kind == "few"
        return
    for buffer in spec.buffers:
        assert len(buffer.shares) == threads
        for thread, share in enumerate(buffer.shares):
            touched = found.get((buffer.slot, thread))
            if touched is not None:
                assert share is not None, (kind, buffer.slot, thread)
                assert share[0] <= touched[0], (kind, buffer.slot, thread)
                assert touched[1] <= share[1], (kind, buffer.slot, thread)
            if kind in ("elements", "even elements", "rows", "product") and buffer.written:
                assert share == touched, (kind, buffer.slot, thread)


def test_kernels_whose_threads_sleep_say_nothing() -> None:
    items, _ = schedule([KERNELS["elements"]()])
    target = Target(vector_bytes=32, threads=2)
    eager = replace(target, cpu=replace(target.cpu, thread_cycles=0))
    for one, threads in ((target, 1), (eager, 2)):
        spec = compile_ast(items[-1].ast, ClangRenderer(one))
        assert spec.threads == threads
        assert all(buffer.shares == () for buffer in spec.buffers)


def test_what_a_thread_does_not_run_is_not_touched() -> None:
    k = LinearBuilder()
    data, core = k.param(0, F32), k.special("core_id", 3)
    one = k.const(1, F32)
    with k.iff(k.alu(Ops.CMPEQ, core, k.const(1))):
        k.store(data, k.const(100), one)
    with k.range(k.alu(Ops.SUB, k.const(2), core)) as i:  # two, one and no iterations
        k.store(data, i, one, k.alu(Ops.CMPLT, core, k.const(2)))
    k.store(data, k.const(7), one, k.alu(Ops.CMPLT, k.const(1), core))
    assert shares(k.uops, 3) == {0: ((0, 8), (0, 404), (28, 32))}


def test_what_is_read_from_memory_may_lead_anywhere() -> None:
    k = LinearBuilder()
    data, places, core = k.param(0, F32), k.param(1, dtypes.int32), k.special("core_id", 2)
    k.store(data, k.load(places, core), k.const(1, F32))
    found = shares(k.uops, 2)
    assert found[1] == ((0, 4), (4, 8))
    assert all(share is not None and share[0] < 0 and share[1] > 1 << 32 for share in found[0])


def test_what_is_read_from_memory_leads_where_its_gate_is_open() -> None:
    """Of comparisons drawn at random: every place that an open gate lets through is in the share, and the ends are."""
    rng = Random(5)
    told = 0
    for _ in range(60):
        k = LinearBuilder()
        data, places, core = k.param(0, F32), k.param(1, dtypes.int32), k.special("core_id", 2)
        read, low, high = k.load(places, k.const(0)), rng.randrange(-9, 5), rng.randrange(6, 20)
        below = k.alu(Ops.CMPLT, read, k.const(high))
        if rng.randrange(2):
            below = k.alu(Ops.NOT, k.alu(Ops.CMPLT, k.const(high - 1), read))
        above = k.alu(Ops.NOT, k.alu(Ops.CMPLT, read, k.const(low)))
        if rng.randrange(2):
            above = k.alu(Ops.CMPLT, k.const(low - 1), read)
        join = rng.choice((Ops.AND, Ops.AND, Ops.AND, Ops.OR))
        index = k.alu(Ops.ADD, k.alu(Ops.MUL, core, k.const(100)), k.alu(Ops.MUL, read, k.const(3)))
        k.load(data, index, gate=k.alu(join, below, above), alt=k.const(0, F32))
        found = shares(k.uops, 2)[0]
        for core_id, share in enumerate(found):
            touched = [100 * core_id + 3 * x for x in range(low, high)]
            assert share is not None and share[0] <= 4 * touched[0] and 4 * touched[-1] + 4 <= share[1]
            if join is Ops.AND:
                assert share == (4 * touched[0], 4 * touched[-1] + 4)
                told += 1
            else:
                assert share[1] > 1 << 30
    assert told


def test_a_gate_on_what_wraps() -> None:
    """Every byte is tried: of sums that are too large for their dtype, the gate sees what is left of them."""
    rng, wrapped = Random(6), 0
    for _ in range(40):
        k = LinearBuilder()
        data, places = k.param(0, F32), k.param(1, dtypes.uint8)
        added, limit, below = rng.randrange(256), rng.randrange(1, 256), rng.randrange(2)
        place = k.alu(Ops.ADD, k.load(places, k.const(0)), k.const(added, dtypes.uint8))
        bound = k.const(limit, dtypes.uint8)
        gate = k.alu(Ops.CMPLT, place, bound) if below else k.alu(Ops.NOT, k.alu(Ops.CMPLT, place, bound))
        k.load(data, place, gate=gate, alt=k.const(0, F32))
        touched = [x for x in ((read + added) % 256 for read in range(256)) if (x < limit) is bool(below)]
        for share in shares(k.uops, 2)[0]:
            assert share is not None and share[0] <= 4 * min(touched) and 4 * max(touched) + 4 <= share[1]
        wrapped += added > 0
    assert wrapped > 20


def test_lanes_that_a_gate_closes_do_not_count() -> None:
    k = LinearBuilder()
    data, core = k.param(0, F32), k.special("core_id", 2)
    lanes = k.vectorize(*(k.const(n) for n in range(4)))
    gate = k.alu(Ops.CMPLT, lanes, k.broadcast(k.alu(Ops.ADD, core, k.const(1)), 4))
    k.store(data, k.alu(Ops.MUL, core, k.const(4)), k.broadcast(k.const(1, F32), 4), gate)
    assert shares(k.uops, 2) == {0: ((0, 4), (16, 24))}


@pytest.mark.parametrize("dtype", [dtypes.int32, dtypes.uint8, dtypes.int64], ids=lambda dtype: dtype.name)
@pytest.mark.parametrize("op", sorted(ON_INTEGERS | COMPARISONS, key=str), ids=str)
def test_places_that_any_operation_of_integers_computes(op: Ops, dtype: DType) -> None:
    """Of a thread's number, and of what is read from memory, which may be anything."""
    k = LinearBuilder()
    read, core = k.param(1, dtype), k.special("core_id", 4)
    for slot, place in ((0, k.cast(core, dtype)), (2, k.load(read, core))):
        two, first = k.const(2, dtype), k.alu(Ops.CMPLT, core, k.const(2))
        sources = [first, place, two] if op is Ops.WHERE else [place, two, two][: SPEC[op].arity]
        found = k.cast(place, dtypes.int64) if op is Ops.CAST else k.alu(op, *sources)
        k.store(k.param(slot, F32), k.cast(found, dtypes.int32), k.const(1, F32))
        at = scalar_function(found)
        for thread, share in enumerate(shares(k.uops, 4)[slot]):
            numbers = [thread < 2, thread, 2] if op is Ops.WHERE else [thread, 2, 2][: len(found.src)]
            assert share is not None and share[0] <= 4 * int(at(*numbers)) < share[1], thread
