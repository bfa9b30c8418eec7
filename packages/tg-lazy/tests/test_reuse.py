from __future__ import annotations

import pytest

from tg_dtype import dtypes
from tg_lazy import LazyOp, Ops, ast
from tg_lazy.ast import BufferArg
from tg_lazy.ast.reuse import in_place, replaceable
from tg_shape import ShapeTracker

f32 = dtypes.float32
ROWS = ShapeTracker.from_shape((4, 8))


def kernel(value: LazyOp, *kinds: BufferArg, st: ShapeTracker = ROWS) -> LazyOp:
    return ast.sink((ast.store(0, st, value),), kinds or (BufferArg(f32, 32),) * 3)


def load(slot: int, st: ShapeTracker = ROWS) -> LazyOp:
    return ast.load(slot, f32, st)


def test_what_is_read_where_it_is_written_can_be_overwritten() -> None:
    sink = kernel(ast.alu(Ops.ADD, load(1), load(2)))
    assert replaceable(sink) == {0: (1, 2)}
    made = in_place(sink, {1: 0})
    ast.verify(made)
    assert made is ast.sink((ast.store(0, ROWS, ast.alu(Ops.ADD, load(0), load(1))),), (BufferArg(f32, 32),) * 2)


@pytest.mark.parametrize(
    "value",
    [
        load(1, ROWS.flip((0,))),
        ast.alu(Ops.ADD, load(1), load(1, ROWS.flip((1,)))),
        ast.view(ast.alu(Ops.NEG, load(1)), ROWS.flip((0,))),
        ast.view(ast.reduce(load(1), Ops.ADD, (1,)), ShapeTracker.from_shape((4, 1)).expand((4, 8))),
        ast.alu(Ops.ADD, load(1), ast.view(ast.reduce(load(1), Ops.ADD, (1,)),
                                           ShapeTracker.from_shape((4, 1)).expand((4, 8)))),
        ast.gather(1, f32, ShapeTracker.from_shape((32,)), ast.iota(ROWS)),
    ],
)  # fmt: skip
def test_what_is_read_elsewhere_cannot(value: LazyOp) -> None:
    assert replaceable(kernel(value, BufferArg(f32, 32), BufferArg(f32, 32))) == {}


def test_the_rest_of_a_contraction_can() -> None:
    product = ast.reduce(load(1, ROWS.reshape((4, 8, 1)).expand((4, 8, 8))), Ops.ADD, (2,))
    value = ast.alu(Ops.ADD, ast.view(product, ROWS), load(2))
    assert replaceable(kernel(value)) == {0: (2,)}


def test_other_types_and_sizes_cannot() -> None:
    cast = ast.cast(ast.load(1, dtypes.int32, ROWS), f32)
    assert replaceable(kernel(cast, BufferArg(f32, 32), BufferArg(dtypes.int32, 32))) == {}
    assert replaceable(kernel(ast.alu(Ops.NEG, load(1)), BufferArg(f32, 32), BufferArg(f32, 64))) == {}


def test_a_kernel_of_several_parts_works_beside_its_inputs() -> None:
    """What one part has overwritten another may read."""
    parts = ast.store(2, ROWS, ast.alu(Ops.NEG, load(1))), ast.store(0, ROWS, ast.alu(Ops.ADD, load(1), load(2)))
    whole = BufferArg(f32, 32)
    assert replaceable(ast.sink(parts, (whole, whole, BufferArg(f32, 32, internal=True)))) == {}


def test_outputs_of_several_shapes_are_left_alone() -> None:
    row = ShapeTracker.from_shape((4, 1))
    stores = ast.store(0, ROWS, load(2)), ast.store(1, row, ast.reduce(load(2), Ops.MAX, (1,)))
    kinds = BufferArg(f32, 32), BufferArg(f32, 4), BufferArg(f32, 32)
    assert replaceable(ast.sink(stores, kinds)) == {}
    both = ast.sink((stores[0], ast.store(1, ROWS, ast.alu(Ops.NEG, load(2)))), (BufferArg(f32, 32),) * 3)
    assert replaceable(both) == {0: (2,), 1: (2,)}
    ast.verify(in_place(both, {2: 1}))
