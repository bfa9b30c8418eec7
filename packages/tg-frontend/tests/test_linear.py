"""Products, convolutions and pools, against numpy."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tg_dtype import dtypes
from tg_frontend import Tensor

Array = NDArray[Any]
Ints = tuple[int, ...]


def sample(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def same(got: Tensor, want: Any, tolerance: float = 1e-5) -> None:
    expected = np.asarray(want)
    assert got.shape == expected.shape
    np.testing.assert_allclose(got.numpy(), expected, rtol=tolerance, atol=tolerance)


SHAPES = [
    ((3, 4), (4, 5)), ((4,), (4,)), ((4,), (4, 5)), ((3, 4), (4,)), ((2, 3, 4), (4, 5)), ((2, 1, 3, 4), (5, 4, 2)),
    ((2, 3, 4), (2, 4, 5)), ((4,), (2, 4, 3)), ((2, 3, 4), (4,)), ((0, 4), (4, 3)), ((3, 0), (0, 2)), ((1, 1), (1, 1)),
    ((17, 33), (33, 9)),
]  # fmt: skip


@pytest.mark.parametrize(("a", "b"), SHAPES)
def test_matmul(a: tuple[int, ...], b: tuple[int, ...], backend: str) -> None:
    x, y = sample(*a), sample(*b, seed=1)
    same(Tensor(x) @ Tensor(y), x @ y)
    same(Tensor(x).matmul(Tensor(y)), x @ y)
    same(Tensor(y).matmul(Tensor(x), reverse=True), x @ y)


def test_matmul_of_other_dtypes(backend: str) -> None:
    x, y = np.arange(6).reshape(2, 3), np.arange(12).reshape(3, 4)
    got = Tensor(x, dtype="int32") @ Tensor(y, dtype="int32")
    assert got.dtype is dtypes.int32 and got.tolist() == (x @ y).tolist()
    half = Tensor.ones(1, 3000, dtype="float16") @ Tensor.ones(3000, 1, dtype="float16")
    assert half.dtype is dtypes.float16 and half.item() == 3000.0
    thirds = (Tensor.full((1, 999), 1 / 3, dtype="float16") @ Tensor.full((999, 1), 3.0, dtype="float16")).item()
    assert abs(float(thirds) - 999 * 3 * 0.333251953125) < 0.5  # products are not rounded to float16
    assert Tensor.ones(2, 2, dtype="float16").dot(Tensor.ones(2, 2), dtype="float32").dtype is dtypes.float32
    assert (np.ones((2, 3), np.float32) @ Tensor.ones(3, 2)).tolist() == [[3.0, 3.0], [3.0, 3.0]]


EINSUMS = [
    ("ij,jk->ik", (2, 3), (3, 4)), ("ij,jk", (2, 3), (3, 4)), ("i,j->ij", (2,), (3,)), ("ij->ji", (2, 3)),
    ("ij->", (2, 3)), ("ii->i", (3, 3)), ("ii", (3, 3)), ("bij,bjk->bik", (2, 3, 4), (2, 4, 5)), ("iji->j", (2, 3, 2)),
    ("...ij,...jk->...ik", (2, 1, 3, 4), (5, 4, 2)), ("...i->...", (2, 3, 4)),
    ("ij,kj,lj->ikl", (2, 3), (4, 3), (5, 3)),
    ("b...,b...->b...", (2, 3, 4), (2, 3, 4)), ("i->i", (3,)), (",i->i", (), (3,)), ("ij, ij -> i", (2, 3), (2, 3)),
]  # fmt: skip


@pytest.mark.parametrize("case", EINSUMS)
def test_einsum(case: tuple[Any, ...], backend: str) -> None:
    formula, *shapes = case
    arrays = [sample(*shape, seed=i) for i, shape in enumerate(shapes)]
    same(Tensor.einsum(formula, *(Tensor(a) for a in arrays)), np.einsum(formula, *arrays))


def test_einsum_sums_the_axes_that_the_output_leaves_out() -> None:
    x, y = sample(2, 3, 4), sample(2, 3, 4, seed=1)
    same(Tensor.einsum("b...,b...->b", Tensor(x), Tensor(y)), (x * y).sum((1, 2)))


def pairs(value: Any, n: int) -> list[tuple[int, int]]:
    """(before, after) for each axis."""
    if isinstance(value, int):
        return [(value, value)] * n
    if len(value) == n:
        return [(v, v) for v in value]
    return [(value[i], value[i + 1]) for i in range(0, 2 * n, 2)][::-1]


def box(place: Ints, stride: Ints, dilation: Ints, kernel: Ints) -> tuple[slice, ...]:
    """Where a window lies."""
    rows = zip(place, stride, dilation, kernel, strict=True)
    return tuple(slice(p * s, p * s + d * (k - 1) + 1, d) for p, s, d, k in rows)


def convolved(x: Array, w: Array, groups: int, stride: Ints, dilation: Ints, padding: Any) -> Array:
    """The definition, one output at a time."""
    n = w.ndim - 2
    x = np.pad(x, [(0, 0), (0, 0), *pairs(padding, n)])
    counts = [(x.shape[2 + i] - dilation[i] * (w.shape[2 + i] - 1) - 1) // stride[i] + 1 for i in range(n)]
    out = np.zeros((x.shape[0], w.shape[0], *counts))
    inputs, outputs = w.shape[1], w.shape[0] // groups
    for o, place in itertools.product(range(w.shape[0]), np.ndindex(*counts)):
        g = o // outputs
        window = x[(slice(None), slice(g * inputs, (g + 1) * inputs), *box(place, stride, dilation, w.shape[2:]))]
        out[(slice(None), o, *place)] = (window * w[o]).reshape(x.shape[0], -1).sum(1)
    return out


CONVOLUTIONS: list[tuple[tuple[int, ...], tuple[int, ...], int, Any, Any, Any]] = [
    ((1, 1, 5, 5), (1, 1, 3, 3), 1, 1, 1, 0),
    ((2, 3, 7, 6), (4, 3, 3, 2), 1, (2, 1), 1, 1),
    ((2, 4, 7, 6), (6, 2, 3, 2), 2, 1, (2, 3), (2, 1)),
    ((1, 4, 5, 6), (4, 1, 3, 3), 4, 2, 1, (1, 0, 2, 1)),
    ((2, 2, 9), (3, 2, 4), 1, 3, 2, 2),
    ((1, 2, 4, 3, 5), (2, 2, 2, 3, 2), 1, 1, 1, 1),
    ((2, 3, 4, 4), (2, 3, 1, 1), 1, 1, 1, 0),
    ((2, 3, 4, 4), (2, 3, 4, 4), 1, 1, 1, 0),
    ((1, 2, 6, 6), (2, 2, 2, 2), 1, 2, 1, 0),
    ((1, 1, 2, 2), (1, 1, 1, 1), 1, 3, 1, 0),
]


@pytest.mark.parametrize("case", CONVOLUTIONS)
def test_convolution(case: Any, backend: str) -> None:
    shape, kernel, groups, stride, dilation, padding = case
    n = len(kernel) - 2
    x, w, b = sample(*shape), sample(*kernel, seed=1), sample(kernel[0], seed=2)
    steps, gaps = ((v,) * n if isinstance(v, int) else v for v in (stride, dilation))
    want = convolved(x, w, groups, steps, gaps, padding)
    how = {"groups": groups, "stride": stride, "dilation": dilation, "padding": padding}
    got = Tensor(x).conv2d(Tensor(w), None, **how)
    same(got, want)
    same(Tensor(x).conv2d(Tensor(w), Tensor(b), **how), want + b.reshape(-1, *(1,) * n))


@pytest.mark.parametrize("case", [
    ((2, 4, 3, 4), (4, 2, 3, 3), 1, 2, 1, 1, 1), ((1, 4, 3, 3), (4, 1, 2, 3), 2, (1, 2), 1, 0, 0),
    ((1, 2, 5), (2, 3, 3), 1, 3, 2, 1, 2),
])  # fmt: skip
def test_the_transpose_of_a_convolution_is_its_adjoint(case: Any, backend: str) -> None:
    shape, kernel, groups, stride, dilation, padding, extra = case
    x, w = sample(*shape), sample(*kernel, seed=1)
    how = {"groups": groups, "stride": stride, "dilation": dilation, "padding": padding}
    got = Tensor(x).conv_transpose2d(Tensor(w), None, **how, output_padding=extra)
    y = sample(*(int(str(d)) for d in got.shape), seed=2)
    back = Tensor(y).conv2d(Tensor(w), None, **how)
    assert back.shape == shape
    assert abs(float((got.numpy() * y).sum()) - float((back.numpy() * x).sum())) < 1e-3


def put_back(x: Array, w: Array, groups: int, stride: Ints, dilation: Ints, padding: Ints, extra: Ints) -> Array:
    """A transposed convolution: each element of ``x`` times the kernels, added where its window was."""
    per = x.shape[1] // groups
    full = [(i - 1) * s + d * (k - 1) + 1 + e for i, s, d, k, e in
            zip(x.shape[2:], stride, dilation, w.shape[2:], extra, strict=True)]  # fmt: skip
    out = np.zeros((x.shape[0], groups, w.shape[1], *full))
    for place in np.ndindex(*x.shape[2:]):
        window = (slice(None),) * 3 + box(place, stride, dilation, w.shape[2:])
        here = x[(slice(None), slice(None), *place)].reshape(-1, groups, per)
        out[window] += np.einsum("bgc,gco...->bgo...", here, w.reshape(groups, per, *w.shape[1:]))
    out = out.reshape(x.shape[0], -1, *full)
    return out[(slice(None), slice(None), *(slice(p, size - p) for p, size in zip(padding, full, strict=True)))]


@pytest.mark.parametrize("seed", range(12))
def test_transposed_convolutions_of_any_size_and_their_gradients(seed: int, backend: str) -> None:
    """Values beside a sum over places; gradients by linearity: the slope along dx is the result of dx."""
    rng = random.Random(seed)
    n, groups = rng.choice((1, 2)), rng.choice((1, 1, 3))
    kernel, stride, dilation = (tuple(rng.randint(1, most) for _ in range(n)) for most in (5, 4, 2))
    extra = tuple(rng.randint(0, max(s, d) - 1) for s, d in zip(stride, dilation, strict=True))
    padding = tuple(rng.randint(0, d * (k - 1) // 2) for k, d in zip(kernel, dilation, strict=True))
    shape = (rng.randint(1, 3), groups * rng.randint(1, 3), *(rng.choice((1, 2, 5, 7)) for _ in range(n)))
    kernels = (shape[1], rng.randint(1, 3), *kernel)
    options = groups, stride, dilation, padding, extra
    x, w = sample(*shape), sample(*kernels, seed=1)
    want = put_back(x, w, *options)
    if 0 in want.shape:
        return
    leaf, weight = Tensor(x, requires_grad=True), Tensor(w, requires_grad=True)
    got = leaf.conv_transpose2d(
        weight, groups=groups, stride=stride, dilation=dilation, padding=padding, output_padding=extra
    )
    same(got.detach(), want)
    g = sample(*want.shape, seed=2)
    (got * Tensor(g)).sum().backward()
    assert leaf.grad is not None and weight.grad is not None
    dx, dw = sample(*shape, seed=3), sample(*kernels, seed=4)
    assert abs(float((leaf.grad.numpy() * dx).sum()) - float((put_back(dx, w, *options) * g).sum())) < 1e-3
    assert abs(float((weight.grad.numpy() * dw).sum()) - float((put_back(x, dw, *options) * g).sum())) < 1e-3


def test_a_transposed_convolution_of_nothing_is_zeros(backend: str) -> None:
    assert Tensor.ones(0, 2, 3).conv_transpose2d(Tensor.ones(2, 3, 2)).shape == (0, 3, 4)
    assert Tensor.ones(1, 0, 2).conv_transpose2d(Tensor.ones(0, 3, 2), stride=2).tolist() == [[[0.0] * 4] * 3]


def pooled(x: Array, kernel: Ints, stride: Ints, dilation: Ints, function: Any) -> Array:
    counts = [(x.shape[2 + i] - dilation[i] * (kernel[i] - 1) - 1) // stride[i] + 1 for i in range(2)]
    out = np.zeros((*x.shape[:2], *counts))
    for place in np.ndindex(*counts):
        window = (slice(None), slice(None), *box(place, stride, dilation, kernel))
        out[(slice(None), slice(None), *place)] = function(x[window], axis=(-2, -1))
    return out


@pytest.mark.parametrize("case", [
    ((2, 2), (2, 2), (1, 1), 0), ((3, 2), (1, 2), (1, 1), 1), ((2, 3), (2, 2), (2, 1), (1, 0)),
    ((2, 2), (3, 3), (1, 1), 0),
])  # fmt: skip
def test_pools(case: Any, backend: str) -> None:
    kernel, stride, dilation, padding = case
    x = sample(2, 3, 7, 6)
    around = [(0, 0), (0, 0), *pairs(padding, 2)]
    want = pooled(np.pad(x, around, constant_values=-np.inf), kernel, stride, dilation, np.max)
    same(Tensor(x).max_pool2d(kernel, stride, dilation=dilation, padding=padding), want)
    want = pooled(np.pad(x, around), kernel, stride, dilation, np.mean)
    same(Tensor(x).avg_pool2d(kernel, stride, dilation=dilation, padding=padding), want)
    ones = pooled(np.pad(x * 0 + 1, around), kernel, stride, dilation, np.sum)
    want = pooled(np.pad(x, around), kernel, stride, dilation, np.sum) / ones
    same(Tensor(x).avg_pool2d(kernel, stride, dilation=dilation, padding=padding, count_include_pad=False), want)


def test_pools_that_hang_over(backend: str) -> None:
    x = np.arange(25, dtype=np.float32).reshape(1, 1, 5, 5)
    assert Tensor(x).max_pool2d(2, ceil_mode=True).tolist() == [[[[6, 8, 9], [16, 18, 19], [21, 23, 24]]]]
    assert Tensor(x).avg_pool2d(2, ceil_mode=True).tolist() == [[[[3, 5, 6.5], [13, 15, 16.5], [20.5, 22.5, 24]]]]
    assert Tensor(x).avg_pool2d(2, ceil_mode=True, padding=1).shape == (1, 1, 3, 3)
    assert Tensor(-x).max_pool2d(3, 2, padding=1).max().item() == 0  # padding never wins
    assert Tensor(x.astype(np.int32)).max_pool2d().tolist() == [[[[6, 8], [16, 18]]]]
    assert Tensor(x).avg_pool2d((5,)).shape == (1, 1, 5, 1)


@pytest.mark.parametrize("count_include_pad", [True, False])
@pytest.mark.parametrize("size", [4, 5, 6, 9, 11, 13])
def test_means_of_windows_that_hang_over(size: int, count_include_pad: bool) -> None:
    """What hangs over at the end does not count; padding counts if it is asked for."""
    x = np.random.default_rng(size).standard_normal((1, 2, size, size + 3)).astype(np.float32)
    kernel, stride, padding = 3, 2, 1
    got = Tensor(x).avg_pool2d(kernel, stride, padding=padding, ceil_mode=True, count_include_pad=count_include_pad)
    sums = [[slice(max(0, at), min(at + kernel, n)) for at in range(-padding, n, stride)] for n in x.shape[2:]]
    counted = [[min(at + kernel, n + padding) - at if count_include_pad else min(at + kernel, n) - max(0, at)
                for at in range(-padding, n, stride)] for n in x.shape[2:]]
    want = [[x[..., a, b].sum((-2, -1)) / (m * n) for b, n in zip(sums[1], counted[1], strict=True)]
            for a, m in zip(sums[0], counted[0], strict=True)]
    np.testing.assert_allclose(got.numpy(), np.moveaxis(np.array(want), (0, 1), (2, 3)), rtol=1e-5, atol=1e-6)


def test_interpolation(backend: str) -> None:
    x = np.array([[[0.0, 10.0, 20.0]]], np.float32)
    same(Tensor(x).interpolate((5,), align_corners=True), [[[0, 5, 10, 15, 20]]])
    same(Tensor(x).interpolate((6,)), [[[0, 2.5, 7.5, 12.5, 17.5, 20]]])
    same(Tensor(x).interpolate((6,), mode="nearest"), [[[0, 0, 10, 10, 20, 20]]])
    same(Tensor(x).interpolate((2,), mode="nearest-exact"), [[[0, 20]]])
    assert Tensor(sample(1, 2, 4, 4)).interpolate((8, 2)).shape == (1, 2, 8, 2)


@pytest.mark.parametrize("mode", ["linear", "nearest", "nearest-exact", "bicubic"])
@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_the_gradient_of_interpolation_goes_where_values_come_from(backend: str, kind: str, mode: str) -> None:
    """Also where a place is a whole number but for its rounding: <f(x), w> = <x, gradient of <f(x), w>>."""
    draw = np.random.default_rng(7)
    for old, factor, more in ((4, 3, 0), (int(draw.integers(2, 8)), int(draw.integers(2, 6)), 1)):
        inner = (1, old) if mode == "bicubic" else (old,)
        size = (*inner[:-1], old * factor + more)
        x, w = draw.standard_normal((2, 3, *inner)), draw.standard_normal((2, 3, *size))
        t = Tensor(x, dtype=kind).requires_grad_()
        total = (t.interpolate(size, mode=mode) * Tensor(w, dtype=kind)).sum()
        total.backward()
        assert t.grad is not None
        np.testing.assert_allclose((t.grad.numpy() * x).sum(), total.item(), 1e-4, 1e-4, err_msg=f"{inner} to {size}")


def test_linear_and_sequential() -> None:
    x, w, b = sample(2, 3), sample(3, 4), sample(4)
    same(Tensor(x).linear(Tensor(w), Tensor(b)), x @ w + b)
    same(Tensor(x).linear(Tensor(x[0])), x * x[0])
    same(Tensor(x).sequential([lambda t: t + 1, Tensor.relu]), np.maximum(x + 1, 0))


BAD: dict[str, tuple[Callable[[], object], type[Exception], str]] = {
    "matmul": (lambda: Tensor.ones(2, 3) @ Tensor.ones(2, 3), ValueError, r"matmul: shapes \(2, 3\) and \(2, 3\)"),
    "matmul batch": (lambda: Tensor.ones(2, 3, 4) @ Tensor.ones(3, 4, 5), ValueError, "matmul: the shapes .* broadc"),
    "matmul scalar": (lambda: Tensor.ones(2) @ Tensor(3.0), ValueError, "not numbers"),
    "matmul number": (lambda: Tensor.ones(2) @ 3, TypeError, "a tensor of float32 and a int"),
    "matmul device": (lambda: Tensor.ones(2) @ Tensor.ones(2, device="NULL"), ValueError, "NUMPY and NULL"),
    "einsum": (lambda: Tensor.einsum("ij,jk->ik", Tensor.ones(2, 3), Tensor.ones(2, 3)), ValueError, "axis 'j'"),
    "einsum count": (lambda: Tensor.einsum("ij,jk", Tensor.ones(2, 3)), ValueError, "names 2 operands, got 1"),
    "einsum rank": (lambda: Tensor.einsum("ijk->i", Tensor.ones(2, 3)), ValueError, "does not fit shape"),
    "einsum output": (lambda: Tensor.einsum("ij->k", Tensor.ones(2, 3)), ValueError, "unknown"),
    "einsum letters": (lambda: Tensor.einsum("i1->i", Tensor.ones(2, 3)), ValueError, "letters"),
    "einsum operand": (lambda: Tensor.einsum("i", 3), TypeError, "int"),
    "conv channels": (
        lambda: Tensor.ones(1, 3, 5, 5).conv2d(Tensor.ones(2, 4, 3, 3)), ValueError,
        r"conv2d: input of shape \(1, 3, 5, 5\) with weight of shape \(2, 4, 3, 3\)",
    ),
    "conv rank": (lambda: Tensor.ones(5, 5).conv2d(Tensor.ones(2, 3, 3, 3)), ValueError, "axes differ"),
    "conv size": (lambda: Tensor.ones(1, 1, 2, 2).conv2d(Tensor.ones(1, 1, 3, 3)), ValueError, "does not fit"),
    "conv groups": (lambda: Tensor.ones(1, 4, 5).conv2d(Tensor.ones(3, 2, 2), groups=2), ValueError, "2 groups"),
    "conv stride": (lambda: Tensor.ones(1, 1, 5).conv2d(Tensor.ones(1, 1, 2), stride=0), ValueError, "stride: 0"),
    "conv padding": (
        lambda: Tensor.ones(1, 1, 5).conv2d(Tensor.ones(1, 1, 2), padding=(1, 2, 3)), ValueError, "padding"
    ),
    "conv bias": (
        lambda: Tensor.ones(1, 1, 5).conv2d(Tensor.ones(1, 1, 2), Tensor.ones(3)), ValueError, "bias of shape"
    ),
    "conv_transpose": (
        lambda: Tensor.ones(1, 1, 5).conv_transpose2d(Tensor.ones(2, 1, 2)), ValueError, "conv_transpose2d: input"
    ),
    "conv_transpose size": (
        lambda: Tensor.ones(1, 1, 2).conv_transpose2d(Tensor.ones(1, 1, 2), padding=2), ValueError,
        r"conv_transpose2d: .* the result would have the sizes \(-1,\)",
    ),
    "conv_transpose groups": (
        lambda: Tensor.ones(1, 1, 2).conv_transpose2d(Tensor.ones(1, 1, 2), groups=0), ValueError, "0 groups"
    ),
    "conv_transpose bias": (
        lambda: Tensor.ones(1, 1, 2).conv_transpose2d(Tensor.ones(1, 1, 2), Tensor.ones(3)), ValueError, "for 1 outp"
    ),
    "pool": (lambda: Tensor.ones(1, 1, 2, 2).max_pool2d(3), ValueError, "max_pool2d: input"),
    "pool kernel": (lambda: Tensor.ones(1, 1, 2, 2).avg_pool2d(0), ValueError, "kernel_size: 0"),
    "interpolate": (lambda: Tensor.ones(1, 1, 2).interpolate((2,), mode="cubic"), ValueError, "mode 'cubic'"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_mistakes_are_named(name: str) -> None:
    function, kind, message = BAD[name]
    with pytest.raises(kind, match=message):
        function()


def test_linear_with_a_dtype(backend: str) -> None:
    x, w = Tensor([[1, 2]], dtype="float16"), Tensor([3, 4], dtype="float16")
    for weight in (w, w.reshape(2, 1)):
        out = x.linear(weight, dtype="float64")
        assert out.dtype.name == "float64"
    assert x.linear(w, dtype="float32").tolist() == [[3, 8]]
