"""The table of methods: what a row of it is, and how the commonest kinds are written.

A row draws a call for a given first operand, or gives up (None) where the method cannot take it. References compute in
float64 and int64; what the result's own type makes of their values is up to the caller.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
Draw = random.Random


@dataclass(frozen=True)
class Ref:
    """An operand: the number of a value."""

    number: int


@dataclass(frozen=True)
class Value:
    """What a program has computed so far.

    Attributes:
      array: its value by numpy.
      exact: whether it is the same in whatever order and precision it is computed.
    """

    array: Array
    exact: bool

    @property
    def kind(self) -> str:
        """``f`` (complex numbers, too), ``i`` or ``b``."""
        return {"f": "f", "c": "f", "b": "b"}.get(self.array.dtype.kind, "i")


@dataclass(frozen=True)
class Call:
    """A call of a method; the first argument is the tensor itself.

    Attributes:
      name: of the method.
      args: and ``kwargs``: operands (:class:`Ref`) and other arguments, lists and tuples of them too.
      reference: called likewise, with arrays.
    """

    name: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    reference: Callable[..., Any]


@dataclass(frozen=True)
class Row:
    """A method.

    Attributes:
      draw: makes a call for a pool of values and the number of the first operand; None where it does not fit.
      exact: whether exact operands give an exact result.
      wants_exact: whether it jumps, so that only exact operands have one right result.
      smooth: whether finite differences tell its gradient.
      wide: whether its operands, which are new ones, are of one dtype, float32 or float64.
    """

    draw: Callable[[Pool, int], Call | None]
    exact: bool = False
    wants_exact: bool = False
    smooth: bool = False
    wide: bool = False


@dataclass
class Pool:
    """The values of a program, and the generator of its choices."""

    pick: Draw
    values: list[Value] = field(default_factory=list)

    def like(self, number: int, kinds: str = "fi", exact: bool = False) -> int | None:
        """Another value that broadcasts with this one."""
        shape, fitting = self.values[number].array.shape, []
        for i, value in enumerate(self.values):
            if value.kind in kinds and (value.exact or not exact):
                try:
                    if math.prod(np.broadcast_shapes(shape, value.array.shape)) <= MOST:
                        fitting.append(i)
                except ValueError:
                    continue
        return self.pick.choice(fitting) if fitting else None

    def make(self, array: Array) -> int:
        """A new input, and its number."""
        self.values.append(Value(array, True))
        return len(self.values) - 1

    def floats(self, *shape: int) -> int:
        """An input of exact fractions."""
        numbers = [self.pick.randrange(-16, 17) / 8 for _ in range(math.prod(shape))]
        return self.make(np.array(numbers, np.float64).reshape(shape))

    def ints(self, low: int, high: int, *shape: int) -> int:
        """An input of integers from ``low`` to below ``high``."""
        numbers = [self.pick.randrange(low, high) for _ in range(math.prod(shape))]
        return self.make(np.array(numbers, np.int64).reshape(shape))

    def axis(self, array: Array) -> int:
        """An axis, counted from either end."""
        return self.pick.randrange(-array.ndim, array.ndim)

    def axes(self, array: Array) -> Any:
        """None, an axis, or some axes."""
        if not array.ndim or self.pick.random() < 0.3:
            return None
        some = self.pick.sample(range(array.ndim), self.pick.randint(1, array.ndim))
        return some[0] if len(some) == 1 and self.pick.random() < 0.7 else tuple(some)


MOST = 20_000
"""Elements of a value."""
ROWS: dict[str, Row] = {}


def row(name: str, draw: Callable[[Pool, int], Call | None], **facts: bool) -> None:
    """Adds a method."""
    assert name not in ROWS, name
    ROWS[name] = Row(draw, **facts)


def unary(name: str, reference: Callable[[Array], Any], kinds: str = "f", within: Callable[[Array], Any] | None = None,
          **facts: bool) -> None:  # fmt: skip
    """A method without arguments, for values that ``within`` accepts."""

    def draw(pool: Pool, i: int) -> Call | None:
        value = pool.values[i]
        if value.kind not in kinds or (within is not None and not np.all(within(value.array))):
            return None
        return Call(name, (Ref(i),), {}, reference)

    row(name, draw, **facts)


def binary(name: str, reference: Callable[[Array, Array], Any], kinds: str = "fi",
           within: Callable[[Array, Array], Any] | None = None, **facts: bool) -> None:  # fmt: skip
    """A method of two operands that broadcast; the other one may be a number."""

    def draw(pool: Pool, i: int) -> Call | None:
        value = pool.values[i]
        if value.kind not in kinds:
            return None
        other: Any
        if pool.pick.random() < 0.25 and value.kind != "b":
            other = pool.pick.choice([1, 2, 3, 5]) if value.kind == "i" else pool.pick.choice([-2.5, 0.5, 1.0, 3])
            operand: Array = np.asarray(other)
        else:
            j = pool.like(i, value.kind, facts.get("wants_exact", False))
            if j is None:
                return None
            other, operand = Ref(j), pool.values[j].array
        if within is not None and not np.all(within(value.array, operand)):
            return None
        return Call(name, (Ref(i), other), {}, reference)

    row(name, draw, **facts)


def reduction(name: str, reference: Callable[..., Any], kinds: str = "fi", **facts: bool) -> None:
    """A method of axes and ``keepdim``."""

    def draw(pool: Pool, i: int) -> Call | None:
        value = pool.values[i]
        if value.kind not in kinds or not value.array.size:
            return None
        kwargs = {"axis": pool.axes(value.array), "keepdim": pool.pick.random() < 0.5}
        return Call(name, (Ref(i),), kwargs, reference)

    row(name, draw, **facts)


def along(name: str, reference: Callable[..., Any], keyword: str = "axis", kinds: str = "f", most: int = 1 << 30,
          **facts: bool) -> None:  # fmt: skip
    """A method of one axis."""

    def draw(pool: Pool, i: int) -> Call | None:
        value = pool.values[i]
        if value.kind not in kinds or not value.array.ndim or not 0 < value.array.size:
            return None
        axis = pool.axis(value.array)
        if value.array.shape[axis] > most:
            return None
        return Call(name, (Ref(i),), {keyword: axis}, reference)

    row(name, draw, **facts)
