"""Writing the linear form: what can be seen from where the list has come to."""

from __future__ import annotations

from .spec import CLOSES, EFFECTS, OPENS
from .uop import UOp


class Statements:
    """A linear kernel, written from its beginning on.

    A value stands once in each place from which it can be seen: what was computed in a region that is closed is
    computed again where it is wanted after it. Effects stand as often as they are added.

    >>> from tg_codegen.ir.uop import UOps, const
    >>> from tg_dtype import dtypes
    >>> true, kernel = const(True, dtypes.bool), Statements()
    >>> condition, one = UOp(UOps.IF, src=(true,)), const(1, dtypes.int32)
    >>> for u in (true, condition, true, one, one, UOp(UOps.ENDIF, src=(condition,)), one, true):
    ...     _ = kernel.add(u)
    >>> [str(u.arg) if u.is_const else u.op.name for u in kernel.uops]
    ['True', 'IF', '1', 'ENDIF', '1']
    """

    def __init__(self) -> None:
        self.uops: list[UOp] = []
        self._visible: set[UOp] = set()
        self._regions: list[list[UOp]] = [[]]

    def add(self, u: UOp) -> UOp:
        """Appends a node, unless it is a value that stands already where it can be seen."""
        if u.op in CLOSES:
            self._visible.difference_update(self._regions.pop())
            self._visible.discard(u.src[0])
        elif u.op not in EFFECTS and u in self._visible:
            return u
        self.uops.append(u)
        self._visible.add(u)
        self._regions[-1].append(u)
        if u.op in OPENS:
            self._regions.append([])
        return u
