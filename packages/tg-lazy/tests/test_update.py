"""Updates at computed places: in the graph, in schedules, and what their kernels must not be."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tg_dtype import dtypes
from tg_lazy import BufferArg, LazyBuffer, Ops, ast, schedule
from tg_lazy.trackers import contiguous
from tg_shape import ShapeTracker

I32, F32 = dtypes.int32, dtypes.float32


def where(shape: tuple[int, ...], places: int) -> ShapeTracker:
    """Places of a table of one dimension, for values of any shape."""
    return contiguous((places,)).reshape((*(1 for _ in shape), places)).expand((*shape, places))


def added(table: Any, value: Any, index: Any) -> Any:
    """What the values make of the table."""
    out = table.copy()
    for v, i in zip(value.ravel(), index.ravel(), strict=True):
        if 0 <= i < len(out):
            out[i] += v
    return out


def test_a_pending_value_keeps_the_old_content(machine: Any) -> None:
    content, values, places = np.arange(5, dtype=np.float32), np.ones(3, np.float32), np.array([4, 4, 9], np.int32)
    table, value, index = machine.buffer(content), machine.buffer(values), machine.buffer(places)
    before = table.alu(Ops.MUL, table)
    after = table.update(value, index, where((3,), 5), Ops.ADD)
    assert list(machine.value(after)) == list(added(content, values, places))
    assert list(machine.value(before)) == list(content * content)


def test_what_is_added_may_be_computed_from_what_is_overwritten(machine: Any) -> None:
    content, places = np.arange(1, 5, dtype=np.float32), np.array([3, 3, 0, 1], np.int32)
    table, index = machine.buffer(content), machine.buffer(places)
    after = table.update(table.alu(Ops.NEG), index, where((4,), 4), Ops.ADD)
    assert list(machine.value(after)) == list(added(content, -content, places))
    again = machine.buffer(content)
    after = again.update(again.gather(index), index, where((4,), 4), Ops.ADD)
    assert list(machine.value(after)) == list(added(content, content[places], places))


def test_updates_follow_one_another(machine: Any) -> None:
    rng = np.random.default_rng(0)
    content, want = np.zeros(6, np.float32), np.zeros(6, np.float32)
    table = machine.buffer(content)
    for step in range(4):
        values, places = rng.integers(0, 9, 5).astype(np.float32), rng.integers(-1, 7, 5).astype(np.int32)
        table = table.update(machine.buffer(values), machine.buffer(places), where((5,), 6), Ops.ADD)
        want = added(want, values, places)
        if step == 1:
            middle, then = table.alu(Ops.SUB, table.const_like(1)), want - 1
    assert list(machine.value(table)) == list(want) and list(machine.value(middle)) == list(then)


def test_operands_share_the_kernel_but_for_reductions(machine: Any) -> None:
    x = machine.buffer(np.arange(6, dtype=np.int32).reshape(2, 3))
    total = x.reduce(Ops.ADD, (1,)).reshape((2,))
    index = total.alu(Ops.MOD, total.const_like(2))
    new = machine.buffer(np.zeros(2, np.int32)).clone().update(total, index, where((2,), 2), Ops.ADD)
    items, _ = schedule([new])
    assert [any(n.op is Ops.UPDATE for n in item.ast.src) for item in items] == [False, False, True]
    assert machine.value(new).tolist() == [12, 3]


def test_nothing_else_shares_its_kernel(machine: Any) -> None:
    value, index = machine.buffer(np.ones(4, np.float32)), machine.buffer(np.array([0, 1, 1, 9], np.int32))
    table = machine.buffer(np.zeros(4, np.float32))
    new = table.clone().update(value, index, where((4,), 4), Ops.ADD)
    beside = value.alu(Ops.ADD, value)
    doubled = new.alu(Ops.ADD, beside)
    items = machine.run(doubled, beside)
    kernels = [item.ast for item in items if any(n.op is Ops.UPDATE for n in item.ast.src)]
    assert len(kernels) == 1 and len(kernels[0].src) == 1
    assert machine.value(doubled).tolist() == [3, 4, 2, 2]


def test_a_node_that_reads_what_is_overwritten_is_updated_before(machine: Any) -> None:
    """The reader that keeps the old content is the update's memory, never the update itself."""
    value, index = machine.buffer(np.ones(2, np.float32)), machine.buffer(np.array([1, 1], np.int32))
    new = machine.buffer(np.zeros(2, np.float32)).clone().update(value, index, where((2,), 2), Ops.ADD)
    later = index.assign(index.const_like(0))
    machine.run(later)
    assert machine.value(new).tolist() == [0, 2]


@pytest.mark.parametrize("problem, message", [
    ("float index", "takes an integer index, got float32 of shape"),
    ("dtype", "a value of int32 to a target of float32"),
    ("op", "SUB cannot combine"), ("shape", "values of .3,. at indices of .2,."), ("view", "through a view .4, 5."),
    ("found", "and a view .2,. for what is found"), ("part", "a part of memory"), ("device", "index on CL"),
])  # fmt: skip
def test_bad_operands(machine: Any, problem: str, message: str) -> None:
    table = LazyBuffer.empty((5,), F32, "CPU")
    value = LazyBuffer.empty((3,), I32 if problem == "dtype" else F32, "CPU")
    index = LazyBuffer.empty((2,) if problem == "shape" else (3,), F32 if problem == "float index" else I32,
                             "CL" if problem == "device" else "CPU")
    target = table.shrink(((0, 4),)) if problem == "part" else table
    with pytest.raises((TypeError, ValueError), match=message):
        target.update(
            value, index, where((4,) if problem == "view" else (3,), 5), Ops.SUB if problem == "op" else Ops.ADD,
            contiguous((2,)) if problem == "found" else None)


def test_bad_kernels() -> None:
    arguments = (BufferArg(F32, 5), BufferArg(F32, 3), BufferArg(I32, 3))
    value, index = ast.load(1, F32, contiguous((3,))), ast.load(2, I32, contiguous((3,)))
    good = ast.update(0, where((3,), 5), value, index, Ops.ADD)
    ast.verify(ast.sink((good,), arguments))
    bad = {
        "only output": (good, ast.store(1, contiguous((3,)), value)),
        "is read besides": (ast.update(0, where((3,), 5), ast.load(0, F32, contiguous((3,))), index),),
        "reaches from 0 to 5": (ast.update(0, where((3,), 6), value, index),),
        "reaches from 4 to 6": (ast.update(
            0, where((3,), 4), value, index, None, contiguous((7,)).shrink(((4, 7),))),),
        "writes float32 to a buffer of int32": (ast.update(2, where((3,), 3), value, index),),
        "slot 7 of 3": (ast.update(7, where((3,), 3), value, index),),
    }
    for message, stores in bad.items():
        with pytest.raises(ast.InvalidAST, match=message):
            ast.verify(ast.sink(stores, arguments))
