"""Neighbours merged, the best first, until no two of them may be: the common heart of both kinds of tokenizers."""

from __future__ import annotations

import heapq
from collections.abc import Callable


def merged(pieces: list[str], order: Callable[[str, str], float | None]) -> list[str]:
    """Pieces after all merges.

    It takes time in n log n, so that a word of a million letters is no attack.

    Args:
      pieces: of a word, in order.
      order: the place of a merge of two neighbours among all merges, the least first; None where there is none.
        Of equals the first in the text is merged first.

    Example:
      >>> ranks = {"ab": 0, "abc": 1}
      >>> merged(list("abcab"), lambda left, right: ranks.get(left + right))
      ['abc', 'ab']
    """
    alive: list[str | None] = list(pieces)
    count = len(pieces)
    after, before = list(range(1, count + 1)), list(range(-1, count - 1))
    heap: list[tuple[float, int, int, str, str]] = []

    def propose(left: int, right: int) -> None:
        first, second = alive[left], alive[right]
        assert first is not None and second is not None
        rank = order(first, second)
        if rank is not None:
            heapq.heappush(heap, (rank, left, right, first, second))

    for place in range(count - 1):
        propose(place, place + 1)
    while heap:
        _, left, right, first, second = heapq.heappop(heap)
        if alive[left] != first or alive[right] != second or after[left] != right:
            continue  # one of them was merged with another since
        alive[left], alive[right] = first + second, None
        after[left] = after[right]
        if after[right] < count:
            before[after[right]] = left
            propose(left, after[right])
        if before[left] >= 0:
            propose(before[left], left)
    return [piece for piece in alive if piece is not None]
