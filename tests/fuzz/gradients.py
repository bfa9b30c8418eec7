"""Random programs of views, writes and gradients, against dual numbers, whose arrays share memory as numpy's do.

Each tensor has an array of its elements and one of their derivatives in a direction that is drawn. A view is a view of
both. What ``detach`` gives shares the elements, and has derivatives of its own; ``no_grad`` writes elements alone. The
derivative of a loss must be what the gradients at the leaves say, and elements what the array holds. A program may be
refused where elements that a gradient is made of were overwritten.

    hatch run fuzz gradients [--seconds 60] [--seed 0] [--device NUMPY]
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from tg_frontend import Tensor

from .lines import Finding, found

REFUSED = re.compile("was written to in place after it was used")
TOLERANCE = 1e-9
GREATEST = 1e6
"""Elements of a larger magnitude make no program."""
LEAVES = 2
CUTS = (".detach()", ".detach().bitcast('int64').bitcast('float64')")
Numbers = np.ndarray[Any, Any]


def numbers(seed: int, shape: tuple[int, ...] = (3, 4)) -> Numbers:
    """Elements of a leaf, a direction, or weights."""
    return np.random.default_rng(seed).uniform(-1, 1, shape)


class Dual:
    """What a tensor holds.

    Args:
      x: the elements.
      d: their derivatives, of the same shape.
      leaf: whether this is a leaf, or a view of one, which is written in ``no_grad`` alone.
    """

    recording = True

    def __init__(self, x: Numbers, d: Numbers, leaf: bool = False) -> None:
        self.x, self.d, self.leaf = x, d, leaf

    def _seen(self, view: Callable[[Numbers], Numbers]) -> Dual:
        x, d = view(self.x), view(self.d)
        if x.size and not np.shares_memory(x, self.x):
            raise ValueError("a copy, not a view")
        if (x.shape, x.strides) == (self.x.shape, self.x.strides):
            raise ValueError("the tensor itself, which operations in place would change, too")
        x.flags.writeable = d.flags.writeable = True  # diagonals are not
        return Dual(x, d, self.leaf)

    def __getitem__(self, key: Any) -> Dual:
        return self._seen(lambda a: a[key])

    def transpose(self, dim0: int, dim1: int) -> Dual:
        return self._seen(lambda a: a.swapaxes(dim0, dim1))

    def unsqueeze(self, dim: int) -> Dual:
        return self._seen(lambda a: np.expand_dims(a, dim))

    def diagonal(self, offset: int) -> Dual:
        return self._seen(lambda a: np.diagonal(a, offset))

    def unfold(self, dim: int, size: int, step: int) -> Dual:
        every = (slice(None),) * dim + (slice(None, None, step),)
        return self._seen(lambda a: np.lib.stride_tricks.sliding_window_view(a, size, dim, writeable=True)[every])

    def view(self, *shape: int) -> Dual:
        return self._seen(lambda a: a.reshape(shape))

    def detach(self) -> Dual:
        return Dual(self.x, np.zeros(self.x.shape))

    def bitcast(self, dtype: str) -> Dual:
        """The same elements: of bits there are no derivatives, but of what is written to them."""
        return self.detach()

    def clone(self) -> Dual:
        return Dual(self.x.copy(), self.d.copy())

    def _made(self, x: Any, d: Any) -> Dual:
        return Dual(np.asarray(x), np.broadcast_to(d, np.shape(x)).copy())

    def __add__(self, other: Any) -> Dual:
        y, e = parts(other)
        return self._made(self.x + y, self.d + e)

    def __sub__(self, other: Any) -> Dual:
        y, e = parts(other)
        return self._made(self.x - y, self.d - e)

    def __mul__(self, other: Any) -> Dual:
        y, e = parts(other)
        return self._made(self.x * y, self.d * y + self.x * e)

    def tanh(self) -> Dual:
        return self._made(np.tanh(self.x), self.d * (1 - np.tanh(self.x) ** 2))

    def sin(self) -> Dual:
        return self._made(np.sin(self.x), self.d * np.cos(self.x))

    def sum(self) -> Dual:
        return self._made(self.x.sum(), self.d.sum())

    def flip(self, dim: int) -> Dual:
        return self._made(np.flip(self.x, dim).copy(), np.flip(self.d, dim))

    def __gt__(self, number: float) -> Numbers:
        return self.x > number

    def realize(self) -> Dual:
        return self

    def copy_(self, value: Any) -> Dual:
        if np.ndim(parts(value)[0]) > self.x.ndim:
            raise ValueError("more axes")
        self[...] = value
        return self

    def __setitem__(self, key: Any, value: Any) -> None:
        if self.leaf and Dual.recording:
            raise ValueError("a leaf")
        y, e = parts(value)
        y, e = np.array(y), np.array(e)
        self.x[key] = y
        if Dual.recording:
            self.d[key] = e

    def __iadd__(self, other: Any) -> Dual:
        return self.copy_(self + other)

    def __isub__(self, other: Any) -> Dual:
        return self.copy_(self - other)

    def __imul__(self, other: Any) -> Dual:
        return self.copy_(self * other)

    def tanh_(self) -> Dual:
        return self.copy_(self.tanh())

    def zero_(self) -> Dual:
        return self.copy_(0.0)

    def _become(self, view: Dual) -> Dual:
        if self.leaf:
            raise ValueError("a leaf")
        self.x, self.d = view.x, view.d
        return self

    def transpose_(self, dim0: int, dim1: int) -> Dual:
        return self._become(self.transpose(dim0, dim1))

    def unsqueeze_(self, dim: int) -> Dual:
        return self._become(self.unsqueeze(dim))

    @classmethod
    @contextmanager
    def no_grad(cls) -> Iterator[None]:
        cls.recording = False
        try:
            yield
        finally:
            cls.recording = True


def parts(value: Any) -> tuple[Any, Any]:
    """Elements and derivatives of an operand."""
    return (value.x, value.d) if isinstance(value, Dual) else (value, 0.0)


class Draft:
    """A program in the making, and what its names hold by the model.

    Args:
      rng: draws it.
      cut: what gives the same memory without its gradients, as it is written.
    """

    def __init__(self, rng: random.Random, cut: str = CUTS[0]) -> None:
        self.rng, self.cut = rng, cut
        self.lines = [f"a{n} = leaf({n})" for n in range(LEAVES)] + ["v0 = a0 * 1.5", "v1 = a0 + a1 * a1"]
        self.names = model_names()
        for line in self.lines:
            exec(line, self.names)

    def attempt(self, line: str) -> None:
        """Adds a line, if the model can do it and its elements stay small."""
        held = {name: (value.x.copy(), value.d.copy()) for name, value in duals(self.names).items()}
        try:
            exec(line, self.names)
        except (ValueError, IndexError, np.exceptions.AxisError):
            return
        if max(np.abs(v).max(initial=0) for one in duals(self.names).values() for v in (one.x, one.d)) > GREATEST:
            for name, (x, d) in held.items():
                self.names[name].x[...], self.names[name].d[...] = x, d
            return
        self.lines.append(line)

    def name(self) -> str:
        return self.rng.choice(list(duals(self.names)))

    def box(self, ndim: int) -> str:
        terms = ("0", "-1", "1:", ":2", "::2", ":", "1:2")
        return f"[{', '.join(self.rng.choices(terms, k=self.rng.randint(1, max(ndim, 1))))}]"

    def view(self, name: str) -> str:
        rng, ndim = self.rng, self.names[name].x.ndim
        return name + rng.choice((
            self.box(ndim), self.box(ndim), f".transpose({rng.randrange(2)}, -1)",
            f".unsqueeze({rng.randint(0, ndim)})",
            f".diagonal({rng.randint(-1, 1)})", f".unfold({rng.randrange(max(ndim, 1))}, 2, {rng.randint(2, 3)})",
            f".view({rng.choice(('-1', '2, -1', '-1, 2', '4, 3'))})", self.cut,
        ))  # fmt: skip

    def value(self) -> str:
        rng, one, other = self.rng, self.name(), self.name()
        return rng.choice((
            f"{one} {rng.choice('+-*')} {other}", f"{one}.tanh()", f"{one}.sin()", f"{one}.sum() * 0.25",
            f"{one} * 0.5", f"{one}.clone()", f"{one}.flip(0)", f"{one} * {other}.sum().tanh()", self.view(one),
        ))  # fmt: skip

    def write(self) -> str:
        rng, name = self.rng, self.name()
        ndim = self.names[name].x.ndim
        value = rng.choice((self.value(), self.value(), "0.5"))
        return rng.choice((
            f"{name}{self.box(ndim)} = {value}", f"{name}{self.box(ndim)} = {value}", f"{name}[...] = {value}",
            f"{name}.copy_({value})", f"{name} {rng.choice('+-*')}= {value}", f"{self.view(name)}.copy_({value})",
            f"{name}[{name} > 0.2] = 0.5", f"{name}[[0, 2]] = {value}", f"{name}.tanh_()", f"{self.view(name)}.zero_()",
            f"{name}.detach().copy_({value})", f"{name}.copy_({name})",
        ))  # fmt: skip

    def step(self) -> None:
        rng, kind = self.rng, self.rng.random()
        fresh = f"v{len(self.lines) - LEAVES}"
        if kind < 0.3:
            self.attempt(f"{fresh} = {self.view(self.name())}")
        elif kind < 0.45:
            self.attempt(f"{fresh} = {self.value()}")
        elif kind < 0.8:
            self.attempt(self.write())
        elif kind < 0.87:
            self.attempt(f"with no_grad(): {self.write()}")
        elif kind < 0.93:
            self.attempt(f"{self.name()}.{rng.choice(('transpose_(0, -1)', 'transpose_(0, 1)', 'unsqueeze_(0)'))}")
        else:
            self.attempt(f"{self.name()}.realize()")


def duals(names: dict[str, Any]) -> dict[str, Dual]:
    """The tensors of the model, by name."""
    return {name: value for name, value in names.items() if isinstance(value, Dual)}


def model_names() -> dict[str, Any]:
    """What a program may use, for the model."""
    return {"leaf": lambda n: Dual(numbers(n), numbers(n + 100), True), "no_grad": Dual.no_grad}


def drawn(seed: int, steps: int = 12) -> list[str]:
    """The lines of a random program."""
    draft = Draft(random.Random(seed), CUTS[seed % len(CUTS)])
    for _ in range(draft.rng.randint(3, steps)):
        draft.step()
    return draft.lines


def model(lines: Sequence[str]) -> dict[str, Dual] | None:
    """What each name holds in the end; None if the lines are no program."""
    names = model_names()
    try:
        for line in lines:
            exec(line, names)
    except Exception:
        return None
    return duals(names)


def wrong(lines: Sequence[str]) -> str:
    """What is wrong with a program's tensors; empty if nothing is, or it is no program."""
    want = model(lines)
    if want is None:
        return ""
    names: dict[str, Any] = {
        "leaf": lambda n: Tensor(numbers(n), requires_grad=True), "no_grad": Tensor.no_grad,
    }  # fmt: skip
    try:
        for line in lines:
            exec(line, names)
        loss, slope = Tensor(0.0, dtype="float64"), 0.0
        for place, (name, dual) in enumerate(want.items()):
            weights = numbers(200 + place, dual.x.shape)
            loss = loss + (names[name] * Tensor(weights)).sum()
            slope += float((dual.d * weights).sum())
        if loss.requires_grad:
            loss.backward()
        found = 0.0
        for n in range(LEAVES):
            grad = names[f"a{n}"].grad if f"a{n}" in names else None
            found += 0.0 if grad is None else float((grad.numpy() * numbers(n + 100)).sum())
        for name, dual in want.items():
            got = names[name].numpy()
            if got.shape != dual.x.shape or not np.allclose(got, dual.x, TOLERANCE, TOLERANCE):
                return f"{name} is {got.tolist()}, not {dual.x.tolist()}"
        if not abs(found - slope) <= TOLERANCE * max(1.0, abs(slope)):
            return f"the derivative is {found!r}, not {slope!r}"
    except Exception as error:
        return "" if REFUSED.search(str(error)) else f"{type(error).__name__}: {str(error)[:300]}"
    return ""


def attempt(seed: int) -> Finding | None:
    """Draws and runs one program."""
    return found(seed, drawn(seed), wrong)
