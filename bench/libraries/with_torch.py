"""PyTorch, eager or through ``torch.compile``."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from importlib import import_module
from itertools import accumulate
from typing import Any

import numpy as np

from ..case import Array, Case, Unsupported
from .base import Library, Loss, Speech, Step, Tensor


class Torch(Library):
    """PyTorch, as it executes by itself."""

    name = "torch"

    def __init__(self, threads: int) -> None:
        super().__init__(threads)
        self.torch = import_module("torch")
        self.f = import_module("torch.nn.functional")
        self.torch.set_num_threads(threads)
        self.version = str(self.torch.__version__)
        self.copies = False  # else memory of numpy is used in place

    def tensors(self, run: Callable[[], None]) -> int:
        profiler = import_module("torch.profiler")
        self.copies = True
        with profiler.profile(activities=[profiler.ProfilerActivity.CPU], profile_memory=True) as seen:
            run()
        events = [e for e in seen.profiler.kineto_results.events() if e.name() == "[memory]"]
        events.sort(key=lambda event: event.start_ns())
        return max(accumulate(int(event.nbytes()) for event in events))

    def array(self, values: Array, dtype: str = "") -> Tensor:
        tensor = self.torch.from_numpy(values)
        if self.copies:
            tensor = tensor.clone()
        return tensor.to(getattr(self.torch, dtype)) if dtype else tensor

    def host(self, x: Tensor) -> Array:
        values: Array = (x.float() if x.is_floating_point() else x).detach().numpy()
        return values

    def program(self, fn: Callable[..., Tensor], arguments: Sequence[Tensor]) -> Callable[[], Tensor]:
        def call() -> Tensor:
            with self.torch.inference_mode():
                return fn(*arguments)

        return call

    def chain(self, count: int, size: int) -> Case:
        start = self.torch.zeros(size)

        def run() -> Tensor:
            x = start
            for _ in range(count):
                x = x + 1
            return x

        return Case(run, self.host, self.mode)

    def tiny(self) -> Case:
        a, b = self.torch.ones(16), self.torch.ones(16)
        return Case(lambda: a + b, self.host, self.mode)

    def transcribing(self, speech: Speech) -> Case:
        program, torch = speech.program, self.torch
        config, generation = (
            json.loads((speech.folder / name).read_text(encoding="utf-8"))
            for name in ("config.json", "generation_config.json")
        )
        encoder, decoder = (
            {name: self.array(values) for name, values in read().items()}
            for read in (speech.encoder_weights, speech.decoder_weights)
        )
        heads, longest = config["decoder_attention_heads"], config["max_target_positions"]
        caches = [torch.zeros(2, heads, longest, config["d_model"] // heads) for _ in range(config["decoder_layers"])]
        bands, hann = torch.from_numpy(program.mel_bands().astype(np.float32)), torch.hann_window(program.WINDOW)
        never, first = torch.zeros(config["vocab_size"]), torch.zeros(config["vocab_size"])
        never[generation["suppress_tokens"]] = never[generation["no_timestamps_token_id"] + 1 :] = -torch.inf
        first[generation["begin_suppress_tokens"]] = -torch.inf
        prompt = [generation["decoder_start_token_id"], generation["lang_to_id"]["<|en|>"],
                  generation["task_to_id"]["transcribe"], generation["no_timestamps_token_id"]]  # fmt: skip

        def log_mel(samples: Tensor) -> Tensor:
            spectrum = torch.stft(samples, program.WINDOW, program.HOP, window=hann, return_complex=True)[:, :-1]
            level = (bands.T @ spectrum.abs().square()).clamp(min=1e-10).log10()
            return (level.maximum(level.max() - 8) + 4) / 4

        def run() -> Array:
            samples, said = torch.zeros(program.RATE * program.SECONDS), list(prompt)
            samples[: len(speech.samples)] = torch.from_numpy(speech.samples[: len(samples)])
            with torch.inference_mode():
                keys = speech.keys(self, decoder, speech.encode(self, encoder, log_mel(samples)[None]))
                for at in range(longest):
                    scores = speech.step(self, decoder, caches, keys, torch.tensor([said[at]]), at)[0, 0] + never
                    if at + 1 == len(said):
                        following = int((scores + first if len(said) == len(prompt) else scores).argmax())
                        if following == generation["eos_token_id"]:
                            break
                        said.append(following)
            return np.array(said[len(prompt) :], np.int32)

        return Case(run, np.asarray, self.mode)

    def training(
        self, loss: Loss, params: dict[str, Array], x: Array, y: Array, lr: float, clip: float = 0.0, decay: float = 0.0
    ) -> Case:
        held = {name: self.array(values).clone().requires_grad_() for name, values in params.items()}
        batch, classes = self.array(x), self.array(y.astype(np.int64))
        optim, trained = self.torch.optim, list(held.values())
        adam = optim.AdamW(trained, lr=lr, weight_decay=decay) if decay else optim.Adam(trained, lr=lr)

        def step() -> Tensor:
            adam.zero_grad()
            out = loss(self, held, batch, classes)
            out.backward()
            if clip:
                self.torch.nn.utils.clip_grad_norm_(trained, clip)
            adam.step()
            return out

        return Case(step, self.host, self.mode, stateful=True)

    def training_of_rows(self, table: Array, index: Array, lr: float, adam: bool) -> Case:
        layer = self.torch.nn.Embedding.from_pretrained(self.array(table).clone(), freeze=False, sparse=True)
        kind = self.torch.optim.SparseAdam if adam else self.torch.optim.SGD
        optimizer, batch = kind([layer.weight], lr=lr), self.array(index.astype(np.int64))

        def step() -> Tensor:
            optimizer.zero_grad()
            out = layer(batch).square().mean()
            out.backward()
            optimizer.step()
            return out

        return Case(step, self.host, self.mode, stateful=True)

    def gradient(
        self, fn: Callable[..., Tensor], arrays: Sequence[Array], weights: Array, eager: bool = False
    ) -> Case:
        x, *others = (self.array(values) for values in arrays)
        target, factor = x.clone().requires_grad_(), self.array(weights)
        return Case(
            lambda: self.torch.autograd.grad(fn(target, *others), target, factor)[0], self.host, self.mode
        )  # fmt: skip

    @property
    def transforms(self) -> Any:
        return self.torch.func

    def derived(self, fn: Callable[..., Tensor], arrays: Sequence[Array]) -> Case:
        tensors = [self.array(values) for values in arrays]
        return Case(lambda: fn(*tensors), self.host, self.mode)  # what is differentiated is made outside of inference

    def checkpoint(self, fn: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
        return import_module("torch.utils.checkpoint").checkpoint(fn, x, use_reentrant=False)

    def decoding(
        self, step: Step, params: dict[str, Array], caches: Sequence[tuple[int, ...]], tokens: Sequence[int], start: int
    ) -> Case:
        held = {name: self.array(values) for name, values in params.items()}
        state: list[Any] = [self.torch.zeros(shape) for shape in caches]
        position = start

        def run() -> Tensor:
            nonlocal position, state
            with self.torch.inference_mode():
                out, state = step(self, held, state, self.torch.tensor([tokens[position]]), position)
            position = position + 1 if position + 1 < len(tokens) else start
            return out

        return Case(run, self.host, self.mode, stateful=True)

    def materialized(self, x: Tensor) -> Tensor:
        return x.contiguous()

    def linear(self, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        return self.f.linear(x, weight, bias)

    def conv2d(
        self, x: Tensor, weight: Tensor, bias: Tensor | None = None, stride: int = 1, padding: int = 0
    ) -> Tensor:
        return self.f.conv2d(x, weight, bias, stride, padding)

    def conv1d(
        self, x: Tensor, weight: Tensor, bias: Tensor | None = None, stride: int = 1, padding: int = 0
    ) -> Tensor:
        return self.f.conv1d(x, weight, bias, stride, padding)

    def conv_transpose(
        self, x: Tensor, weight: Tensor, stride: int, padding: int = 0, extra: int = 0, groups: int = 1
    ) -> Tensor:
        function = self.f.conv_transpose1d if x.ndim == 3 else self.f.conv_transpose2d
        return function(x, weight, None, stride, padding, extra, groups)

    def integer_product(self, a: Tensor, b: Tensor) -> Tensor:
        if {a.dtype, b.dtype} != {self.torch.int8}:
            raise Unsupported("torch multiplies matrices of int8 alone")
        return self.torch._int_mm(a, b)

    def max_pool(self, x: Tensor, kernel: int, stride: int, padding: int = 0) -> Tensor:
        return self.f.max_pool2d(x, kernel, stride, padding)

    def attention(self, q: Tensor, k: Tensor, v: Tensor, causal: bool = False) -> Tensor:
        return self.f.scaled_dot_product_attention(q, k, v, is_causal=causal)

    def softmax(self, x: Tensor) -> Tensor:
        return self.torch.softmax(x, -1)

    def layernorm(self, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        return self.f.layer_norm(x, (x.shape[-1],), weight, bias, 1e-5)

    def rmsnorm(self, x: Tensor, weight: Tensor) -> Tensor:
        return self.f.rms_norm(x, (x.shape[-1],), weight, 1e-5)

    def channel_norm(self, x: Tensor, mean: Tensor, var: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        return self.f.batch_norm(x, mean, var, weight, bias, eps=1e-5)

    def batch_norm(self, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        return self.f.batch_norm(x, None, None, weight, bias, training=True, eps=1e-5)

    def cross_entropy(self, logits: Tensor, classes: Tensor) -> Tensor:
        return self.f.cross_entropy(logits, classes)

    def relu(self, x: Tensor) -> Tensor:
        return self.torch.relu(x)

    def gelu(self, x: Tensor, exact: bool = False) -> Tensor:
        return self.f.gelu(x, approximate="none" if exact else "tanh")

    def fourier(self, x: Tensor, axes: tuple[int, ...]) -> Tensor:
        return self.torch.fft.fftn(x, dim=axes)

    def real_fourier(self, x: Tensor) -> Tensor:
        return self.torch.fft.rfft(x)

    @property
    def linalg(self) -> Any:
        return self.torch.linalg

    def triangular_factors(self, x: Tensor) -> Tensor:
        return self.torch.linalg.lu_factor(x)[0]

    def exponential(self, x: Tensor) -> Tensor:
        return self.torch.linalg.matrix_exp(x)

    def sort(self, x: Tensor) -> Tensor:
        return x.sort(-1).values

    def largest(self, x: Tensor, count: int) -> Tensor:
        return x.topk(count).values

    def median(self, x: Tensor) -> Tensor:
        return x.median(-1).values

    def kth(self, x: Tensor, k: int) -> Tensor:
        return x.kthvalue(k, -1).values

    def quantile(self, x: Tensor, fraction: float) -> Tensor:
        return x.quantile(fraction, -1)

    def most_common(self, x: Tensor) -> Tensor:
        return x.mode(-1).values

    def argsort(self, x: Tensor) -> Tensor:
        return x.argsort(dim=-1, stable=True)

    def histogram(self, x: Tensor, bins: int, low: float, high: float) -> Tensor:
        return x.histc(bins, low, high)

    def bincount(self, x: Tensor) -> Tensor:
        return x.bincount()

    def searchsorted(self, x: Tensor, values: Tensor) -> Tensor:
        return self.torch.searchsorted(x, values)

    def unique(self, x: Tensor) -> Tensor:
        return x.unique()

    def eager(self, fn: Callable[..., Tensor], arrays: Sequence[Array]) -> Case:
        tensors = [self.array(values) for values in arrays]
        return Case(lambda: fn(*tensors), self.host, "eager")

    def cumsum(self, x: Tensor, axis: int) -> Tensor:
        return self.torch.cumsum(x, axis)

    def cumprod(self, x: Tensor, axis: int) -> Tensor:
        return self.torch.cumprod(x, axis)

    def cummax(self, x: Tensor, axis: int) -> Tensor:
        return self.torch.cummax(x, axis).values

    def logcumsumexp(self, x: Tensor, axis: int) -> Tensor:
        return self.torch.logcumsumexp(x, axis)

    def lstm(self, x: Tensor, w_ih: Tensor, w_hh: Tensor, bias: Tensor) -> Tensor:
        start = self.torch.zeros(1, x.shape[1], w_hh.shape[1], dtype=x.dtype)
        weights = [w_ih, w_hh, bias, self.torch.zeros_like(bias)]
        return self.torch.lstm(x, (start, start), weights, True, 1, 0.0, True, False, False)[0]

    def gru(self, x: Tensor, w_ih: Tensor, w_hh: Tensor, bias: Tensor, bias_hh: Tensor) -> Tensor:
        start = self.torch.zeros(1, x.shape[1], w_hh.shape[1], dtype=x.dtype)
        return self.torch.gru(x, start, [w_ih, w_hh, bias, bias_hh], True, 1, 0.0, True, False, False)[0]

    def scan(self, fn: Callable[[Tensor, Tensor], Tensor], start: Tensor, x: Tensor) -> Tensor:
        return self.torch.stack(list(accumulate(x, fn, initial=start))[1:])

    def repeat(self, holds: Callable[[Tensor], Tensor], fn: Callable[[Tensor], Tensor], start: Tensor) -> Tensor:
        while holds(start):
            start = fn(start)
        return start

    def gather(self, x: Tensor, index: Tensor) -> Tensor:
        return x.gather(1, index)

    def scatter_add(self, values: Tensor, index: Tensor, width: int) -> Tensor:
        return self.torch.zeros((len(values), width), dtype=values.dtype).scatter_add(1, index, values)

    def sin(self, x: Tensor) -> Tensor:
        return self.torch.sin(x)

    def cos(self, x: Tensor) -> Tensor:
        return self.torch.cos(x)

    def erf(self, x: Tensor) -> Tensor:
        return self.torch.erf(x)

    def silu(self, x: Tensor) -> Tensor:
        return self.f.silu(x)

    def sum(self, x: Tensor) -> Tensor:
        return x.sum()

    def mean(self, x: Tensor, axes: tuple[int, ...]) -> Tensor:
        return x.mean(axes)

    def rotate(self, x: Tensor, cos: Tensor, sin: Tensor, position: Any) -> Tensor:
        a, b = x.chunk(2, -1)
        c, s = cos[position], sin[position]
        return self.torch.cat([a * c - b * s, b * c + a * s], -1)

    def cached_attention(
        self, q: Tensor, k: Tensor, v: Tensor, cache: Tensor, position: Any
    ) -> tuple[Tensor, Tensor]:
        cache[0, :, position], cache[1, :, position] = k[:, 0], v[:, 0]
        keys, values = cache[:, :, : position + 1]
        out = self.f.scaled_dot_product_attention(q[None], keys[None], values[None], enable_gqa=True)
        return out[0], cache

    def embed(self, table: Tensor, tokens: Tensor) -> Tensor:
        return table[tokens]

    def added_rows(self, values: Tensor, index: Tensor, rows: int) -> Tensor:
        return self.torch.zeros((rows, *values.shape[1:]), dtype=values.dtype).index_add_(0, index, values)


class TorchCompile(Torch):
    """PyTorch through ``torch.compile``, which wants a C++ compiler on the machine."""

    name = "torch.compile"
    mode = "compiled"

    def program(self, fn: Callable[..., Tensor], arguments: Sequence[Tensor]) -> Callable[[], Tensor]:
        return super().program(self.torch.compile(fn), arguments)
