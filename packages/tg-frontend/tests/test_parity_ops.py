"""Every elementwise operation and reduction over shapes of every kind, many at once, against numpy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tg_dtype import dtypes, interop
from tg_frontend import Tensor

Array = npt.NDArray[Any]
SHAPES: list[tuple[int, ...]] = [
    (), (1,), (0,), (5,), (33,), (1, 4), (3, 1), (2, 0, 3), (2, 3, 4), (1, 1, 1), (4, 1, 5, 2), (1, 7, 1, 1, 3),
]  # fmt: skip


def data(shape: tuple[int, ...], dtype: str, seed: int = 0) -> Array:
    rng = np.random.default_rng(seed + sum(shape))
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.startswith(("int", "uint")):
        return rng.integers(0 if dtype[0] == "u" else -9, 10, shape).astype(dtype)
    return rng.uniform(-3, 3, shape).astype(dtype)


def check(pairs: list[tuple[str, Tensor, Any]], tolerance: float = 1e-5) -> None:
    """Realises everything together, so that fusion has a choice, and compares dtype kinds, shapes and values."""
    first, *rest = (got for _, got, _ in pairs)
    first.realize(*rest)
    for name, got, wanted in pairs:
        want = np.asarray(wanted)
        found = got.numpy()
        assert found.shape == want.shape, name
        assert found.dtype.kind == want.dtype.kind, f"{name}: {found.dtype} for {want.dtype}"
        np.testing.assert_allclose(found, want, rtol=tolerance, atol=tolerance, err_msg=name)


UNARY: dict[str, tuple[Callable[[Tensor], Tensor], Callable[[Array], Any]]] = {
    "neg": (lambda t: -t, lambda x: -x),
    "abs": (lambda t: t.abs(), np.abs),
    "sign": (lambda t: t.sign(), np.sign),
    "square": (lambda t: t.square(), np.square),
    "exp": (lambda t: t.exp(), np.exp),
    "exp2": (lambda t: t.exp2(), np.exp2),
    "sin": (lambda t: t.sin(), np.sin),
    "cos": (lambda t: t.cos(), np.cos),
    "tanh": (lambda t: t.tanh(), np.tanh),
    "sinh": (lambda t: t.sinh(), np.sinh),
    "atan": (lambda t: t.atan(), np.arctan),
    "asinh": (lambda t: t.asinh(), np.arcsinh),
    "floor": (lambda t: t.floor(), np.floor),
    "ceil": (lambda t: t.ceil(), np.ceil),
    "trunc": (lambda t: t.trunc(), np.trunc),
    "round": (lambda t: (t * 2).round(), lambda x: np.round(x * 2)),
    "relu": (lambda t: t.relu(), lambda x: np.maximum(x, 0)),
    "sigmoid": (lambda t: t.sigmoid(), lambda x: 1 / (1 + np.exp(-x))),
    "silu": (lambda t: t.silu(), lambda x: x / (1 + np.exp(-x))),
    "clip": (lambda t: t.clip(-1, 2), lambda x: np.clip(x, -1, 2)),
    "leaky": (lambda t: t.leaky_relu(0.25), lambda x: np.where(x < 0, x * 0.25, x)),
    "reciprocal": (lambda t: (t.abs() + 1).reciprocal(), lambda x: 1 / (np.abs(x) + 1)),
    "sqrt": (lambda t: t.abs().sqrt(), lambda x: np.sqrt(np.abs(x))),
    "rsqrt": (lambda t: (t * t + 1).rsqrt(), lambda x: 1 / np.sqrt(x * x + 1)),
    "log": (lambda t: (t.abs() + 0.5).log(), lambda x: np.log(np.abs(x) + 0.5)),
    "log2": (lambda t: (t.abs() + 0.5).log2(), lambda x: np.log2(np.abs(x) + 0.5)),
    "isnan": (lambda t: t.isnan(), np.isnan),
    "pow": (lambda t: t**3, lambda x: x**3),
    "power": (lambda t: 2**t, lambda x: 2**x),
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_functions_of_one_tensor(shape: tuple[int, ...], dtype: str, backend: str) -> None:
    x = data(shape, dtype)
    t = Tensor(x)
    check([(name, ours(t), theirs(x)) for name, (ours, theirs) in UNARY.items()])


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint8", "uint32"])
@pytest.mark.parametrize("shape", SHAPES[:8], ids=str)
def test_functions_of_one_tensor_of_integers(shape: tuple[int, ...], dtype: str, backend: str) -> None:
    x = data(shape, dtype)
    t = Tensor(x)
    wide = x.astype(np.float32)
    pairs: list[tuple[str, Tensor, Any]] = [
        ("abs", t.abs(), np.abs(x)), ("sign", t.sign(), np.sign(x)), ("invert", ~t, ~x), ("square", t * t, x * x),
        ("cube", t**3, x**3), ("shift", t << 2, x << 2), ("shift right", t >> 1, x >> 1), ("and", t & 5, x & 5),
        ("or", t | 2, x | 2), ("xor", t ^ 7, x ^ 7), ("mod", t % 4, x % 4), ("floordiv", t // 4, x // 4),
        ("divide", t / 4, wide / 4), ("exp", t.exp(), np.exp(wide)), ("float", t + 0.5, wide + 0.5),
        ("floor", t.floor(), x), ("not", t.logical_not(), np.logical_not(x)), ("clip", t.clip(1, 3), np.clip(x, 1, 3)),
        ("compare", t > 2, x > 2), ("maximum", t.maximum(3), np.maximum(x, 3)),
        ("minimum", t.minimum(3), np.minimum(x, 3)),
    ]  # fmt: skip
    check(pairs)
    assert all(
        got.dtype is t.dtype for name, got, _ in pairs if name not in ("divide", "exp", "float", "not", "compare")
    )


PAIRS: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
    ((3, 4), (3, 4)), ((3, 4), (4,)), ((3, 1), (1, 4)), ((), (2, 3)), ((2, 3), ()), ((1,), (5,)), ((0, 3), (3,)),
    ((2, 1, 4), (3, 1)), ((1, 1, 1), (2, 3, 4)), ((5, 1), (5, 0)), ((33,), (1,)), ((4, 1, 2), (1, 3, 1)),
]  # fmt: skip


@pytest.mark.parametrize(
    "kinds", [("float32", "float32"), ("float32", "int32"), ("int8", "int32"), ("uint8", "int8"), ("bool", "float32"),
              ("int64", "int64"), ("float16", "float32"), ("bool", "int32")], ids=lambda k: "-".join(k)
)  # fmt: skip
def test_operators_of_two_tensors(kinds: tuple[str, str], backend: str) -> None:
    pairs: list[tuple[str, Tensor, Any]] = []
    for number, (a, b) in enumerate(PAIRS):
        x, y = data(a, kinds[0], number), data(b, kinds[1], number + 1)
        s, t = Tensor(x), Tensor(y)
        common = np.dtype("float32") if "float32" in kinds else np.result_type(x, y)
        strong, weak = (x, y) if a else (y, x)
        if bool(a) != bool(b) and np.issubdtype(strong.dtype, np.floating) >= np.issubdtype(weak.dtype, np.floating):
            common = strong.dtype if strong.dtype != bool else common  # a tensor of no axes only raises the category
        u, v = x.astype(common), y.astype(common)
        # numbers that no operation brings to a border
        pairs += [
            (f"{a} + {b}", s + t, u + v), (f"{a} - {b}", s - t, u - v), (f"{a} * {b}", s * t, u * v),
            (f"max {a} {b}", s.maximum(t), np.maximum(u, v)), (f"min {a} {b}", s.minimum(t), np.minimum(u, v)),
            (f"{a} < {b}", s < t, u < v), (f"{a} <= {b}", s <= t, u <= v), (f"{a} > {b}", s > t, u > v),
            (f"{a} >= {b}", s >= t, u >= v), (f"{a} == {b}", s == t, u == v), (f"{a} != {b}", s != t, u != v),
            (f"where {a} {b}", (s > 0).where(s, t), np.where(x > 0, u, v)),
            (f"{a} / {b}", s / (t * t + 1), u / (v.astype(np.result_type(v, np.int32)) ** 2 + 1)),
        ]  # fmt: skip
        if common.kind != "f":
            pairs += [(f"{a} // {b}", s // (t | 1), u // (v | 1)), (f"{a} % {b}", s % (t | 1), u % (v | 1))]
    tolerance = 2e-3 if "float16" in kinds else 1e-5
    check([(name, got, want.astype(np.float32) if " / " in name else want) for name, got, want in pairs], tolerance)


REDUCTIONS: dict[str, tuple[Callable[..., Tensor], Callable[..., Any]]] = {
    "sum": (Tensor.sum, np.sum),
    "prod": (Tensor.prod, np.prod),
    "mean": (Tensor.mean, np.mean),
    "max": (Tensor.max, np.max),
    "min": (Tensor.min, np.min),
    "any": (lambda t, axis, keepdim: (t > 2).any(axis, keepdim),
            lambda x, axis, keepdims: (x > 2).any(axis, keepdims=keepdims)),
    "all": (lambda t, axis, keepdim: (t > -2).all(axis, keepdim),
            lambda x, axis, keepdims: (x > -2).all(axis, keepdims=keepdims)),
    "var": (lambda t, axis, keepdim: t.var(axis, keepdim=keepdim, correction=0), np.var),
    "logsumexp": (
        lambda t, axis, keepdim: t.exp().sum(axis, keepdim).log(),
        lambda x, axis, keepdims: np.log(np.exp(x).sum(axis, keepdims=keepdims)),
    ),
}  # fmt: skip
AXES: list[int | tuple[int, ...] | None] = [None, 0, -1, 1, (0, 1), (0, 2), (-1, -2), (2, 0, 1)]


@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("shape", [(2, 3, 4), (1, 5, 1), (33, 2, 7), (3, 1, 65)], ids=str)
def test_reductions_along_axes(shape: tuple[int, ...], keepdim: bool, backend: str) -> None:
    x = data(shape, "float32")
    t = Tensor(x)
    check([
        (f"{name} {axis}", ours(t, axis, keepdim), theirs(x, axis=axis, keepdims=keepdim))
        for name, (ours, theirs) in REDUCTIONS.items() for axis in AXES
    ], 1e-4)  # fmt: skip


def test_reductions_of_nothing(backend: str) -> None:
    for shape in ((0,), (3, 0), (0, 3), (2, 0, 4)):
        x = np.zeros(shape, np.float32)
        t = Tensor(x)
        for axis in (None, 0, -1):
            np.testing.assert_array_equal(t.sum(axis).numpy(), x.sum(axis))
            np.testing.assert_array_equal(t.prod(axis).numpy(), x.prod(axis))
            np.testing.assert_array_equal((t > 0).any(axis).numpy(), (x > 0).any(axis))
            np.testing.assert_array_equal((t > 0).all(axis).numpy(), (x > 0).all(axis))
        assert t.cumsum(0).shape == shape and t.softmax(-1).shape == shape and (t + 1).exp().shape == shape


@pytest.mark.parametrize("name", [d.name for d in dtypes.all if d.kind in ("int", "uint")])
def test_integers_wrap(name: str, backend: str) -> None:
    dtype = dtypes.from_name(name)
    low, high = int(dtypes.min(dtype)), int(dtypes.max(dtype))
    kind = interop.to_numpy_name(dtype)
    assert kind is not None
    x = np.array([low, low + 1, -1 % (high + 1), 0, 1, high - 1, high], kind)
    t = Tensor(x)
    with np.errstate(over="ignore"):
        check([
            ("add", t + t, x + x), ("one", t + 1, x + np.array(1, kind)), ("multiply", t * t, x * x),
            ("negate", t * high, x * np.array(high, kind)), ("subtract", t - 1, x - np.array(1, kind)),
            ("shift", t << 1, x << np.array(1, kind)), ("invert", ~t, ~x), ("maximum", t.max(), x.max()),
        ])  # fmt: skip
    assert t.max().item() == high and t.min().item() == low
    assert t.sum(dtype=name).item() == x.sum(dtype=kind)
