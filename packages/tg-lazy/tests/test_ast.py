from __future__ import annotations

import pickle
from typing import Any

import pytest

from tg_dtype import dtypes
from tg_lazy import BufferArg, InvalidAST, LazyOp, Ops, ast
from tg_shape import ShapeTracker, Variable, View

f32, i32 = dtypes.float32, dtypes.int32
FLAT = ShapeTracker.from_shape((4,))


def sink(value: LazyOp, *buffers: Any) -> LazyOp:
    args = buffers or (BufferArg(f32, 4), BufferArg(f32, 4))
    return ast.sink((ast.store(0, ShapeTracker.from_shape(value.shape), value),), args)


def test_equal_nodes_are_one_object_and_zeros_differ() -> None:
    a = ast.alu(Ops.ADD, ast.load(1, f32, FLAT), ast.const(1, f32, (4,)))
    assert a is ast.alu(Ops.ADD, ast.load(1, f32, FLAT), ast.const(1.0, f32, (4,)))
    assert ast.const(0.0, f32) is not ast.const(-0.0, f32)
    assert ast.const(True, dtypes.bool).arg is True
    assert pickle.loads(pickle.dumps(a)) is a


def test_keys_are_structural() -> None:
    a, b = sink(ast.load(1, f32, FLAT)), sink(ast.load(1, f32, FLAT.flip((0,))))
    assert a.key == sink(ast.load(1, f32, FLAT)).key != b.key and len(a.key) == 32


def test_keys_tell_operands_sharing_and_variables_apart() -> None:
    """Kernels are found on disk by their keys: any two that differ must have two."""
    x, y, n = ast.load(1, f32, FLAT), ast.load(2, f32, FLAT), Variable("n", 1, 4)
    far = Variable("n", 1, 5)
    values = [
        ast.alu(Ops.SUB, x, y), ast.alu(Ops.SUB, y, x), ast.alu(Ops.SUB, x, x), x, y,
        ast.alu(Ops.SUB, ast.alu(Ops.ADD, x, y), x), ast.alu(Ops.SUB, ast.alu(Ops.ADD, x, y), y),
        ast.alu(Ops.ADD, ast.alu(Ops.SUB, x, y), ast.alu(Ops.SUB, y, x)),
        ast.alu(Ops.ADD, ast.alu(Ops.SUB, y, x), ast.alu(Ops.SUB, x, y)),
        ast.const(0.0, f32, (4,)), ast.const(-0.0, f32, (4,)),
        ast.symbol(n, i32, (4,)), ast.symbol(far, i32, (4,)), ast.symbol(n + 1, i32, (4,)),
    ]  # fmt: skip
    assert len({value.key for value in values}) == len(values)
    assert len({sink(value).key for value in values}) == len(values)


def test_constructors_fold_what_changes_nothing() -> None:
    x = ast.load(1, f32, FLAT)
    assert ast.cast(x, f32) is x and ast.bitcast(x, f32) is x and ast.view(x, FLAT) is x
    assert ast.view(x, FLAT.flip((0,))).op is Ops.VIEW
    assert ast.reduce(x, Ops.ADD, ()) is x
    assert ast.symbol(3, i32, (4,)) is ast.const(3, i32, (4,))


def test_text_and_variables() -> None:
    n = Variable("n", 1, 4)
    x = ast.load(1, f32, ShapeTracker.from_shape((n,)))
    text = sink(ast.reduce(ast.alu(Ops.NEG, x), Ops.ADD, (0,))).render()
    ops = [line.split(" = ")[1].split("(")[0] for line in text.splitlines()]
    assert ops == ["load", "neg", "reduce", "store", "sink"]
    assert x.variables() == {n} and ast.symbol(n + 1, i32).variables() == {n}


@pytest.mark.parametrize(
    ("build", "error"),
    [
        (lambda x: ast.alu(Ops.ADD, x, ast.const(1, f32, (2,))), ValueError),
        (lambda x: ast.bitcast(x, dtypes.float64), TypeError),
        (lambda x: ast.reduce(x, Ops.SUB, (0,)), ValueError),
        (lambda x: ast.reduce(x, Ops.ADD, (1,)), ValueError),
        (lambda x: ast.gather(1, f32, FLAT, x), TypeError),
        (lambda x: ast.gather(1, f32, ShapeTracker.from_shape((2, 2)), ast.const(1, i32, (4,))), ValueError),
        (lambda x: ast.store(0, ShapeTracker.from_shape((2,)), x), ValueError),
    ],
)
def test_constructors_check(build: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        build(ast.load(1, f32, FLAT))


X = ast.load(1, f32, FLAT)
n = Variable("n", 1, 4)
BUFFERS = (BufferArg(f32, 4), BufferArg(f32, 4))


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (X, "ends in SINK"),
        (ast.sink((X,), BUFFERS), "stores and updates only"),
        (sink(ast.load(2, f32, FLAT)), "slot 2 of 2"),
        (sink(ast.load(1, i32, FLAT)), "int32 from a buffer of float32"),
        (ast.sink((ast.store(5, FLAT, X),), BUFFERS), "slot 5"),
        (sink(ast.const(1, i32, (4,))), "writes int32"),
        (sink(ast.load(1, f32, ShapeTracker((View((4,), (1,), 1),)))), "from 1 to 4 in a buffer of 4"),
        (sink(ast.load(1, f32, ShapeTracker((View((4,), (-1,), 2),)))), "from -1 to 2"),
        (sink(ast.load(1, f32, ShapeTracker((View((4,), (2,)),)))), "from 0 to 6"),
        (sink(ast.load(1, f32, ShapeTracker((View((4,), (2,), 0, ((0, 3),)),)))), "from 0 to 4"),
        (sink(ast.load(1, f32, ShapeTracker((View((4,), (1,), n + 5),)))), "from 9 to 12"),
        (ast.sink((ast.store(0, ShapeTracker((View((4,), (4,)),)), X),), BUFFERS), "from 0 to 12"),
        (sink(LazyOp(Ops.ADD, f32, (4,), (X,))), "takes 2 operands"),
        (sink(LazyOp(Ops.CONST, f32, (4,), (X,), 1.0)), "takes 0 operands, got 1"),
        (sink(LazyOp(Ops.ADD, i32, (4,), (X, X))), "dtype int32"),
        (sink(LazyOp(Ops.NEG, f32, (4,), (ast.const(1, f32, (2,)),))), "shapes"),
        (ast.sink((LazyOp(Ops.STORE, dtypes.void, (4,), (ast.const(1, f32, (2,)),), (0, FLAT)),), BUFFERS), "view"),
    ],
)
def test_invalid(bad: LazyOp, words: str) -> None:
    with pytest.raises(InvalidAST, match=words):
        ast.verify(bad)


def test_valid() -> None:
    ast.verify(sink(ast.alu(Ops.NEG, X)))
