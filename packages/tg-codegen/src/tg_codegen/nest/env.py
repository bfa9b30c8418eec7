"""What is known of loops at a point of a nest: the values of counters and of what they count."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from tg_shape import Expr, Variable, sint, substitute

_NOTHING: Mapping[Any, sint] = MappingProxyType({})


class Env:
    """Values of roots and of axes at a point, which stay as they are.

    Attributes:
      root: what is known of each root: the sum over its open axes.
      axis: the counter of each open axis.
      exact: roots of which every remaining iteration is inside the extent.

    Args:
      near: another point of the same nest, if there is one. What an expression is there, it is wherever its own roots
        have the same values: of the copies that unrolled loops make, many differ in other roots alone.
    """

    __slots__ = ("_here", "_known", "axis", "exact", "root")

    def __init__(
        self, root: Mapping[Expr, sint] = _NOTHING, axis: Mapping[str, sint] = _NOTHING,
        exact: frozenset[Variable] = frozenset(), near: Env | None = None,
    ) -> None:  # fmt: skip
        self.root, self.axis, self.exact = root, axis, exact
        self._known: dict[tuple[Expr | sint | None, ...], sint] = {} if near is None else near._known
        self._here: dict[Expr, sint] = {}

    def of(self, e: sint) -> sint:
        """An expression over roots, at this point: several ask for the same one."""
        if isinstance(e, int):
            return e
        found = self._here.get(e)
        if found is None:
            key = (e, *map(self.root.get, e.variables()))
            found = self._known.get(key)
            if found is None:
                found = self._known[key] = substitute(e, self.root)
            self._here[e] = found
        return found

    def open(self, name: str, root: Variable, stride: int, value: sint, exact: bool | None = None) -> Env:
        """The environment with one more axis open. ``exact`` None leaves what is known of the root as it is."""
        known = self.exact if exact is None else (self.exact | {root} if exact else self.exact - {root})
        roots = {**self.root, root: self.root.get(root, 0) + value * stride}
        return Env(roots, {**self.axis, name: value}, known, self)

    def moved(self, root: Variable, value: sint) -> Env:
        """The environment with another value of a root, and the same axes."""
        return Env({**self.root, root: value}, self.axis, self.exact, self)

    def at(self, variable: Variable, value: sint) -> Env:
        """The environment with a value in the place of a variable."""
        swap = {variable: value}
        root = {name: substitute(expr, swap) for name, expr in self.root.items()}
        return Env(root, {name: substitute(expr, swap) for name, expr in self.axis.items()}, self.exact, self)
