"""An order of nodes in which operands come first, for walks that do not follow every operand."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

T = TypeVar("T", bound=Hashable)


def operands_first(roots: Iterable[T], operands: Callable[[T], Iterable[T]]) -> list[T]:
    """What is reached from ``roots``, each node after the operands that the walk follows.

    >>> operands_first([6], lambda n: [d for d in (2, 3) if n % d == 0 and n != d])
    [2, 3, 6]
    """
    order: dict[T, None] = {}
    stack = [(root, False) for root in reversed(list(roots))]
    while stack:
        node, done = stack.pop()
        if done:
            order[node] = None
        elif node not in order:
            stack.append((node, True))
            stack.extend((child, False) for child in reversed(list(operands(node))) if child not in order)
    return list(order)
