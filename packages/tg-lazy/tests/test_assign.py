"""Versions of memory: in place where it can be, in order, and nobody's values are lost."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tg_dtype import dtypes
from tg_lazy import LazyBuffer, Ops, schedule
from tg_lazy.subgraph.hazards import LARGE


def plus(x: LazyBuffer, value: float) -> LazyBuffer:
    return x.alu(Ops.ADD, x.const_like(value))


def times(x: LazyBuffer, value: float) -> LazyBuffer:
    return x.alu(Ops.MUL, x.const_like(value))


def ramp(n: int = 6) -> Any:
    return np.arange(n, dtype=np.float32)


def same(machine: Any, node: LazyBuffer, expected: Any) -> None:
    np.testing.assert_array_equal(machine.value(node), expected)


def test_accumulation_is_in_place_and_one_kernel(machine: Any) -> None:
    a, b = machine.buffer(ramp()), machine.buffer(ramp())
    new = a.assign(a.alu(Ops.ADD, b))
    items = machine.run(new)
    assert len(items) == 1 and items[0].bufs[0] is a.storage and len(items[0].bufs) == 2
    assert new.storage is a.storage
    same(machine, new, ramp() * 2)


def test_a_value_made_before_an_assignment_keeps_the_old_content(machine: Any) -> None:
    a = machine.buffer(ramp())
    b = plus(a, 1)
    machine.run(a.assign(a.const_like(0)))
    same(machine, b, ramp() + 1)
    same(machine, a, ramp() * 0)


def test_a_chain_on_the_old_content_keeps_it(machine: Any) -> None:
    a = machine.buffer(ramp())
    c = times(plus(a, 1).reduce(Ops.ADD, (0,)), 2)
    machine.run(a.assign(a.const_like(0)))
    same(machine, c, np.array([42.0]))


def test_values_inside_the_schedule_that_are_held_are_kept(machine: Any) -> None:
    a = machine.buffer(ramp())
    held = plus(a, 1)
    loss = held.alu(Ops.MUL, held).reduce(Ops.ADD, (0,))
    new = a.assign(a.alu(Ops.SUB, times(held, 2)))
    machine.run(new)
    same(machine, new, ramp() - 2 * (ramp() + 1))
    same(machine, held, ramp() + 1)
    same(machine, loss, np.array([91.0]))


def test_values_that_nobody_holds_are_not_kept(machine: Any) -> None:
    a = machine.buffer(ramp())
    new = a.assign(a.alu(Ops.SUB, times(plus(a, 1), 2)))
    (item,) = machine.run(new)
    assert len(item.ast.src) == 1


def test_a_view_that_is_held_counts(machine: Any) -> None:
    a = machine.buffer(ramp())
    held = plus(a, 1).reshape((2, 3)).permute((1, 0))
    new = a.assign(held.permute((1, 0)).reshape((6,)).alu(Ops.MUL, a))
    machine.run(new)
    same(machine, held, (ramp() + 1).reshape(2, 3).T)
    same(machine, new, (ramp() + 1) * ramp())


def test_what_is_made_of_something_as_large_is_kept_itself(machine: Any) -> None:
    n, m = 1049, 1031
    assert n * m * 4 > LARGE
    a, one = machine.buffer(ramp(n * m)), machine.buffer(ramp(1))
    wide = a.alu(Ops.ADD, one.expand((n * m,)))
    rows = wide.reshape((n, m)).reduce(Ops.MAX, (1,))
    machine.run(a.assign(times(a, 0)))
    same(machine, wide, ramp(n * m))
    same(machine, rows, ramp(n * m).reshape(n, m).max(1, keepdims=True))


def test_large_products_are_not_kept_but_what_uses_them(machine: Any) -> None:
    n = 1500
    a, b = machine.buffer(ramp(n)), machine.buffer(ramp(n))
    outer = a.reshape((n, 1)).expand((n, n)).alu(Ops.MUL, b.reshape((1, n)).expand((n, n)))
    rows = outer.reduce(Ops.MAX, (1,))
    items = machine.run(a.assign(plus(a, 1)))
    assert max(b.size for item in items for b in item.bufs) == n
    same(machine, rows, (ramp(n) * (n - 1)).reshape(n, 1))
    with pytest.raises(RuntimeError, match=r"MUL of shape \(1500, 1500\).*overwritten by the ASSIGN at .*test_assign"):
        machine.run(outer)


def test_a_value_that_reads_other_places_goes_through_a_temporary(machine: Any) -> None:
    a = machine.buffer(ramp())
    new = a.assign(a.flip((0,)))
    items = machine.run(new)
    assert len(items) == 2 and "other places" in items[0].reason
    same(machine, new, ramp()[::-1])


@pytest.mark.parametrize("kind", ["softmax", "sum of expanded", "gather"])
def test_a_reduction_of_the_target_goes_through_a_temporary(machine: Any, kind: str) -> None:
    v = ramp(12).reshape(3, 4)
    a = machine.buffer(v)
    if kind == "softmax":
        value, expected = a.alu(Ops.SUB, a.reduce(Ops.MAX, (1,)).expand((3, 4))), v - v.max(1, keepdims=True)
    elif kind == "sum of expanded":
        value, expected = a.reshape((1, 3, 4)).expand((5, 3, 4)).reduce(Ops.ADD, (0,)).reshape((3, 4)), v * 5
    else:
        index = np.arange(11, -1, -1, dtype=np.int32).reshape(3, 4)
        value, expected = a.gather(machine.buffer(index)), v.reshape(-1)[::-1].reshape(3, 4)
    new = a.assign(value)
    machine.run(new)
    same(machine, new, expected)


def test_a_reader_that_needs_both_versions_reads_a_copy(machine: Any) -> None:
    a = machine.buffer(ramp())
    new = a.assign(a.alu(Ops.MUL, a))
    both = a.alu(Ops.ADD, new.reduce(Ops.ADD, (0,)).expand((6,)))
    items = machine.run(both)
    assert any("copy of memory" in item.reason for item in items)
    same(machine, both, ramp() + 55)
    same(machine, new, ramp() ** 2)


def test_no_copy_where_order_alone_will_do(machine: Any) -> None:
    v = ramp(40000).reshape(200, 200)
    a = machine.buffer(v)
    old = a.permute((1, 0)).alu(Ops.ADD, a)
    new = a.assign(a.const_like(3))
    items = machine.run(new, old)
    assert not any("copy" in item.reason or "other places" in item.reason for item in items)
    same(machine, old, v + v.T)
    same(machine, new, np.full((200, 200), 3.0))


def test_two_versions_in_one_schedule(machine: Any) -> None:
    a = machine.buffer(ramp())
    one = a.assign(plus(a, 1))
    between = times(one, 10)
    two = one.assign(times(one, 2))
    after = plus(two, 0.5)
    machine.run(after, between)
    same(machine, between, (ramp() + 1) * 10)
    same(machine, after, (ramp() + 1) * 2 + 0.5)
    same(machine, two, (ramp() + 1) * 2)


def test_a_swap(machine: Any) -> None:
    a, b = machine.buffer(ramp()), machine.buffer(-ramp())
    x, y = a.assign(b), b.assign(a)
    machine.run(x, y)
    same(machine, x, -ramp())
    same(machine, y, ramp())


def test_parts(machine: Any) -> None:
    v = ramp(12).reshape(3, 4)
    a = machine.buffer(v)
    part = a.shrink(((1, 3), (0, 4))).permute((1, 0)).flip((0,))
    new = a.rebase(part.assign(plus(part, 100)))
    machine.run(new)
    expected = v.copy()
    expected[1:] += 100
    same(machine, new, expected)
    row = new.shrink(((0, 1), (0, 4)))
    new = new.rebase(row.assign(row.flip((1,))))
    machine.run(new)
    expected[0] = expected[0][::-1].copy()
    same(machine, new, expected)


def test_a_part_of_memory_that_is_not_there_yet(machine: Any) -> None:
    zeros = LazyBuffer.const(0, machine.buffer(ramp()).dtype, (3, 2), "CPU").contiguous()
    row = zeros.shrink(((1, 2), (0, 2)))
    new = zeros.rebase(row.assign(row.const_like(7)))
    column = new.shrink(((0, 3), (1, 2)))
    new = new.rebase(column.assign(column.const_like(9)))
    machine.run(new)
    same(machine, new, np.array([[0, 9], [7, 9], [0, 9]]))
    blank = LazyBuffer.empty((2,), zeros.dtype, "CPU")
    same(machine, blank.assign(blank.const_like(4)), np.array([4, 4]))


def test_a_part_of_size_zero_changes_nothing(machine: Any) -> None:
    a = machine.buffer(ramp())
    part = a.shrink(((2, 2),))
    assert part.assign(part.const_like(1)) is part


def test_assignments_of_the_same_target_happen_in_the_order_in_which_they_were_made(machine: Any) -> None:
    a = machine.buffer(ramp())
    left, right = a.shrink(((0, 4),)), a.shrink(((2, 6),))
    first = left.assign(left.const_like(1))
    second = right.assign(right.const_like(2))
    machine.run(second, first)
    same(machine, a, np.array([1, 1, 2, 2, 2, 2]))


def test_memory_seen_as_another_dtype_is_the_same_memory(machine: Any) -> None:
    a = machine.buffer(ramp())
    bits = a.bitcast(machine.buffer(np.zeros(1, np.uint8)).dtype)
    copied = plus(bits, 0).cast(a.dtype).reduce(Ops.ADD, (0,))
    machine.run(a.assign(a.const_like(0)))
    expected = ramp().view(np.uint8).astype(np.float32).sum(keepdims=True)
    np.testing.assert_array_equal(machine.value(copied), expected)


def test_shared_results_are_not_overwritten_for_each_other(machine: Any) -> None:
    a = machine.buffer(ramp())
    x, y = plus(a, 1), plus(a, 1)
    machine.run(x, y)
    new = x.assign(x.const_like(0))
    machine.run(new)
    same(machine, new, ramp() * 0)
    same(machine, y, ramp() + 1)


def test_a_step_that_fails_leaves_the_rest_to_be_scheduled_again(machine: Any) -> None:
    a, b = machine.buffer(ramp()), machine.buffer(ramp())
    x = a.assign(plus(a, 1))
    y = b.assign(b.alu(Ops.ADD, x.reduce(Ops.ADD, (0,)).expand((6,))))
    items, _ = schedule([y])
    assert len(items) > 1
    machine.execute(items[0])
    items[0].commit()
    assert not y.is_realized  # the second step is thought to fail here
    same(machine, y, ramp() + 21)
    same(machine, a, ramp() + 1)


def test_training_keeps_the_loss_of_the_old_parameters(machine: Any) -> None:
    rng = np.random.default_rng(0)
    xv, wv = rng.standard_normal((8, 5)).astype(np.float32), rng.standard_normal((5, 3)).astype(np.float32)
    x, w = machine.buffer(xv), machine.buffer(wv)
    left = x.reshape((8, 1, 5)).expand((8, 3, 5))
    right = w.permute((1, 0)).reshape((1, 3, 5)).expand((8, 3, 5))
    out = left.alu(Ops.MUL, right).reduce(Ops.ADD, (2,)).reshape((8, 3))
    loss = out.alu(Ops.MUL, out).reduce(Ops.ADD, (0, 1))
    grad = x.permute((1, 0)).reshape((5, 1, 8)).expand((5, 3, 8))
    grad = grad.alu(Ops.MUL, times(out, 2).permute((1, 0)).reshape((1, 3, 8)).expand((5, 3, 8)))
    new = w.assign(w.alu(Ops.SUB, times(grad.reduce(Ops.ADD, (2,)).reshape((5, 3)), 0.01)))
    machine.run(new)
    expected = xv @ wv
    np.testing.assert_allclose(machine.value(new), wv - 0.01 * (xv.T @ (2 * expected)), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(machine.value(loss), [[(expected**2).sum()]], rtol=1e-4)
    np.testing.assert_allclose(machine.value(out), expected, rtol=1e-4, atol=1e-5)


def test_a_cycle_is_broken_only_where_a_copy_helps(machine: Any) -> None:
    # a step that needs another for what it computes must not lose that order when the cycle around both is broken
    v = np.array([1, 2, 3, 4], np.float32)
    a = machine.buffer(v)
    early = plus(a.shrink(((0, 1),)), 1)
    one = a.shrink(((2, 4),)).assign(a.shrink(((2, 4),)).const_like(9)).base
    two = one.assign(one.alu(Ops.SUB, one.flip((0,))))
    three = two.shrink(((0, 1),)).assign(early).base
    del early
    machine.run(three)
    same(machine, three, np.array([2.0, -7.0, 7.0, 8.0]))


def test_a_step_that_reads_two_parts_of_a_version_gets_both(machine: Any) -> None:
    v = ramp(8)
    a = machine.buffer(v)
    low = a.shrink(((0, 4),)).bitcast(dtypes.int32).bitcast(dtypes.float32)
    part = a.shrink(((4, 8),)).bitcast(dtypes.uint8).bitcast(dtypes.float32)
    new = a.assign(plus(a.flip((0,)), 1))
    both = low.alu(Ops.ADD, part).alu(Ops.ADD, new.shrink(((0, 4),)))
    machine.run(both)
    same(machine, both, v[:4] + v[4:] + v[::-1][:4] + 1)


def test_an_assigned_value_is_read_in_the_shape_of_the_memory(machine: Any) -> None:
    a = machine.buffer(ramp(4))
    old = times(a, 2)
    new = a.reshape((4, 1)).assign(plus(a.reshape((4, 1)), 1)).base
    out = old.alu(Ops.ADD, new)
    machine.run(out)
    same(machine, out, ramp(4) * 3 + 1)


def test_memory_that_is_overwritten_is_not_reduced_in_the_same_kernel(machine: Any) -> None:
    v = ramp(12).reshape(3, 4)
    a = machine.buffer(v)
    new = a.assign(times(a, 2))
    out = new.alu(Ops.SUB, new.reduce(Ops.MAX, (1,)).expand((3, 4))).contiguous()
    machine.run(out)
    same(machine, out, v * 2 - (v * 2).max(1, keepdims=True))
    same(machine, new, v * 2)


def test_memory_is_not_overwritten_by_a_kernel_whose_reductions_read_it(machine: Any) -> None:
    """Several threads may reduce the same row: one of them must not write what the others still read."""
    v, r = ramp(12).reshape(3, 4), ramp(3).reshape(3, 1)
    a, x = machine.buffer(r), machine.buffer(v)
    twice = times(a, 2)
    new = a.assign(x.alu(Ops.MUL, twice.expand((3, 4))).reduce(Ops.ADD, (1,)))
    thrice = times(a, 3)  # made by the kernel that makes the other one
    items = machine.run(twice, thrice, new)
    assert len(items) == 2
    same(machine, twice, r * 2)
    same(machine, thrice, r * 3)
    same(machine, new, (v * r * 2).sum(1, keepdims=True))


def test_a_reader_that_was_let_go_of_is_not_computed_from_later_content(machine: Any) -> None:
    n = 1500
    a, b = machine.buffer(ramp(n)), machine.buffer(ramp(n))
    outer = a.reshape((n, 1)).expand((n, n)).alu(Ops.MUL, b.reshape((1, n)).expand((n, n)))
    rows = outer.reduce(Ops.MAX, (1,))
    one = a.assign(plus(a, 1))
    machine.run(one)  # the product is too large to be kept beside its rows, and is out of date from now on
    same(machine, rows, (ramp(n) * (n - 1)).reshape(n, 1))
    above = outer.reduce(Ops.ADD, (1,))
    two = one.assign(plus(one, 1))
    machine.run(two)  # nor does a later write compute it, or what was made of it since
    same(machine, two, ramp(n) + 2)
    with pytest.raises(RuntimeError, match="overwritten by the ASSIGN"):
        machine.run(above)
