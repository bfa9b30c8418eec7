"""The functions as arithmetic: within 2.5 units in the last place of the exact value, with C's special values.

The arithmetic is executed by numpy, with multiplications and additions fused and not, branches taken where a lane asks
for them, and compared with numpy's long doubles, which have eleven bits more than float64.
``tools.accuracy`` measures more densely, on devices.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tg_codegen import compile_ast, interpret
from tg_codegen.ir.bounds import Bounds
from tg_codegen.ir.scalar import evaluate
from tg_codegen.ir.uop import UOp, UOps, const
from tg_codegen.machine.renderer import Renderer
from tg_codegen.machine.target import Target
from tg_codegen.render.llvm import LLVMRenderer
from tg_codegen.rewrite.engine import graph_rewrite
from tg_codegen.rewrite.rules import simplify
from tg_codegen.rewrite.rules.decompose import decompose
from tg_codegen.rewrite.rules.number import FP32, Number, any_lane, double
from tg_dtype import DType, dtypes
from tg_lazy import TRANSCENDENTAL, BufferArg, Ops
from tg_lazy import ast as A
from tg_shape import ShapeTracker

ST = ShapeTracker.from_shape
Array = Any
Long = np.longdouble
BOUND = 2.5
FLOATS: dict[DType, tuple[Any, Any]] = {
    dtypes.float32: (np.float32, np.uint32),
    dtypes.float64: (np.float64, np.uint64),
}
COUNT = 1500

pytestmark = pytest.mark.skipif(np.finfo(Long).nmant < 60, reason="numpy has no wider float here to compare with")


class Plain(Renderer):
    """A language with arithmetic only."""

    name = "PLAIN"

    def __init__(self, doubles: bool = True, shifts: bool = True, fused: bool = True) -> None:
        super().__init__(Target(fused_multiply_add=fused))
        self.doubles, self.shifts = doubles, shifts  # type: ignore[misc]

    def render(self, name: str, uops: Any) -> str:
        return ""

    def supports_dtype(self, dtype: DType) -> bool:
        return dtype is not dtypes.float64 or self.doubles


def operand(dtype: DType, number: int = 0) -> UOp:
    return UOp(UOps.LOAD, dtype, (UOp(UOps.PARAM, dtype.ptr(), (), number), const(0, dtypes.int32)))


def arithmetic(root: UOp, renderer: Renderer) -> UOp:
    made = graph_rewrite(graph_rewrite(root, decompose, renderer), simplify, Bounds())
    assert not {u.op for u in made.toposort()} & (TRANSCENDENTAL | {Ops.MOD})
    return made


def _erfc(x: Array) -> Array:
    """1 - erf x: by a series of positive terms near 0, by a continued fraction further out."""
    size = np.abs(x)
    first = np.minimum(size, 1.2)
    term = total = first.copy()
    for n in range(1, 60):
        term = term * (2 * first * first) / (2 * n + 1)
        total = total + term
    root_pi = np.sqrt(Long("3.14159265358979323846264338327950288"))
    near = 1 - 2 / root_pi * np.exp(-first * first) * total
    far = np.clip(size, 1.2, 200)
    fraction = far.copy()
    for n in range(700, 0, -1):
        fraction = far + Long(n) / 2 / fraction
    # the square in two parts: an exponential magnifies what is lost of it
    head = far.astype(np.float32).astype(Long)
    bell = np.exp(-head * head) * np.exp(-(far - head) * (far + head))
    found = np.where(size < 1.2, near, bell / (root_pi * fraction))
    return np.where(np.isnan(x), x, np.where(x < 0, 2 - found, found))


def _erf(x: Array) -> Array:
    size = np.abs(x)
    term = total = np.minimum(size, 1.5)
    first = total
    for n in range(1, 60):
        term = term * (2 * first * first) / (2 * n + 1)
        total = total + term
    root_pi = np.sqrt(Long("3.14159265358979323846264338327950288"))
    return np.where(np.isnan(x), x, np.copysign(np.where(size < 1.5, 2 / root_pi * np.exp(-first * first) * total,
                                                         1 - _erfc(size)), x))  # fmt: skip


EXACT: dict[Ops, Callable[[Array], Array]] = {
    Ops.EXP: np.exp, Ops.EXP2: np.exp2, Ops.EXPM1: np.expm1, Ops.LOG: np.log, Ops.LOG2: np.log2, Ops.LOG10: np.log10,
    Ops.LOG1P: np.log1p, Ops.SIN: np.sin, Ops.COS: np.cos, Ops.TAN: np.tan, Ops.ASIN: np.arcsin, Ops.ACOS: np.arccos,
    Ops.ATAN: np.arctan, Ops.SINH: np.sinh, Ops.COSH: np.cosh, Ops.TANH: np.tanh, Ops.ASINH: np.arcsinh,
    Ops.ACOSH: np.arccosh, Ops.ATANH: np.arctanh, Ops.ERF: _erf, Ops.ERFC: _erfc,
}  # fmt: skip
SPECIAL = [
    0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 2.0, 0.5, -0.5, 127.0, 127.99999, 128.0, 128.5, 129.0, -125.5,
    -126.0, -126.5, -149.0, -149.5, -150.0, -151.0, -1e30, 1e30, 1023.0, 1023.9999999999, 1024.0, -1021.5, -1022.0,
    -1074.0, -1074.5, -1075.0, -1076.0, 1e300, 1.5707963267948966, 3.141592653589793, 6381956970095103 * 2.0**797,
    88.72283, 88.72284, 89.0, 89.4, 709.78, 710.0, 710.5, -87.4, -103.97, -104.0, -745.2, 0.625, 0.8, 0.34657359, 26.5,
    10.05, 0.4375, 0.6875, 1.1875, 2.4375, 0.7853982, 26.7035, 1e-10, -1e20, 1e20, -31.88, 0.99999994, 0.0374755859375,
]  # fmt: skip


def arguments(dtype: DType) -> Array:
    """All magnitudes, the ranges that matter, and the neighbourhood of where results are 0."""
    real, bits = FLOATS[dtype]
    random = np.random.default_rng(7)
    anything = random.integers(0, np.iinfo(bits).max, COUNT, dtype=bits, endpoint=True).view(real)
    with np.errstate(all="ignore"):
        sizes = np.exp2(random.uniform(-30, 8, COUNT)) * random.choice([-1, 1], COUNT)
        spread = np.concatenate([random.uniform(-n, n, COUNT) for n in (1.05, 20, 110, 750)])
        near_1 = 1 + random.uniform(-0.5, 0.5, COUNT) * 2.0 ** -random.integers(0, 30, COUNT)
        multiples = np.arange(COUNT) * np.pi / 2
        some = np.concatenate([sizes, spread, near_1, multiples, np.array(SPECIAL)]).astype(real)
        limits = np.array([np.finfo(real).max, -np.finfo(real).max, np.finfo(real).tiny], dtype=real)
    return np.concatenate([anything, some, np.array([1, 2, 5], dtype=bits).view(real), limits])


def off(got: Array, exact: Array) -> Array:
    """Errors in units in the last place; infinite where NaN, infinities or the sign of zero differ."""
    real = got.dtype
    with np.errstate(all="ignore"):
        rounded = exact.astype(real)
        unit = np.spacing(np.abs(rounded)).astype(Long)
        error = np.abs(got.astype(Long) - exact) / unit
    agree = (got == rounded) | (np.isnan(got) & np.isnan(rounded))
    error = np.where(np.isfinite(rounded) & np.isfinite(got), error, np.where(agree, 0.0, np.inf))
    return np.where((rounded == 0) & (got == 0) & (np.signbit(got) != np.signbit(rounded)), np.inf, error)


def check(name: str, got: Array, exact: Array, bound: float, *given: Array) -> None:
    error = off(got, exact)
    worst = int(np.argmax(error))
    told = f"{name}({', '.join(repr(x[worst]) for x in given)}) = {got[worst]!r}, exactly {exact[worst]!r}"
    assert error[worst] <= bound, f"{told}: {error[worst]:.2f} units in the last place"


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("op", EXACT, ids=lambda op: op.name.lower())
def test_function(op: Ops, dtype: DType, on_arrays: Callable[..., Array]) -> None:
    x, data = operand(dtype), arguments(dtype)
    with np.errstate(all="ignore"):
        exact = EXACT[op](data.astype(Long))
    made = arithmetic(x.alu(op), Plain(fused=False))  # which a compiler may fuse all the same
    for fused in (True, False):
        check(op.name, on_arrays(made, {x: data}, fused), exact, BOUND, data)
    check(op.name, on_arrays(arithmetic(x.alu(op), Plain()), {x: data}, True), exact, BOUND, data)


@pytest.mark.parametrize("op", EXACT, ids=lambda op: op.name.lower())
def test_function_without_doubles_and_shifts(op: Ops, on_arrays: Callable[..., Array]) -> None:
    """As languages for GPUs are that have no float64, and whose compilers may reorder sums."""
    x, data = operand(dtypes.float32), arguments(dtypes.float32)
    made = arithmetic(x.alu(op), Plain(doubles=False, shifts=False))
    assert all(u.dtype is not dtypes.float64 for u in made.toposort())
    with np.errstate(all="ignore"):
        check(op.name, on_arrays(made, {x: data}, False), EXACT[op](data.astype(Long)), BOUND, data)


def pairs(dtype: DType) -> tuple[Array, Array]:
    """Any two numbers, special ones, and such whose power is neither 0 nor infinite."""
    real, bits = FLOATS[dtype]
    random = np.random.default_rng(3)
    anything = random.integers(0, np.iinfo(bits).max, (2, COUNT), dtype=bits, endpoint=True).view(real)
    some = [0.0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 2, -2, 0.5, -0.5, 3, 1e-40, 1e30, 1e300, 5e-324, 0.1, 7, 1e10]
    limit = 1300 if dtype is dtypes.float64 else 160
    with np.errstate(all="ignore"):
        special = np.meshgrid(np.array(some).astype(real), np.array(some).astype(real))
        near_1 = (1 + random.uniform(-0.3, 0.4, COUNT) * 2.0 ** -random.integers(0, 25, COUNT)).astype(real)
        wide = np.exp2(random.uniform(-limit * 0.75, limit * 0.75, COUNT)).astype(real)
        whole = random.integers(-50, 50, (2, COUNT)).astype(real)
        powers = [(random.uniform(-limit, limit, COUNT) / np.log2(base)).astype(real) for base in (near_1, wide)]
    return (np.concatenate([anything[0], special[0].ravel(), near_1, wide, whole[0]]),
            np.concatenate([anything[1], special[1].ravel(), *powers, whole[1]]))  # fmt: skip


@pytest.mark.parametrize(
    ("dtype", "doubles"), [(dtypes.float32, True), (dtypes.float32, False), (dtypes.float64, True)], ids=str
)
@pytest.mark.parametrize("op", [Ops.POW, Ops.MOD], ids=lambda op: op.name.lower())
def test_function_of_two(op: Ops, dtype: DType, doubles: bool, on_arrays: Callable[..., Array]) -> None:
    x, y, (a, b) = operand(dtype), operand(dtype, 1), pairs(dtype)
    with np.errstate(all="ignore"):
        exact = np.fmod(a, b).astype(Long) if op is Ops.MOD else np.power(a.astype(Long), b.astype(Long))
    for promised, fused in ((True, True), (False, True), (False, False)):  # one may be fused that is not promised to be
        made = arithmetic(x.alu(op, y), Plain(doubles, doubles, promised))
        check(op.name, on_arrays(made, {x: a, y: b}, fused), exact, 0.0 if op is Ops.MOD else BOUND, a, b)


def test_exp2_of_integers_is_exact(on_arrays: Callable[..., Array]) -> None:
    x = operand(dtypes.float32)
    data = np.arange(-149, 128).astype(np.float32)
    assert (on_arrays(arithmetic(x.alu(Ops.EXP2), Plain()), {x: data}) == 2.0 ** data.astype(np.float64)).all()


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("op", EXACT, ids=lambda op: op.name.lower())
def test_no_step_underflows_on_the_way_to_zero_or_a_normal_result(
    op: Ops, dtype: DType, on_arrays: Callable[..., Array]
) -> None:
    """Processors leave what is below the normal range to microcode, which takes ten times as long."""
    real, tiny = FLOATS[dtype][0], np.finfo(FLOATS[dtype][0]).tiny
    random = np.random.default_rng(11)
    # but for narrow bands beside which a part of the result is 0
    parts = [random.uniform(low, high, COUNT) for low, high in ((0.002, 8.0), (10.1, 26.0), (28.0, 85.0))]
    sizes = np.concatenate([*parts, [800.0, np.inf]])
    data = np.concatenate([sizes, -sizes]).astype(real)
    with np.errstate(all="ignore"):
        found = EXACT[op](data.astype(Long)).astype(real)
    data = data[(found == 0) | (np.abs(found) >= tiny) | np.isnan(found)]
    x = operand(dtype)
    renderers = [Plain(), Plain(fused=False)]
    if dtype is dtypes.float32:
        renderers.append(Plain(doubles=False, shifts=False, fused=False))
    for renderer in renderers:
        made = arithmetic(x.alu(op), renderer)
        with np.errstate(all="ignore", under="raise"):
            on_arrays(made, {x: data}, True)
            if not renderer.target.fused_multiply_add:
                on_arrays(made, {x: data}, False)


LENGTHS = {Ops.EXP: 25, Ops.EXP2: 22, Ops.LOG: 29, Ops.TANH: 33, Ops.ERF: 33, Ops.SIN: 29, Ops.COS: 29}


@pytest.mark.parametrize("op", LENGTHS, ids=lambda op: op.name.lower())
def test_functions_are_short(op: Ops) -> None:
    """Of what runs where no branch is taken."""
    made = arithmetic(operand(dtypes.float32).alu(op), Plain())
    found: set[UOp] = set()
    left = [made]
    while left:
        u = left.pop()
        if u not in found:
            found.add(u)
            left += (u.src[0].src[0], u.src[1].src[0]) if u.op is UOps.READ else u.src
    assert len([u for u in found if isinstance(u.op, Ops) and u.op is not Ops.BITCAST]) <= LENGTHS[op]


@pytest.mark.parametrize("lanes", [1, 2, 3, 4, 7, 16])
def test_any_lane_that_asks_for_a_branch_has_it(lanes: int) -> None:
    """Also where it is the only one, and none where no lane does."""
    dtype = dtypes.int32.vec(lanes) if lanes > 1 else dtypes.int32
    given = UOp(UOps.LOAD, dtype, operand(dtypes.int32).src)
    asked = any_lane(Number(given) > 5).uop
    assert asked.dtype is dtypes.bool
    for chosen in range(-1, lanes):
        values = tuple(9 if lane == chosen else 5 for lane in range(lanes))
        known: dict[UOp, tuple[Any, ...]] = {given: values}
        for u in asked.toposort():
            if u not in known and (u.is_const or u.op is UOps.GEP or isinstance(u.op, Ops)):
                taken = [known[s] for s in u.src]
                known[u] = (
                    (u.arg,) * lanes if u.is_const
                    else tuple(taken[0][lane] for lane in u.arg) if u.op is UOps.GEP
                    else tuple(evaluate(u, *row) for row in zip(*taken, strict=True))
                )  # fmt: skip
        assert known[asked] == (chosen >= 0,)


def test_rarely_keeps_what_its_lanes_ask_for() -> None:
    """Vectors of small numbers, of large ones, and with a single one of those, at every place. What a number gives
    does not depend on those beside it, to the last bit."""
    random, lanes, n = np.random.default_rng(), 8, 8 * 400
    target = Target(vector_bytes=4 * lanes, registers=16)
    for op, near in ((Ops.SIN, 2**16), (Ops.COS, 2**16), (Ops.TAN, 2**10)):
        rows: Array = random.uniform(-near, near, (n // lanes, lanes)).astype(np.float32)
        for row in range(392):
            rows[row, random.integers(lanes, size=1 + row % 2)] = np.exp2(random.uniform(17, 127))
        rows[392] = np.exp2(random.uniform(17, 127, lanes))
        rows[393, random.integers(lanes)] = np.inf
        store = A.store(0, ST((n,)), A.alu(op, A.load(1, dtypes.float32, ST((n,)))))
        spec = compile_ast(A.sink((store,), (BufferArg(dtypes.float32, n),) * 2), LLVMRenderer(target))
        assert any(u.op is UOps.IF for u in spec.uops) and any(u.dtype is dtypes.float32.vec(lanes) for u in spec.uops)
        out, alone = np.zeros(n, np.float32), np.zeros(n, np.float32)
        small = np.where(rows <= near, rows, np.float32(1.0))
        runs: list[tuple[Array, Array]] = [(out, rows), (alone, small)]
        for into, values in runs:
            interpret(spec.uops, [memoryview(into).cast("B"), memoryview(values).cast("B")], {}, fused=True)
        with np.errstate(invalid="ignore"):
            check(op.name, out, EXACT[op](rows.ravel().astype(Long)), BOUND, rows.ravel())
        np.testing.assert_array_equal(np.where(rows.ravel() <= near, out, alone), alone)


def test_no_branch_where_work_items_or_rounded_products_are_the_machine() -> None:
    """Work-items of a warp wait for each other anyway, and parts of pi/2 need products that are rounded late."""
    x = operand(dtypes.float32)
    for target in (Target(kind="gpu"), Target(fused_multiply_add=False)):
        renderer = Plain()
        renderer.target = target
        assert all(u.op is not UOps.IF for u in arithmetic(x.alu(Ops.SIN), renderer).toposort())


def test_vectors_are_served_too() -> None:
    x = UOp(UOps.LOAD, dtypes.float32.vec(4), operand(dtypes.float32).src)
    made = arithmetic(x.alu(Ops.SIN), Plain())
    assert made.dtype is dtypes.float32.vec(4)
    assert all(u.dtype.count == 4 or not isinstance(u.op, Ops) for u in made.toposort())


def test_words_become_doubles_in_halves_as_they_do_at_once(on_arrays: Callable[..., Any]) -> None:
    """Each is rounded once, also where both halves have a sign bit, and where numbers lie between two doubles."""
    rng, word = np.random.default_rng(0), operand(dtypes.int64)
    near = (np.int64(1) << rng.integers(0, 63, 2000)) + rng.integers(-3, 4, 2000)
    edges = np.array([0, -1, 1 << 31, (1 << 31) - 1, -(1 << 31), 1 << 32, (1 << 63) - 1, -(1 << 63), (1 << 53) + 1])
    x = np.concatenate((rng.integers(-(1 << 63), (1 << 63) - 1, 2000), near, -near, edges))
    halves = double(Number(word), replace(FP32, converts_words=False)).uop
    assert not any(u.op is Ops.CAST and u.src[0].dtype is dtypes.int64 and u.dtype is dtypes.float64
                   for u in halves.toposort())
    for fused in (False, True):
        found = on_arrays(halves, {word: x}, fused)
        np.testing.assert_array_equal(found, x.astype(np.float64))
