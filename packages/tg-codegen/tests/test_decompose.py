"""Ops that a language lacks: their replacements, against numpy; the functions are in ``test_functions``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from tg_codegen.ir.bounds import Bounds
from tg_codegen.ir.scalar import evaluate
from tg_codegen.ir.uop import UOp, UOps, const
from tg_codegen.machine.renderer import Renderer
from tg_codegen.machine.target import Target
from tg_codegen.rewrite.engine import graph_rewrite
from tg_codegen.rewrite.rules import simplify
from tg_codegen.rewrite.rules.decompose import decompose
from tg_dtype import DType, dtypes, from_bits, to_bits, truncate
from tg_lazy import Ops

Array = Any
OnArrays = Callable[..., Any]
FLOATS: dict[DType, tuple[Any, Any]] = {
    dtypes.float32: (np.float32, np.uint32),
    dtypes.float64: (np.float64, np.uint64),
}


class Lacking(Renderer):
    name = "LACKING"

    def __init__(self, *missing: Ops, no_double: bool = False) -> None:
        super().__init__(Target())
        self.missing, self.no_double = missing, no_double

    def render(self, name: str, uops: Sequence[UOp]) -> str:
        return ""

    def supports_op(self, op: Ops, dtype: DType) -> bool:
        return op not in self.missing

    def supports_dtype(self, dtype: DType) -> bool:
        return dtype is not dtypes.float64 or not self.no_double


def operand(dtype: DType, number: int = 0) -> UOp:
    return UOp(UOps.LOAD, dtype, (UOp(UOps.PARAM, dtype.ptr(), (), number), const(0, dtypes.int32)))


def without(root: UOp, *missing: Ops, no_double: bool = False) -> UOp:
    """The node with the ops replaced, and simplified as far as that does not bring them back."""
    renderer = Lacking(*missing, no_double=no_double)
    made = graph_rewrite(root, decompose, renderer)
    made = graph_rewrite(graph_rewrite(made, simplify, Bounds()), decompose, renderer)
    left = {u.op for u in made.toposort()}
    assert not left & set(missing)
    return made


def arguments(dtype: DType) -> Array:
    """All magnitudes, and the neighbourhood of 1."""
    real, bits = FLOATS[dtype]
    random = np.random.default_rng(7)
    count = 60_000
    anything = random.integers(0, np.iinfo(bits).max, count, dtype=bits, endpoint=True).view(real)
    near = (1 + random.uniform(-0.5, 0.5, count) * 2.0 ** -random.integers(0, 30, count)).astype(real)
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 2.5, -1e30, 1e30], dtype=real)
    tiny = np.array([1, 2, 5], dtype=bits).view(real)
    limits = np.array([np.finfo(real).max, -np.finfo(real).max, np.finfo(real).tiny], dtype=real)
    return np.concatenate([anything, near, special, tiny, limits])


def worst(got: Array, exact: Array) -> float:
    """The greatest error in units in the last place; infinite where NaN, infinities or the sign of zero differ."""
    real = got.dtype
    with np.errstate(all="ignore"):
        rounded = exact.astype(real)
        unit = np.spacing(np.abs(rounded)).astype(np.longdouble)
        error = np.abs(got.astype(np.longdouble) - exact) / unit
    agree = (got == rounded) | (np.isnan(got) & np.isnan(rounded))
    error = np.where(np.isfinite(rounded) & np.isfinite(got), error, np.where(agree, 0.0, np.inf))
    error = np.where((rounded == 0) & (got == 0) & (np.signbit(got) != np.signbit(rounded)), np.inf, error)
    return float(error.max())


@pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.float64], ids=str)
def test_max_and_trunc_and_sqrt(dtype: DType, on_arrays: OnArrays) -> None:
    real, _ = FLOATS[dtype]
    x, y = operand(dtype), operand(dtype, 1)
    data = arguments(dtype)
    other = np.random.default_rng(3).permutation(data)
    with np.errstate(all="ignore"):
        truncated, rooted = np.trunc(data), np.sqrt(data.astype(np.longdouble))
    assert worst(on_arrays(without(x.alu(Ops.TRUNC), Ops.TRUNC), {x: data}), truncated.astype(np.longdouble)) == 0
    assert worst(on_arrays(without(x.alu(Ops.SQRT), Ops.SQRT), {x: data}), rooted) <= 1.0
    greater = on_arrays(without(x.alu(Ops.MAX, y), Ops.MAX), {x: data, y: other})
    assert np.array_equal(greater, np.maximum(data, other), equal_nan=True)
    assert greater.dtype == real


INTS = {
    dtypes.int8: [-128, -127, -7, -1, 0, 1, 2, 3, 7, 100, 127],
    dtypes.uint8: [0, 1, 2, 3, 7, 100, 127, 128, 254, 255],
    dtypes.int32: [-(2**31), -5, -1, 0, 1, 3, 12345, 2**31 - 1],
    dtypes.uint64: [0, 1, 3, 2**32, 2**63, 2**64 - 1],
}


def value_of(root: UOp, known: dict[UOp, Any]) -> Any:
    done = dict(known)
    for u in root.toposort():
        if u.is_const:
            done[u] = u.arg
        elif u not in done and isinstance(u.op, Ops):
            done[u] = evaluate(u, *(done[s] for s in u.src))
    return done[root]


@pytest.mark.parametrize("dtype", INTS, ids=str)
@pytest.mark.parametrize("op", [Ops.IDIV, Ops.MOD, Ops.MAX, Ops.SUB], ids=lambda op: op.name.lower())
def test_integer_ops(op: Ops, dtype: DType) -> None:
    x, y = operand(dtype), operand(dtype, 1)
    root = x.alu(op, y)
    missing = (op, Ops.IDIV) if op is Ops.MOD else (op,)
    made = without(root, *missing)
    for a in INTS[dtype]:
        for b in INTS[dtype]:
            assert value_of(made, {x: a, y: b}) == evaluate(root, a, b), (a, b)


@pytest.mark.parametrize("dtype", [dtypes.bool, dtypes.int8, dtypes.float32, dtypes.uint64], ids=str)
def test_small_ops(dtype: DType) -> None:
    numbers = [truncate(n, dtype) for n in (0, 1, 5, 3)]
    x, y = operand(dtype), operand(dtype, 1)
    for root, *missing in (
        (x.alu(Ops.CMPEQ, y).alu(Ops.WHERE, x, y), Ops.WHERE),
        (x.alu(Ops.CMPEQ, y), Ops.CMPEQ),
        (x.alu(Ops.MUL, x), Ops.SHL),
    ):
        made = without(root, *missing)
        for a in numbers:
            for b in numbers:
                assert value_of(made, {x: a, y: b}) == value_of(root, {x: a, y: b})
    if not dtypes.is_bool(dtype):
        made = without(x.alu(Ops.NEG), Ops.NEG)
        assert [value_of(made, {x: a}) for a in numbers] == [evaluate(x.alu(Ops.NEG), a) for a in numbers]


def test_negation_keeps_the_sign_of_zero() -> None:
    x = operand(dtypes.float32)
    made = without(x.alu(Ops.NEG), Ops.NEG)
    assert to_bits(value_of(made, {x: 0.0}), dtypes.float32) == 1 << 31


def test_half_goes_through_single() -> None:
    x = operand(dtypes.float16)
    made = without(x.alu(Ops.EXP2), Ops.EXP2)
    for bits in range(0, 1 << 16, 97):
        argument = from_bits(bits, dtypes.float16)
        got, wanted = value_of(made, {x: argument}), evaluate(x.alu(Ops.EXP2), argument)
        assert got == wanted or (got != got and wanted != wanted)
