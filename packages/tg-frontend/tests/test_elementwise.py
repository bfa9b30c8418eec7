"""Arithmetic, comparisons and functions of one number, against numpy."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tg_dtype import dtypes
from tg_frontend import Tensor

Array = NDArray[Any]
SHAPES = [(), (1,), (7,), (3, 5), (2, 1, 4), (0,), (2, 0, 3)]


def sample(shape: tuple[int, ...], domain: tuple[float, float], seed: int = 0) -> Array:
    """float32 numbers within a domain."""
    return np.random.default_rng(seed).uniform(*domain, size=shape).astype(np.float32)


def same(got: Tensor, want: Any, tolerance: float = 2e-6) -> None:
    """Shape and values agree."""
    expected = np.asarray(want)
    assert got.shape == expected.shape
    np.testing.assert_allclose(got.numpy(), expected, rtol=tolerance, atol=tolerance)


def sigmoid(x: Array) -> Array:
    out: Array = 1 / (1 + np.exp(-x))
    return out


def softplus(x: Array) -> Array:
    return np.logaddexp(x, 0)


ERF = np.vectorize(math.erf, otypes=[np.float64])

UNARY: dict[str, tuple[Callable[[Array], Any], tuple[float, float]]] = {
    "neg": (np.negative, (-3, 3)),
    "abs": (np.abs, (-3, 3)),
    "sign": (np.sign, (-3, 3)),
    "square": (np.square, (-3, 3)),
    "sqrt": (np.sqrt, (0, 9)),
    "rsqrt": (lambda x: 1 / np.sqrt(x), (0.1, 9)),
    "reciprocal": (lambda x: 1 / x, (0.1, 9)),
    "exp": (np.exp, (-5, 5)),
    "exp2": (np.exp2, (-5, 5)),
    "log": (np.log, (0.01, 9)),
    "log2": (np.log2, (0.01, 9)),
    "log10": (np.log10, (0.01, 9)),
    "sin": (np.sin, (-9, 9)),
    "cos": (np.cos, (-9, 9)),
    "tan": (np.tan, (-1.2, 1.2)),
    "asin": (np.arcsin, (-1, 1)),
    "acos": (np.arccos, (-1, 1)),
    "atan": (np.arctan, (-20, 20)),
    "sinh": (np.sinh, (-3, 3)),
    "cosh": (np.cosh, (-3, 3)),
    "tanh": (np.tanh, (-5, 5)),
    "asinh": (np.arcsinh, (-9, 9)),
    "acosh": (np.arccosh, (1, 9)),
    "atanh": (np.arctanh, (-0.9, 0.9)),
    "erf": (ERF, (-4, 4)),
    "ceil": (np.ceil, (-3, 3)),
    "floor": (np.floor, (-3, 3)),
    "trunc": (np.trunc, (-3, 3)),
    "round": (np.round, (-3, 3)),
    "sigmoid": (sigmoid, (-9, 9)),
    "logsigmoid": (lambda x: -softplus(-x), (-9, 9)),
    "relu": (lambda x: np.maximum(x, 0), (-3, 3)),
    "relu6": (lambda x: np.clip(x, 0, 6), (-3, 9)),
    "hardsigmoid": (lambda x: np.clip(x / 6 + 0.5, 0, 1), (-9, 9)),
    "hardswish": (lambda x: x * np.clip(x + 3, 0, 6) / 6, (-9, 9)),
    "hardtanh": (lambda x: np.clip(x, -1, 1), (-3, 3)),
    "leaky_relu": (lambda x: np.where(x < 0, x * 0.01, x), (-3, 3)),
    "elu": (lambda x: np.where(x > 0, x, np.expm1(x)), (-3, 3)),
    "celu": (lambda x: np.where(x > 0, x, np.expm1(x)), (-3, 3)),
    "selu": (lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(x)), (-3, 3)),
    "gelu": (lambda x: 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))), (-5, 5)),
    "quick_gelu": (lambda x: x * sigmoid(1.702 * x), (-5, 5)),
    "silu": (lambda x: x * sigmoid(x), (-5, 5)),
    "swish": (lambda x: x * sigmoid(x), (-5, 5)),
    "mish": (lambda x: x * np.tanh(softplus(x)), (-5, 5)),
    "softplus": (softplus, (-9, 9)),
    "softsign": (lambda x: x / (1 + np.abs(x)), (-9, 9)),
    "isnan": (np.isnan, (-3, 3)),
    "isinf": (np.isinf, (-3, 3)),
    "isfinite": (np.isfinite, (-3, 3)),
    "logical_not": (np.logical_not, (-3, 3)),
}


@pytest.mark.parametrize("name", UNARY)
def test_functions_of_one_number(name: str, backend: str) -> None:
    function, domain = UNARY[name]
    for shape in SHAPES if backend == "NUMPY" else [(3, 5)]:
        x = sample(shape, domain)
        same(getattr(Tensor(x), name)(), function(x.astype(np.float64)), 3e-6)


@pytest.mark.parametrize("name", ["exp", "log2", "sin", "erf", "tanh", "atan", "gelu", "sigmoid"])
def test_double_precision_is_kept(name: str) -> None:
    function, domain = UNARY[name]
    x = np.random.default_rng(0).uniform(*domain, size=50)
    got = getattr(Tensor(x), name)()
    assert got.dtype is dtypes.float64
    np.testing.assert_allclose(got.numpy(), function(x), rtol=2e-13, atol=2e-14)


@pytest.mark.parametrize("name", ["exp", "log", "sin", "cos", "erf", "tanh", "sqrt", "gelu"])
def test_half_precision_is_rounded_once(name: str) -> None:
    function, domain = UNARY[name]
    x = sample((64,), domain).astype(np.float16)
    want = function(x.astype(np.float64)).astype(np.float16)
    got = getattr(Tensor(x), name)()
    assert got.dtype is dtypes.float16
    unit = np.spacing(np.abs(want)).astype(np.float64)
    worst = np.max(np.abs(got.numpy().astype(np.float64) - want.astype(np.float64)) / unit)
    assert worst <= 1  # a hair's breadth beside a tie


def test_functions_of_integers_are_floats() -> None:
    for dtype in (np.bool_, np.uint8, np.int32, np.int64):
        got = Tensor(np.array([0, 1, 1], dtype)).exp()
        assert got.dtype is dtypes.float32
        same(got, np.exp(np.array([0.0, 1.0, 1.0])))


def test_special_values(backend: str) -> None:
    x = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, -1.0, 1e30, -1e30], np.float32)
    t = Tensor(x)
    with np.errstate(all="ignore"):
        for name in ("sqrt", "exp", "exp2", "log", "log2", "trunc", "floor", "ceil", "round", "tanh", "sigmoid", "erf",
                     "atan", "isnan", "isinf", "isfinite", "relu", "softplus"):  # fmt: skip
            same(getattr(t, name)(), UNARY[name][0](x.astype(np.float64)).astype(np.float64))
        same(t.isinf(detect_negative=False), np.isposinf(x))
        same(t.isinf(detect_positive=False), np.isneginf(x))


BINARY: dict[str, tuple[Callable[[Any, Any], Any], Callable[[Array, Array], Any]]] = {
    "add": (lambda a, b: a + b, np.add),
    "sub": (lambda a, b: a - b, np.subtract),
    "mul": (lambda a, b: a * b, np.multiply),
    "div": (lambda a, b: a / b, np.true_divide),
    "floordiv": (lambda a, b: a // b, np.floor_divide),
    "mod": (lambda a, b: a % b, np.mod),
    "fmod": (lambda a, b: a.fmod(b), np.fmod),
    "idiv": (lambda a, b: a.idiv(b), lambda a, b: np.trunc(a / b).astype(a.dtype)),
    "maximum": (lambda a, b: a.maximum(b), np.maximum),
    "minimum": (lambda a, b: a.minimum(b), np.minimum),
    "lt": (lambda a, b: a < b, np.less),
    "le": (lambda a, b: a <= b, np.less_equal),
    "gt": (lambda a, b: a > b, np.greater),
    "ge": (lambda a, b: a >= b, np.greater_equal),
    "eq": (lambda a, b: a == b, np.equal),
    "ne": (lambda a, b: a != b, np.not_equal),
}
PAIRS = [((), ()), ((3,), ()), ((2, 3), (3,)), ((2, 1, 4), (3, 1)), ((0, 3), (3,)), ((1,), (0,))]


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("dtype", ["float32", "int32", "int8", "uint8"])
def test_operators_of_two(name: str, dtype: str, backend: str) -> None:
    ours, theirs = BINARY[name]
    rng = np.random.default_rng(1)
    for first, second in PAIRS if backend == "NUMPY" else [((2, 1, 4), (3, 1))]:
        if dtype == "float32":
            a, b = rng.uniform(-5, 5, first).astype(dtype), rng.uniform(1, 4, second).astype(dtype)
        else:
            low = 0 if dtype == "uint8" else -100
            a, b = rng.integers(low, 100, first).astype(dtype), rng.integers(1, 9, second).astype(dtype)
            b = np.where(rng.integers(0, 2, second) == 1, b, np.negative(b) if low else b).astype(dtype)
        same(ours(Tensor(a), Tensor(b)), theirs(a, b), 1e-5)


def test_integer_division_by_zero_and_overflow_do_not_trap(backend: str) -> None:
    least = -(2**31)
    a, b = Tensor([7, 0, least, -9], dtype="int32"), Tensor([0, 0, -1, 0], dtype="int32")
    assert (a // b).tolist() == [0, 0, least, 0]
    assert a.idiv(b).tolist() == [0, 0, least, 0]
    assert (a % b).tolist() == [7, 0, 0, -9]
    assert a.fmod(b).tolist() == [7, 0, 0, -9]
    unsigned = Tensor([7, 255], dtype="uint8")
    assert (unsigned // Tensor([0, 16], dtype="uint8")).tolist() == [0, 15]


def test_a_scalar_on_either_side(backend: str) -> None:
    x = np.array([1.5, -2.0, 4.0], np.float32)
    t = Tensor(x)
    same(2 - t, 2 - x)
    same(2 / t, 2 / x)
    same(2**t, 2**x)
    same(7 // t, 7 // x)
    same(7 % t, 7 % x)
    same(t % 3, x % 3)
    same(1 + t, x + 1)
    same(t == 4, x == 4)
    same(1 < t, x > 1)
    i = Tensor([6, 5])
    assert (12 // i).tolist() == [2, 2] and (1 << i).tolist() == [64, 32] and (7 & i).tolist() == [6, 5]
    assert (i >> 1).tolist() == [3, 2] and (i | 1).tolist() == [7, 5] and (i ^ 3).tolist() == [5, 6]


def test_dtypes_meet(backend: str) -> None:
    one = {d: Tensor.ones(2, dtype=d) for d in dtypes.all if d.fmt is not None}
    assert (one[dtypes.uint8] + 1).dtype is dtypes.uint8
    assert (one[dtypes.uint8] + 1.0).dtype is dtypes.float32
    assert (one[dtypes.bool] + 1).dtype is dtypes.int32
    assert (one[dtypes.float16] * 2.5).dtype is dtypes.float16
    assert (one[dtypes.int8] + one[dtypes.uint8]).dtype is dtypes.int16
    assert (one[dtypes.int64] * one[dtypes.float16]).dtype is dtypes.float16
    assert (one[dtypes.float32] + one[dtypes.float64]).dtype is dtypes.float64
    assert (one[dtypes.int32] / one[dtypes.int32]).dtype is dtypes.float32
    assert (one[dtypes.int32] < 1.5).tolist() == [True, True]


def test_powers(backend: str) -> None:
    base = np.array([-2.0, -1.0, 0.0, 0.5, 2.0, 3.0], np.float32)
    t = Tensor(base)
    for n in (0, 1, 2, 3, 5, 10, 31):
        same(t**n, base**n, 1e-5)
    for exponent in (-1, -2, 0.5, 1.5):
        positive = base[3:]
        same(Tensor(positive) ** exponent, positive**exponent, 1e-5)
    exponents = np.array([-2.0, -1.0, 0.0, 1.0, 3.0, 2.5], np.float32)
    with np.errstate(all="ignore"):
        grid = np.power(base[:, None], exponents[None, :])
    same(t.unsqueeze(1) ** Tensor(exponents), grid, 1e-5)
    assert (Tensor([2, 3, -2, 1, -1, 2]) ** Tensor([10, 4, 3, -1, -3, -2])).tolist() == [1024, 81, -8, 1, -1, 0]
    assert (Tensor([2, 3]) ** 3).tolist() == [8, 27]
    assert (Tensor([3], dtype="uint8") ** 6).tolist() == [729 % 256]
    assert (Tensor([2, 3]) ** 0.5).dtype is dtypes.float32


def test_bits_and_bools(backend: str) -> None:
    a, b = np.array([0b1100, 7, -1], np.int32), np.array([0b1010, 2, 5], np.int32)
    x, y = Tensor(a), Tensor(b)
    assert (x & y).tolist() == (a & b).tolist() and (x | y).tolist() == (a | b).tolist()
    assert (x ^ y).tolist() == (a ^ b).tolist() and (~x).tolist() == (~a).tolist()
    assert (x >> y).tolist() == (a >> b).tolist() and (x << Tensor([1, 2, 3])).tolist() == [24, 28, -8]
    p, q = Tensor([True, True, False]), Tensor([True, False, False])
    assert (p & q).tolist() == [True, False, False] and (p | q).tolist() == [True, True, False]
    assert (p ^ q).tolist() == [False, True, False] and (~p).tolist() == [False, False, True]
    assert (p + q).tolist() == [True, True, False] and (p * q).tolist() == [True, False, False]
    assert p.maximum(q).tolist() == [True, True, False] and p.minimum(q).tolist() == [True, False, False]


def test_nan_compares_as_nothing(backend: str) -> None:
    x, y = Tensor([math.nan, 1.0]), Tensor([1.0, math.nan])
    for result in (x < y, x <= y, x > y, x >= y, x == y):
        assert result.tolist() == [False, False]
    assert (x != y).tolist() == [True, True]
    assert np.isnan(x.maximum(y).numpy()).all() and np.isnan(x.minimum(y).numpy()).all()


def test_where_clip_lerp_and_the_rest(backend: str) -> None:
    x = sample((3, 4), (-3, 3))
    t = Tensor(x)
    same((t > 0).where(t, 0), np.where(x > 0, x, 0))
    same((t > 0).where(1, 2), np.where(x > 0, 1, 2))
    assert (t > 0).where(1, 2).dtype is dtypes.int32 and (t > 0).where(1, 2.0).dtype is dtypes.float32
    same((t > 0).where(Tensor([1.0, 2, 3, 4]), t), np.where(x > 0, np.array([1, 2, 3, 4]), x))
    same(t.masked_fill(t > 1, -1), np.where(x > 1, -1, x))
    same(t.clip(-1, 1), np.clip(x, -1, 1))
    same(t.clamp(min_=0), np.clip(x, 0, None))
    same(t.clip(max_=Tensor(x.mean())), np.clip(x, None, x.mean()))
    same(t.lerp(t * 2, 0.25), x + x * 0.25)
    same(t.logaddexp(t * -1), np.logaddexp(x, -x))
    same(t.copysign(Tensor([1.0, -1.0, 0.0, -0.0])), np.copysign(x, np.array([1, -1, 0.0, -0.0])))
    assert t.isclose(t + 1e-9).all().item() and not t.isclose(t + 1).any().item()
    assert t.allclose(t) and not t.allclose(t + 1)
    inf = Tensor([math.inf, math.nan])
    assert inf.isclose(inf).tolist() == [True, False] and inf.isclose(inf, equal_nan=True).tolist() == [True, True]


@pytest.mark.parametrize("name", ["uint8", "int8", "int64"])
def test_limits_of_integers_are_taken_one_after_the_other(name: str) -> None:
    """Refused is a result that the dtype has not, not a limit."""
    dtype = getattr(dtypes, name)
    least, most = int(dtype.min), int(dtype.max)
    elements = [least, 0, 3, most]
    bounds = [None, least - 2, least, 2, 5, most, most + 1, most + 40]
    for low in bounds:
        for high in bounds:
            if low is None and high is None:
                continue
            want = [x if low is None else max(x, low) for x in elements]
            want = [x if high is None else min(x, high) for x in want]
            for t, expected in ((Tensor(elements, dtype=dtype), want), (Tensor(3, dtype=dtype), want[2])):
                numbers = np.array(expected, dtype=object).reshape(-1)
                if all(least <= x <= most for x in numbers):
                    assert t.clip(low, high).tolist() == expected, (low, high)
                    assert t.clip(low, high).dtype is dtype
                elif not any(least <= x <= most for x in numbers):
                    with pytest.raises(OverflowError, match=r"Tensor\.clip: -?\d+ is no"):
                        t.clip(low, high)
    wide = Tensor([1, 250], dtype="uint8").clip(300, 400.5)
    assert wide.tolist() == [300.0, 300.0]  # a limit that is a float: so are the elements


def test_arrays_as_operands() -> None:
    array = np.array([1.0, 2.0], np.float32)
    same(Tensor([3.0, 4.0]) + array, [4.0, 6.0])
    got = array * Tensor([3.0, 4.0])
    assert isinstance(got, Tensor)
    same(got, [3.0, 8.0])


def test_in_place_operators_keep_the_memory(backend: str) -> None:
    t = Tensor([1, 2, 3]).realize()
    storage = t.lazydata.storage
    alias = t
    t += 1
    t *= 2
    t -= 1
    t //= 2
    t |= 8
    assert t is alias and t.realize().lazydata.storage is storage
    assert t.tolist() == [((v + 1) * 2 - 1) // 2 | 8 for v in (1, 2, 3)]
