"""The programs of a sweep: each takes sizes that are drawn, and has an oracle in numpy."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np

from tg_frontend.ops.updating import update
from tinytg import Tensor

Array = np.ndarray[Any, np.dtype[Any]]
Sizes = tuple[int, ...]
SIDE = 3000
MOST_ELEMENTS = 1 << 28
"""Of one operand or result: sizes that go beyond are drawn anew."""


@dataclass(frozen=True, slots=True)
class Program:
    """One kind of program.

    Attributes:
      name: as a case's text has it.
      variants: what there is of it beside sizes.
      sizes: the greatest value of each size; all begin at 1.
      inputs: the shapes of the operands; None where the sizes do not fit together.
      compute: the results.
      oracle: the same by numpy.
      work: about how many multiplications and additions it takes.
      weight: how often it is drawn.
      fit: makes sizes that must be equal equal.
      places: for each operand that holds places in a dimension, how many there are; the others hold numbers.
    """

    name: str
    variants: tuple[str, ...]
    sizes: Sizes
    inputs: Callable[[str, Sizes], list[Sizes] | None]
    compute: Callable[[str, Sizes, list[Tensor]], list[Tensor]]
    oracle: Callable[[str, Sizes, list[Array]], list[Array]]
    work: Callable[[str, Sizes], float]
    weight: int = 1
    fit: Callable[[str, Sizes], Sizes] = lambda _, sizes: sizes
    places: Callable[[str, Sizes], dict[int, int]] = lambda _, sizes: {}


@dataclass(frozen=True, slots=True)
class Case:
    """A program with its sizes. Its text is ``PROGRAM/VARIANT/DTYPE/SIZExSIZE…``.

    Example:
        >>> str(Case.parse("matmul/TN/float32/256x64x1088"))
        'matmul/TN/float32/256x64x1088'
    """

    program: str
    variant: str
    dtype: str
    sizes: Sizes

    def __str__(self) -> str:
        return f"{self.program}/{self.variant}/{self.dtype}/{'x'.join(map(str, self.sizes))}"

    @staticmethod
    def parse(text: str) -> Case:
        """Reads the text.

        Raises:
          ValueError: it names no program, none of its variants, or sizes that do not fit it.
        """
        name, variant, dtype, sizes = (*text.split("/"), "", "", "", "")[:4]
        program = PROGRAMS.get(name)
        if program is None or variant not in program.variants:
            known = ", ".join(f"{p.name}/{'|'.join(p.variants)}" for p in PROGRAMS.values())
            raise ValueError(f"{text!r} names no program; these are: {known}")
        case = Case(name, variant, dtype, tuple(int(size) for size in sizes.split("x")))
        if len(case.sizes) != len(program.sizes) or case.inputs() is None:
            raise ValueError(f"{text!r}: the sizes do not fit {name}")
        return case

    @property
    def of(self) -> Program:
        """The program."""
        return PROGRAMS[self.program]

    def inputs(self) -> list[Sizes] | None:
        """The shapes of the operands; None where the sizes do not fit together, or make too much."""
        if min(self.sizes) < 1:
            return None
        shapes = self.of.inputs(self.variant, self.sizes)
        return None if shapes is None or max(map(prod, shapes)) > MOST_ELEMENTS else shapes

    def places(self) -> dict[int, int]:
        """For each operand that holds places in a dimension, how many there are."""
        return self.of.places(self.variant, self.sizes)

    def work(self) -> float:
        """About how many multiplications and additions it takes."""
        return self.of.work(self.variant, self.sizes)

    def outputs(self, device: str) -> list[Tensor]:
        """The results on a device that nothing runs on."""
        places = self.places()
        operands = [Tensor.empty(*shape, dtype="int32" if number in places else self.dtype, device=device)
                    for number, shape in enumerate(self.inputs() or ())]
        return self.of.compute(self.variant, self.sizes, operands)


def drawn(rng: random.Random, most_work: float = float("inf")) -> Case:
    """A case at random; with ``most_work``, one that takes no more, of smaller sizes if need be."""
    program = rng.choices(list(PROGRAMS.values()), [p.weight for p in PROGRAMS.values()])[0]
    variant = rng.choice(program.variants)
    dtype = rng.choices(("float32", "float16", "bfloat16", "float64"), (75, 10, 10, 5))[0]
    shrink = 1.0
    while True:
        sizes = program.fit(variant, tuple(rng.randint(1, max(1, int(most * shrink))) for most in program.sizes))
        case = Case(program.name, variant, dtype if most_work == float("inf") else "float32", sizes)
        if case.inputs() is not None and case.work() <= most_work:
            return case
        if most_work < float("inf"):
            shrink *= 0.95


def neighbours(case: Case, rng: random.Random, least: int = 64) -> list[Case]:
    """The case with one size, drawn from those that are not small, one less and one more."""
    large = [number for number, size in enumerate(case.sizes) if size > least]
    if not large:
        return []
    number = rng.choice(large)
    sizes = [(*case.sizes[:number], case.sizes[number] + by, *case.sizes[number + 1 :]) for by in (-1, 1)]
    found = [replace(case, sizes=case.of.fit(case.variant, other)) for other in sizes]
    return [other for other in found if other != case and other.inputs() is not None]


# products: variants say which operand lies transposed in memory


def _turned(flag: str, x: Any) -> Any:
    if flag == "N":
        return x
    return x.swapaxes(-1, -2) if isinstance(x, np.ndarray) else x.transpose(-1, -2)


def _product_inputs(variant: str, sizes: Sizes) -> list[Sizes] | None:
    *batch, m, n, k = sizes
    if prod((*batch, m, n)) > MOST_ELEMENTS:
        return None
    return [(*batch, *((k, m) if variant[0] == "T" else (m, k))), (*batch, *((n, k) if variant[1] == "T" else (k, n)))]


def _product(variant: str, sizes: Sizes, operands: Sequence[Any]) -> list[Any]:
    return [_turned(variant[0], operands[0]) @ _turned(variant[1], operands[1])]


def _product_gradients(variant: str, sizes: Sizes, operands: list[Tensor]) -> list[Tensor]:
    a, b, upstream = operands
    return _product(variant, sizes, [a, b])[0].gradient(a, b, gradient=upstream)  # type: ignore[no-any-return]


def _product_gradients_oracle(variant: str, sizes: Sizes, operands: list[Array]) -> list[Array]:
    a, b, upstream = operands
    left = upstream @ _turned(variant[1], b).swapaxes(-1, -2)
    right = _turned(variant[0], a).swapaxes(-1, -2) @ upstream
    return [_turned(variant[0], left), _turned(variant[1], right)]


def _with_upstream(inputs: Callable[[str, Sizes], list[Sizes] | None], result: Callable[[str, Sizes], Sizes]) -> Any:
    def found(variant: str, sizes: Sizes) -> list[Sizes] | None:
        shapes = inputs(variant, sizes)
        return shapes and [*shapes, result(variant, sizes)]

    return found


# convolutions: variants are kernel, stride, padding and whether each channel is a group of its own

_CONVOLUTIONS = ("1s1p0", "1s2p0", "3s1p0", "3s1p1", "3s2p1", "5s1p2", "7s2p3", "3s1p1g", "5s2p2g")


def _window(variant: str) -> tuple[int, int, int, bool]:
    return int(variant[0]), int(variant[2]), int(variant[4]), variant.endswith("g")


def _convolution_result(variant: str, sizes: Sizes) -> Sizes:
    kernel, stride, padding, _ = _window(variant)
    batch, _, outputs, height, width = sizes
    return batch, outputs, (height + 2 * padding - kernel) // stride + 1, (width + 2 * padding - kernel) // stride + 1


def _convolution_fit(variant: str, sizes: Sizes) -> Sizes:
    batch, channels, outputs, height, width = sizes
    return batch, channels, channels if variant.endswith("g") else outputs, height, width


def _convolution_inputs(variant: str, sizes: Sizes) -> list[Sizes] | None:
    kernel, _, padding, grouped = _window(variant)
    batch, channels, outputs, height, width = sizes
    if min(height, width) + 2 * padding < kernel or (grouped and channels != outputs):
        return None
    if prod(_convolution_result(variant, sizes)) > MOST_ELEMENTS:
        return None
    return [(batch, channels, height, width), (outputs, 1 if grouped else channels, kernel, kernel)]


def _convolution(variant: str, sizes: Sizes, operands: list[Tensor]) -> list[Tensor]:
    _, stride, padding, grouped = _window(variant)
    return [operands[0].conv2d(operands[1], groups=sizes[1] if grouped else 1, stride=stride, padding=padding)]


def _windows(variant: str, x: Array) -> Array:
    """Shape (batch, channels, height, width, kernel, kernel), a view of the padded input."""
    kernel, stride, padding, _ = _window(variant)
    padded = np.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)))
    seen = np.lib.stride_tricks.sliding_window_view(padded, (kernel, kernel), axis=(2, 3))
    return seen[:, :, ::stride, ::stride]


def _convolution_oracle(variant: str, sizes: Sizes, operands: list[Array]) -> list[Array]:
    seen, w = _windows(variant, operands[0]), operands[1]
    if variant.endswith("g"):
        return [np.einsum("bchwij,cij->bchw", seen, w[:, 0])]
    return [np.einsum("bchwij,ocij->bohw", seen, w, optimize=True)]


def _convolution_gradients(variant: str, sizes: Sizes, operands: list[Tensor]) -> list[Tensor]:
    x, w, upstream = operands
    return _convolution(variant, sizes, [x, w])[0].gradient(x, w, gradient=upstream)


def _convolution_gradients_oracle(variant: str, sizes: Sizes, operands: list[Array]) -> list[Array]:
    x, w, upstream = operands
    kernel, stride, padding, grouped = _window(variant)
    batch, channels, _, height, width = sizes
    seen = _windows(variant, x)
    into = np.zeros((batch, channels, height + 2 * padding, width + 2 * padding))
    h, v = upstream.shape[2:]
    for i in range(kernel):
        for j in range(kernel):
            share = upstream * w[:, 0, i, j][:, None, None] if grouped else np.einsum(
                "bohw,oc->bchw", upstream, w[:, :, i, j], optimize=True)
            into[:, :, i : i + stride * h : stride, j : j + stride * v : stride] += share
    left = into[:, :, padding : padding + height, padding : padding + width]
    if grouped:
        return [left, np.einsum("bchwij,bchw->cij", seen, upstream)[:, None]]
    return [left, np.einsum("bchwij,bohw->ocij", seen, upstream, optimize=True)]


def _convolution_work(variant: str, sizes: Sizes) -> float:
    kernel, _, _, grouped = _window(variant)
    return 2.0 * prod(_convolution_result(variant, sizes)) * (1 if grouped else sizes[1]) * kernel**2


# rows

_AXES = ("0", "1", "2", "01", "12", "02", "012")
_REDUCTIONS = tuple(f"{op}{axes}" for op in ("sum", "max", "var", "dev") for axes in _AXES)


def _reduced(variant: str, sizes: Sizes, operands: Sequence[Any]) -> list[Any]:
    op, axes, (x,) = variant[:3], tuple(int(axis) for axis in variant[3:]), operands
    if op == "sum":
        return [x.sum(axes)]
    if op == "max":
        return [x.max(axes)]
    if op == "dev":  # absolute deviation from the mean of all: a reduction inside of another with other outputs
        return [abs(x - x.mean()).mean(axes)]
    return [x.var(axes) if isinstance(x, np.ndarray) else x.var(axes, correction=0)]


def _softmax(variant: str, sizes: Sizes, operands: list[Tensor]) -> list[Tensor]:
    (x,) = operands
    return [x.log_softmax(-1) if variant == "log" else x.softmax(int(variant))]


def _softmax_oracle(variant: str, sizes: Sizes, operands: list[Array]) -> list[Array]:
    (x,) = operands
    axis = -1 if variant == "log" else int(variant)
    shifted = x - x.max(axis, keepdims=True)
    total = np.exp(shifted).sum(axis, keepdims=True)
    return [shifted - np.log(total) if variant == "log" else np.exp(shifted) / total]


def _layernorm(variant: str, sizes: Sizes, operands: list[Tensor]) -> list[Tensor]:
    x, weight, bias = operands
    out = x.layernorm(-1) * weight + bias
    return [out] if variant == "forward" else (out * out).sum().gradient(x, weight, bias)


def _layernorm_oracle(variant: str, sizes: Sizes, operands: list[Array]) -> list[Array]:
    x, weight, bias = operands
    deviation = np.sqrt(x.var(-1, keepdims=True) + 1e-5)
    normal = (x - x.mean(-1, keepdims=True)) / deviation
    out = normal * weight + bias
    if variant == "forward":
        return [out]
    upstream = 2 * out * weight
    back = upstream - upstream.mean(-1, keepdims=True) - normal * (upstream * normal).mean(-1, keepdims=True)
    return [back / deviation, (2 * out * normal).sum(0), (2 * out).sum(0)]


# attention: sizes are batch, heads, queries, keys, features


def _attention_fit(variant: str, sizes: Sizes) -> Sizes:
    batch, heads, queries, keys, features = sizes
    return batch, heads, queries, queries if variant.startswith("causal") else keys, features


def _attention_inputs(variant: str, sizes: Sizes) -> list[Sizes] | None:
    batch, heads, queries, keys, features = sizes
    if variant.startswith("causal") and queries != keys:
        return None
    if batch * heads * queries * keys > MOST_ELEMENTS:
        return None
    theirs = (batch, heads, keys, features)
    shapes: list[Sizes] = [(batch, heads, queries, features), theirs, theirs]
    return [*shapes, shapes[0]] if variant.endswith("gradient") else shapes


def _attention(variant: str, sizes: Sizes, operands: list[Tensor]) -> list[Tensor]:
    q, k, v, *upstream = operands
    out = q.scaled_dot_product_attention(k, v, is_causal=variant.startswith("causal"))
    return out.gradient(q, k, v, gradient=upstream[0]) if upstream else [out]


def _attention_oracle(variant: str, sizes: Sizes, operands: list[Array]) -> list[Array]:
    q, k, v, *upstream = operands
    scale = 1 / np.sqrt(q.shape[-1])
    scores = q @ k.swapaxes(-1, -2) * scale
    if variant.startswith("causal"):
        scores = np.where(np.tri(*scores.shape[-2:]) > 0, scores, -np.inf)
    weights = _softmax_oracle("-1", sizes, [scores])[0]
    if not upstream:
        return [weights @ v]
    back = upstream[0] @ v.swapaxes(-1, -2)
    inner = weights * (back - (back * weights).sum(-1, keepdims=True)) * scale
    return [inner @ k, inner.swapaxes(-1, -2) @ q, weights.swapaxes(-1, -2) @ upstream[0]]


# rows at computed places, of a table (n, m): k of them; k elements of each row; k columns

_GATHERS = ("rows", "elements", "columns", "rows summed")


def _gather_inputs(variant: str, sizes: Sizes) -> list[Sizes] | None:
    n, m, k = sizes
    if max(k * m, n * k) > MOST_ELEMENTS:
        return None
    return [(n, m), (n, k) if variant == "elements" else (k,)]


def _gathered(variant: str, sizes: Sizes, operands: Sequence[Any]) -> list[Any]:
    table, places = operands
    if variant == "elements":
        taken = np.take_along_axis(table, places, 1) if isinstance(table, np.ndarray) else table.gather(1, places)
        return [taken]
    if variant == "columns":
        return [table[:, places]]
    return [table[places].sum(0) if variant == "rows summed" else table[places]]


def _gather_work(variant: str, sizes: Sizes) -> float:
    n, m, k = sizes
    return 1.0 * (k * m if variant.startswith("rows") else n * k)


# a table (n, m) with k rows, or k elements of each row, at computed places; the order of k elements of n rows

_UPDATES = ("add rows", "add elements", "write rows", "maximum elements")


def _update_inputs(variant: str, sizes: Sizes) -> list[Sizes] | None:
    n, m, k = sizes
    values = (n, k) if variant.endswith("elements") else (k, m)
    if prod(values) > MOST_ELEMENTS:
        return None
    return [(n, m), values if variant.endswith("elements") else (k,), values]


def _updated(variant: str, sizes: Sizes, operands: Sequence[Tensor]) -> list[Tensor]:
    op, what = variant.split()
    return [update(operands[0], operands[1], operands[2], op, int(what == "elements"))]


def _updated_oracle(variant: str, sizes: Sizes, operands: Sequence[Array]) -> list[Array]:
    table, places, values = operands[0].copy(), operands[1], operands[2]
    op, what = variant.split()
    at = (np.arange(sizes[0])[:, None], places) if what == "elements" else (places,)
    if op == "write":
        table[at] = values
    else:
        (np.add if op == "add" else np.maximum).at(table, at, values)
    return [table]


def _update_work(variant: str, sizes: Sizes) -> float:
    n, m, k = sizes
    return 1.0 * (n * k if variant.endswith("elements") else k * m)


def _ordered(variant: str, sizes: Sizes, operands: Sequence[Tensor]) -> list[Tensor]:
    x, = operands
    return [x.sort()[0] if variant == "sort" else x.topk(max(1, sizes[1] // 7))[0]]


def _ordered_oracle(variant: str, sizes: Sizes, operands: Sequence[Array]) -> list[Array]:
    x, = operands
    return [np.sort(x, 1) if variant == "sort" else -np.sort(-x, 1)[:, : max(1, sizes[1] // 7)]]


# operands side by side, of n rows or columns and a, b and c of the others

_CONCATENATIONS = ("0", "1", "1 of two", "1 scaled", "0 summed")


def _concatenation_inputs(variant: str, sizes: Sizes) -> list[Sizes] | None:
    n, *widths = sizes
    shapes: list[Sizes] = [(n, width) if variant[0] == "1" else (width, n) for width in widths]
    return shapes[:2] if variant.endswith("two") else shapes


def _concatenated(variant: str, sizes: Sizes, operands: Sequence[Any]) -> list[Any]:
    first, *others = [x * 0.5 + 1 for x in operands] if variant.endswith("scaled") else operands
    axis = int(variant[0])
    arrays = isinstance(first, np.ndarray)
    both = np.concatenate([first, *others], axis) if arrays else first.cat(*others, dim=axis)
    return [both.sum(1) if variant.endswith("summed") else both]


# sums and maxima of all that came before

_CUMULATIVE = ("sum0", "sum1", "max1", "sum1 of squares")


def _cumulative(variant: str, sizes: Sizes, operands: list[Tensor]) -> list[Tensor]:
    (x,), axis = operands, int(variant[3])
    if variant.startswith("max"):
        return [x.cummax(axis)[0]]
    return [(x * x if variant.endswith("squares") else x).cumsum(axis)]


def _cumulative_oracle(variant: str, sizes: Sizes, operands: list[Array]) -> list[Array]:
    (x,), axis = operands, int(variant[3])
    if variant.startswith("max"):
        return [np.maximum.accumulate(x, axis)]
    return [np.cumsum(x * x if variant.endswith("squares") else x, axis)]


# what walks rows several times, as parts of attention do: weights by another matrix, of weights again, of masked rows

_ROWS = ("gated", "entropy", "twice", "masked", "normal", "centred twice")


def _rows(variant: str, sizes: Sizes, operands: list[Tensor]) -> list[Tensor]:
    x, y = operands
    if variant == "gated":
        return [x.softmax(-1) * y.sigmoid()]
    if variant == "entropy":
        return [-(x.softmax(-1) * x.log_softmax(-1)).sum(-1)]
    if variant == "twice":
        return [(x.softmax(-1) * y).softmax(-1)]
    if variant == "masked":
        return [(y > 0).where(x, -1e9).softmax(-1)]
    if variant == "normal":
        return [x * ((x * x).mean(-1, keepdim=True) + 1e-5).rsqrt() * y]
    centred = x - x.mean(-1, keepdim=True)
    return [centred, centred * centred - y.max(-1, keepdim=True)]


def _rows_oracle(variant: str, sizes: Sizes, operands: list[Array]) -> list[Array]:
    x, y = operands
    if variant == "gated":
        return [_softmax_oracle("-1", sizes, [x])[0] / (1 + np.exp(-y))]
    if variant == "entropy":
        weights, logs = _softmax_oracle("-1", sizes, [x])[0], _softmax_oracle("log", sizes, [x])[0]
        return [-(weights * logs).sum(-1)]
    if variant == "twice":
        return _softmax_oracle("-1", sizes, [_softmax_oracle("-1", sizes, [x])[0] * y])
    if variant == "masked":
        return _softmax_oracle("-1", sizes, [np.where(y > 0, x, -1e9)])
    if variant == "normal":
        return [x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * y]
    centred = x - x.mean(-1, keepdims=True)
    return [centred, centred * centred - y.max(-1, keepdims=True)]


_LAYOUTS = ("NN", "NT", "TN", "TT")
PROGRAMS = {program.name: program for program in (
    Program("matmul", _LAYOUTS, (SIDE,) * 3, _product_inputs, _product, _product, lambda _, s: 2.0 * prod(s), 8),
    Program("batched", _LAYOUTS, (32, *(SIDE,) * 3), _product_inputs, _product, _product,
            lambda _, s: 2.0 * prod(s), 3),
    Program("matmul-gradient", _LAYOUTS, (SIDE,) * 3,
            _with_upstream(_product_inputs, lambda _, s: s[:2]), _product_gradients, _product_gradients_oracle,
            lambda _, s: 4.0 * prod(s), 4),
    Program("batched-gradient", _LAYOUTS, (32, *(SIDE,) * 3),
            _with_upstream(_product_inputs, lambda _, s: s[:3]), _product_gradients, _product_gradients_oracle,
            lambda _, s: 4.0 * prod(s), 2),
    Program("convolution", _CONVOLUTIONS, (64, 300, 300, 130, 130), _convolution_inputs, _convolution,
            _convolution_oracle, _convolution_work, 4, _convolution_fit),
    Program("convolution-gradient", _CONVOLUTIONS, (64, 300, 300, 130, 130),
            _with_upstream(_convolution_inputs, _convolution_result), _convolution_gradients,
            _convolution_gradients_oracle, lambda v, s: 2 * _convolution_work(v, s), 3, _convolution_fit),
    Program("reduction", _REDUCTIONS, (SIDE, SIDE, SIDE), lambda _, s: [s], _reduced, _reduced,
            lambda _, s: 1.0 * prod(s), 4),
    Program("softmax", ("-1", "0", "log"), (SIDE, SIDE), lambda _, s: [s], _softmax, _softmax_oracle,
            lambda _, s: 8.0 * prod(s), 2),
    Program("layernorm", ("forward", "gradient"), (SIDE, SIDE), lambda _, s: [s, s[1:], s[1:]], _layernorm,
            _layernorm_oracle, lambda _, s: 8.0 * prod(s), 2),
    Program("attention", ("plain", "causal", "plain gradient", "causal gradient"), (16, 16, SIDE, SIDE, 160),
            _attention_inputs, _attention, _attention_oracle, lambda _, s: 4.0 * prod(s), 3, _attention_fit),
    Program("gather", _GATHERS, (SIDE,) * 3, _gather_inputs, _gathered, _gathered, _gather_work, 3,
            places=lambda variant, s: {1: s[1] if variant in ("elements", "columns") else s[0]}),
    Program("update", _UPDATES, (SIDE,) * 3, _update_inputs, _updated, _updated_oracle, _update_work, 3,
            places=lambda variant, s: {1: s[1] if variant.endswith("elements") else s[0]}),
    Program("order", ("sort", "topk"), (64, SIDE), lambda _, s: [s], _ordered, _ordered_oracle,
            lambda _, s: 64.0 * prod(s), 2),
    Program("concatenation", _CONCATENATIONS, (SIDE,) * 4, _concatenation_inputs, _concatenated, _concatenated,
            lambda variant, s: 1.0 * s[0] * sum(s[1:3] if variant.endswith("two") else s[1:]), 3),
    Program("cumulative", _CUMULATIVE, (SIDE, SIDE), lambda _, s: [s], _cumulative, _cumulative_oracle,
            lambda _, s: 2.0 * prod(s), 2),
    Program("rows", _ROWS, (SIDE, SIDE), lambda _, s: [s, s], _rows, _rows_oracle, lambda _, s: 8.0 * prod(s), 3),
)}  # fmt: skip
