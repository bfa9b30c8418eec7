"""What is known of loops at a point of a nest: the values of counters and of what they count."""

from __future__ import annotations

from dataclasses import dataclass, field

from tg_shape import Expr, Variable, sint, substitute


@dataclass(frozen=True, slots=True)
class Env:
    """Values of roots and of axes at a point.

    Attributes:
      root: what is known of each root: the sum over its open axes.
      axis: the counter of each open axis.
      exact: roots of which every remaining iteration is inside the extent.
    """

    root: dict[Expr, sint] = field(default_factory=dict)
    axis: dict[str, sint] = field(default_factory=dict)
    exact: frozenset[Variable] = frozenset()
    _told: dict[Expr, sint] = field(default_factory=dict, init=False, repr=False, compare=False)

    def of(self, e: sint) -> sint:
        """An expression over roots, at this point: several ask for the same one."""
        if isinstance(e, int):
            return e
        found = self._told.get(e)
        if found is None:
            found = self._told[e] = substitute(e, self.root)
        return found

    def open(self, name: str, root: Variable, stride: int, value: sint, exact: bool | None = None) -> Env:
        """The environment with one more axis open. ``exact`` None leaves what is known of the root as it is."""
        known = self.exact if exact is None else (self.exact | {root} if exact else self.exact - {root})
        return Env({**self.root, root: self.root.get(root, 0) + value * stride}, {**self.axis, name: value}, known)

    def at(self, variable: Variable, value: sint) -> Env:
        """The environment with a value in the place of a variable."""
        swap = {variable: value}
        root = {name: substitute(expr, swap) for name, expr in self.root.items()}
        return Env(root, {name: substitute(expr, swap) for name, expr in self.axis.items()}, self.exact)
