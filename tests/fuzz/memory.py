"""Random programs of views, writes and copies, against numpy, whose arrays share memory by the same rules.

Each program is Python text over the names ``a``, ``b``, …; the same text is run twice, with ``Tensor`` and with a model
of it over numpy arrays in which views are views and everything else is a copy. It is run as it is (lazily, with
``realize()`` at random places) and with everything realised after each line. A program that fails is shortened to the
lines that matter, and printed.

    hatch run fuzz memory [--seconds 60] [--seed 0]
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from tg_frontend import Tensor

from .lines import shortened

Choose = random.Random
KINDS = ("int32", "uint8", "int16", "int64", "uint32")
NAMES = "abcdefghijklmnop"


class Array:
    """What ``docs/memory.md`` says of a tensor, with a numpy array that shares memory where the tensor does."""

    def __init__(self, x: Any) -> None:
        self.x: Any = np.array(x)  # a copy, as the constructor of Tensor makes one

    @staticmethod
    def of(x: Any) -> Array:
        """An array as it is: a view stays one."""
        out = object.__new__(Array)
        out.x = x
        return out

    @staticmethod
    def made(x: Any) -> Array:
        """A result: row-major, in memory of its own."""
        return Array.of(np.array(x, order="C", copy=True))

    @staticmethod
    def full(shape: tuple[int, ...], value: int, dtype: str) -> Array:
        return Array.of(np.full(shape, value, dtype))

    @staticmethod
    def arange(n: int, dtype: str) -> Array:
        return Array.of(np.arange(n, dtype=dtype))

    @staticmethod
    def cat(*parts: Array, dim: int) -> Array:
        return Array.made(np.concatenate([p.x for p in parts], dim))

    # views

    def __getitem__(self, key: Any) -> Array:
        out = self.x[key]
        advanced = any(isinstance(k, (list, np.ndarray)) for k in (key if isinstance(key, tuple) else (key,)))
        return Array.made(out) if advanced or (not isinstance(out, np.ndarray) and not _is_view(key)) else Array.of(
            out if isinstance(out, np.ndarray) else self.x[(*key, ...)] if isinstance(key, tuple) else self.x[key, ...])

    def reshape(self, *shape: int) -> Array:
        return Array.of(_shaped(self.x, shape))

    def flatten(self) -> Array:
        return Array.of(_shaped(self.x, (-1,)))

    def unsqueeze(self, dim: int) -> Array:
        return Array.of(np.expand_dims(self.x, dim))

    def squeeze(self) -> Array:
        return Array.of(np.squeeze(self.x))

    def permute(self, *order: int) -> Array:
        return Array.of(self.x.transpose(order))

    @property
    def T(self) -> Array:
        return Array.of(self.x.T)

    def expand(self, *shape: int) -> Array:
        return Array.of(np.broadcast_to(self.x, shape))

    def diagonal(self, offset: int = 0) -> Array:
        x = self.x
        rows, columns = x.shape[0] + min(offset, 0), x.shape[1] - max(offset, 0)
        inner = x[-min(offset, 0) :, max(offset, 0) :]
        n = min(rows, columns)
        moved = np.moveaxis(inner, (0, 1), (-2, -1))
        return Array.of(_strided(moved, (*moved.shape[:-2], n), (*moved.strides[:-2], sum(moved.strides[-2:]))))

    def unfold(self, dim: int, size: int, step: int) -> Array:
        x = self.x
        if size > x.shape[dim]:
            raise ValueError("the window is too large")
        count = (x.shape[dim] - size) // step + 1
        shape = (*(count if i == dim else n for i, n in enumerate(x.shape)), size)
        strides = (*(s * step if i == dim else s for i, s in enumerate(x.strides)), x.strides[dim])
        out = _strided(x, shape, strides)
        if step < size and out.flags.writeable:
            out.flags.writeable = False
        return Array.of(out)

    def bitcast(self, dtype: str) -> Array:
        return Array.of(self.x.view(dtype))

    def detach(self) -> Array:
        return Array.of(self.x[...])

    def contiguous(self) -> Array:
        return self if self.x.flags.c_contiguous else Array.made(self.x)

    # everything else copies

    def clone(self) -> Array:
        return Array.made(self.x)

    def cast(self, dtype: str) -> Array:
        return self if self.x.dtype == dtype else Array.made(self.x.astype(dtype))

    def flip(self, *axes: int) -> Array:
        return Array.made(np.flip(self.x, axes))

    def roll(self, n: int, dim: int) -> Array:
        return Array.made(np.roll(self.x, n, dim))

    def repeat(self, *counts: int) -> Array:
        return Array.made(np.tile(self.x, counts))

    def pad(self, amounts: Any) -> Array:
        return Array.made(np.pad(self.x, amounts))

    def sum(self, axis: int, keepdim: bool) -> Array:
        wide = self.x.dtype if self.x.dtype.kind == "f" else np.int64
        return Array.made(self.x.sum(axis, keepdims=keepdim, dtype=wide))

    def max(self, axis: int, keepdim: bool) -> Array:
        return Array.made(self.x.max(axis, keepdims=keepdim))

    def where(self, x: Array, y: Any) -> Array:
        return Array.made(np.where(self.x, x.x, np.asarray(_raw(y), x.x.dtype)))

    def _with(self, function: Callable[..., Any], other: Any) -> Array:
        if isinstance(other, Array) and other.x.dtype != self.x.dtype:
            raise TypeError("another dtype")
        with np.errstate(all="ignore"):
            return Array.made(function(self.x, np.asarray(_raw(other)).astype(self.x.dtype)).astype(self.x.dtype))

    def __add__(self, other: Any) -> Array:
        return self._with(np.add, other)

    def __sub__(self, other: Any) -> Array:
        return self._with(np.subtract, other)

    def __mul__(self, other: Any) -> Array:
        return self._with(np.multiply, other)

    def __gt__(self, other: Any) -> Array:
        return Array.made(self.x > _raw(other))

    # writes

    def __setitem__(self, key: Any, value: Any) -> None:
        if isinstance(key, Array):
            key = key.x
        self.x[key] = np.array(_raw(value)).astype(self.x.dtype)

    def assign(self, value: Any) -> Array:
        new = np.array(_raw(value)).astype(self.x.dtype)
        if new.ndim > self.x.ndim:
            raise ValueError("too many axes")
        self.x[...] = new
        return self

    def _in_place(self, new: Array) -> Array:
        if new.x.shape != self.x.shape:
            raise ValueError("another shape")
        self.x[...] = new.x
        return self

    def __iadd__(self, other: Any) -> Array:
        return self._in_place(self + other)

    def __isub__(self, other: Any) -> Array:
        return self._in_place(self - other)

    def __imul__(self, other: Any) -> Array:
        return self._in_place(self * other)

    def realize(self) -> Array:
        return self

    def numpy(self) -> Any:
        return self.x.copy()


def _raw(value: Any) -> Any:
    return value.x if isinstance(value, Array) else value


def _is_view(key: Any) -> bool:
    return all(isinstance(k, (int, slice)) or k is None for k in (key if isinstance(key, tuple) else (key,)))


def _shaped(x: Any, shape: tuple[int, ...]) -> Any:
    out = x.reshape(shape)
    shares = x.size == 0 or np.shares_memory(out, x)
    return out if shares else np.ascontiguousarray(out)


def _strided(x: Any, shape: tuple[int, ...], strides: tuple[int, ...]) -> Any:
    return np.lib.stride_tricks.as_strided(x, shape, strides, writeable=x.flags.writeable)


# -- drawing ----------------------------------------------------------------------------------------------------------


class Draft:
    """A program in the making, and the values that it has so far according to the model."""

    def __init__(self, rng: random.Random) -> None:
        self.rng, self.lines = rng, [""][:0]
        self.names: dict[str, Any] = {"Tensor": Array, "np": np}

    def arrays(self) -> list[str]:
        return [name for name in self.names if len(name) == 1]

    def fresh(self) -> str:
        return self.rng.choice([n for n in NAMES if n not in self.names] or list(NAMES))

    def try_line(self, line: str) -> None:
        """Adds a line if the model can do it."""
        saved = {name: self.names[name].x.copy() for name in self.arrays()}
        try:
            exec(line, self.names)
        except (ValueError, IndexError, TypeError, AttributeError, SyntaxError):
            for name, value in saved.items():
                if self.names[name].x.flags.writeable and self.names[name].x.shape == value.shape:
                    self.names[name].x[...] = value
            return
        for name in self.arrays():
            if self.names[name].x.size > 400 or self.names[name].x.ndim > 5:
                del self.names[name]
                line += f"; del {name}"
        self.lines.append(line)

    def box(self, shape: tuple[int, ...]) -> str:
        """Square brackets of integers and slices."""
        rng, terms = self.rng, []
        for n in shape[: rng.randint(1, max(1, len(shape)))]:
            if rng.random() < 0.3:
                terms.append(str(rng.randrange(-n, n) if n else 0))
            elif rng.random() < 0.2:
                terms.append(":")
            else:
                a, b = sorted((rng.randint(0, n), rng.randint(0, n)))
                step = rng.choice(["", "", ":2", ":3", ":-1", ":-2"])
                terms.append(f"{a}:{b}{step}" if "-" not in step else f":{'' if a == 0 else a - 1}:{step[1:]}"
                             if rng.random() < 0.5 else f"{step[:1]}:{step[1:]}")
        if rng.random() < 0.1:
            terms.insert(rng.randrange(len(terms) + 1), "None")
        return f"[{', '.join(terms) or '...'}]"

    def factored(self, n: int) -> tuple[int, ...]:
        """A shape of ``n`` elements."""
        out: list[int] = []
        while n > 1 and len(out) < 3:
            divisors = [d for d in range(1, n + 1) if n % d == 0]
            d = self.rng.choice(divisors)
            out.append(d)
            n //= d
        return (*out, n)

    def view(self, name: str) -> str:
        rng, x = self.rng, self.names[name].x
        kind = rng.choice(("box", "box", "box", "reshape", "flatten", "unsqueeze", "squeeze", "permute", "T", "expand",
                           "diagonal", "unfold", "bitcast", "detach", "contiguous"))  # fmt: skip
        if kind == "box":
            return name + self.box(x.shape)
        if kind == "reshape":
            return f"{name}.reshape{self.factored(x.size)}".replace(",)", ")")
        if kind == "unsqueeze":
            return f"{name}.unsqueeze({rng.randint(0, x.ndim)})"
        if kind == "permute":
            return f"{name}.permute({', '.join(map(str, rng.sample(range(x.ndim), x.ndim)))})"
        if kind == "T":
            return f"{name}.T"
        if kind == "expand":
            shape = tuple(rng.randint(2, 3) if n == 1 else n for n in x.shape)
            return f"{name}.expand({', '.join(map(str, (*([2] if rng.random() < 0.3 else []), *shape)))})"
        if kind == "diagonal":
            return f"{name}.diagonal({rng.randint(-1, 1)})"
        if kind == "unfold":
            dim = rng.randrange(max(1, x.ndim))
            size = rng.randint(1, 3)
            return f"{name}.unfold({dim}, {size}, {rng.choice([1, size, size + 1])})"
        if kind == "bitcast":
            return f"{name}.bitcast({rng.choice(KINDS)!r})"
        return f"{name}.{kind}()"

    def result(self, name: str) -> str:
        rng, x = self.rng, self.names[name].x
        axis = rng.randrange(max(1, x.ndim))
        alike = [n for n in self.arrays() if self.names[n].x.dtype == x.dtype]
        other = rng.choice([*alike, str(rng.randrange(7))])
        return rng.choice((
            f"{name} {rng.choice('+-*')} {other}", f"{name} + 0", f"{name}.clone()", f"{name}.flip({axis})",
            f"{name}.roll({rng.randint(-2, 3)}, {axis})", f"{name}.sum({axis}, {rng.choice([True, False])})",
            f"{name}.max({axis}, {rng.choice([True, False])})", f"{name}.cast('int64')", f"{name}.cast('int32')",
            f"{name}.repeat({', '.join(str(rng.randint(1, 2)) for _ in range(x.ndim))})",
            f"{name}.pad(({', '.join(str((rng.randint(0, 1), rng.randint(0, 1))) for _ in range(x.ndim))},))",
            f"Tensor.cat({name}, {rng.choice(alike)}, dim={axis})", f"Tensor.cat({name}, dim={axis})",
            f"({name} > {rng.randrange(9)}).where({name}, {rng.randrange(9)})",
            f"{name}{self.rows(name, 3)}",
            f"{name}.sum({axis}, True) * {name}",
        ))  # fmt: skip

    def rows(self, name: str, count: int) -> str:
        """Square brackets of a list of positions."""
        n = self.names[name].x.shape[0] if self.names[name].x.ndim else 0
        return f"[[{', '.join(str(self.rng.randrange(n)) for _ in range(count))}]]" if n else "[...]"

    def write(self, name: str) -> str:
        rng, x = self.rng, self.names[name].x
        alike = [n for n in self.arrays() if self.names[n].x.dtype == x.dtype]
        other = rng.choice(alike)
        part = other + self.box(self.names[other].x.shape)
        value = rng.choice([other, other, str(rng.randrange(100)), f"{other} * 2", part, f"{name}.flip(0)",
                            f"{other}.sum(0, True)"])  # fmt: skip
        target = name + self.box(x.shape)
        return rng.choice((
            f"{target} = {value}", f"{target} = {value}", f"{name} {rng.choice('+-*')}= {value}",
            f"{target} {rng.choice('+-*')}= {value}", f"{name}.assign({value})", f"{target}.assign({value})",
            f"{name}[{name} > {rng.randrange(9)}] = {rng.randrange(9)}",
            f"{name}{self.rows(name, 2)} = {value}",
            f"{self.view(name)}.assign({value})", f"{name}.bitcast({rng.choice(KINDS)!r}){self.box(x.shape)} = 7",
        ))  # fmt: skip

    def made(self) -> str:
        rng = self.rng
        shape = rng.choice([(6,), (5,), (2, 3), (3, 4), (4, 4), (2, 3, 4), (1, 5), (3, 1), (1,), (7, 2)])
        n, kind = int(np.prod(shape)), rng.choice(("int32", "int32", "int32", *KINDS))
        return rng.choice((
            f"Tensor(np.arange({n}, dtype='{kind}').reshape{shape})", f"Tensor.arange({n}, dtype='{kind}')",
            f"Tensor.full({shape}, {rng.randrange(9)}, dtype='{kind}')",
            f"Tensor(np.arange({n}, dtype='{kind}').reshape{shape}) * 3",
        ))  # fmt: skip

    def step(self) -> None:
        rng, known = self.rng, self.arrays()
        if len(known) < 2 or rng.random() < 0.04:
            self.try_line(f"{self.fresh()} = {self.made()}")
            return
        name, kind = rng.choice(known), rng.random()
        if kind < 0.35:
            self.try_line(f"{self.fresh()} = {self.view(name)}")
        elif kind < 0.55:
            self.try_line(f"{self.fresh()} = {self.result(name)}")
        elif kind < 0.85:
            self.try_line(self.write(name))
        elif kind < 0.93:
            self.try_line(f"{name}.realize()")
        elif kind < 0.96:
            self.try_line(f"{name}.numpy()")
        else:
            self.try_line(f"del {name}")


def draw(seed: int, steps: int = 14) -> list[str]:
    """The lines of a random program."""
    rng = random.Random(seed)
    draft = Draft(rng)
    for _ in range(rng.randint(4, steps)):
        draft.step()
    return draft.lines


# -- running ----------------------------------------------------------------------------------------------------------


def model(lines: Sequence[str]) -> dict[str, Any] | None:
    """What each name holds in the end; None if the program is none."""
    names: dict[str, Any] = {"Tensor": Array, "np": np}
    try:
        for line in lines:
            exec(line, names)
    except Exception:
        return None
    return {name: value.x for name, value in names.items() if isinstance(value, Array)}


def wrong(lines: Sequence[str], eager: bool, seed: int) -> str:
    """What is wrong with a program's results on tensors; empty if nothing is, or it is no program."""
    want = model(lines)
    if want is None:
        return ""
    names: dict[str, Any] = {"Tensor": Tensor, "np": np}
    try:
        for line in lines:
            exec(line, names)
            if eager:
                for value in list(names.values()):
                    if isinstance(value, Tensor):
                        value.realize()
            value = None
        order = sorted(want)
        random.Random(seed).shuffle(order)
        for name in order:
            got = names[name].numpy()
            if got.shape != want[name].shape or got.dtype != want[name].dtype or not np.array_equal(got, want[name]):
                return f"{name} is {got.tolist()}, not {want[name].tolist()}"
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:300]}"
    return ""


@dataclass(frozen=True, slots=True)
class Finding:
    """A program that goes wrong.

    Attributes:
      seed: of the program.
      eager: whether everything was realised after each line.
      lines: the lines that matter.
      what: what goes wrong.
    """

    seed: int
    eager: bool
    lines: list[str]
    what: str

    def __str__(self) -> str:
        how = ", everything realised after each line" if self.eager else ""
        return "\n".join([f"# seed {self.seed}{how}: {self.what}", *self.lines])


def attempt(seed: int) -> Finding | None:
    """Draws and runs one program."""
    lines = draw(seed)
    for eager in (False, True):
        if wrong(lines, eager, seed):
            short = shortened(lines, partial(wrong, eager=eager, seed=seed))
            return Finding(seed, eager, short, wrong(short, eager, seed))
    return None
