"""Helpers of the shape tests, as fixtures: numpy is the oracle."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tg_shape import Expr, ShapeTracker, Variable, sint, topological

Array = npt.NDArray[np.int64]

OPERATIONS: dict[str, Callable[[list[Any]], Any]] = {
    "add": lambda a: sum(a[1:], start=a[0]),
    "mul": lambda a: np.multiply.reduce(np.broadcast_arrays(*a)),
    "floordiv": lambda a: a[0] // a[1],
    "mod": lambda a: a[0] % a[1],
    "lt": lambda a: (a[0] < a[1]).astype(np.int64),
    "eq": lambda a: (a[0] == a[1]).astype(np.int64),
    "ne": lambda a: (a[0] != a[1]).astype(np.int64),
    "and": lambda a: np.bitwise_and.reduce(np.broadcast_arrays(*a)),
    "or": lambda a: np.bitwise_or.reduce(np.broadcast_arrays(*a)),
    "max": lambda a: np.maximum.reduce(np.broadcast_arrays(*a)),
    "min": lambda a: np.minimum.reduce(np.broadcast_arrays(*a)),
}


def values_of(e: sint, assignment: dict[Variable, Any]) -> Any:
    """The value of an expression where each variable is an array of values."""
    if isinstance(e, int):
        return np.int64(e)
    done: dict[Expr, Any] = {}
    for node in topological(e):
        if isinstance(node, Variable):
            done[node] = assignment[node]
        elif node.op == "bind":
            done[node] = np.int64(node.args[1])
        else:
            done[node] = OPERATIONS[node.op]([np.int64(a) if isinstance(a, int) else done[a] for a in node.args])
    return done[e]


def every_assignment(variables: Sequence[Variable]) -> dict[Variable, Array]:
    """Arrays that together hold every assignment of the variables within their integer bounds."""
    ranges = [np.arange(v.vmin, v.vmax + 1) for v in variables]
    return dict(zip(variables, np.meshgrid(*ranges, indexing="ij"), strict=True)) if ranges else {}


def positions(st: ShapeTracker) -> tuple[Array, Array]:
    """Position and validity of every index of a tracker, in its shape."""
    shape = tuple(int(s) for s in st.shape)
    idxs = [Variable(f"i{n}", 0, s - 1) if s else 0 for n, s in enumerate(shape)]
    position, valid = st.index(idxs)
    assignment = {v: a for v, a in zip(idxs, np.indices(shape), strict=True) if isinstance(v, Variable)}
    return (
        np.broadcast_to(values_of(position, assignment), shape),
        np.broadcast_to(values_of(valid, assignment), shape),
    )


def viewed(st: ShapeTracker, buffer: Array) -> Array:
    """What a tracker shows of a flat buffer; 0 where it is invalid."""
    position, valid = positions(st)
    inside = position[valid == 1]
    assert ((inside >= 0) & (inside < buffer.size)).all(), f"{st} leaves the buffer of {buffer.size}"
    return np.where(valid == 1, buffer[np.where(valid == 1, position, 0)] if buffer.size else 0, 0)


@pytest.fixture(scope="session")
def evaluate_all() -> Callable[..., Array]:
    """``evaluate_all(e, *variables)``: the value for every assignment."""
    return lambda e, *variables: values_of(e, every_assignment(variables))


@pytest.fixture(scope="session")
def view_buffer() -> Callable[[ShapeTracker, Array], Array]:
    """``view_buffer(st, buffer)``: what the tracker shows of a flat buffer, 0 where invalid."""
    return viewed


@pytest.fixture(scope="session")
def index_table() -> Callable[[ShapeTracker], tuple[Array, Array]]:
    """``index_table(st)``: position and validity of every index."""
    return positions


@pytest.fixture(scope="session")
def values_at() -> Callable[[sint, dict[Variable, Any]], Any]:
    """``values_at(e, {variable: values})``: the value where each variable is an array of values."""
    return values_of
