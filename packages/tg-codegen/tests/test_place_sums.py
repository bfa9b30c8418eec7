"""What conditions tell of a gather's index: elements are read without a question, at places that rows share."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from tg_codegen import Target, interpret, linearize
from tg_codegen.emit.kernel import emit_nest
from tg_codegen.emit.place_sums import Limits, limits_of, place_sum
from tg_codegen.ir.uop import UOp, UOps
from tg_codegen.ir.verify import verify
from tg_codegen.nest.lower import lower
from tg_codegen.nest.nest import Node
from tg_codegen.nest.spec import Kind
from tg_codegen.plan.actions import apply
from tg_codegen.plan.heuristic import loop_actions
from tg_codegen.plan.vocabulary import parse_loop
from tg_dtype import DType, dtypes
from tg_lazy import BufferArg, LazyOp, Ops
from tg_lazy import ast as A
from tg_shape import ShapeTracker

F32, I32, I64 = dtypes.float32, dtypes.int32, dtypes.int64
ST = ShapeTracker.from_shape
CPU = Target(vector_bytes=32, registers=16)
Array = np.ndarray[Any, np.dtype[Any]]


def number(value: int, like: LazyOp) -> LazyOp:
    return A.const(value, like.dtype, like.shape)


def bounded(index: LazyOp, low: int, high: int) -> LazyOp:
    """Whether ``low <= index < high``."""
    above = A.alu(Ops.NOT, A.alu(Ops.CMPLT, index, number(low, index)))
    return A.alu(Ops.AND, above, A.alu(Ops.CMPLT, index, number(high, index)))


def elements(
    rows: int, width: int, count: int, inner: int = 1, dtype: DType = I32, flat: DType = I32, low: int = 0,
    high: int | None = None, shared: bool = True,
) -> LazyOp:  # fmt: skip
    """Of ``rows`` tables, (width, inner) numbers each, those that ``count`` indices choose, 0 where one is outside."""
    shape = (rows, count, inner)
    where = ST((1, count, 1)).expand(shape) if shared else ST((rows, count, 1)).expand(shape)
    index = A.load(2, dtype, where)
    own = index if dtype is flat else A.cast(index, flat)
    row = A.iota(ST((rows, 1, 1)).expand(shape), flat)
    place = A.alu(Ops.ADD, A.alu(Ops.MUL, row, number(width, row)), own)
    place = A.alu(Ops.ADD, A.alu(Ops.MUL, place, number(inner, place)), A.iota(ST((1, 1, inner)).expand(shape), flat))
    place = A.alu(Ops.WHERE, bounded(index, low, width if high is None else high), place, number(-1, place))
    sizes = (rows * count * inner, rows * width * inner, count if shared else rows * count)
    buffers = tuple(BufferArg(d, n) for d, n in zip((F32, F32, dtype), sizes, strict=True))
    return A.sink((A.store(0, ST(shape), A.gather(1, F32, ST((sizes[1],)), place)),), buffers)


def gather_of(ast: LazyOp) -> Node:
    return next(node for node in lower(ast).nodes() if node.op.name == "GATHER")


@pytest.mark.parametrize(("low", "high", "dtype", "flat", "holds"), [
    (0, 9, I32, I32, True), (2, 5, I32, I32, True), (0, 9, I64, I32, True), (0, 9, I64, I64, True),
    (0, 9, dtypes.int8, I32, True), (0, 1 << 40, I64, I32, False), (0, 1 << 31, I64, I32, False),
])  # fmt: skip
def test_what_is_known_of_an_index(low: int, high: int, dtype: DType, flat: DType, holds: bool) -> None:
    """Where the index was narrowed, its bounds have to be those of the narrow type, or it wrapped around."""
    node = gather_of(elements(4, 9, 20, dtype=dtype, flat=flat, low=low, high=high))
    limits = limits_of(node.src[1:])
    ((limited, found),) = limits.items()
    assert limited.op.name == "LOAD" and found == Limits(low, high - 1, frozenset({0}))
    total = place_sum(node.src[0], limits)
    assert (total is not None) is holds
    if total is not None:
        assert total.terms == ((limited, 1),) and total.bounds(limits) == (low, 27 + high - 1)


def test_an_index_of_which_nothing_is_known_is_no_such_sum() -> None:
    node = gather_of(elements(4, 9, 20))
    assert place_sum(node.src[0], {}) is None
    assert limits_of(()) == {}


def test_half_a_condition_is_none() -> None:
    index = A.load(2, I32, ST((20,)))
    place = A.alu(Ops.WHERE, A.alu(Ops.CMPLT, index, number(9, index)), index, number(-1, index))
    buffers = (BufferArg(F32, 20), BufferArg(F32, 9), BufferArg(I32, 20))
    node = gather_of(A.sink((A.store(0, ST((20,)), A.gather(1, F32, ST((9,)), place)),), buffers))
    assert limits_of(node.src[1:]) == {}


def run(ast: LazyOp, actions: str, *memory: Array) -> list[UOp]:
    sink = emit_nest(apply(lower(ast), [parse_loop(part) for part in actions.split(";") if part]), CPU)
    verify(sink)
    kernel = linearize(sink)
    interpret(kernel, [each.data.cast("B") for each in memory], {})
    return kernel


def gates(kernel: list[UOp]) -> list[bool]:
    """Of each load from the tables, whether it asks if there is an element."""
    return [len(u.src) > 2 for u in kernel if u.op is UOps.LOAD and u.src[0].arg == 1]


@pytest.mark.parametrize("seed", range(12))
def test_elements_of_tables(seed: int) -> None:
    """Shapes, types and loops at random; the interpreter refuses what lies outside of a buffer."""
    r, rng = random.Random(seed), np.random.default_rng(seed)
    rows, width, count, inner = r.randint(1, 5), r.randint(1, 9), r.randint(8, 37), r.choice([1, 1, 2, 3])
    dtype, shared = r.choice([I32, I64, dtypes.int16]), r.random() < 0.6
    flat = I64 if dtype is I64 and r.random() < 0.5 else I32
    ast = elements(rows, width, count, inner, dtype, flat, shared=shared)
    tables = rng.uniform(1, 2, (rows, width, inner)).astype(np.float32)
    numbers = rng.integers(-3, width + 3, (1 if shared else rows, count))
    far = rng.random(numbers.shape) < 0.1
    numbers = np.where(far, np.iinfo(dtype.name).min + numbers % 7, numbers).astype(dtype.name)
    at = np.broadcast_to(numbers, (rows, count)).astype(np.int64)
    found = np.take_along_axis(tables, np.clip(at, 0, width - 1)[..., None], 1)
    want = np.where(((at >= 0) & (at < width))[..., None], found, 0)
    names = [axis.name for axis in lower(ast).axes]
    lanes = r.choice(names)
    actions = ";".join([f"split({lanes}, 4, VECTOR)", *(f"split({n}, 2, UPCAST)" for n in names if r.random() < 0.5)])
    extents = {axis.name: axis.extent for axis in lower(ast).axes}
    actions = ";".join(part for part in actions.split(";") if part and int(str(extents[part[6:8]])) > 8)
    out = np.zeros((rows, count, inner), np.float32)
    run(ast, actions, out, tables, numbers)
    np.testing.assert_array_equal(out, want)


@pytest.mark.parametrize("dtype", [I32, I64], ids=lambda dtype: dtype.name)
def test_no_lane_asks_and_rows_share_their_places(dtype: DType) -> None:
    rows, width, count = 4, 9, 32
    ast = elements(rows, width, count, dtype=dtype)
    rng = np.random.default_rng(0)
    tables = rng.uniform(1, 2, (rows, width)).astype(np.float32)
    numbers = rng.integers(-2, width + 2, count).astype(dtype.name)
    out = np.zeros((rows, count), np.float32)
    kernel = run(ast, "split(i1, 8, VECTOR);mark(i0, UPCAST)", out, tables, numbers)
    assert gates(kernel) == [False] * (8 * rows)
    places = {u.src[0] for u in kernel if u.op is UOps.GEP and dtypes.is_int(u.dtype)}
    assert len(places) == 1, "lanes are taken out of one vector for all rows"


def test_a_partial_vector_reads_nothing_outside() -> None:
    """Counters in an index run past the end there, where no condition tells that they are inside."""
    rows, width, count = 11, 4, 9
    ast = elements(rows, width, count)
    rng = np.random.default_rng(0)
    tables = rng.uniform(1, 2, (rows, width)).astype(np.float32)
    numbers = rng.integers(0, width, count).astype(np.int32)
    out = np.zeros((rows, count), np.float32)
    kernel = run(ast, "split(i0, 8, VECTOR)", out, tables, numbers)
    np.testing.assert_array_equal(out, tables[:, numbers])
    assert gates(kernel) == [False] * 16


def test_a_plan_lets_rows_share_their_places() -> None:
    """Few operations lead to a place, but taking its lanes apart is shared with them."""
    shape, width = (8, 400), 97
    index = A.load(2, I32, ST((1, 400)).expand(shape))
    for _ in range(6):
        index = A.alu(Ops.ADD, index, number(1, index))
    row = A.iota(ST((8, 1)).expand(shape), I32)
    place = A.alu(Ops.ADD, A.alu(Ops.MUL, row, number(width, row)), index)
    place = A.alu(Ops.WHERE, bounded(index, 0, width), place, number(-1, place))
    buffers = (BufferArg(F32, 3200), BufferArg(F32, 8 * width), BufferArg(I32, 400))
    nest = lower(A.sink((A.store(0, ST(shape), A.gather(1, F32, ST((8 * width,)), place)),), buffers))
    planned = apply(nest, loop_actions(nest, CPU))
    assert [(a.root.name, a.extent) for a in planned.axes if a.kind is Kind.UPCAST] == [("i0", 4)]


@pytest.mark.parametrize("seed", range(30))
def test_addresses_of_a_view_are_computed_for_all_lanes_together(seed: int) -> None:
    """Of numbers that a view takes from a buffer in any order: no lane divides by itself what leads to its address."""
    draw, rng = random.Random(seed), np.random.default_rng(seed)
    whole = tuple(draw.randint(2, 7) for _ in range(draw.randint(2, 3)))
    values = np.arange(np.prod(whole), dtype=np.float32) + 1
    axes = draw.sample(range(len(whole)), len(whole))
    view, numbers = ST(whole).permute(tuple(axes)), values.reshape(whole).transpose(axes)
    cut = [(low := draw.randrange(n), draw.randint(low + 1, n)) for n in map(int, numbers.shape)]
    view, numbers = view.shrink(tuple(cut)), numbers[tuple(slice(*ends) for ends in cut)]
    if draw.random() < 0.5:
        view, numbers = view.flip((0,)), numbers[::-1]
    size, count = int(numbers.size), draw.choice((16, 24, draw.randint(9, 40)))
    which = rng.integers(-2, size + 2, count).astype(np.int32)
    read = A.gather(1, F32, view.reshape((size,)), A.load(2, I32, ST((count,))))
    buffers = (BufferArg(F32, count), BufferArg(F32, values.size), BufferArg(I32, count))
    nest = lower(A.sink((A.store(0, ST((count,)), read),), buffers))
    for actions in ([], ["split(i0, 8, VECTOR)"], ["split(i0, 4, VECTOR)", "split(i0, 2, UPCAST)"]):
        program = linearize(emit_nest(apply(nest, [parse_loop(text) for text in actions]), CPU))
        verify(program)
        divided = [u for u in program if u.op in (Ops.IDIV, Ops.MOD) and u.dtype.count == 1]
        assert not actions or count % 8 or not divided
        out = bytearray(4 * count)
        interpret(program, [out, bytearray(values.tobytes()), bytearray(which.tobytes())])
        inside = (which >= 0) & (which < size)
        want = np.where(inside, numbers.reshape(-1)[np.where(inside, which, 0)], 0)
        np.testing.assert_array_equal(np.frombuffer(out, np.float32), want)
