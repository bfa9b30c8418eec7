"""Linear maps whose adjoint is known."""

from __future__ import annotations

from tg_lazy import LazyBuffer

from .base import Function, Grads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Map = Callable[[LazyBuffer], LazyBuffer]


class LinearMap(Function):
    """A linear map that is computed in many steps, whose gradient is its adjoint rather than that of each step.

    Args:
      there: the map.
      back: its adjoint: the gradient of the operand from that of the result.
    """

    __slots__ = ("_back", "_there")

    def __init__(self, there: Map, back: Map) -> None:
        self._there, self._back = there, back

    def forward(self, x: LazyBuffer) -> LazyBuffer:
        return self._there(x)

    def backward(self, grad: LazyBuffer) -> Grads:
        if type(grad) is LazyBuffer:
            return (self._back(grad),)
        return (grad.applied(LinearMap(self._back, self._there)),)  # type: ignore[attr-defined]  # it records
