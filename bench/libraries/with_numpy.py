"""NumPy: also what the others are checked against."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from ..case import Array, Case, Unsupported
from .base import Library, Step, Tensor


class Numpy(Library):
    """NumPy, with whatever BLAS it was built with; convolution is windows times weights."""

    name = "numpy"

    def __init__(self, threads: int) -> None:
        super().__init__(threads)
        self.version = np.__version__

    def array(self, values: Array, dtype: str = "") -> Tensor:
        if dtype:
            raise Unsupported(f"numpy has no {dtype}")
        return values

    def host(self, x: Tensor) -> Array:
        return np.asarray(x)

    def program(self, fn: Callable[..., Tensor], arguments: Sequence[Tensor]) -> Callable[[], Tensor]:
        return lambda: fn(*arguments)

    def chain(self, count: int, size: int) -> Case:
        start = np.zeros(size, np.float32)

        def run() -> Array:
            x = start
            for _ in range(count):
                x = x + 1
            return x

        return Case(run, self.host, self.mode)

    def tiny(self) -> Case:
        a, b = np.ones(16, np.float32), np.ones(16, np.float32)
        return Case(lambda: a + b, self.host, self.mode)

    def decoding(
        self, step: Step, params: dict[str, Array], caches: Sequence[tuple[int, ...]], tokens: Sequence[int], start: int
    ) -> Case:
        held: list[Any] = [np.zeros(shape, np.float32) for shape in caches]
        position = start

        def run() -> Array:
            nonlocal position, held
            out, held = step(self, params, held, np.array([tokens[position]], np.int32), position)
            position = position + 1 if position + 1 < len(tokens) else start
            return out  # type: ignore[no-any-return]

        return Case(run, self.host, self.mode, stateful=True)

    def materialized(self, x: Tensor) -> Tensor:
        return np.ascontiguousarray(x)

    def transposed(self, x: Tensor) -> Tensor:
        return np.swapaxes(x, -1, -2)

    def permute(self, x: Tensor, *order: int) -> Tensor:
        return x.transpose(order)

    def linear(self, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        out = x @ weight.T
        return out if bias is None else out + bias

    def integer_product(self, a: Tensor, b: Tensor) -> Tensor:
        return a.astype(np.int32) @ b.astype(np.int32)

    def conv2d(
        self, x: Tensor, weight: Tensor, bias: Tensor | None = None, stride: int = 1, padding: int = 0
    ) -> Tensor:
        windows = self._windows(x, weight.shape[2:], stride, padding, 0)
        out = np.tensordot(windows, weight, ((1, 4, 5), (1, 2, 3))).transpose(0, 3, 1, 2)
        return out if bias is None else out + bias[:, None, None]

    def conv1d(
        self, x: Tensor, weight: Tensor, bias: Tensor | None = None, stride: int = 1, padding: int = 0
    ) -> Tensor:
        padded = np.pad(x, ((0, 0), (0, 0), (padding, padding)))
        windows = np.lib.stride_tricks.sliding_window_view(padded, weight.shape[2], 2)[:, :, ::stride]
        out = np.tensordot(windows, weight, ((1, 3), (1, 2))).transpose(0, 2, 1)
        return out if bias is None else out + bias[:, None]

    def _windows(self, x: Tensor, kernel: tuple[int, int], stride: int, padding: int, fill: float) -> Tensor:
        around = ((0, 0), (0, 0), (padding, padding), (padding, padding))
        padded = np.pad(x, around, constant_values=fill) if padding else x
        windows = np.lib.stride_tricks.sliding_window_view(padded, kernel, (2, 3))
        return windows[:, :, ::stride, ::stride]

    def max_pool(self, x: Tensor, kernel: int, stride: int, padding: int = 0) -> Tensor:
        return self._windows(x, (kernel, kernel), stride, padding, -math.inf).max((4, 5))

    def attention(self, q: Tensor, k: Tensor, v: Tensor, causal: bool = False) -> Tensor:
        scores = q @ np.swapaxes(k, -1, -2) * np.float32(1 / math.sqrt(q.shape[-1]))
        if causal:
            scores = np.where(np.tri(*scores.shape[-2:]) > 0, scores, np.float32(-np.inf))
        return self.softmax(scores) @ v

    def softmax(self, x: Tensor) -> Tensor:
        e = np.exp(x - x.max(-1, keepdims=True))
        return e / e.sum(-1, keepdims=True)

    def layernorm(self, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        centred = x - x.mean(-1, keepdims=True)
        return centred / np.sqrt((centred * centred).mean(-1, keepdims=True) + 1e-5) * weight + bias

    def rmsnorm(self, x: Tensor, weight: Tensor) -> Tensor:
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * weight

    def channel_norm(self, x: Tensor, mean: Tensor, var: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        scale = weight / np.sqrt(var + 1e-5)
        return x * scale[:, None, None] + (bias - mean * scale)[:, None, None]

    def relu(self, x: Tensor) -> Tensor:
        return np.maximum(x, 0)

    def gelu(self, x: Tensor, exact: bool = False) -> Tensor:
        if exact:
            return 0.5 * x * (1 + self.erf(x * np.float32(math.sqrt(0.5))))
        return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)))

    def fourier(self, x: Tensor, axes: tuple[int, ...]) -> Tensor:
        return np.fft.fftn(x, axes=axes)

    def real_fourier(self, x: Tensor) -> Tensor:
        return np.fft.rfft(x)

    @property
    def linalg(self) -> Any:
        return np.linalg

    def sort(self, x: Tensor) -> Tensor:
        return np.sort(x, -1)

    def largest(self, x: Tensor, count: int) -> Tensor:
        return -np.sort(np.partition(-x, count - 1)[..., :count])

    def median(self, x: Tensor) -> Tensor:
        return np.median(x, -1)

    def kth(self, x: Tensor, k: int) -> Tensor:
        return np.partition(x, k - 1, -1)[..., k - 1]

    def quantile(self, x: Tensor, fraction: float) -> Tensor:
        return np.quantile(x, np.float32(fraction), -1)

    def argsort(self, x: Tensor) -> Tensor:
        return np.argsort(x, -1, stable=True)

    def histogram(self, x: Tensor, bins: int, low: float, high: float) -> Tensor:
        return np.histogram(x, bins, (low, high))[0]

    def bincount(self, x: Tensor) -> Tensor:
        return np.bincount(x)

    def searchsorted(self, x: Tensor, values: Tensor) -> Tensor:
        return np.searchsorted(x, values)

    def unique(self, x: Tensor) -> Tensor:
        return np.unique(x)

    def eager(self, fn: Callable[..., Tensor], arrays: Sequence[Array]) -> Case:
        return self.case(fn, arrays)

    def cumsum(self, x: Tensor, axis: int) -> Tensor:
        return np.cumsum(x, axis)

    def cumprod(self, x: Tensor, axis: int) -> Tensor:
        return np.cumprod(x, axis)

    def cummax(self, x: Tensor, axis: int) -> Tensor:
        return np.maximum.accumulate(x, axis)

    def logcumsumexp(self, x: Tensor, axis: int) -> Tensor:
        return np.logaddexp.accumulate(x, axis)

    def lstm(self, x: Tensor, w_ih: Tensor, w_hh: Tensor, bias: Tensor) -> Tensor:
        def sigmoid(x: Tensor) -> Tensor:
            return 1 / (1 + np.exp(-x))

        gates = x @ w_ih.T + bias
        hidden = cell = np.zeros((x.shape[1], w_hh.shape[1]), x.dtype)
        out = []
        for step in gates:
            into, forget, new, last = np.split(step + hidden @ w_hh.T, 4, -1)
            cell = sigmoid(forget) * cell + sigmoid(into) * np.tanh(new)
            hidden = sigmoid(last) * np.tanh(cell)
            out.append(hidden)
        return np.stack(out)

    def gru(self, x: Tensor, w_ih: Tensor, w_hh: Tensor, bias: Tensor, bias_hh: Tensor) -> Tensor:
        hidden = np.zeros((x.shape[1], w_hh.shape[1]), x.dtype)
        out = []
        for step in x @ w_ih.T + bias:
            reset, update, new = np.split(step, 3, -1)
            own_reset, own_update, own_new = np.split(hidden @ w_hh.T + bias_hh, 3, -1)
            keep = 1 / (1 + np.exp(-update - own_update))
            new = np.tanh(new + own_new / (1 + np.exp(-reset - own_reset)))
            hidden = new + keep * (hidden - new)
            out.append(hidden)
        return np.stack(out)

    def scan(self, fn: Callable[[Tensor, Tensor], Tensor], start: Tensor, x: Tensor) -> Tensor:
        return np.stack(list(accumulate(x, fn, initial=start))[1:])

    def repeat(self, holds: Callable[[Tensor], Tensor], fn: Callable[[Tensor], Tensor], start: Tensor) -> Tensor:
        while holds(start):
            start = fn(start)
        return start

    def gather(self, x: Tensor, index: Tensor) -> Tensor:
        return np.take_along_axis(x, index, 1)

    def scatter_add(self, values: Tensor, index: Tensor, width: int) -> Tensor:
        table = np.zeros((len(values), width), values.dtype)
        np.add.at(table, (np.arange(len(values))[:, None], index), values)
        return table

    def tanh(self, x: Tensor) -> Tensor:
        return np.tanh(x)

    def sin(self, x: Tensor) -> Tensor:
        return np.sin(x)

    def cos(self, x: Tensor) -> Tensor:
        return np.cos(x)

    def erf(self, x: Tensor) -> Tensor:
        raise Unsupported("numpy has no error function")

    def silu(self, x: Tensor) -> Tensor:
        return x / (1 + np.exp(-x))

    def sum(self, x: Tensor) -> Tensor:
        return x.sum()

    def mean(self, x: Tensor, axes: tuple[int, ...]) -> Tensor:
        return x.mean(axes)

    def rotate(self, x: Tensor, cos: Tensor, sin: Tensor, position: Any) -> Tensor:
        a, b = np.split(x, 2, -1)
        c, s = cos[position], sin[position]
        return np.concatenate([a * c - b * s, b * c + a * s], -1)

    def cached_attention(
        self, q: Tensor, k: Tensor, v: Tensor, cache: Tensor, position: Any
    ) -> tuple[Tensor, Tensor]:
        cache[0, :, position], cache[1, :, position] = k[:, 0], v[:, 0]
        keys, values = cache[:, :, : position + 1]
        grouped = q.reshape(k.shape[0], -1, q.shape[-1])
        return self.attention(grouped, keys, values).reshape(q.shape), cache

    def embed(self, table: Tensor, tokens: Tensor) -> Tensor:
        return table[tokens]

    def added_rows(self, values: Tensor, index: Tensor, rows: int) -> Tensor:
        table = np.zeros((rows, *values.shape[1:]), values.dtype)
        np.add.at(table, index, values)
        return table

    def linear_q4(self, x: Tensor, packed: Tensor, scale: Tensor, least: Tensor) -> Tensor:
        digits = np.concatenate([packed & 15, packed >> 4], -1).astype(np.float32)
        weight = digits * scale[..., None].astype(np.float32) + least[..., None].astype(np.float32)
        return x @ weight.reshape(packed.shape[0], -1).T
