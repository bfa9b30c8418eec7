"""The order of a graph in which operands come before what uses them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TypeVar

T = TypeVar("T", bound=Hashable)


def toposort(roots: Iterable[T], operands: Callable[[T], Sequence[T]]) -> list[T]:
    """What is reached from ``roots``, each node once, after its operands; earlier operands come first.

    Iterative, so that depth does not matter.

    Args:
      roots: where to begin.
      operands: the nodes to visit before a node. A walk that ends at some nodes gives none for them.

    Example:
      >>> toposort([12], lambda n: [d for d in (2, 3, 4) if n % d == 0 and n != d])
      [2, 3, 4, 12]
    """
    order: dict[T, None] = {}
    stack: list[T | None] = [*roots]
    stack.reverse()
    while stack:
        node = stack.pop()
        if node is None:  # the operands of the node below are in
            node = stack.pop()
            assert node is not None
            order[node] = None
        elif node not in order:
            before = operands(node)
            if before:
                stack += (node, None)
                stack += before[::-1]
            else:
                order[node] = None
    return list(order)
