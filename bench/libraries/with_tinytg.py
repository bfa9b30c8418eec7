"""tinytg, through TinyJit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.metadata import version
from typing import Any

import numpy as np

from ..case import Array, Case, Unsupported
from .base import Library, Loss, Speech, Step, Tensor


class Tensors(Library):
    """What tinytg and tinygrad, whose users write alike, have in common."""

    mode = "jit"
    tensor: Any
    nn: Any
    jit: Any
    variable: Any

    def wait(self) -> None:
        """Waits until the device has done what it was given."""

    def parameter(self, values: Array) -> Tensor:
        """A tensor that is trained."""
        return self.array(values)

    def array(self, values: Array, dtype: str = "") -> Tensor:
        tensor = self.tensor(values)
        return (tensor.cast(dtype) if dtype else tensor).realize()

    def host(self, x: Tensor) -> Array:
        values: Array = x.float().numpy() if x.is_floating_point() else x.numpy()
        return values

    def program(self, fn: Callable[..., Tensor], arguments: Sequence[Tensor]) -> Callable[[], Tensor]:
        jitted = self.jit(lambda *tensors: fn(*tensors).realize())

        def call() -> Tensor:
            out = jitted(*arguments)
            self.wait()
            return out

        return call

    def chain(self, count: int, size: int) -> Case:
        def chained(x: Tensor) -> Tensor:
            for _ in range(count):
                x = (x + 1).contiguous()
            return x

        call = self.program(chained, [self.tensor.zeros(size).contiguous().realize()])
        return Case(call, self.host, self.mode)

    def tiny(self) -> Case:
        a, b = (self.tensor.ones(16).contiguous().realize() for _ in range(2))

        def run() -> Tensor:
            out = (a + b).realize()
            self.wait()
            return out

        return Case(run, self.host, "eager")

    def clip(self, params: list[Tensor], norm: float) -> None:
        """Scales gradients so that the norm of all together is no greater."""
        raise Unsupported(f"{self.name} has no function that clips gradients")

    def training(
        self, loss: Loss, params: dict[str, Array], x: Array, y: Array, lr: float, clip: float = 0.0, decay: float = 0.0
    ) -> Case:
        held = {name: self.parameter(values) for name, values in params.items()}
        batch, classes = self.array(x), self.array(y)
        optim, trained = self.nn.optim, list(held.values())
        adam = optim.AdamW(trained, lr=lr, weight_decay=decay) if decay else optim.Adam(trained, lr=lr)

        def update(batch: Tensor, classes: Tensor) -> Tensor:
            out = loss(self, held, batch, classes).backward()
            if clip:
                self.clip(trained, clip)
            changed = adam.schedule_step()
            adam.zero_grad()  # nobody reads them, so the record need not keep them from call to call
            return out.realize(*changed)

        jitted = self.jit(update)

        def step() -> Tensor:
            with self.training_mode():
                out = jitted(batch, classes)
            self.wait()
            return out

        return Case(step, self.host, self.mode, stateful=True)

    def gradient(
        self, fn: Callable[..., Tensor], arrays: Sequence[Array], weights: Array, eager: bool = False
    ) -> Case:
        def slope(factor: Tensor, *tensors: Tensor) -> Tensor:
            return fn(*tensors).gradient(tensors[0], gradient=factor)[0]

        made = self.array(weights), *(self.array(values) for values in arrays)
        if eager:
            return Case(lambda: slope(*made).realize(), self.host, "eager")
        return Case(self.program(slope, made), self.host, self.mode)

    def training_mode(self) -> Any:
        """A block in which layers behave as in training."""
        return self.tensor.train()

    def decoding(
        self, step: Step, params: dict[str, Array], caches: Sequence[tuple[int, ...]], tokens: Sequence[int], start: int
    ) -> Case:
        held = {name: self.array(values) for name, values in params.items()}
        state = [self.tensor.zeros(*shape).contiguous().realize() for shape in caches]
        variable = self.variable("position", 0, len(tokens) - 1)
        jitted = self.jit(lambda token, position: step(self, held, state, token, position)[0].realize())
        each = [self.array(np.array([token], np.int32)) for token in tokens]
        position = start

        def run() -> Tensor:
            nonlocal position
            out = jitted(each[position], variable.bind(position))
            self.wait()
            position = position + 1 if position + 1 < len(tokens) else start
            return out

        return Case(run, self.host, self.mode, stateful=True)

    def materialized(self, x: Tensor) -> Tensor:
        return x.contiguous()

    def linear(self, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        return x.linear(weight.T, bias)

    def conv2d(
        self, x: Tensor, weight: Tensor, bias: Tensor | None = None, stride: int = 1, padding: int = 0
    ) -> Tensor:
        return x.conv2d(weight, bias, stride=stride, padding=padding)

    def conv1d(
        self, x: Tensor, weight: Tensor, bias: Tensor | None = None, stride: int = 1, padding: int = 0
    ) -> Tensor:
        return x.conv2d(weight, bias, stride=stride, padding=padding)

    def conv_transpose(
        self, x: Tensor, weight: Tensor, stride: int, padding: int = 0, extra: int = 0, groups: int = 1
    ) -> Tensor:
        return x.conv_transpose2d(weight, groups=groups, stride=stride, padding=padding, output_padding=extra)

    def integer_product(self, a: Tensor, b: Tensor) -> Tensor:
        return a.matmul(b, dtype="int32")

    def max_pool(self, x: Tensor, kernel: int, stride: int, padding: int = 0) -> Tensor:
        return x.max_pool2d((kernel, kernel), stride, padding=padding)

    def attention(self, q: Tensor, k: Tensor, v: Tensor, causal: bool = False) -> Tensor:
        return q.scaled_dot_product_attention(k, v, is_causal=causal)

    def softmax(self, x: Tensor) -> Tensor:
        return x.softmax(-1)

    def layernorm(self, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        return x.layernorm(-1, 1e-5) * weight + bias

    def rmsnorm(self, x: Tensor, weight: Tensor) -> Tensor:
        return x * ((x * x).mean(-1, keepdim=True) + 1e-5).rsqrt() * weight

    def channel_norm(self, x: Tensor, mean: Tensor, var: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        return x.batchnorm(weight, bias, mean, (var + 1e-5).rsqrt())

    def batch_norm(self, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        var, mean = x.var_mean(axis=(0, 2, 3), correction=0)
        return self.channel_norm(x, mean, var, weight, bias)

    def cross_entropy(self, logits: Tensor, classes: Tensor) -> Tensor:
        return logits.sparse_categorical_crossentropy(classes)

    def relu(self, x: Tensor) -> Tensor:
        return x.relu()

    def gelu(self, x: Tensor, exact: bool = False) -> Tensor:
        return 0.5 * x * (1 + (x * 0.5**0.5).erf()) if exact else x.gelu()

    def sort(self, x: Tensor) -> Tensor:
        return x.sort(-1)[0]

    def largest(self, x: Tensor, count: int) -> Tensor:
        return x.topk(count)[0]

    def median(self, x: Tensor) -> Tensor:
        return x.median(-1)[0]

    def kth(self, x: Tensor, k: int) -> Tensor:
        return x.kthvalue(k, -1)[0]

    def quantile(self, x: Tensor, fraction: float) -> Tensor:
        return x.quantile(fraction, -1)

    def most_common(self, x: Tensor) -> Tensor:
        return x.mode(-1)[0]

    def argsort(self, x: Tensor) -> Tensor:
        return x.argsort(-1)

    def histogram(self, x: Tensor, bins: int, low: float, high: float) -> Tensor:
        return x.histogram(bins, range=(low, high))[0]

    def bincount(self, x: Tensor) -> Tensor:
        return x.bincount()

    def searchsorted(self, x: Tensor, values: Tensor) -> Tensor:
        return x.searchsorted(values)

    def unique(self, x: Tensor) -> Tensor:
        return x.unique()

    def eager(self, fn: Callable[..., Tensor], arrays: Sequence[Array]) -> Case:
        tensors = [self.array(values) for values in arrays]
        return Case(lambda: fn(*tensors).realize(), self.host, "eager")

    def cumsum(self, x: Tensor, axis: int) -> Tensor:
        return x.cumsum(axis)

    def cumprod(self, x: Tensor, axis: int) -> Tensor:
        return x.cumprod(axis)

    def cummax(self, x: Tensor, axis: int) -> Tensor:
        found = x.cummax(axis)
        return found[0] if isinstance(found, tuple) else found

    def logcumsumexp(self, x: Tensor, axis: int) -> Tensor:
        return x.logcumsumexp(axis)

    def gather(self, x: Tensor, index: Tensor) -> Tensor:
        return x.gather(1, index)

    def scatter_add(self, values: Tensor, index: Tensor, width: int) -> Tensor:
        return self.tensor.zeros(len(values), width).scatter_add(1, index, values)

    def sin(self, x: Tensor) -> Tensor:
        return x.sin()

    def cos(self, x: Tensor) -> Tensor:
        return x.cos()

    def erf(self, x: Tensor) -> Tensor:
        return x.erf()

    def silu(self, x: Tensor) -> Tensor:
        return x.silu()

    def sum(self, x: Tensor) -> Tensor:
        return x.sum()

    def mean(self, x: Tensor, axes: tuple[int, ...]) -> Tensor:
        return x.mean(axes)

    def rotate(self, x: Tensor, cos: Tensor, sin: Tensor, position: Any) -> Tensor:
        a, b = x.chunk(2, -1)
        c, s = cos[position : position + 1], sin[position : position + 1]
        return (a * c - b * s).cat(b * c + a * s, dim=-1)

    def cached_attention(
        self, q: Tensor, k: Tensor, v: Tensor, cache: Tensor, position: Any
    ) -> tuple[Tensor, Tensor]:
        cache[:, :, position : position + 1, :].assign(k.stack(v)).realize()
        held = cache[:, :, : position + 1, :]
        grouped = q.reshape(k.shape[0], -1, q.shape[-1])
        return grouped.scaled_dot_product_attention(held[0], held[1]).reshape(q.shape), cache

    def embed(self, table: Tensor, tokens: Tensor) -> Tensor:
        return table[tokens]

    def added_rows(self, values: Tensor, index: Tensor, rows: int) -> Tensor:
        return self.tensor.zeros(rows, *values.shape[1:]).index_add(0, index, values)

    def linear_q4(self, x: Tensor, packed: Tensor, scale: Tensor, least: Tensor) -> Tensor:
        digits = (packed & 15).cat(packed >> 4, dim=-1).cast("float32")
        weight = digits * scale.unsqueeze(-1).float() + least.unsqueeze(-1).float()
        return x @ weight.reshape(packed.shape[0], -1).T


class TinyTG(Tensors):
    """This repository. How many threads it uses is in the environment that the worker is started with."""

    name = "tinytg"

    def __init__(self, threads: int) -> None:
        super().__init__(threads)
        tinytg = import_module("tinytg")
        self.tensor, self.nn, self.jit, self.variable = tinytg.Tensor, tinytg.nn, tinytg.TinyJit, tinytg.Variable
        self.loops = tinytg
        self.version = version("tinytg")

    def reading(self, path: str, held: Sequence[int], more: Sequence[int], activations: str = "float32") -> Case:
        before, every = list(held), [*held, *more]
        model, _, _ = import_module("tinytg.language").load(path, len(every), activations=activations)
        if before:
            model.logits(before)

        def run() -> Array:
            del model.tokens[len(before) :]
            logits: Array = model.logits(every)
            return logits

        return Case(run, np.asarray, self.mode)

    def loading(self, path: str, text: str) -> Case:
        def run() -> Array:
            _, tokenizer, _ = import_module("tinytg.language").load(path)
            return np.array(tokenizer.encode(text), np.int32)

        return Case(run, np.asarray, self.mode)

    def transcribing(self, speech: Speech) -> Case:
        model = speech.program.Whisper(speech.folder)
        return Case(lambda: np.array(model.tokens(speech.samples), np.int32), np.asarray, self.mode)

    def clip(self, params: list[Tensor], norm: float) -> None:
        self.nn.clip_grad_norm_(params, norm)

    def gelu(self, x: Tensor, exact: bool = False) -> Tensor:
        return x.gelu(approximate="none" if exact else "tanh")

    @property
    def linalg(self) -> Any:
        return self.loops.linalg

    def triangular_factors(self, x: Tensor) -> Tensor:
        return self.loops.linalg.lu_factor(x)[0]

    def exponential(self, x: Tensor) -> Tensor:
        return self.loops.linalg.matrix_exp(x)

    def training_of_rows(self, table: Array, index: Array, lr: float, adam: bool) -> Case:
        held, batch = self.parameter(table), self.array(index)
        optimizer = (self.nn.optim.SparseAdam if adam else self.nn.optim.SGD)([held], lr=lr)

        def update(batch: Tensor) -> Tensor:
            optimizer.zero_grad()
            out = held.embedding(batch, sparse=True).square().mean().backward()
            optimizer.step()
            return out.realize()

        jitted = self.jit(update)

        def step() -> Tensor:
            out = jitted(batch)
            self.wait()
            return out

        return Case(step, self.host, self.mode, stateful=True)

    @property
    def transforms(self) -> Any:
        return self.loops

    def checkpoint(self, fn: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
        return self.nn.checkpoint(fn, x)

    def lstm(self, x: Tensor, w_ih: Tensor, w_hh: Tensor, bias: Tensor) -> Tensor:
        layer = self.nn.LSTM(w_ih.shape[1], w_hh.shape[1])
        layer.weight_ih_l0, layer.weight_hh_l0 = w_ih, w_hh
        layer.bias_ih_l0, layer.bias_hh_l0 = bias, None
        return layer(x)[0]

    def gru(self, x: Tensor, w_ih: Tensor, w_hh: Tensor, bias: Tensor, bias_hh: Tensor) -> Tensor:
        layer = self.nn.GRU(w_ih.shape[1], w_hh.shape[1])
        layer.weight_ih_l0, layer.weight_hh_l0 = w_ih, w_hh
        layer.bias_ih_l0, layer.bias_hh_l0 = bias, bias_hh
        return layer(x)[0]

    def scan(self, fn: Callable[[Tensor, Tensor], Tensor], start: Tensor, x: Tensor) -> Tensor:
        return self.loops.scan(lambda state, part: (fn(state, part),) * 2, start, x)[1]

    def repeat(self, holds: Callable[[Tensor], Tensor], fn: Callable[[Tensor], Tensor], start: Tensor) -> Tensor:
        return self.loops.while_loop(holds, fn, start)

    def fourier(self, x: Tensor, axes: tuple[int, ...]) -> Tensor:
        return self.loops.fft.fftn(x, dim=axes)

    def real_fourier(self, x: Tensor) -> Tensor:
        return self.loops.fft.rfft(x)

    def recurrence(self, factor: Tensor, term: Tensor) -> Tensor:
        def then(a: Any, b: Any) -> Any:
            return a[0] * b[0], a[1] * b[0] + b[1]

        return self.loops.associative_scan(then, (factor, term), axis=-1)[1]

    def tensors(self, run: Callable[[], None]) -> int:
        counters = import_module("tg_runtime").GlobalCounters
        counters.reset()
        run()
        return int(counters.mem_peak)
