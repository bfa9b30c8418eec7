"""The lanes of each node of a kernel in PTX, each a register or an immediate."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from tg_dtype import DType, dtypes

from ...ir.uop import UOp, UOps
from .text import PTXText


class PTXValues:
    """What stands for the nodes of one kernel.

    Args:
      text: what has been written of it.

    Attributes:
      lanes: of the nodes that have been written.
    """

    def __init__(self, text: PTXText) -> None:
        self.lanes: dict[UOp, list[str]] = {}
        self._text = text
        self._mutable: set[str] = set()
        # Addresses and constants known here: one table for each open loop or branch.
        self._scopes: list[dict[object, str]] = [{}]

    def value(self, u: UOp) -> list[str]:
        """The lanes of an operand, each a register or an immediate."""
        found = self.lanes.get(u)
        if found is not None:
            return found
        return [self.constant(u)] * u.dtype.count

    def one(self, u: UOp) -> str:
        """A scalar operand."""
        return self.value(u)[0]

    def constant(self, u: UOp) -> str:
        """One lane of a constant."""
        scalar = u.dtype.scalar()
        key = UOp(UOps.CONST, scalar, (), u.arg)
        return self.known(key, lambda: self._text.literal(u.arg, scalar), keep=lambda text: text.startswith("%"))

    def zero(self, dtype: DType) -> str:
        """The constant 0 of a dtype."""
        return self.constant(UOp(UOps.CONST, dtype, (), dtypes.as_const(0, dtype)))

    def known(self, key: object, make: Callable[[], str], keep: Callable[[str], bool]) -> str:
        """What was made for a key in an open loop or branch; else it is made, and kept where that pays."""
        for scope in self._scopes:
            if key in scope:
                return scope[key]
        found = make()
        if keep(found):
            self._scopes[-1][key] = found
        return found

    def keep(self, u: UOp, lanes: Sequence[str]) -> None:
        """Makes ``lanes`` the value of a node; what may change later is copied."""
        scalar = u.dtype.scalar()
        self.lanes[u] = [self._text.move(lane, scalar) if lane in self._mutable else lane for lane in lanes]

    def changes(self, registers: Iterable[str]) -> None:
        """Says that registers get other values later."""
        self._mutable.update(registers)

    def open_scope(self) -> None:
        """Begins a loop or branch: what is made in it is known in it alone."""
        self._scopes.append({})

    def close_scope(self) -> None:
        """Ends the innermost loop or branch."""
        self._scopes.pop()
