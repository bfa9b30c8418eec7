"""Kernels in blocks of rows: when steps share one, and that it computes the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tg_dtype import dtypes
from tg_lazy import LazyBuffer, Ops, ScheduleItem, ast, schedule
from tg_lazy.ast import BufferArg
from tg_lazy.cost import LIMITS, Limits
from tg_lazy.kernel.rows import _depth, in_rows
from tg_shape import ShapeTracker, Variable, View

Array = np.ndarray[Any, np.dtype[Any]]
pytestmark = pytest.mark.usefixtures("row_kernels")


def attention(q: LazyBuffer, k: LazyBuffer, v: LazyBuffer) -> LazyBuffer:
    (b, n, d), m = q.shape, k.shape[1]
    full = (b, n, m, d)
    s = q.reshape((b, n, 1, d)).expand(full).alu(Ops.MUL, k.reshape((b, 1, m, d)).expand(full)).reduce(Ops.ADD, (3,))
    s = s.reshape((b, n, m))
    e = s.alu(Ops.SUB, s.reduce(Ops.MAX, (2,)).expand(s.shape)).alu(Ops.EXP2)
    p = e.alu(Ops.FDIV, e.reduce(Ops.ADD, (2,)).expand(e.shape))
    out = (b, n, d, m)
    wide = p.reshape((b, n, 1, m)).expand(out)
    return wide.alu(Ops.MUL, v.permute((0, 2, 1)).reshape((b, 1, d, m)).expand(out)).reduce(Ops.ADD, (3,))


def unnormalised(q: LazyBuffer, k: LazyBuffer, v: LazyBuffer) -> tuple[LazyBuffer, LazyBuffer]:
    """Attention that divides by the sums last, and the sums: two kernels read the exponentials."""
    (b, n, d), m = q.shape, k.shape[1]
    full, out = (b, n, m, d), (b, n, d, m)
    s = q.reshape((b, n, 1, d)).expand(full).alu(Ops.MUL, k.reshape((b, 1, m, d)).expand(full)).reduce(Ops.ADD, (3,))
    s = s.reshape((b, n, m))
    e = s.alu(Ops.SUB, s.reduce(Ops.MAX, (2,)).expand(s.shape)).alu(Ops.EXP2)
    wide = e.reshape((b, n, 1, m)).expand(out)
    mixed = wide.alu(Ops.MUL, v.permute((0, 2, 1)).reshape((b, 1, d, m)).expand(out)).reduce(Ops.ADD, (3,))
    total = e.reduce(Ops.ADD, (2,))
    return total.alu(Ops.RECIP).expand((b, n, d)).alu(Ops.MUL, mixed.reshape((b, n, d))), total


def np_attention(q: Array, k: Array, v: Array) -> Array:
    s = q @ k.transpose(0, 2, 1)
    e = np.exp2(s - s.max(-1, keepdims=True))
    result: Array = e / e.sum(-1, keepdims=True) @ v
    return result


def test_rows_are_walked_alike_only_by_plain_views() -> None:
    plain = ShapeTracker.from_shape((4, 3))
    assert _depth([plain, plain], [(4, 3)]) > 0
    for other in (View((4, 3), (3, 1), 1), View((4, 3), (3, 1), 0, ((0, 3), (0, 3)))):
        for both in ([plain, ShapeTracker((other,))], [ShapeTracker((other,)), plain]):
            assert _depth(both, [(4, 3)]) == 0


def data(*shape: int) -> Array:
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)


def any_internal(items: list[ScheduleItem]) -> bool:
    return any(arg.internal for item in items for arg in item.ast.arg)


def test_attention_is_one_kernel(machine: Any) -> None:
    q, k, v = data(2, 64, 4), data(2, 96, 4), data(2, 96, 4)
    out = attention(*(machine.buffer(x) for x in (q, k, v)))
    (item,) = machine.run(out)
    assert [arg.internal for arg in item.ast.arg] == [False] * 4 + [True] * 2
    assert len(item.bufs) == 4
    np.testing.assert_allclose(
        machine.memory[out.base.storage].reshape(2, 64, 4), np_attention(q, k, v), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("seed", range(5))
def test_what_another_kernel_makes_of_an_intermediate_comes_along(machine: Any, seed: int) -> None:
    rng = np.random.default_rng(seed)
    b, n, m, d = int(rng.integers(1, 4)), *(int(size) for size in rng.integers(48, 99, 2)), int(rng.integers(4, 6))
    q, k, v = (rng.standard_normal(shape).astype(np.float32) for shape in ((b, n, d), (b, m, d), (b, m, d)))
    out, _ = unnormalised(*(machine.buffer(x) for x in (q, k, v)))
    (item,) = machine.run(out)
    assert [arg.internal for arg in item.ast.arg] == [False] * 4 + [True] * 3
    np.testing.assert_allclose(
        machine.memory[out.base.storage].reshape(b, n, d), np_attention(q, k, v), rtol=1e-4, atol=1e-5)


def test_what_comes_along_is_nobody_elses(machine: Any) -> None:
    """The sums are wanted, too: a kernel hands them and the exponentials to nobody in secret."""
    q, k, v = data(2, 64, 4), data(2, 96, 4), data(2, 96, 4)
    out, total = unnormalised(*(machine.buffer(x) for x in (q, k, v)))
    items = machine.run(out, total)
    assert all(not arg.internal or arg.size > 2 * 64 for item in items for arg in item.ast.arg)
    s = q @ k.transpose(0, 2, 1)
    sums = np.exp2(s - s.max(-1, keepdims=True)).sum(-1)
    np.testing.assert_allclose(machine.memory[total.base.storage].reshape(2, 64), sums, rtol=1e-4)
    np.testing.assert_allclose(
        machine.memory[out.base.storage].reshape(2, 64, 4), np_attention(q, k, v), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("length", [1, 40, 96])
def test_rows_of_a_symbolic_length(machine: Any, length: int) -> None:
    n = Variable("n", 1, 96).bind(length)
    q, k, v = data(2, 64, 4), data(2, 96, 4), data(2, 96, 4)
    near = [machine.buffer(x).shrink(((0, 2), (0, n), (0, 4))) for x in (k, v)]
    out = attention(machine.buffer(q), *near)
    (item,) = machine.run(out)
    assert [arg.internal for arg in item.ast.arg] == [False] * 4 + [True] * 2
    np.testing.assert_allclose(
        machine.memory[out.base.storage].reshape(2, 64, 4), np_attention(q, k[:, :length], v[:, :length]), rtol=1e-4,
        atol=1e-5)


def test_small_intermediates_are_not_worth_it(machine: Any) -> None:
    q, k, v = data(2, 16, 4), data(2, 16, 4), data(2, 16, 4)
    assert not any_internal(machine.run(attention(*(machine.buffer(x) for x in (q, k, v)))))


def test_what_somebody_wants_is_realised(machine: Any) -> None:
    q, k, v = (machine.buffer(x) for x in (data(2, 64, 4), data(2, 96, 4), data(2, 96, 4)))
    (b, n, d), m = q.shape, k.shape[1]
    full = (b, n, m, d)
    s = q.reshape((b, n, 1, d)).expand(full).alu(Ops.MUL, k.reshape((b, 1, m, d)).expand(full)).reduce(Ops.ADD, (3,))
    items, _ = schedule([s, attention(q, k, v)])
    realised = {node for item in items for node in item.nodes}
    assert s.base in realised


def test_rows_that_mix_stay_apart(machine: Any) -> None:
    """The second product reads all rows of the first."""
    a, b = data(64, 8), data(8, 96)
    x, y = machine.buffer(a), machine.buffer(b)
    first = x.reshape((64, 1, 8)).expand((64, 96, 8)).alu(
        Ops.MUL, y.permute((1, 0)).reshape((1, 96, 8)).expand((64, 96, 8))).reduce(Ops.ADD, (2,)).reshape((64, 96))
    again = first.permute((1, 0))
    wide = again.reshape((96, 1, 64)).expand((96, 96, 64))
    second = wide.alu(Ops.MUL, again.reshape((1, 96, 64)).expand((96, 96, 64))).reduce(Ops.ADD, (2,))
    items = machine.run(second)
    assert not any_internal(items)
    c = (a @ b).T
    np.testing.assert_allclose(machine.memory[second.base.storage].reshape(96, 96), c @ c.T, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("width", "together"), [(32, True), (33, False)])
def test_what_is_kept_out_of_memory_is_twice_what_each_block_reads(machine: Any, width: int, together: bool) -> None:
    """That is the second operand: of the first one each row reads what is its own."""
    q, k = data(1, 64, width), data(1, 64, width)
    full = (1, 64, 64, width)
    left, right = (machine.buffer(x).reshape(shape).expand(full)
                   for x, shape in ((q, (1, 64, 1, width)), (k, (1, 1, 64, width))))
    s = left.alu(Ops.MUL, right).reduce(Ops.ADD, (3,)).reshape((1, 64, 64))
    out = s.alu(Ops.SUB, s.reduce(Ops.MAX, (2,)).expand(s.shape))
    assert any_internal(machine.run(out)) == together
    want = q @ k.transpose(0, 2, 1)
    want = want - want.max(-1, keepdims=True)
    np.testing.assert_allclose(machine.memory[out.base.storage].reshape(want.shape), want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("first", "second", "width", "together"), [
    (64, 128, 16, True), (64, 128, 17, False),  # two parts add up
    (64, 64, 32, True), (64, 64, 33, False),  # one that is seen twice is there once
    (0, 131, 16, True), (0, 131, 17, False),
])  # fmt: skip
def test_of_an_input_that_is_seen_in_part_the_part_counts(
    machine: Any, first: int, second: int, width: int, together: bool
) -> None:
    """Some rows of many by some others: what is beside them is not read for this kernel."""
    many, rows, full = (64 if first == second else 199), 64, (1, 64, 64, width)
    x = data(1, many, width)
    whole: LazyBuffer = machine.buffer(x)

    def part(begin: int) -> LazyBuffer:
        return whole if many == rows else whole.shrink(((0, 1), (begin, begin + rows), (0, width)))

    left = machine.buffer(own := data(rows, width)).reshape((1, rows, 1, width)).expand(full)
    one, other = (part(begin).reshape((1, 1, rows, width)).expand(full) for begin in (first, second))
    s = left.alu(Ops.MUL, one).alu(Ops.MUL, other).reduce(Ops.ADD, (3,)).reshape((1, rows, rows))
    out = s.alu(Ops.SUB, s.reduce(Ops.MAX, (2,)).expand(s.shape))
    assert any_internal(machine.run(out)) == together
    a, b = (x if many == rows else x[:, begin : begin + rows] for begin in (first, second))
    want = own[None] @ (a * b).transpose(0, 2, 1)
    want = want - want.max(-1, keepdims=True)
    np.testing.assert_allclose(machine.memory[out.base.storage].reshape(want.shape), want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("turned", [False, True])
def test_each_of_several_internal_buffers_is_walked_by_rows(turned: bool) -> None:
    rows, f32 = ShapeTracker.from_shape((64, 64)), dtypes.float32
    x, y = (ast.load(slot, f32, rows) for slot in (1, 2))
    first, second = ast.load(3, f32, rows), ast.load(4, f32, rows.permute((1, 0)) if turned else rows)
    parts = ast.store(3, rows, x), ast.store(4, rows, y), ast.store(0, rows, ast.alu(Ops.ADD, first, second))
    whole, internal = BufferArg(f32, 4096), BufferArg(f32, 4096, internal=True)
    sink = ast.sink(parts, (whole, whole, whole, internal, internal))
    assert (in_rows(sink, Limits(row_bytes=8192)) is sink) == (not turned)


@pytest.mark.parametrize(("axes", "seen", "together"), [
    ((1,), (1, 0), True), ((0, 1), (0, 0), False), ((0,), (0, 1), False),
    ((1,), (0, 1), False),  # the sums of the rows, beside one another
])  # fmt: skip
def test_what_a_row_needs_of_all_rows_keeps_kernels_apart(
    axes: tuple[int, ...], seen: tuple[int, int], together: bool
) -> None:
    rows, f32 = ShapeTracker.from_shape((64, 64)), dtypes.float32
    total = ast.reduce(ast.load(2, f32, rows), Ops.ADD, axes)
    wide = ast.view(total, ShapeTracker((View((64, 64), seen),)))
    parts = ast.store(2, rows, ast.load(1, f32, rows)), ast.store(0, rows, ast.alu(Ops.ADD, wide, wide))
    whole, internal = BufferArg(f32, 4096), BufferArg(f32, 4096, internal=True)
    sink = ast.sink(parts, (whole, whole, internal))
    assert (in_rows(sink, Limits(row_bytes=8192)) is sink) == together


def test_targets_without_such_kernels(machine: Any) -> None:
    LIMITS["CPU"] = Limits()
    q, k, v = data(2, 64, 4), data(2, 96, 4), data(2, 96, 4)
    assert not any_internal(machine.run(attention(*(machine.buffer(x) for x in (q, k, v)))))
