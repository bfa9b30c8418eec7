"""The graph of recorded functions, as ``grad_fn`` of a tensor shows it."""

from __future__ import annotations

from .differentiation import operands

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .functions import Function


class Node:
    """A function that was applied, or a leaf to whose ``grad`` gradients are added.

    Args:
      function: the function; None for a leaf.
      variable: the leaf; None for a function.
    """

    __slots__ = ("_function", "variable")

    def __init__(self, function: Function | None, variable: Any = None) -> None:
        self._function, self.variable = function, variable

    def name(self) -> str:
        """The name of the function, with ``Backward`` behind; ``AccumulateGrad`` for a leaf.

        Example:
          >>> from tg_frontend import Tensor
          >>> x = Tensor([1.0], requires_grad=True)
          >>> (x * 2).grad_fn.name()
          'MulBackward'
        """
        if self._function is None:
            return "AccumulateGrad"
        label = self._function.name
        return f"{label[:1].upper()}{label[1:]}Backward"

    @property
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]:
        """What made each operand, with 0, as every function has one result; None of what requires no gradient.

        Example:
          >>> from tg_frontend import Tensor
          >>> x = Tensor([1.0], requires_grad=True)
          >>> [(node and node.name(), place) for node, place in (x * 2).grad_fn.next_functions]
          [('AccumulateGrad', 0), (None, 0)]
        """
        return () if self._function is None else tuple((node_of(one), 0) for one in operands(self._function))

    def __eq__(self, other: object) -> bool:
        same = isinstance(other, Node) and other._function is self._function
        return same and other.variable is self.variable  # type: ignore[attr-defined]

    def __hash__(self) -> int:
        return id(self._function) if self.variable is None else id(self.variable)

    def __repr__(self) -> str:
        return f"<{self.name()}>"


def node_of(tensor: Any) -> Node | None:
    """What gives a gradient to a tensor of floats; None if it requires none."""
    if not tensor.requires_grad:
        return None
    return Node(None, tensor) if tensor.is_leaf else Node(tensor._ctx)
