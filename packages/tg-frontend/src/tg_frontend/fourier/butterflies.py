"""Transforms of a few numbers, as expressions: what one pass does to the numbers that it combines."""

from __future__ import annotations

import math

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    Pair = tuple[Any, Any]

RADICES = (4, 2, 3, 5, 7, 11, 13)
"""Of these sizes are passes, in the order in which factors are taken out of a length."""


def butterfly(x: Sequence[Pair]) -> list[Pair]:
    """The transform of tensors, element by element: each a real and an imaginary part."""
    r = len(x)
    if r == 1:
        return list(x)
    if r == 2:
        (a, b), (c, d) = x
        return [(a + c, b + d), (a - c, b - d)]
    return _even(x) if r % 2 == 0 else _odd(x)


def _even(x: Sequence[Pair]) -> list[Pair]:
    """From the transforms of the even and of the odd numbers: Cooley and Tukey, 1965."""
    r = len(x)
    evens, odds = butterfly(x[0::2]), butterfly(x[1::2])
    turned = [_turned(odds[k], k, r) for k in range(r // 2)]
    first = [(a + c, b + d) for (a, b), (c, d) in zip(evens, turned, strict=True)]
    return first + [(a - c, b - d) for (a, b), (c, d) in zip(evens, turned, strict=True)]


def _turned(x: Pair, k: int, n: int) -> Pair:
    """A number times root number k of n."""
    a, b = x
    if k == 0:
        return x
    if 4 * k == n:
        return b, -a
    if 8 * k == n:
        half = math.sqrt(0.5)
        return (a + b) * half, (b - a) * half
    if 8 * k == 3 * n:
        half = math.sqrt(0.5)
        return (b - a) * half, (a + b) * -half
    cos, sin = math.cos(2 * math.pi * k / n), -math.sin(2 * math.pi * k / n)
    return a * cos - b * sin, a * sin + b * cos


def _odd(x: Sequence[Pair]) -> list[Pair]:
    """By sums and differences of numbers k and r - k, which have conjugate roots."""
    r = len(x)
    half = range(1, (r + 1) // 2)
    sums = {k: (x[k][0] + x[r - k][0], x[k][1] + x[r - k][1]) for k in half}
    gaps = {k: (x[k][0] - x[r - k][0], x[k][1] - x[r - k][1]) for k in half}
    a, b = x[0]
    out: list[Any] = [None] * r
    out[0] = (_total([a, *(sums[k][0] for k in half)]), _total([b, *(sums[k][1] for k in half)]))
    for j in half:
        turns = {k: 2 * math.pi * (j * k % r) / r for k in half}
        even = [_total([x[0][n], *(sums[k][n] * math.cos(turns[k]) for k in half)]) for n in (0, 1)]
        odd = [_total([gaps[k][n] * math.sin(turns[k]) for k in half]) for n in (0, 1)]
        # the roots are cos - i sin, and -i (u + i v) = v - i u
        out[j] = (even[0] + odd[1], even[1] - odd[0])
        out[r - j] = (even[0] - odd[1], even[1] + odd[0])
    return out


def _total(terms: list[Any]) -> Any:
    out = terms[0]
    for term in terms[1:]:
        out = out + term
    return out
