"""Bound variables: a schedule is made for the variables, and their values are kept beside it."""

from __future__ import annotations

from tg_shape import Expr, ShapeTracker, Variable, sint, unbind

from ..trackers import Shape


class Bindings:
    """Replaces bound variables by the variables, and keeps their values."""

    def __init__(self) -> None:
        self.values: dict[Variable, int] = {}
        self._trackers: dict[ShapeTracker, ShapeTracker] = {}

    def _record(self, found: dict[Variable, int], origin: tuple[str, int]) -> None:
        for var, value in found.items():
            if self.values.setdefault(var, value) != value:
                raise ValueError(
                    f"schedule: the variable {var.name} is bound to {self.values[var]} and to {value} in one graph "
                    f"({origin[0]}:{origin[1]})"
                )

    def number(self, x: sint, origin: tuple[str, int]) -> sint:
        """``x`` unbound."""
        if isinstance(x, int):
            return x
        out, found = unbind(x)
        self._record(found, origin)
        return out

    def shape(self, shape: Shape, origin: tuple[str, int]) -> Shape:
        """``shape`` unbound."""
        for dim in shape:
            if isinstance(dim, Expr):
                return tuple([self.number(d, origin) for d in shape])
        return shape

    def tracker(self, st: ShapeTracker, origin: tuple[str, int]) -> ShapeTracker:
        """``st`` unbound."""
        out = self._trackers.get(st)
        if out is None:
            out = st
            if not st.numeric:
                out, found = st.unbind()
                self._record(found, origin)
            self._trackers[st] = out
        return out
