"""Trimmed sums: what padding makes 0 is left out, and no more than that. The interpreter finds reads out of bounds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tg_codegen import Target, interpret, linearize
from tg_codegen.emit.kernel import emit_nest
from tg_codegen.ir.uop import UOps
from tg_codegen.nest.lower import lower
from tg_codegen.nest.nest import Nest
from tg_codegen.nest.spec import NodeOp
from tg_codegen.nest.trim import congruence, trimming
from tg_codegen.plan.actions import apply
from tg_codegen.plan.code_copies import proposed
from tg_codegen.plan.vocabulary import parse_loop
from tg_dtype import dtypes
from tg_lazy import BufferArg, LazyOp, Ops
from tg_lazy import ast as A
from tg_shape import ShapeTracker

ST = ShapeTracker.from_shape
F32 = dtypes.float32
CPU = Target(vector_bytes=16, registers=16)
Array = np.ndarray[Any, np.dtype[Any]]


def filtered(n: int, k: int, left: int, right: int, op: Ops = Ops.MUL, total: Ops = Ops.ADD) -> LazyOp:
    """out[i] = the sum over j of w[j] * x[i + j - left], x being 0 outside; 4 columns of it."""
    padded = n + left + right
    out = padded - k + 1
    times = -(-k * (padded + 1) // padded)
    view = ST((n, 4)).pad(((left, right), (0, 0)))
    view = view.reshape((1, padded, 4)).expand((times, padded, 4)).reshape((times * padded, 4))
    view = view.shrink(((0, k * (padded + 1)), (0, 4))).reshape((k, padded + 1, 4)).shrink(((0, k), (0, out), (0, 4)))
    x = A.load(1, F32, view.permute((1, 2, 0)))
    w = A.load(2, F32, ST((1, 1, k)).expand((out, 4, k)))
    result = A.reduce(A.alu(op, x, w), total, (2,))
    sizes = (out * 4, n * 4, k)
    return A.sink((A.store(0, ST((out, 4, 1)), result),), tuple(BufferArg(F32, s) for s in sizes))


def computed(nest: Nest, n: int, k: int, left: int, right: int) -> tuple[Array, Array]:
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((n, 4)).astype(np.float32), rng.standard_normal(k).astype(np.float32)
    out = np.zeros((n + left + right - k + 1, 4), np.float32)
    interpret(linearize(emit_nest(nest, CPU)), [a.data.cast("B") for a in (out, x, w)], {})
    wide = np.pad(x, ((left, right), (0, 0)))
    return out, sum(w[j] * wide[j : j + len(out)] for j in range(k))


def moving(nest: Nest) -> bool:
    """Whether a loop begins or ends where another one stands."""
    return any(not s.is_const for u in emit_nest(nest, CPU).toposort() if u.op is UOps.RANGE for s in u.src)


@pytest.mark.parametrize("text", ["", "split(i1, 4, VECTOR)", "split(i1, 4, VECTOR); outermost(i1)"])
@pytest.mark.parametrize(("n", "k", "left", "right"), [(9, 3, 1, 1), (6, 5, 4, 4), (7, 4, 0, 3), (5, 8, 7, 2)])
def test_sums(n: int, k: int, left: int, right: int, text: str) -> None:
    nest = apply(lower(filtered(n, k, left, right)), [parse_loop(line) for line in text.split("; ") if line])
    assert moving(nest)
    np.testing.assert_allclose(*computed(nest, n, k, left, right), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "text", ["split(i0, 2, UPCAST)", "mark(r0, UNROLL)", "split(r0, 2, UNROLL)", "split(i0, 4, VECTOR)"]
)
def test_where_other_loops_share_the_mask_it_stays(text: str) -> None:
    nest = apply(lower(filtered(9, 3, 1, 1)), [parse_loop(text)])
    assert not moving(nest)
    np.testing.assert_allclose(*computed(nest, 9, 3, 1, 1), rtol=1e-5, atol=1e-5)


def test_masks_are_not_asked_for_inside() -> None:
    gated = [u for u in emit_nest(lower(filtered(9, 3, 1, 1)), CPU).toposort() if u.op is UOps.LOAD and len(u.src) > 2]
    assert not gated


def test_what_is_staged_is_there_for_every_iteration_that_is_left() -> None:
    nest = apply(lower(filtered(9, 3, 1, 1)), [parse_loop("pack(1, -)")])
    assert moving(nest)
    assert not [u for u in emit_nest(nest, CPU).toposort() if u.op is UOps.LOAD and len(u.src) > 2]
    np.testing.assert_allclose(*computed(nest, 9, 3, 1, 1), rtol=1e-5, atol=1e-5)


def spread_out(n: int, k: int, period: int, left: int) -> LazyOp:
    """out[i] = the sum over j of w[j] * z[i + j - left]; z has x at every ``period``-th place and 0 elsewhere."""
    first, last = -(-left // period), k
    whole = n + first + last
    size = whole * period
    out = size - (first * period - left) - k + 1
    view = ST((n, 1)).pad(((first, last), (0, period - 1))).reshape((size,)).shrink(((first * period - left, size),))
    size -= first * period - left
    times = -(-k * (size + 1) // size)
    view = view.reshape((1, size)).expand((times, size)).reshape((times * size,)).shrink(((0, k * (size + 1)),))
    view = view.reshape((k, size + 1)).shrink(((0, k), (0, out))).permute((1, 0))
    product = A.alu(Ops.MUL, A.load(1, F32, view), A.load(2, F32, ST((1, k)).expand((out, k))))
    store = A.store(0, ST((out, 1)), A.reduce(product, Ops.ADD, (1,)))
    return A.sink((store,), tuple(BufferArg(F32, s) for s in (out, n, k)))


@pytest.mark.parametrize("text", ["", "split(i0, 3, LOOP)", "split(i0, 2, UPCAST); mark(r0, UNROLL)"])
@pytest.mark.parametrize(
    ("n", "k", "period", "left"), [(5, 3, 2, 1), (6, 4, 2, 2), (4, 5, 3, 2), (3, 7, 5, 4), (7, 2, 3, 0), (1, 2, 2, 0)]
)
def test_a_loop_takes_the_steps_of_a_remainder(n: int, k: int, period: int, left: int, text: str) -> None:
    nest = apply(lower(spread_out(n, k, period, left)), [parse_loop(line) for line in text.split("; ") if line])
    remainders = [e for e in trimming(nest) if congruence(e)]
    assert bool(remainders) is ("UNROLL" not in text)
    if remainders and not text:  # no load asks for a mask
        assert not [u for u in emit_nest(nest, CPU).toposort() if u.op is UOps.LOAD and len(u.src) > 2]
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal(n).astype(np.float32), rng.standard_normal(k).astype(np.float32)
    out = np.zeros(nest.buffers[0].size, np.float32)
    interpret(linearize(emit_nest(nest, CPU)), [a.data.cast("B") for a in (out, x, w)], {})
    z = np.zeros(len(out) + k)
    z[left : left + n * period : period] = x[: len(z[left : left + n * period : period])]
    np.testing.assert_allclose(out, [z[i : i + k] @ w for i in range(len(out))], rtol=1e-5, atol=1e-5)


def products(nest: Nest) -> int:
    """How many multiplications of floats the code has."""
    return sum(u.op in (Ops.MUL, Ops.MULACC) and u.dtype.scalar() is F32 for u in emit_nest(nest, CPU).toposort())


def copied(nest: Nest, text: str) -> Nest:
    """A nest with actions, and the copies of the code that are proposed then."""
    nest = apply(nest, [parse_loop(line) for line in text.split("; ")])
    return apply(nest, [*proposed(nest)])


@pytest.mark.parametrize("tile", [2, 3, 4])
@pytest.mark.parametrize(
    ("n", "k", "left", "right"), [(30, 3, 1, 1), (12, 5, 4, 4), (7, 4, 0, 3), (9, 3, 2, 0), (3, 5, 4, 4)]
)
def test_tiles_at_the_rim_have_fewer_terms(n: int, k: int, left: int, right: int, tile: int) -> None:
    text = f"split(i0, {tile}, UPCAST); split(i1, 4, VECTOR); mark(r0, UNROLL)"
    nest = copied(lower(filtered(n, k, left, right)), text)
    assert not [u for u in emit_nest(nest, CPU).toposort() if u.op is UOps.LOAD and len(u.src) > 2]
    np.testing.assert_allclose(*computed(nest, n, k, left, right), rtol=1e-5, atol=1e-5)


def test_what_is_known_to_be_0_is_no_term() -> None:
    # 16 results in tiles of 4: the first and the last of them are by themselves, the other two are a loop
    nest = copied(lower(filtered(16, 3, 1, 1)), "split(i0, 4, UPCAST); mark(r0, UNROLL)")
    assert products(nest) == (4 * 3 - 1) + 4 * 3 + (4 * 3 - 1)


def test_tiles_of_a_loop_that_is_divided_among_threads_stay_together() -> None:
    text = "split(i0, 4, UPCAST); mark(r0, UNROLL); mark(i0, THREAD)"
    nest = copied(lower(filtered(16, 3, 1, 1)), text)
    assert products(nest) == 4 * 3
    np.testing.assert_allclose(*computed(nest, 16, 3, 1, 1), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("op", "total"), [(Ops.ADD, Ops.ADD), (Ops.MUL, Ops.MAX)])
def test_only_sums_of_what_is_0(op: Ops, total: Ops) -> None:
    nest = lower(filtered(9, 3, 1, 1, op, total))
    assert any(n.op is NodeOp.REDUCE for n in nest.nodes())
    assert not trimming(nest)
    assert not moving(nest)


def test_a_sum_within_a_sum_trims_no_loop_but_its_own() -> None:
    """sum over j of (c[j] + sum over k of a[j] * b[k]), a being 0 in its last elements, where c is not."""
    n, k = 5, 7
    a = A.load(1, F32, ST((n - 2, 1)).pad(((0, 2), (0, 0))).expand((n, k)))
    b = A.load(2, F32, ST((1, k)).expand((n, k)))
    inner = A.reduce(A.alu(Ops.MUL, a, b), Ops.ADD, (1,))
    out = A.reduce(A.alu(Ops.ADD, inner, A.load(3, F32, ST((n, 1)))), Ops.ADD, (0,))
    buffers = tuple(BufferArg(F32, size) for size in (1, n - 2, k, n))
    nest = lower(A.sink((A.store(0, ST((1, 1)), out),), buffers))
    assert not trimming(nest)
    data = [np.arange(1.0, size + 1, dtype=np.float32) for size in (n - 2, k, n)]
    got = np.zeros(1, np.float32)
    interpret(linearize(emit_nest(nest, CPU)), [x.data.cast("B") for x in (got, *data)], {})
    assert got[0] == data[0].sum() * data[1].sum() + data[2].sum()
