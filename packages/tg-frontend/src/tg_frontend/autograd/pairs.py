"""Hooks of complex tensors: they see the gradients of both parts as one, once all of both is known.

A part has one of two halves of such a hook among its own hooks, and so has what stands for the part as it was before a
write: halves go where other hooks go.
"""

from __future__ import annotations

from weakref import ref

from tg_lazy import LazyBuffer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Container, Sequence
    from typing import Any, ClassVar


class Pair:
    """A hook of two tensors of floats, the parts of a complex one.

    Args:
      function: is called with the complex gradient.
      parts: the two tensors.

    Attributes:
      nodes: what sees to the hook at each part: the part, or a stand-in for what it was before it was written.
      any: whether there ever was such a hook: while there was none, nobody looks for them.
    """

    __slots__ = ("function", "nodes")

    any: ClassVar[bool] = False

    def __init__(self, function: Callable[[Any], Any], parts: Sequence[Any]) -> None:
        self.function, self.nodes = function, list(parts)

    def newest(self) -> list[Any]:
        """What sees to the hook, each with the graph of the newest version of its memory."""
        for place in range(2):
            node: Any = None
            while node is not self.nodes[place]:
                node = self.nodes[place]
                _ = node.lazydata  # which may leave the hook to a stand-in
        return self.nodes

    def of(self, grads: Sequence[Any]) -> list[Any]:
        """The gradients of both parts as the hook leaves them.

        Args:
          grads: nodes, or values that record themselves; None where there is none, which is zeros.
        """
        recorded = any(hasattr(grad, "tensor") for grad in grads)
        kind = type(self.nodes[0])
        parts = []
        for node, grad in zip(self.nodes, grads, strict=True):
            if grad is None:
                lazy = node._lazy
                parts.append(kind._value(LazyBuffer.const(0, lazy.dtype, lazy.shape, lazy.device)))
            else:
                parts.append(grad.tensor if recorded else kind._value(grad))
        seen = kind._composed(*parts)
        other = self.function(seen)
        if other is not None:
            check_returned(other, seen)
            parts = list(other._parts)
        record = type(next(grad for grad in grads if grad is not None)) if recorded else None
        return [part._row_sparse() or part.lazydata if record is None else record(part) for part in parts]


class Half:
    """The place of a pair's hook among those of one part.

    Args:
      pair: the hook.
      place: which part it is.
    """

    __slots__ = ("pair", "place")

    def __init__(self, pair: Pair, place: int) -> None:
        self.pair, self.place = pair, place

    def __call__(self, grad: Any) -> None:
        """Nothing: the pair's hook is called with both gradients."""


def pairs_at(node: Any) -> list[Pair]:
    """The hooks of complex tensors that a node sees to."""
    hooks = getattr(node, "_hooks", None)
    if hooks is None:
        return []
    found = [one for one in hooks.functions.values() if type(one) is Half]
    return [half.pair for half in found if half.pair.newest()[half.place] is node]


def partners(node: Any) -> list[Any]:
    """The other parts of complex tensors with hooks of which a node is one part."""
    return [one for pair in pairs_at(node) for one in pair.nodes if one is not node]


def call_pairs(node: Any, grads: dict[int, Any], called: set[Pair]) -> list[Any]:
    """Calls the hooks of complex tensors of which a node is one part, once all of both gradients is known.

    Args:
      node: the part.
      grads: gradients by ids of nodes, which are changed.
      called: the hooks that were called already, to which those are added that are called.

    Returns:
      The parts that have a gradient then.
    """
    found: list[Any] = []
    for pair in pairs_at(node):
        both = [grads.get(id(one)) for one in pair.nodes]
        if pair in called or all(grad is None for grad in both):
            continue
        called.add(pair)
        for one, grad in zip(pair.nodes, pair.of(both), strict=True):
            if one._wants_grad is not False:
                grads[id(one)] = grad
                found.append(one)
    if found:
        called.update(pairs_at(node))  # those that hooks registered meanwhile see gradients from the next time on
    return found


class After:
    """A hook that waits for ``grad`` of both parts of a complex tensor to be complete.

    Args:
      z: the tensor.
      function: is called with it.
    """

    __slots__ = ("_function", "_parts", "_whole")

    def __init__(self, z: Any, function: Callable[[Any], Any]) -> None:
        self._whole, self._parts, self._function = ref(z), z._parts, function

    def __call__(self, left: Container[int]) -> None:
        """Calls the function, unless the gradient of a part is among those that are left, by ids of tensors."""
        if not any(id(part) in left for part in self._parts):
            whole = self._whole()
            self._function(self._parts[0]._composed(*self._parts) if whole is None else whole)


def check_returned(other: Any, seen: Any) -> None:
    """Looks at what a hook returned in the place of a gradient.

    Raises:
      TypeError: if it is no tensor.
      ValueError: if it is a tensor of another shape, dtype or device.
    """
    if not isinstance(other, type(seen)):
        what = f"a tensor of {other.dtype.name}" if hasattr(other, "_floats") else f"a {type(other).__name__}"
        raise TypeError(f"a hook returned {what}; it returns a tensor of {seen.dtype.name}, or None")
    if (other.shape, other.dtype, other.device) != (seen.shape, seen.dtype, seen.device):
        raise ValueError(
            f"a hook returned a gradient of shape {other.shape}, {other.dtype.name} on {other.device} "
            f"for one of shape {seen.shape}, {seen.dtype.name} on {seen.device}"
        )
