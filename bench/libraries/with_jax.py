"""JAX on the CPU, everything under ``jax.jit``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from ..case import Array, Case, Unsupported
from .base import Library, Loss, Step, Tensor


class Jax(Library):
    """JAX. How many threads it uses is in the environment and the affinity that the worker is started with."""

    name = "jax"
    mode = "jit"

    def __init__(self, threads: int) -> None:
        super().__init__(threads)
        self.jax = import_module("jax")
        self.np = import_module("jax.numpy")
        self.lax = import_module("jax.lax")
        self.nn = import_module("jax.nn")
        self.version = str(self.jax.__version__)
        self.plan: Callable[[], Any] | None = None  # tells what the step of the last training takes

    def tensors(self, run: Callable[[], None]) -> int:
        run()
        if self.plan is None:
            raise Unsupported("only what a step of training takes is asked for")
        plan = self.plan()
        passed = plan.argument_size_in_bytes + plan.output_size_in_bytes - plan.alias_size_in_bytes
        return int(passed + plan.temp_size_in_bytes)

    def array(self, values: Array, dtype: str = "") -> Tensor:
        if values.dtype == np.float64:
            raise Unsupported("jax computes in float32 unless the whole process is told otherwise")
        return self.np.asarray(values, dtype or None).block_until_ready()

    def host(self, x: Tensor) -> Array:
        return np.asarray(x.astype("float32") if x.dtype == "bfloat16" else x)

    def program(self, fn: Callable[..., Tensor], arguments: Sequence[Tensor]) -> Callable[[], Tensor]:
        jitted = self.jax.jit(fn)
        return lambda: jitted(*arguments).block_until_ready()

    def chain(self, count: int, size: int) -> Case:
        def chained(x: Tensor) -> Tensor:
            for _ in range(count):
                x = x + 1
            return x

        call = self.program(chained, [self.np.zeros(size)])
        return Case(call, self.host, self.mode)

    def tiny(self) -> Case:
        a, b = self.np.ones(16), self.np.ones(16)
        return Case(lambda: (a + b).block_until_ready(), self.host, "eager")

    def training(
        self, loss: Loss, params: dict[str, Array], x: Array, y: Array, lr: float, clip: float = 0.0, decay: float = 0.0
    ) -> Case:
        tree = self.jax.tree_util.tree_map
        held = {name: self.array(values) for name, values in params.items()}
        zeros = tree(self.np.zeros_like, held)
        state = (held, zeros, tree(self.np.zeros_like, held), self.np.zeros((), "float32"))
        batch, classes = self.array(x), self.array(y)

        @partial(self.jax.jit, donate_argnums=0)
        def update(state: Any, batch: Tensor, classes: Tensor) -> Any:
            weights, m, v, t = state
            value, grads = self.jax.value_and_grad(lambda w: loss(self, w, batch, classes))(weights)
            if clip:
                norm = self.np.sqrt(sum((g * g).sum() for g in grads.values()))
                grads = tree(lambda g: g * self.np.minimum(1.0, clip / (norm + 1e-6)), grads)
            t = t + 1
            m = tree(lambda m, g: 0.9 * m + 0.1 * g, m, grads)
            v = tree(lambda v, g: 0.999 * v + 0.001 * g * g, v, grads)
            a, b = 1 - 0.9**t, 1 - 0.999**t
            weights = tree(
                lambda w, m, v: w * (1 - lr * decay) - lr * (m / a) / (self.np.sqrt(v / b) + 1e-8), weights, m, v
            )
            return (weights, m, v, t), value

        def step() -> Tensor:
            nonlocal state
            state, value = update(state, batch, classes)
            return value.block_until_ready()

        self.plan = lambda: update.lower(state, batch, classes).compile().memory_analysis()
        return Case(step, self.host, self.mode, stateful=True)

    def gradient(
        self, fn: Callable[..., Tensor], arrays: Sequence[Array], weights: Array, eager: bool = False
    ) -> Case:
        def slope(x: Tensor, factor: Tensor, *others: Tensor) -> Tensor:
            return self.jax.vjp(lambda x: fn(x, *others), x)[1](factor)[0]

        x, *others = (self.array(values) for values in arrays)
        tensors = (x, self.array(weights), *others)
        if eager:
            return Case(lambda: slope(*tensors).block_until_ready(), self.host, "eager")
        return Case(self.program(slope, tensors), self.host, self.mode)

    @property
    def transforms(self) -> Any:
        return self.jax

    def checkpoint(self, fn: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
        return self.jax.checkpoint(fn)(x)

    def eager(self, fn: Callable[..., Tensor], arrays: Sequence[Array]) -> Case:
        tensors = [self.array(values) for values in arrays]
        return Case(lambda: fn(*tensors).block_until_ready(), self.host, "eager")

    def decoding(
        self, step: Step, params: dict[str, Array], caches: Sequence[tuple[int, ...]], tokens: Sequence[int], start: int
    ) -> Case:
        held = {name: self.array(values) for name, values in params.items()}
        state: list[Any] = [self.np.zeros(shape, "float32") for shape in caches]
        jitted = self.jax.jit(partial(step, self), donate_argnums=1)
        position = start

        def run() -> Tensor:
            nonlocal position, state
            out, state = jitted(held, state, self.np.asarray([tokens[position]]), self.np.asarray(position))
            position = position + 1 if position + 1 < len(tokens) else start
            return out.block_until_ready()

        return Case(run, self.host, self.mode, stateful=True)

    def materialized(self, x: Tensor) -> Tensor:
        return x + 0

    def permute(self, x: Tensor, *order: int) -> Tensor:
        return x.transpose(order)

    def linear(self, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        out = x @ weight.T
        return out if bias is None else out + bias

    def conv2d(
        self, x: Tensor, weight: Tensor, bias: Tensor | None = None, stride: int = 1, padding: int = 0
    ) -> Tensor:
        out = self.lax.conv_general_dilated(x, weight, (stride, stride), ((padding, padding),) * 2)
        return out if bias is None else out + bias[:, None, None]

    def conv1d(
        self, x: Tensor, weight: Tensor, bias: Tensor | None = None, stride: int = 1, padding: int = 0
    ) -> Tensor:
        out = self.lax.conv_general_dilated(x, weight, (stride,), ((padding, padding),))
        return out if bias is None else out + bias[:, None]

    def conv_transpose(
        self, x: Tensor, weight: Tensor, stride: int, padding: int = 0, extra: int = 0, groups: int = 1
    ) -> Tensor:
        channels, outputs, *kernel = weight.shape
        weight = weight.reshape(groups, channels // groups, outputs, *kernel).swapaxes(1, 2)
        weight = self.np.flip(weight.reshape(groups * outputs, channels // groups, *kernel), range(2, x.ndim))
        around = [(size - 1 - padding, size - 1 - padding + extra) for size in kernel]
        return self.lax.conv_general_dilated(
            x, weight, (1,) * len(kernel), around, lhs_dilation=(stride,) * len(kernel), feature_group_count=groups
        )

    def integer_product(self, a: Tensor, b: Tensor) -> Tensor:
        return self.np.matmul(a, b, preferred_element_type="int32")

    def max_pool(self, x: Tensor, kernel: int, stride: int, padding: int = 0) -> Tensor:
        around = ((0, 0), (0, 0), (padding, padding), (padding, padding))
        return self.lax.reduce_window(
            x, -self.np.inf, self.lax.max, (1, 1, kernel, kernel), (1, 1, stride, stride), around
        )

    def attention(self, q: Tensor, k: Tensor, v: Tensor, causal: bool = False) -> Tensor:
        # its own order of axes is (batch, positions, heads, width)
        q, k, v = (x.swapaxes(1, 2) for x in (q, k, v))
        return self.nn.dot_product_attention(q, k, v, is_causal=causal).swapaxes(1, 2)

    def softmax(self, x: Tensor) -> Tensor:
        return self.nn.softmax(x, -1)

    def layernorm(self, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        return self.nn.standardize(x, -1, epsilon=1e-5) * weight + bias

    def rmsnorm(self, x: Tensor, weight: Tensor) -> Tensor:
        return x * self.lax.rsqrt(self.np.mean(x * x, -1, keepdims=True) + 1e-5) * weight

    def channel_norm(self, x: Tensor, mean: Tensor, var: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        scale = weight * self.lax.rsqrt(var + 1e-5)
        return x * scale[:, None, None] + (bias - mean * scale)[:, None, None]

    def batch_norm(self, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        return self.channel_norm(x, x.mean((0, 2, 3)), x.var((0, 2, 3)), weight, bias)

    def cross_entropy(self, logits: Tensor, classes: Tensor) -> Tensor:
        chosen = self.np.take_along_axis(self.nn.log_softmax(logits, -1), classes[:, None], 1)
        return -chosen.mean()

    def relu(self, x: Tensor) -> Tensor:
        return self.nn.relu(x)

    def gelu(self, x: Tensor, exact: bool = False) -> Tensor:
        return self.nn.gelu(x, approximate=not exact)

    def fourier(self, x: Tensor, axes: tuple[int, ...]) -> Tensor:
        return self.np.fft.fftn(x, axes=axes)

    def real_fourier(self, x: Tensor) -> Tensor:
        return self.np.fft.rfft(x)

    @property
    def linalg(self) -> Any:
        return self.np.linalg

    def triangular_factors(self, x: Tensor) -> Tensor:
        return import_module("jax.scipy.linalg").lu_factor(x)[0]

    def exponential(self, x: Tensor) -> Tensor:
        return import_module("jax.scipy.linalg").expm(x)

    def sort(self, x: Tensor) -> Tensor:
        return self.np.sort(x, -1)

    def largest(self, x: Tensor, count: int) -> Tensor:
        return self.lax.top_k(x, count)[0]

    def median(self, x: Tensor) -> Tensor:
        return self.np.median(x, -1)

    def kth(self, x: Tensor, k: int) -> Tensor:
        return -self.lax.top_k(-x, k)[0][..., k - 1]

    def quantile(self, x: Tensor, fraction: float) -> Tensor:
        return self.np.quantile(x, fraction, -1)

    def most_common(self, x: Tensor) -> Tensor:
        return import_module("jax.scipy.stats").mode(x, -1).mode

    def argsort(self, x: Tensor) -> Tensor:
        return self.np.argsort(x, -1)

    def histogram(self, x: Tensor, bins: int, low: float, high: float) -> Tensor:
        return self.np.histogram(x, bins, (low, high))[0]

    def bincount(self, x: Tensor) -> Tensor:
        return self.np.bincount(x)

    def unique(self, x: Tensor) -> Tensor:
        return self.np.unique(x)

    def searchsorted(self, x: Tensor, values: Tensor) -> Tensor:
        return self.np.searchsorted(x, values)

    def cumsum(self, x: Tensor, axis: int) -> Tensor:
        return self.np.cumsum(x, axis)

    def cumprod(self, x: Tensor, axis: int) -> Tensor:
        return self.np.cumprod(x, axis)

    def cummax(self, x: Tensor, axis: int) -> Tensor:
        return self.lax.cummax(x, axis)

    def logcumsumexp(self, x: Tensor, axis: int) -> Tensor:
        return self.lax.cumlogsumexp(x, axis)

    def lstm(self, x: Tensor, w_ih: Tensor, w_hh: Tensor, bias: Tensor) -> Tensor:
        def step(state: Any, gates: Tensor) -> Any:
            hidden, cell = state
            into, forget, new, last = self.np.split(gates + hidden @ w_hh.T, 4, -1)
            cell = self.nn.sigmoid(forget) * cell + self.nn.sigmoid(into) * self.np.tanh(new)
            hidden = self.nn.sigmoid(last) * self.np.tanh(cell)
            return (hidden, cell), hidden

        start = self.np.zeros((x.shape[1], w_hh.shape[1]), x.dtype)
        return self.lax.scan(step, (start, start), x @ w_ih.T + bias)[1]

    def gru(self, x: Tensor, w_ih: Tensor, w_hh: Tensor, bias: Tensor, bias_hh: Tensor) -> Tensor:
        def step(hidden: Tensor, gates: Tensor) -> Any:
            reset, update, new = self.np.split(gates, 3, -1)
            own_reset, own_update, own_new = self.np.split(hidden @ w_hh.T + bias_hh, 3, -1)
            new = self.np.tanh(new + self.nn.sigmoid(reset + own_reset) * own_new)
            hidden = new + self.nn.sigmoid(update + own_update) * (hidden - new)
            return hidden, hidden

        return self.lax.scan(step, self.np.zeros((x.shape[1], w_hh.shape[1]), x.dtype), x @ w_ih.T + bias)[1]

    def scan(self, fn: Callable[[Tensor, Tensor], Tensor], start: Tensor, x: Tensor) -> Tensor:
        return self.lax.scan(lambda state, part: (fn(state, part),) * 2, start, x)[1]

    def repeat(self, holds: Callable[[Tensor], Tensor], fn: Callable[[Tensor], Tensor], start: Tensor) -> Tensor:
        return self.lax.while_loop(holds, fn, start)

    def recurrence(self, factor: Tensor, term: Tensor) -> Tensor:
        def then(a: Any, b: Any) -> Any:
            return a[0] * b[0], a[1] * b[0] + b[1]

        return self.lax.associative_scan(then, (factor, term), axis=factor.ndim - 1)[1]

    def gather(self, x: Tensor, index: Tensor) -> Tensor:
        return self.np.take_along_axis(x, index, 1)

    def scatter_add(self, values: Tensor, index: Tensor, width: int) -> Tensor:
        rows = self.np.arange(len(values))[:, None]
        return self.np.zeros((len(values), width), values.dtype).at[rows, index].add(values)

    def tanh(self, x: Tensor) -> Tensor:
        return self.np.tanh(x)

    def sin(self, x: Tensor) -> Tensor:
        return self.np.sin(x)

    def cos(self, x: Tensor) -> Tensor:
        return self.np.cos(x)

    def erf(self, x: Tensor) -> Tensor:
        return self.lax.erf(x)

    def silu(self, x: Tensor) -> Tensor:
        return self.nn.silu(x)

    def sum(self, x: Tensor) -> Tensor:
        return x.sum()

    def mean(self, x: Tensor, axes: tuple[int, ...]) -> Tensor:
        return x.mean(axes)

    def rotate(self, x: Tensor, cos: Tensor, sin: Tensor, position: Any) -> Tensor:
        a, b = self.np.split(x, 2, -1)
        c, s = cos[position], sin[position]
        return self.np.concatenate([a * c - b * s, b * c + a * s], -1)

    def cached_attention(
        self, q: Tensor, k: Tensor, v: Tensor, cache: Tensor, position: Any
    ) -> tuple[Tensor, Tensor]:
        cache = self.lax.dynamic_update_slice(cache, self.np.stack([k, v]), (0, 0, position, 0))
        # shapes are fixed here: positions that are still empty are masked
        seen = (self.np.arange(cache.shape[2]) <= position)[None, None, None, :]
        keys, values = (x.swapaxes(0, 1)[None] for x in cache)
        out = self.nn.dot_product_attention(q.swapaxes(0, 1)[None], keys, values, mask=seen)
        return out[0].swapaxes(0, 1), cache

    def embed(self, table: Tensor, tokens: Tensor) -> Tensor:
        return table[tokens]

    def added_rows(self, values: Tensor, index: Tensor, rows: int) -> Tensor:
        return self.np.zeros((rows, *values.shape[1:]), values.dtype).at[index].add(values)

    def linear_q4(self, x: Tensor, packed: Tensor, scale: Tensor, least: Tensor) -> Tensor:
        digits = self.np.concatenate([packed & 15, packed >> 4], -1).astype("float32")
        weight = digits * scale[..., None].astype("float32") + least[..., None].astype("float32")
        return x @ weight.reshape(packed.shape[0], -1).T
