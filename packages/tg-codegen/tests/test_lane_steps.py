"""What is known of a gather's index: where it reads at all, and whether lanes read neighbours."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from tg_codegen import Target, interpret, linearize
from tg_codegen.emit.kernel import emit_nest
from tg_codegen.emit.lane_steps import step_of
from tg_codegen.ir.uop import UOps
from tg_codegen.nest.env import Env
from tg_codegen.nest.lower import lower
from tg_codegen.nest.nest import Nest, Node
from tg_codegen.plan.actions import apply
from tg_codegen.plan.vocabulary import parse_loop
from tg_dtype import DType, dtypes
from tg_lazy import BufferArg, LazyOp, Ops
from tg_lazy import ast as A
from tg_shape import ShapeTracker, Variable, sint

F32, I32 = dtypes.float32, dtypes.int32
ST = ShapeTracker.from_shape
COUNT, SIZE = 32, 24
CPU = Target(vector_bytes=32, registers=16)
Array = np.ndarray[Any, np.dtype[Any]]


def number(value: int, dtype: DType = I32) -> LazyOp:
    return A.const(value, dtype, (COUNT,))


def counter(dtype: DType = I32) -> LazyOp:
    """0, 1, …"""
    return A.iota(ST((COUNT,)), dtype)


def computed() -> LazyOp:
    """Numbers from memory."""
    return A.load(2, I32, ST((COUNT,)))


def condition() -> LazyOp:
    return A.alu(Ops.CMPLT, A.load(3, I32, ST((COUNT,))), number(5))


def where(first: LazyOp, second: LazyOp) -> LazyOp:
    return A.alu(Ops.WHERE, condition(), first, second)


def gather(index: LazyOp, size: sint = SIZE) -> LazyOp:
    buffers = (BufferArg(F32, COUNT), BufferArg(F32, 64), BufferArg(I32, COUNT), BufferArg(I32, COUNT))
    return A.sink((A.store(0, ST((COUNT,)), A.gather(1, F32, ST((size,)), index)),), buffers)


def index_of(index: LazyOp, size: sint = SIZE) -> tuple[Nest, Node]:
    nest = lower(gather(index, size))
    return nest, nest.stores[0].value.src[0]


def stated(index: LazyOp, size: sint = SIZE) -> tuple[str, ...]:
    """A gather's index and its conditions, by their ops."""
    return tuple(node.op.name for node in lower(gather(index, size)).stores[0].value.src)


# where it reads


@pytest.mark.parametrize(("index", "holds"), [
    (where(computed(), number(-1)), True),
    (where(number(-1), computed()), False),
    (where(computed(), number(SIZE)), True),
    (where(number(1000), computed()), False),
    (where(A.cast(computed(), dtypes.uint8), number(255, dtypes.uint8)), True),
], ids=["below", "below, first", "behind the last", "far behind, first", "unsigned"])  # fmt: skip
def test_an_index_outside_stands_for_nothing(index: LazyOp, holds: bool) -> None:
    op = "CAST" if index.dtype is dtypes.uint8 else "LOAD"
    assert stated(index) == (op, "CMPLT" if holds else "NOT")


@pytest.mark.parametrize("index", [
    where(computed(), number(0)), where(number(SIZE - 1), computed()), where(computed(), counter()), computed(),
    A.alu(Ops.ADD, where(computed(), number(-1)), number(1)), A.cast(where(computed(), number(-1)), dtypes.uint8),
], ids=["first", "last", "two numbers", "one number", "moved inside", "wrapped inside"])  # fmt: skip
def test_an_index_that_may_be_inside_is_read(index: LazyOp) -> None:
    assert len(stated(index)) == 1


def test_the_greatest_size_counts() -> None:
    n = Variable("n", 1, SIZE)
    assert stated(where(computed(), number(SIZE)), n) == ("LOAD", "CMPLT")
    assert stated(where(computed(), number(SIZE - 1)), n) == ("WHERE",)


def test_two_choices() -> None:
    other = A.alu(Ops.CMPLT, counter(), number(9))
    assert stated(A.alu(Ops.WHERE, other, where(number(-1), computed()), number(-2))) == ("LOAD", "CMPLT", "NOT")


# whether lanes are neighbours


def plus(x: LazyOp, y: LazyOp) -> LazyOp:
    return A.alu(Ops.ADD, x, y)


WIDER = A.cast(counter(dtypes.uint32), dtypes.int64)
NEAR = plus(A.cast(counter(), dtypes.uint8), number(3, dtypes.uint8))
START = A.load(2, I32, ST((1,)).expand((COUNT,)))  # the same for all lanes
AROUND = A.cast(plus(counter(), START), dtypes.int64)


def moved(index: LazyOp, by: int) -> LazyOp:
    return plus(index, number(by, index.dtype))


