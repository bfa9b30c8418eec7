"""Random functions of tensors whose size a variable gives, and their gradients, in a record.

A function is recorded with one value of the variable and replayed with others, the least and the greatest among them.
Each result, and each gradient, is compared with that of plain numbers on the device NUMPY, which plans nothing.

    hatch run fuzz symbolic [--seconds 60] [--seed 0] [--device CPU]
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tg_frontend import Tensor, TinyJit
from tg_runtime import Device
from tg_shape import Variable

GREATEST = (2, 3, 5, 8, 9, 16, 17, 31, 33, 64, 65, 100, 128, 129, 257, 400)
"""Values that a variable may have at the most."""
SIZES = (1, 1, 2, 3, 4, 5, 7, 8, 9, 12, 16, 17, 24, 33, 64, 65)
MOST = 1 << 17
"""Elements of a tensor, at the most."""
N = "n"
"""Stands for the variable in a shape; a pair of it and a number for their sum."""
Dim = Any
Shape = tuple[Dim, ...]
Values = list[Tensor]
Apply = Callable[[Values, Any], Tensor]

UNARY: dict[str, Callable[[Tensor], Tensor]] = {
    "tanh": Tensor.tanh, "relu": Tensor.relu, "neg": Tensor.neg, "sigmoid": Tensor.sigmoid, "abs": Tensor.abs,
    "sin": Tensor.sin, "contiguous": Tensor.contiguous, "square": lambda x: x.tanh().square(),
    "exp": lambda x: x.clamp(-9, 5).exp(), "gelu": Tensor.gelu, "silu": Tensor.silu,
    "double": lambda x: x.double().tanh().float(), "detach": Tensor.detach,
    "half": lambda x: (x * 8).trunc().clamp(-64, 64).half().float(),
}  # fmt: skip
BINARY: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "+": lambda x, y: x + y, "*": lambda x, y: x.tanh() * y, "-": lambda x, y: x - y, "maximum": Tensor.maximum,
    "where": lambda x, y: (x > 0).where(x, y), "/": lambda x, y: x / (y.abs() + 1),
}  # fmt: skip
AXIS: dict[str, Callable[[Tensor, int], Tensor]] = {
    "softmax": Tensor.softmax, "log_softmax": Tensor.log_softmax, "flip": Tensor.flip,
    "cumsum": lambda x, axis: x.cumsum(axis) * 0.125,
    "cumsum back": lambda x, axis: x.flip(axis).cumsum(axis).flip(axis) / 8,
    "cummax": lambda x, axis: x.cummax(axis)[0], "cumprod": lambda x, axis: x.tanh().cumprod(axis),
    "logcumsumexp": Tensor.logcumsumexp,
    "centred": lambda x, axis: x - x.mean(axis, keepdim=True),
    "normed": lambda x, axis: x * ((x * x).mean(axis, keepdim=True) + 1e-3).rsqrt(),
    "over the largest": lambda x, axis: x / (x.abs().max(axis, keepdim=True) + 0.5),
    "shifted": lambda x, axis: x.roll(1, axis),
}  # fmt: skip
REDUCTIONS: dict[str, Callable[[Tensor, int, bool], Tensor]] = {
    "sum": lambda x, axis, keep: x.sum(axis, keepdim=keep), "max": lambda x, axis, keep: x.max(axis, keepdim=keep),
    "mean": lambda x, axis, keep: x.mean(axis, keepdim=keep), "min": lambda x, axis, keep: x.min(axis, keepdim=keep),
    "logsumexp": lambda x, axis, keep: x.logsumexp(axis, keepdim=keep),
    "prod": lambda x, axis, keep: (x.tanh() + 1).prod(axis, keepdim=keep),
    "rms": lambda x, axis, keep: ((x * x).mean(axis, keepdim=keep) + 1e-3).sqrt(),
}  # fmt: skip


KINDS = (
    "unary binary binary axis axis reduce reduce permute pad cut cat product product product mask expand merge lookup "
    "attend scale"
).split()


def number(dim: Dim, n: int) -> int:
    """What a size is for a value of the variable."""
    return n if dim == N else n + int(dim[1]) if isinstance(dim, tuple) else int(dim)


@dataclass(frozen=True)
class Program:
    """A function of some tensors.

    Attributes:
      greatest: the variable's greatest value; its least is 1.
      shapes: of the inputs.
      kinds: what the inputs hold.
      steps: a text of each, and what it computes of the values before.
      results: which values are returned.
      wants: the inputs of which there are gradients.
    """

    greatest: int
    shapes: tuple[Shape, ...]
    kinds: tuple[str, ...]
    steps: tuple[tuple[str, Apply], ...]
    results: tuple[int, ...]
    wants: tuple[int, ...]

    def __str__(self) -> str:
        given = enumerate(zip(self.kinds, self.shapes, strict=True))
        head = [f"  t{i} = {kind} of {shape}" for i, (kind, shape) in given]
        body = [f"  t{len(head) + i} = {text}" for i, (text, _) in enumerate(self.steps)]
        return "\n".join([f"n to {self.greatest}", *head, *body, f"  returns {self.results}, gradients {self.wants}"])


@dataclass(frozen=True)
class Finding:
    """A program whose record differs."""

    seed: int
    program: Program
    problem: str

    def __str__(self) -> str:
        return f"seed {self.seed}: {self.problem}\n{self.program}"


class Drawing:
    """A program while it is drawn."""

    def __init__(self, draw: random.Random) -> None:
        self.draw, self.greatest = draw, draw.choice(GREATEST)
        self.shapes: list[Shape] = []
        self.steps: list[tuple[str, Apply]] = []

    def fits(self, shape: Shape) -> bool:
        """Whether it is no too large shape."""
        return len(shape) <= 5 and int(np.prod([number(d, self.greatest) for d in shape])) <= MOST

    def size(self) -> Dim:
        """A size."""
        return N if self.draw.random() < 0.45 else self.draw.choice(SIZES)

    def input(self) -> Shape:
        """A shape of an input."""
        while True:
            shape = tuple(self.size() for _ in range(self.draw.choice((1, 2, 2, 2, 3, 3, 4))))
            if self.fits(shape) and (N in shape or self.draw.random() < 0.3):
                return shape

    def add(self, text: str, shape: Shape, apply: Apply) -> None:
        """Adds a step if it is not too large."""
        if self.fits(shape):
            self.steps.append((text, apply))
            self.shapes.append(shape)

    def step(self) -> None:
        """Adds a step, or none."""
        draw, known = self.draw, len(self.shapes)
        i = known - 1 - min(draw.randrange(known), draw.randrange(known))
        shape = self.shapes[i]
        kind = draw.choice(KINDS)
        axis = draw.randrange(len(shape)) if shape else 0
        if kind == "unary":
            name = draw.choice(list(UNARY))
            self.add(f"{name} t{i}", shape, lambda v, n: UNARY[name](v[i]))
        elif kind == "binary":
            self.binary(i, shape)
        elif kind == "scale":
            self.add(f"t{i} * 0.5 / its size", shape, lambda v, n: v[i] * 0.5 / (n + 1))
        elif not shape:
            return
        elif kind == "axis":
            name = draw.choice(list(AXIS))
            self.add(f"{name} t{i}, {axis}", shape, lambda v, n: AXIS[name](v[i], axis))
        elif kind == "reduce":
            name, keep = draw.choice(list(REDUCTIONS)), draw.random() < 0.5
            new = (*shape[:axis], *((1,) if keep else ()), *shape[axis + 1 :])
            self.add(f"{name} t{i}, {axis}, {keep}", new, lambda v, n: REDUCTIONS[name](v[i], axis, keep))
        elif kind == "permute":
            order = draw.sample(range(len(shape)), len(shape))
            self.add(f"t{i} permute {order}", tuple(shape[a] for a in order), lambda v, n: v[i].permute(*order))
        elif kind == "pad":
            before, after = draw.choice((0, 1, 3)), draw.choice((0, 1, 2))
            new = (*shape[:axis], longer(shape[axis], before + after), *shape[axis + 1 :])
            pads = tuple((before, after) if a == axis else (0, 0) for a in range(len(shape)))
            self.add(f"t{i} pad {pads}", new, lambda v, n: v[i].pad(pads))
        elif kind == "cut":
            dim = shape[axis]
            least = number(dim, 1)
            if least < 2 or draw.random() < 0.3:
                place: Any = draw.choice((slice(0, 1), slice(-1, None)))
                new_dim: Dim = 1
            else:
                place, new_dim = draw.choice(((slice(1, None), longer(dim, -1)), (slice(0, -1), longer(dim, -1))))
            where = (*(slice(None) for _ in range(axis)), place)
            self.add(f"t{i}[{where}]", (*shape[:axis], new_dim, *shape[axis + 1 :]), lambda v, n: v[i][where])
        elif kind == "cat":
            others = [k for k, s in enumerate(self.shapes) if len(s) == len(shape) and isinstance(s[axis], int)
                      and all(a == b for d, (a, b) in enumerate(zip(s, shape, strict=True)) if d != axis)]  # fmt: skip
            if others:
                k, turned = draw.choice(others), draw.random() < 0.5
                new = (*shape[:axis], longer(shape[axis], self.shapes[k][axis]), *shape[axis + 1 :])
                self.add(f"cat t{i}, t{k} {axis} {turned}", new,
                         lambda v, n: v[k].cat(v[i], dim=axis) if turned else v[i].cat(v[k], dim=axis))  # fmt: skip
        elif kind == "product":
            self.product(i, shape)
        elif kind == "mask":
            what, edge = draw.choice(("even", "below", "not the last")), draw.choice((0.0, -1e9, float("-inf")))
            if edge and axis != len(shape) - 1:
                edge = 0.0

            def mask(v: Values, n: Any) -> Tensor:
                size = v[i].shape[axis]
                at = Tensor.arange(size, device=v[i].device).reshape(size, *(1 for _ in shape[axis + 1 :]))
                keep = at % 2 == 0 if what == "even" else at < 5 if what == "below" else (at < size - 1) | (at == 0)
                out = keep.where(v[i], edge)
                return out.softmax(-1) if edge else out

            self.add(f"mask {what} t{i} {axis} {edge}", shape, mask)
        elif kind == "expand":
            times = draw.choice((2, 3, 8, N))
            new = (*shape[:axis], times, *shape[axis:])

            def expand(v: Values, n: Any) -> Tensor:
                sizes = v[i].shape
                return v[i].unsqueeze(axis).expand(*sizes[:axis], n if times == N else times, *sizes[axis:])

            self.add(f"expand t{i} {axis} {times}", new, expand)
        elif kind == "merge":
            whole = draw.choice(("sum", "max", "softmax"))
            if whole == "softmax":
                self.add(f"softmax of all t{i}", shape, lambda v, n: v[i].reshape(-1).softmax(0).reshape(v[i].shape))
            else:
                self.add(f"{whole} of all t{i}", (), lambda v, n: v[i].sum() / 64 if whole == "sum" else v[i].max())
        elif kind == "lookup":
            tables = [k for k, s in enumerate(self.shapes) if len(s) == 2 and isinstance(s[0], int)]
            if tables and shape and len(shape) < 3:
                k = draw.choice(tables)
                rows, width = self.shapes[k]
                self.add(f"rows of t{k} like t{i}", (*shape, width), lambda v, n: v[k][places(v[i], rows)])
        elif kind == "attend" and len(shape) in (2, 3):
            causal = draw.random() < 0.5

            def attend(v: Values, n: Any) -> Tensor:
                return v[i].scaled_dot_product_attention(v[i] * 0.5, v[i].tanh(), is_causal=causal)

            self.add(f"attend t{i} {causal}", shape, attend)

    def binary(self, i: int, shape: Shape) -> None:
        """Adds a step of two values whose shapes agree."""
        fitting = []
        for k, other in enumerate(self.shapes):
            pairs = list(zip(reversed(shape), reversed(other), strict=False))
            if all(a == b or a == 1 or b == 1 for a, b in pairs):
                fitting.append(k)
        k, name = self.draw.choice(fitting), self.draw.choice(list(BINARY))
        other = self.shapes[k]
        long, short = (shape, other) if len(shape) >= len(other) else (other, shape)
        padded = (*(1 for _ in range(len(long) - len(short))), *short)
        new = tuple(b if a == 1 else a for a, b in zip(long, padded, strict=True))
        self.add(f"t{i} {name} t{k}", new, lambda v, n: BINARY[name](v[i], v[k]))

    def product(self, i: int, shape: Shape) -> None:
        """Adds a product of matrices."""
        if len(shape) < 2:
            return
        fitting = []
        for k, other in enumerate(self.shapes):
            if len(other) >= 2 and (len(other) == 2 or other[:-2] == shape[:-2]):
                for turned in (False, True):
                    inner, outer = (other[-1], other[-2]) if turned else (other[-2], other[-1])
                    if inner == shape[-1]:
                        fitting.append((k, turned, outer))
        if fitting:
            k, turned, outer = self.draw.choice(fitting)

            def multiply(v: Values, n: Any) -> Tensor:
                return (v[i].tanh() @ (v[k].transpose(-1, -2) if turned else v[k])) * 0.25

            self.add(f"t{i} @ t{k}{'.T' if turned else ''}", (*shape[:-1], outer), multiply)


def places(x: Tensor, rows: int) -> Tensor:
    """Whole numbers below ``rows``, in the shape of a tensor."""
    size = x.shape[-1]
    at = Tensor.arange(size, device=x.device).expand(*x.shape)
    return (at * 7 + 3) % rows


def longer(dim: Dim, by: int) -> Dim:
    """A size and so much."""
    if isinstance(dim, int):
        return dim + by
    plus = by if dim == N else dim[1] + by
    return (N, plus) if plus else N


def drawn(seed: int) -> Program:
    """A program."""
    draw = random.Random(seed)
    drawing = Drawing(draw)
    for _ in range(draw.randint(1, 3)):
        drawing.shapes.append(drawing.input())
    inputs = tuple(drawing.shapes)
    length = draw.choice((1, 2, 3, 5, 8))
    for _ in range(8 * length):
        if len(drawing.steps) < length:
            drawing.step()
    kinds = tuple(draw.choice(("normal", "normal", "normal", "whole", "turned")) for _ in inputs)
    last = len(drawing.shapes) - 1
    more = draw.choice((0, 0, 1, 2)) if drawing.steps else 0
    results = tuple(sorted({last, *(draw.randrange(len(inputs), last + 1) for _ in range(more))}))
    wants = tuple(range(len(inputs))) if draw.random() < 0.5 else ()
    return Program(drawing.greatest, inputs, kinds, tuple(drawing.steps), results, wants)


def evaluated(program: Program, whole: list[Tensor], n: Any) -> list[Tensor]:
    """The results and the gradients, for a value of the variable or for the variable."""
    leaves = []
    for i, x in enumerate(whole):
        leaf = x + 0 if i in program.wants else x
        leaves.append(leaf.requires_grad_() if i in program.wants else leaf)
    values: Values = []
    for leaf, shape, kind in zip(leaves, program.shapes, program.kinds, strict=True):
        seen = leaf.permute(*reversed(range(leaf.ndim))) if kind == "turned" else leaf
        values.append(seen[tuple(slice(0, n) if d == N else slice(None) for d in shape)])
    for _, apply in program.steps:
        values.append(apply(values, n))
    outs = [values[i] for i in program.results]
    if program.wants:
        total = Tensor(0.0, device=whole[0].device)
        for out in outs:
            weight = out
            for axis, size in enumerate(out.shape):
                ramp = (Tensor.arange(size, device=out.device) % 5 - 1.5) * 0.3
                weight = weight * ramp.reshape(size, *(1 for _ in out.shape[axis + 1 :]))
            total = total + weight.sum()
        if total.requires_grad:
            total.backward()
            grads = [leaves[i].grad for i in program.wants]
            outs = [out.detach() for out in outs] + [grad for grad in grads if grad is not None]
    return [out.contiguous() for out in outs]


def inputs(program: Program, seed: int) -> list[np.ndarray[Any, Any]]:
    """Values for whole inputs."""
    rng = np.random.default_rng(seed)
    out = []
    for shape, kind in zip(program.shapes, program.kinds, strict=True):
        sizes = [number(d, program.greatest) for d in shape]
        if kind == "turned":
            sizes.reverse()
        array = rng.standard_normal(sizes) if kind != "whole" else rng.integers(-3, 4, sizes)
        out.append(np.asarray(array, np.float32))
    return out


def attempt(seed: int) -> Finding | None:
    """One program."""
    program, device = drawn(seed), os.environ.get("DEV", "CPU").partition(":")[0]
    Device[device]
    draw = random.Random(seed + 1)
    if not program.steps:
        return None
    variable = Variable("n", 1, program.greatest)
    order = [draw.randint(1, program.greatest), draw.randint(1, program.greatest), program.greatest, 1,
             draw.randint(1, program.greatest), max(1, program.greatest - 1)]  # fmt: skip

    def function(*whole: Tensor, n: Any) -> list[Tensor]:
        return evaluated(program, list(whole), n)

    jitted = TinyJit(function)
    for turn, n in enumerate(order):
        arrays = inputs(program, seed + turn)
        exact = evaluated(program, [Tensor(a, device="NUMPY") for a in arrays], n)
        try:
            right = [t.numpy() for t in exact]
        except Exception as error:
            return Finding(seed, program, f"NUMPY: {type(error).__name__}: {error}")
        try:
            given = [Tensor(a, device=device).realize() for a in arrays]
            found = [t.numpy() for t in jitted(*given, n=variable.bind(n))]
        except Exception as error:
            if any(words in str(error) for words in REFUSED):
                return None
            return Finding(seed, program, f"n = {n}, call {turn}: {type(error).__name__}: {error}")
        for place, (one, other) in enumerate(zip(found, right, strict=True)):
            if wrong := apart(one, other):
                return Finding(seed, program, f"n = {n}, call {turn}, result {place}: {wrong}")
    return None


REFUSED = ("executed nothing", "the same memory", "symbolic", "the size of")


def apart(found: np.ndarray[Any, Any], right: np.ndarray[Any, Any]) -> str:
    """How two arrays differ by more than rounding; empty if they do not."""
    if found.shape != right.shape:
        return f"shape {found.shape} instead of {right.shape}"
    scale = np.abs(right[np.isfinite(right)]).max(initial=0.0)
    with np.errstate(all="ignore"):
        close = np.abs(found - right) <= 2e-4 * np.abs(right) + 1e-4 * min(scale, 1e3) + 1e-6
    wrong = ~(close | (found == right) | (np.isnan(found) & np.isnan(right)))
    if not wrong.any():
        return ""
    at = tuple(int(i) for i in np.argwhere(wrong)[0])
    return f"{int(wrong.sum())} of {found.size} wrong: at {at} {found[at]} instead of {right[at]}"
