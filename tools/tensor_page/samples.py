"""Calls of operations on small inputs: those of methods are drawn as the fuzzer draws them, others are written here."""

from __future__ import annotations

import importlib
import inspect
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from tests.fuzz.methods import NOT_A_COMPUTATION, RANDOM, ROWS, Array, Pool, Ref

from tg_frontend.keywords import other_names
from tinytg import Tensor

from .functions import FUNCTIONS, METHODS

ROOMS = ("linalg", "fft", "special", "nn.functional")
"""Modules whose functions the page names, beside the methods of Tensor."""
SHAPES: tuple[tuple[int, ...], ...] = ((3,), (2, 3), (3, 3), (2, 3, 4), (2, 2, 6, 5), (4, 6), (2, 3, 6), (4,), (5,), (),
                                       (2, 2, 5, 6, 4))  # fmt: skip
TRIES = 12
"""Seeds with which a call is drawn until one fits."""


@dataclass(frozen=True)
class Sample:
    """A call.

    Attributes:
      name: of the operation, with its room: ``Tensor.sin``.
      args: and ``kwargs``: numpy's arrays are the operands.
      reference: called likewise with arrays; None where numpy has none.
      kind: of the first operand: ``f``, ``i``, ``b``, or nothing if there is none.
      drawn: the values are random: only shapes and dtypes can be wrong.
      jumps: only operands that are exact in each dtype have one right result.
      magnitude: signs are free, as those of singular vectors.
      parts: how many of the results are compared; None for all.
    """

    name: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any] = field(default_factory=dict)
    reference: Callable[..., Any] | None = None
    kind: str = ""
    drawn: bool = False
    jumps: bool = False
    magnitude: bool = False
    parts: int | None = None

    def operation(self) -> Callable[..., Any]:
        """What is called."""
        called: Callable[..., Any] = found(self.name)
        return called

    def replaced(self, of: Callable[[Array], Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments with something else for each operand."""
        args, kwargs = mapped((self.args, self.kwargs), of)
        return args, kwargs


def mapped(value: Any, of: Callable[[Array], Any]) -> Any:
    """Lists, tuples and dicts with something else for each array in them."""
    if isinstance(value, np.ndarray):
        return of(value)
    if isinstance(value, dict):
        return {key: mapped(part, of) for key, part in value.items()}
    if isinstance(value, (tuple, list)):
        return type(value)(mapped(part, of) for part in value)
    return value


def found(name: str) -> Any:
    """An operation by the name that the page gives it."""
    room, _, last = name.rpartition(".")
    return getattr(Tensor if room == "Tensor" else importlib.import_module(f"tinytg.{room}"), last)


def methods() -> list[str]:
    """The public names of Tensor but for other names of the same."""
    others = other_names(Tensor)
    return sorted(name for name in dir(Tensor) if not name.startswith("_") and name not in others)


def functions(room: str) -> list[str]:
    """The public functions of a module that are no methods of Tensor."""
    home = importlib.import_module(f"tinytg.{room}")
    public = set(dir(Tensor))
    return sorted(name for name in home.__all__ if name not in public and inspect.isroutine(getattr(home, name)))


def shared(room: str) -> list[str]:
    """The public functions of a module that methods of Tensor share their names with."""
    home = importlib.import_module(f"tinytg.{room}")
    return sorted(name for name in home.__all__ if name in set(dir(Tensor)))


def operations() -> list[str]:
    """Everything that has a row."""
    rows = [f"Tensor.{name}" for name in methods() if name in ROWS or name in METHODS or name in RANDOM]
    return rows + [f"{room}.{name}" for room in ROOMS for name in functions(room)]


def others() -> list[str]:
    """The methods that have none: they compute nothing, or only say what is there."""
    known = set(operations())
    return [name for name in methods() if f"Tensor.{name}" not in known]


def samples(name: str) -> list[Sample]:
    """The calls of an operation, of each kind of operand one or two."""
    room, _, last = name.rpartition(".")
    if room != "Tensor":
        return [_written(name, call) for call in FUNCTIONS.get(name, ())]
    if last in METHODS:
        return [_written(name, call) for call in METHODS[last]]
    if last in ROWS:
        return list(_drawn(last))
    assert last in RANDOM or last in NOT_A_COMPUTATION, f"nothing says how {name} is called"
    return []


def _written(name: str, call: Any) -> Sample:
    kinds = [of_kind(a) for a in arrays((call.args, call.kwargs))]
    return Sample(name, call.args, call.kwargs, call.reference, kinds[0] if kinds else "", call.drawn,
                  magnitude=call.magnitude, parts=call.parts)  # fmt: skip


def arrays(value: Any) -> list[Array]:
    """The operands, in order."""
    kept: list[Array] = []
    mapped(value, lambda a: kept.append(a))
    return kept


def of_kind(array: Array) -> str:
    """``f``, ``i``, ``b`` or ``c``."""
    return {"f": "f", "b": "b", "c": "c"}.get(array.dtype.kind, "i")


def _drawn(name: str) -> Iterator[Sample]:
    """As the fuzzer draws them, of small operands."""
    row = ROWS[name]
    seen: dict[tuple[str, int], int] = {}
    for attempt in range(TRIES):
        for shape in SHAPES:
            for kind in ("small", "f", "large", "i", "b"):
                pool = Pool(random.Random(f"{name} {attempt} {shape} {kind}"))
                _fill(pool, shape, kind)
                with np.errstate(all="ignore"):
                    call = row.draw(pool, 0)
                if call is None:
                    continue
                args, kwargs = _unref(call.args, pool), _unref(call.kwargs, pool)
                operands = arrays((args, kwargs))
                which = of_kind(operands[0]) if operands else ""
                key = which, len(shape) > 1
                if seen.get(key, 0):
                    continue
                seen[key] = 1
                yield Sample(f"Tensor.{name}", args, kwargs, call.reference, which, jumps=row.wants_exact)
        if seen:
            return


def _fill(pool: Pool, shape: tuple[int, ...], kind: str) -> None:
    """A first operand and another of the same shape; ``small`` and ``large`` are numbers below and above 1."""
    for _ in range(2):
        if kind == "i":
            pool.ints(0, 4, *shape)
        elif kind == "b":
            pool.make(np.array([pool.pick.random() < 0.5 for _ in range(int(np.prod(shape)))], bool).reshape(shape))
        elif kind == "f":
            pool.floats(*shape)
        else:
            low, high = (1, 7) if kind == "small" else (10, 24)
            eighths = [pool.pick.randint(low, high) / 8 for _ in range(int(np.prod(shape)))]
            pool.make(np.array(eighths, np.float64).reshape(shape))


def _unref(value: Any, pool: Pool) -> Any:
    if isinstance(value, Ref):
        return pool.values[value.number].array
    if isinstance(value, dict):
        return {key: _unref(part, pool) for key, part in value.items()}
    return type(value)(_unref(part, pool) for part in value) if isinstance(value, (tuple, list)) else value