@pytest.mark.parametrize(("index", "step"), [
    (counter(), 1),
    (plus(A.alu(Ops.MUL, counter(), number(3)), number(7)), 3),
    (A.alu(Ops.SUB, number(7), counter()), -1),
    (WIDER, 1),
    (counter(dtypes.uint8), 1),
    (number(4), 0),
    (computed(), None),
    (A.alu(Ops.MUL, counter(), counter()), None),
    (A.alu(Ops.SUB, counter(dtypes.uint32), number(3, dtypes.uint32)), None),
    (NEAR, None),
    (A.cast(NEAR, I32), None),
    (A.cast(plus(counter(dtypes.int8), number(100, dtypes.int8)), I32), None),
    (A.iota(ST((COUNT,)).reshape((2, COUNT // 2)).permute((1, 0)).reshape((COUNT,)), I32), None),
    (AROUND, 1),
    (moved(AROUND, 1 << 20), 1),
    (plus(A.cast(plus(A.alu(Ops.MUL, counter(), number(5)), START), dtypes.int64), counter(dtypes.int64)), 6),
    (A.cast(moved(AROUND, 1 << 31), I32), None),
    (moved(AROUND, 1 << 31), None),
    (moved(moved(AROUND, 1 << 28), 1 << 28), None),
    (plus(AROUND, A.cast(A.load(3, I32, ST((1,)).expand((COUNT,))), dtypes.int64)), None),
    (A.alu(Ops.MUL, AROUND, number(3, dtypes.int64)), None),
    (plus(A.cast(counter(), dtypes.int64), number(1 << 31, dtypes.int64)), 1),
], ids=["counter", "line", "backwards", "wider", "narrow", "one place", "memory", "square", "below 0 and around",
        "255 and around", "around, then wider", "below -128, then wider", "unevenly", "32 bits around, then wider",
        "then moved a little", "then by a counter", "then far, and narrow", "then far", "then far in two steps",
        "then nobody knows where", "then times 3", "wider, then far"])  # fmt: skip
def test_steps(index: LazyOp, step: int | None) -> None:
    nest, node = index_of(index)
    (axis,) = nest.axes
    lane = Variable("lane", 0, 7)
    env = Env(dict.fromkeys(nest.roots, 0)).open(axis.name, axis.root, axis.stride, lane)
    assert step_of(node, env, lane, 8) == step


def test_a_counter_that_leaves_its_type() -> None:
    """256 and more are not in 8 bits: a lane further may be at the other end of the buffer."""
    lane, long = Variable("lane", 0, 7), Variable("i", 0, 299)
    index = lower(gather(counter(dtypes.uint8))).stores[0].value.src[0]
    wide = Node(index.op, index.dtype, (), long + 3, frozenset({long}), 0)
    assert step_of(wide, Env({long: lane}), lane, 8) is None


# what comes of it


@dataclass(frozen=True)
class Reads:
    """An index, where numpy says that it reads, and whether it does so in vectors."""

    index: LazyOp
    want: Callable[[Array, Array], Array]
    vectors: bool


UNSIGNED = A.alu(Ops.SUB, counter(dtypes.uint32), number(3, dtypes.uint32))
READS = {
    "wanted": Reads(where(counter(), number(-1)), lambda i, ok: np.where(ok, i, -1), True),
    "not wanted": Reads(where(number(99), counter()), lambda i, ok: np.where(ok, -1, i), True),
    "always": Reads(where(counter(), number(2)), lambda i, ok: np.where(ok, i, 2), False),
    "moved": Reads(plus(where(counter(), number(-1)), number(1)), lambda i, ok: np.where(ok, i + 1, 0), False),
    "before the first": Reads(plus(counter(), number(-3)), lambda i, ok: i - 3, True),
    "around": Reads(UNSIGNED, lambda i, ok: i - 3, False),
    "around inside": Reads(
        plus(A.cast(counter(), dtypes.uint8), number(243, dtypes.uint8)), lambda i, ok: (i + 243) % 256, False),
}  # fmt: skip


@pytest.mark.parametrize("name", READS)
def test_values(name: str) -> None:
    case = READS[name]
    rng = np.random.default_rng(0)
    table, flags = rng.uniform(1, 2, 64).astype(np.float32), rng.integers(0, 10, COUNT).astype(np.int32)
    out, numbers = np.zeros(COUNT, np.float32), np.arange(COUNT)
    kernel = linearize(emit_nest(apply(lower(gather(case.index)), [parse_loop("split(i0, 8, VECTOR)")]), CPU))
    interpret(kernel, [memory.data.cast("B") for memory in (out, table, numbers.astype(np.int32), flags)], {})
    at = case.want(numbers, flags < 5)
    np.testing.assert_array_equal(out, np.where((at >= 0) & (at < SIZE), table[np.clip(at, 0, SIZE - 1)], 0))
    lanes = {u.dtype.count for u in kernel if u.op is UOps.LOAD and u.src[0].arg == 1}
    assert lanes == ({8} if case.vectors else {1})


@pytest.mark.parametrize("far", [0, 1 << 20, 1 << 31])
def test_what_wraps_around_before_it_is_widened(far: int) -> None:
    """Of 2**31 - 1 + 2**31 and -2**31 + 2**31, side by side, one is outside and the other the first element."""
    index = moved(AROUND, far)
    sink = gather(index)
    sink = A.sink(sink.src, (*sink.arg[:2], BufferArg(I32, 1)))
    kernel = emit_nest(apply(lower(sink), [parse_loop("split(i0, 8, VECTOR)")]), CPU)
    for start in (dtypes.max(I32) - 4, -3, 5):
        places = np.arange(start, start + COUNT).astype(np.int32).astype(np.int64) + far
        inside = (places >= 0) & (places < SIZE)
        table, out = np.arange(1, 65, dtype=np.float32), np.zeros(COUNT, np.float32)
        interpret(linearize(kernel), [a.data.cast("B") for a in (out, table, np.array([start], np.int32))], {})
        np.testing.assert_array_equal(out, np.where(inside, table[np.where(inside, places, 0)], 0))
