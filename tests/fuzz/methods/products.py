"""Products, normalisation, windows and losses."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .reductions import logsumexp
from .table import MOST, Array, Call, Pool, Ref, along, row


def _matmul(name: str) -> None:
    def draw(pool: Pool, i: int) -> Call | None:
        value = pool.values[i]
        if value.kind != "f" or not value.array.ndim or not value.array.size:
            return None
        inner = value.array.shape[-1]
        j = pool.floats(inner, pool.pick.randint(1, 20)) if pool.pick.random() < 0.8 else pool.floats(inner)
        return Call(name, (Ref(i), Ref(j)), {}, np.matmul)

    row(name, draw, exact=True, smooth=True)


_matmul("matmul")
_matmul("dot")


def _linear(pool: Pool, i: int) -> Call | None:
    value = pool.values[i]
    if value.kind != "f" or not value.array.ndim or not value.array.size:
        return None
    n = pool.pick.randint(1, 20)
    w, b = pool.floats(value.array.shape[-1], n), pool.floats(n)
    return Call("linear", (Ref(i), Ref(w), Ref(b)), {}, lambda x, w, b: x @ w + b)


def _einsum(pool: Pool, i: int) -> Call | None:
    value = pool.values[i]
    if value.kind != "f" or value.array.ndim != 2 or not value.array.size:
        return None
    j = pool.floats(value.array.shape[1], pool.pick.randint(1, 9))
    formula = pool.pick.choice(["ij,jk->ik", "ij,jk->ki", "ij,jk->k", "ij,jk->ijk"])
    if value.array.size * 9 > MOST:
        return None
    return Call("einsum", (formula, Ref(i), Ref(j)), {}, np.einsum)


def _attention(pool: Pool, i: int) -> Call | None:
    value = pool.values[i]
    if value.kind != "f" or value.array.ndim < 2 or not 0 < value.array.size <= 4000 or np.abs(value.array).max() > 9:
        return None
    *batch, _, width = value.array.shape
    keys = pool.pick.randint(1, 17)
    k, v = pool.floats(*batch, keys, width), pool.floats(*batch, keys, pool.pick.randint(1, 9))

    def reference(q: Array, k: Array, v: Array) -> Array:
        scores = q @ np.swapaxes(k, -1, -2) / math.sqrt(q.shape[-1])
        return np.exp(scores - logsumexp(scores, -1, True)) @ v  # type: ignore[no-any-return]

    return Call("scaled_dot_product_attention", (Ref(i), Ref(k), Ref(v)), {}, reference)


row("linear", _linear, exact=True, smooth=True)
row("einsum", _einsum, exact=True, smooth=True)
row("scaled_dot_product_attention", _attention, smooth=True)


def _normalised(x: Array, axis: Any, eps: float = 1e-5) -> Array:
    return (x - x.mean(axis=axis, keepdims=True)) / np.sqrt(x.var(axis=axis, keepdims=True) + eps)  # type: ignore[no-any-return]


along("layernorm", lambda x, axis: _normalised(x, axis % x.ndim if axis != -1 else -1), smooth=True)
along("normalize", lambda x, dim: x / np.maximum(np.sqrt((x * x).sum(dim, keepdims=True)), 1e-12), "dim")


def _batchnorm(pool: Pool, i: int) -> Call | None:
    value = pool.values[i]
    if value.kind != "f" or value.array.ndim < 2 or not value.array.size:
        return None
    n = value.array.shape[1]
    w, b, m, s = (pool.floats(n) for _ in range(4))

    def reference(x: Array, *each: Array) -> Array:
        w, b, m, s = (a.reshape(-1, *[1] * (x.ndim - 2)) for a in each)
        return (x - m) * s * w + b

    return Call("batchnorm", (Ref(i), Ref(w), Ref(b), Ref(m), Ref(s)), {}, reference)


row("batchnorm", _batchnorm, exact=True, smooth=True)


def _image(pool: Pool, i: int) -> tuple[int, Array]:
    """The value itself if it may be a batch of images, else a new one."""
    value = pool.values[i]
    if value.kind == "f" and value.array.ndim == 4 and 0 < value.array.size <= 2000:
        return i, value.array
    shape = [pool.pick.randint(1, 3), pool.pick.choice([1, 2, 4]), pool.pick.randint(3, 9), pool.pick.randint(3, 9)]
    j = pool.floats(*shape)
    return j, pool.values[j].array


def _windows(x: Array, kernel: Sequence[int], stride: int, padding: int, dilation: int, value: float) -> Array:
    """(n, c, oy, ox, ky, kx)."""
    x = np.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)), constant_values=value)
    reach = [dilation * (k - 1) + 1 for k in kernel]
    seen = np.lib.stride_tricks.sliding_window_view(x, reach, (2, 3))
    return seen[:, :, ::stride, ::stride, ::dilation, ::dilation]


def _convolution(x: Array, w: Array, b: Array | None = None, groups: int = 1, stride: int = 1, dilation: int = 1,
                 padding: int = 0) -> Array:  # fmt: skip
    seen = _windows(x, w.shape[2:], stride, padding, dilation, 0)
    parts = [np.einsum("ncyxij,ocij->noyx", s, k)
             for s, k in zip(np.split(seen, groups, 1), np.split(w, groups, 0), strict=True)]  # fmt: skip
    out = np.concatenate(parts, 1)
    return out if b is None else out + b[:, None, None]


def _conv2d(pool: Pool, i: int) -> Call | None:
    j, x = _image(pool, i)
    groups = pool.pick.choice([g for g in (1, 1, 2, 4) if x.shape[1] % g == 0])
    outputs = groups * pool.pick.randint(1, 3)
    kernel = [pool.pick.randint(1, min(3, d)) for d in x.shape[2:]]
    w, b = pool.floats(outputs, x.shape[1] // groups, *kernel), pool.floats(outputs)
    kwargs: dict[str, Any] = {"groups": groups, "stride": pool.pick.randint(1, 2), "padding": pool.pick.randint(0, 2)}
    if pool.pick.random() < 0.3 and all(2 * (k - 1) + 1 <= d for k, d in zip(kernel, x.shape[2:], strict=True)):
        kwargs["dilation"] = 2
    return Call("conv2d", (Ref(j), Ref(w), Ref(b)), kwargs, _convolution)


def _conv_transpose2d(pool: Pool, i: int) -> Call | None:
    j, x = _image(pool, i)
    kernel = [pool.pick.randint(1, 3) for _ in range(2)]
    w = pool.floats(x.shape[1], pool.pick.randint(1, 3), *kernel)
    stride = pool.pick.randint(1, 2)
    least = min((side - 1) * stride + k for side, k in zip(x.shape[2:], kernel, strict=True))
    kwargs = {"stride": stride, "padding": pool.pick.randint(0, min((least - 1) // 2, min(kernel) - 1))}

    def reference(x: Array, w: Array, stride: int, padding: int) -> Array:
        n, _, h, width = x.shape
        ky, kx = w.shape[2:]
        out = np.zeros((n, w.shape[1], (h - 1) * stride + ky, (width - 1) * stride + kx), np.result_type(x, w))
        for y in range(h):
            for z in range(width):
                out[:, :, y * stride : y * stride + ky, z * stride : z * stride + kx] += np.einsum(
                    "nc,coij->noij", x[:, :, y, z], w)  # fmt: skip
        return out[:, :, padding : out.shape[2] - padding, padding : out.shape[3] - padding]

    return Call("conv_transpose2d", (Ref(j), Ref(w)), kwargs, reference)


row("conv2d", _conv2d, exact=True, smooth=True)
row("conv_transpose2d", _conv_transpose2d, exact=True, smooth=True)


def _pooling(name: str, value: float, reference: Callable[..., Any], **facts: bool) -> None:
    def draw(pool: Pool, i: int) -> Call | None:
        j, x = _image(pool, i)
        kernel = pool.pick.randint(1, min(3, *x.shape[2:]))
        stride, padding = pool.pick.randint(1, 3), pool.pick.randint(0, kernel // 2)
        kwargs = {"kernel_size": kernel, "stride": stride, "padding": padding}

        def pooled(x: Array, kernel_size: int, stride: int, padding: int) -> Any:
            return reference(_windows(x, (kernel_size, kernel_size), stride, padding, 1, value), (-1, -2))

        return Call(name, (Ref(j),), kwargs, pooled)

    row(name, draw, **facts)


_pooling("avg_pool2d", 0.0, np.mean, smooth=True)
_pooling("max_pool2d", -np.inf, np.max, exact=True)


def _max_unpool2d(pool: Pool, i: int) -> Call | None:
    shape = (pool.pick.randint(1, 2), pool.pick.randint(1, 2), pool.pick.randint(1, 4), pool.pick.randint(1, 4))
    x = pool.floats(*shape)
    count = 4 * shape[2] * shape[3]
    places = [pool.pick.sample(range(count), shape[2] * shape[3]) for _ in range(shape[0] * shape[1])]
    index = pool.make(np.array(places, np.int64).reshape(shape))

    def reference(x: Array, index: Array, kernel_size: int) -> Array:
        out = np.zeros((*x.shape[:2], 4 * x.shape[2] * x.shape[3]))
        np.put_along_axis(out, index.reshape(*x.shape[:2], -1), x.reshape(*x.shape[:2], -1), 2)
        return out.reshape(*x.shape[:2], 2 * x.shape[2], 2 * x.shape[3])

    return Call("max_unpool2d", (Ref(x), Ref(index)), {"kernel_size": 2}, reference)


row("max_unpool2d", _max_unpool2d, exact=True)


def _interpolate(pool: Pool, i: int) -> Call | None:
    j, _ = _image(pool, i)
    size = (pool.pick.randint(1, 12), pool.pick.randint(1, 12))

    def reference(x: Array, size: Sequence[int], mode: str, align_corners: bool) -> Array:
        for axis, n in zip((2, 3), size, strict=True):
            old = x.shape[axis]
            at = np.arange(n) * ((old - 1) / max(n - 1, 1)) if align_corners else (np.arange(n) + 0.5) * (old / n) - 0.5
            at = np.clip(at, 0, old - 1)
            low = np.floor(at).astype(int)
            high, part = np.minimum(low + 1, old - 1), at - low
            part = part.reshape(-1, *[1] * (3 - axis))
            x = np.take(x, low, axis) * (1 - part) + np.take(x, high, axis) * part
        return x

    return Call("interpolate", (Ref(j), size), {"mode": "linear", "align_corners": pool.pick.random() < 0.5}, reference)


row("interpolate", _interpolate, smooth=True)


def _classes(pool: Pool, i: int) -> tuple[int, int, Array] | None:
    value = pool.values[i]
    if value.kind != "f" or value.array.ndim != 2 or not value.array.size or np.abs(value.array).max() > 30:
        return None
    y = pool.ints(0, value.array.shape[1], value.array.shape[0])
    return i, y, value.array


def _reduced(losses: Array, reduction: str) -> Any:
    return losses if reduction == "none" else losses.mean() if reduction == "mean" else losses.sum()


def _loss(name: str, of: Callable[[Array, Array], Array]) -> None:
    def draw(pool: Pool, i: int) -> Call | None:
        found = _classes(pool, i)
        if found is None:
            return None
        kwargs = {"reduction": pool.pick.choice(["mean", "sum", "none"])}
        return Call(name, (Ref(found[0]), Ref(found[1])), kwargs, lambda x, y, reduction: _reduced(of(x, y), reduction))

    row(name, draw, smooth=True)


def _picked(x: Array, y: Array) -> Array:
    return -x[np.arange(len(y)), y]


_loss("nll_loss", _picked)
_loss("cross_entropy", lambda x, y: _picked(x - logsumexp(x, 1, True), y))
_loss("sparse_categorical_crossentropy", lambda x, y: _picked(x - logsumexp(x, 1, True), y))


def _binary_loss(name: str, of: Callable[[Array, Array], Array], unit: bool) -> None:
    def draw(pool: Pool, i: int) -> Call | None:
        array = pool.values[i].array
        if pool.values[i].kind != "f" or not array.size or np.abs(array).max() > 9:
            return None
        if unit and (array.min() < 0.05 or array.max() > 0.95):
            return None
        y = pool.make(np.array([pool.pick.random() < 0.5 for _ in range(array.size)], np.float64).reshape(array.shape))
        kwargs = {"reduction": pool.pick.choice(["mean", "sum", "none"])}
        return Call(name, (Ref(i), Ref(y)), kwargs, lambda x, y, reduction: _reduced(of(x, y), reduction))

    row(name, draw, smooth=True)


_binary_loss("binary_crossentropy", lambda x, y: -(y * np.log(x) + (1 - y) * np.log(1 - x)), True)
_binary_loss("binary_crossentropy_logits", lambda x, y: np.logaddexp(x, 0) - x * y, False)
