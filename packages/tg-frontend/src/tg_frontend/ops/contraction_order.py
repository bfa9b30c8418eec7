"""In which order several operands of a sum of products are multiplied.

All of them at once would take a product for each combination of all axes. Two at a time, an axis is summed as soon as
nobody else names it. Source: Pfeifer, Haegeman and Verstraete, "Faster identification of optimal contraction sequences
for tensor networks", 2014. But what two give is written and read again: where that saves little, as in an outer product
that sums nothing, they are multiplied at once with what comes next.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import combinations
from math import prod

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

EXACT = 6
"""Operands up to which all orders are compared, 3**n of them in all; of more the cheapest pair goes first."""

LEAST = 2
"""How many times the combinations of axes must become fewer for a step of its own. Chosen, not measured."""

Steps = tuple[tuple[int, ...], ...]


@lru_cache(maxsize=256)
def contraction_order(terms: tuple[frozenset[str], ...], output: frozenset[str], sizes: tuple[int, ...]) -> Steps:
    """Which operands to multiply, one step after another.

    Args:
      terms: the axes of each operand.
      output: those of the result.
      sizes: of the axes, in the order of the alphabet.

    Returns:
      For each step the places of two operands or more, which are taken out of the list; what they give goes to its
      end.

    Example:
      >>> a, b, c = map(frozenset, ("ij", "jk", "kl"))
      >>> contraction_order((a, b, c), frozenset("il"), (100, 100, 100, 1))
      ((1, 2), (0, 1))
      >>> contraction_order((a, b, c), frozenset("ijkl"), (100, 100, 100, 1))
      ((0, 1, 2),)
    """
    length = dict(zip(sorted(frozenset().union(*terms)), sizes, strict=True))
    find = _cheapest if len(terms) <= EXACT else _one_by_one
    return _places(_joined(find(terms, output, length), terms, output, length), len(terms))


def _joined(
    pairs: list[tuple[int, int]], terms: tuple[frozenset[str], ...], output: frozenset[str], length: dict[str, int]
) -> list[tuple[int, ...]]:
    """Steps of pairs, or more where a product saves too little to be written."""
    axes = {1 << n: term for n, term in enumerate(terms)}
    steps: dict[int, tuple[int, tuple[int, ...]]] = {}  # combinations of axes two at a time, and factors
    for pair in pairs:
        some = pair[0] | pair[1]
        rest = [term for n, term in enumerate(terms) if not some >> n & 1]
        axes[some] = left_over(axes[pair[0]] | axes[pair[1]], rest, output)
        cost = _cost(axes[pair[0]] | axes[pair[1]], length)
        factors: tuple[int, ...] = pair
        for part in pair:
            if part in steps:
                before, inside = steps[part]
                more = tuple(sorted((*(factor for factor in factors if factor != part), *inside)))
                if _cost(frozenset[str]().union(*(axes[factor] for factor in more)), length) < LEAST * (cost + before):
                    cost, factors = cost + before, more
                    del steps[part]
        steps[some] = cost, factors
    return [factors for _, factors in steps.values()]


def left_over(done: frozenset[str], rest: list[frozenset[str]], output: frozenset[str]) -> frozenset[str]:
    """The axes of a product that the result or another operand still names."""
    return done & output.union(*rest)


def _cost(axes: frozenset[str], length: dict[str, int]) -> int:
    return prod(length[letter] for letter in axes)


def _cheapest(
    terms: tuple[frozenset[str], ...], output: frozenset[str], length: dict[str, int]
) -> list[tuple[int, int]]:
    """Pairs of sets of operands, as bits, of the order that takes the fewest products."""
    everything = (1 << len(terms)) - 1
    axes: dict[int, frozenset[str]] = {}
    for some in range(1, everything + 1):
        inside = frozenset[str]().union(*(term for n, term in enumerate(terms) if some >> n & 1))
        axes[some] = left_over(inside, [term for n, term in enumerate(terms) if not some >> n & 1], output)
    best: dict[int, tuple[int, list[tuple[int, int]]]] = {1 << n: (0, []) for n in range(len(terms))}
    for some in sorted(axes, key=int.bit_count):
        if some in best:
            continue
        found: tuple[int, list[tuple[int, int]]] | None = None
        one = some & (some - 1)  # a half without the first operand, so that none is tried twice
        while one:
            other = some ^ one
            cost = best[one][0] + best[other][0] + _cost(axes[one] | axes[other], length)
            if found is None or cost < found[0]:
                found = cost, [*best[other][1], *best[one][1], (other, one)]
            one = (one - 1) & some & (some - 1)
        assert found is not None
        best[some] = found
    return best[everything][1]


def _one_by_one(
    terms: tuple[frozenset[str], ...], output: frozenset[str], length: dict[str, int]
) -> list[tuple[int, int]]:
    """The same, of the order that takes at each step what adds least to memory, and then the fewest products."""
    left = {1 << n: term for n, term in enumerate(terms)}
    found: list[tuple[int, int]] = []
    while len(left) > 1:
        def weight(pair: tuple[int, int]) -> tuple[int, int]:
            one, other = pair
            both = left[one] | left[other]
            rest = [term for some, term in left.items() if some not in pair]
            grows = _cost(left_over(both, rest, output), length)
            return grows - _cost(left[one], length) - _cost(left[other], length), _cost(both, length)

        one, other = min(combinations(left, 2), key=weight)
        found.append((one, other))
        both = left.pop(one) | left.pop(other)
        left[one | other] = left_over(both, list(left.values()), output)
    return found


def _places(steps: Sequence[tuple[int, ...]], count: int) -> Steps:
    """Sets of operands as places in the list that shrinks."""
    listed = [1 << n for n in range(count)]
    found: list[tuple[int, ...]] = []
    for step in steps:
        found.append(tuple(listed.index(one) for one in step))
        listed = [some for some in listed if some not in step] + [sum(step)]
    return tuple(found)
