"""The gradients that a recorded function takes from tensors from before, and leaves there: a replay does the same.

``backward`` sets ``grad`` where there is none, and adds in place to one that is there: two different records. So a
record fits only where the function would find what it found.
"""

from __future__ import annotations

from itertools import repeat
from operator import attrgetter, call, is_, is_not
from typing import TYPE_CHECKING, NamedTuple
from weakref import ref

from tg_lazy.ops import LEAVES

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import TypeAlias

    from tg_lazy import LazyBuffer

    from ..autograd.functions import RowSparse
    from ..tensor import Tensor

    Needs: TypeAlias = Tensor | bool | None


class Change(NamedTuple):
    """What a function did to the ``grad`` of a tensor.

    Attributes:
      tensor: the tensor.
      needs: what it must find there to do the same again: this very gradient; one (True) or none (False); or whatever
        there is (None).
      changed: whether it left another one there.
      grad: what it left.
    """

    tensor: Tensor
    needs: Needs
    changed: bool
    grad: Tensor | None


class Grads:
    """What a function did to the ``grad`` of tensors.

    Args:
      changes: one for each of them.

    Attributes:
      fixed: whether something must be found.
      left: whether something is left.
    """

    __slots__ = ("_anew", "_any", "_exact", "_found", "_grads", "_left", "_none", "fixed", "left")

    def __init__(self, changes: Iterable[Change]) -> None:
        # as columns, so that a replay looks at all of them without a step of Python for each
        self._none: list[ref[Tensor]] = []
        self._any: list[ref[Tensor]] = []
        self._exact: list[ref[Tensor]] = []
        self._found: list[Tensor] = []
        # a constant is handed out anew: what is written to one tensor of it is not in the next. So are rows: a dense
        # table that was made of those of one call is not that of the next
        self._anew: list[tuple[ref[Tensor], LazyBuffer | RowSparse]] = []
        self._left: list[ref[Tensor]] = []
        self._grads: list[Tensor | None] = []
        for tensor, needs, changed, grad in changes:
            weak = ref(tensor)
            if isinstance(needs, bool):
                (self._any if needs else self._none).append(weak)
            elif needs is not None:
                self._exact.append(weak)
                self._found.append(needs)
            rows = grad._row_sparse() if changed and grad is not None else None
            if rows is not None and rows.index.is_realized and rows.values.is_realized:
                self._anew.append((weak, rows))
            elif changed and grad is not None and grad.lazydata.base.op in LEAVES:
                self._anew.append((weak, grad.lazydata))
            elif changed:
                self._left.append(weak)
                self._grads.append(grad)
        self.fixed = bool(self._none or self._any or self._exact)
        self.left = bool(self._anew or self._left)

    def changed(self) -> str:
        """At which tensor there is another gradient than the function found there, in words; nothing if at none."""
        if any(map(is_not, _grads_of(self._none), repeat(None))):
            return "a tensor had no gradient when it was recorded, and has one now"
        if any(map(is_, _grads_of(self._any), repeat(None))):
            for one in self._any:
                tensor = one()
                if tensor is not None and tensor.grad is None:
                    return f"a tensor of shape {tensor.shape} had a gradient when it was recorded, and has none now"
        if not all(map(is_, _grads_of(self._exact), self._found)):
            for one, grad in zip(self._exact, self._found, strict=True):
                tensor = one()
                if tensor is not None and tensor.grad is not grad:
                    return f"a tensor of shape {tensor.shape} had another gradient when it was recorded"
        return ""

    def leave(self) -> None:
        """Sets the gradients as the function does."""
        try:
            same = all(map(is_, map(_grad_of, map(call, self._left)), self._grads))
        except AttributeError:  # a tensor is gone
            same = False
        if not same:
            for one, grad in zip(self._left, self._grads, strict=True):
                tensor = one()
                if tensor is not None:
                    tensor.grad = grad
        if self._anew:
            self._leave_anew()

    def _leave_anew(self) -> None:
        for one, value in self._anew:
            tensor = one()
            if tensor is not None:
                tensor.grad = type(tensor)._value(value)


_grad_of = attrgetter("grad")


def _grads_of(tensors: list[ref[Tensor]]) -> Iterable[Tensor | None]:
    """The gradients of tensors; None also for a tensor that is gone."""
    return map(getattr, map(call, tensors), repeat("grad"), repeat(None))
