"""Interiors: a loop over a padded dimension is cut where the padding begins and ends, if enough lies between."""

from __future__ import annotations

import random

import numpy as np
import pytest

from tg_codegen import Target, interpret, linearize
from tg_codegen.emit.kernel import emit_nest
from tg_codegen.ir.uop import UOp, UOps
from tg_codegen.nest.interior import LEAST_INTERIOR, interior
from tg_codegen.nest.lower import lower
from tg_codegen.nest.nest import Nest
from tg_codegen.nest.spec import Kind
from tg_codegen.plan.actions import Split, apply
from tg_codegen.plan.code_copies import proposed
from tg_dtype import dtypes
from tg_lazy import BufferArg, LazyOp, Ops
from tg_lazy import ast as A
from tg_shape import ShapeTracker

ST = ShapeTracker.from_shape
F32 = dtypes.float32
COLUMNS = 3


def padded(rows: int, before: int, after: int) -> LazyOp:
    """y + x, where x has rows of zeros before and after."""
    total = before + rows + after
    x = A.load(1, F32, ST((rows, COLUMNS)).pad(((before, after), (0, 0))))
    y = A.load(2, F32, ST((total, COLUMNS)))
    sizes = (total * COLUMNS, rows * COLUMNS, total * COLUMNS)
    value = A.alu(Ops.ADD, x, y)
    return A.sink((A.store(0, ST((total, COLUMNS)), value),), tuple(BufferArg(F32, size) for size in sizes))


def kernel(rows: int, before: int, after: int) -> UOp:
    return emitted(lower(padded(rows, before, after)))


def emitted(nest: Nest) -> UOp:
    """The loops of a nest, partitioned where that is proposed."""
    return emit_nest(apply(nest, [*proposed(nest)]), Target(vector_bytes=16, registers=16))


def parts(sink: UOp) -> int:
    """How many loops there are over the columns: one in each part of the rows."""
    return sum(u.op is UOps.RANGE and u.src[1].arg == COLUMNS for u in sink.toposort())


def gates(sink: UOp) -> int:
    return sum(u.op is UOps.LOAD and len(u.src) > 2 for u in sink.toposort())


@pytest.mark.parametrize(("before", "after"), [(True, False), (False, True), (True, True)])
def test_a_large_interior_has_a_loop_without_conditions(before: bool, after: bool) -> None:
    seed = random.SystemRandom().randrange(1 << 32)
    draw = random.Random(seed)
    for _ in range(4):
        rows = draw.randint(LEAST_INTERIOR, 70)
        one = draw.randint(COLUMNS + 1, rows // 2)
        sides = (one * before, one * after)
        sink = kernel(rows, *sides)
        assert (parts(sink), gates(sink)) == (1 + before + after, 0), f"{rows} {sides}, drawn with the seed {seed}"
        x = np.arange(1, rows * COLUMNS + 1, dtype=np.float32).reshape(rows, COLUMNS)
        y = np.full((rows + sum(sides), COLUMNS), 0.5, np.float32)
        out = np.zeros_like(y)
        interpret(linearize(sink), [a.data.cast("B") for a in (out, x, y)], {})
        np.testing.assert_array_equal(out, np.pad(x, (sides, (0, 0))) + y)


def test_nothing_is_cut_that_nobody_asked_for() -> None:
    sink = emit_nest(lower(padded(60, 20, 20)), Target(vector_bytes=16, registers=16))
    assert (parts(sink), gates(sink)) == (1, 1)


@pytest.mark.parametrize(
    ("rows", "before", "after", "whole"),
    [
        (LEAST_INTERIOR - 1, 0, 5, True), (LEAST_INTERIOR - 1, 3, 3, True),
        (LEAST_INTERIOR, 0, 5, False), (LEAST_INTERIOR, 3, 3, False),
        (50, 50, 0, False), (49, 51, 0, True), (40, 0, 60, True), (40, 30, 30, True), (60, 20, 20, False),
    ],
)  # fmt: skip
def test_a_small_interior_is_not_worth_more_code(rows: int, before: int, after: int, whole: bool) -> None:
    """One of few rows, or of fewer than half of all."""
    sink = kernel(rows, before, after)
    assert (parts(sink) == 1) == (gates(sink) == 1) == whole


def test_rows_count_not_tiles_of_them() -> None:
    """Ten tiles of four rows, nine of which are all inside: more rows than an interior has at the least."""
    nest = lower(padded(38, 2, 0))
    (root,) = (root for root, row in nest.roots.items() if row.extent == 40)
    name = next(axis.name for axis in nest.axes if axis.root is root)
    tiled = apply(nest, [Split(name, 4, Kind.UPCAST)])
    sink = emitted(tiled)
    gated = [u for u in sink.toposort() if u.op is UOps.LOAD and len(u.src) > 2]
    plain = [u for u in sink.toposort() if u.op is UOps.LOAD and len(u.src) == 2 and u.src[0].arg == 1]
    assert len(plain) >= 4 and len(gated) <= 4, "the tiles inside read without conditions"


def test_only_bounds_make_an_interior(monkeypatch: pytest.MonkeyPatch) -> None:
    nest = lower(padded(60, 3, 3))
    (root,) = (root for root, row in nest.roots.items() if row.extent == 66)
    for found, want in (((root < 60,), (0, 60)), ((root >= 4,), (4, 66)), ((root < 9, root >= 20), (20, 9)),
                        ((root.eq(65),), None), ((root.ne(65),), None)):  # fmt: skip
        monkeypatch.setattr("tg_codegen.nest.interior.masks", lambda nest, found=found: found)
        assert interior(nest, root) == want, found
