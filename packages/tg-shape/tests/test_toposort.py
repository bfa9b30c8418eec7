"""An order in which operands come first."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as some

from tg_shape import toposort

GRAPHS = some.integers(1, 12).flatmap(
    lambda n: some.tuples(*(some.lists(some.integers(0, i - 1), max_size=3) if i else some.just([]) for i in range(n)))
)
"""The operands of each node, by number; they have lower numbers."""


def by_recursion(graph: tuple[list[int], ...], roots: list[int]) -> list[int]:
    order: list[int] = []

    def visit(node: int) -> None:
        for operand in graph[node]:
            visit(operand)
        if node not in order:
            order.append(node)

    for root in roots:
        visit(root)
    return order


@given(graph=GRAPHS, data=some.data())
def test_as_recursion_orders_it(graph: tuple[list[int], ...], data: some.DataObject) -> None:
    roots = data.draw(some.lists(some.integers(0, len(graph) - 1), max_size=3))
    assert toposort(roots, graph.__getitem__) == by_recursion(graph, roots)


def test_depth_does_not_matter() -> None:
    assert toposort([100_000], lambda n: [n - 1] if n else []) == list(range(100_001))


def test_a_walk_may_end_early() -> None:
    asked: list[int] = []

    def operands(n: int) -> list[int]:
        asked.append(n)
        return [] if n < 5 else [n - 1, n - 1]

    assert toposort([7], operands) == [4, 5, 6, 7]
    assert asked == [7, 6, 5, 4]  # each node once
