"""What is in a tensor, each element once; every NaN is one of its own. They compute at once: sizes are data."""

from __future__ import annotations

from typing import NamedTuple

from ..tensor import Tensor
from .operands import tensor, whole


class UniqueAll(NamedTuple):
    """Elements, where each is first, which of them each element is, and how often it is there."""

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCounts(NamedTuple):
    """Elements, and how often each is there."""

    values: Tensor
    counts: Tensor


class UniqueInverse(NamedTuple):
    """Elements, and which of them each element is."""

    values: Tensor
    inverse_indices: Tensor


def unique_all(x: Tensor, /) -> UniqueAll:
    """The elements in order, each once, and what is known of them."""
    flat = tensor(x, "unique_all").flatten()
    order = flat.argsort(stable=True)
    ordered = flat.gather(0, order)
    first = ordered[:1].eq(ordered[:1]).logical_or(True).cat(ordered[1:].ne(ordered[:-1]))
    begins = whole(first.nonzero().flatten())
    group = first.cast("int64").cumsum(0) - 1
    inverse = Tensor.zeros(flat.shape, dtype="int64", device=x.device).scatter(0, order, group)
    ends = begins[1:].cat(Tensor.full((1,), flat.shape[0], dtype="int64", device=x.device)) if flat.shape[0] else begins
    return UniqueAll(ordered[begins], whole(order[begins]), inverse.reshape(x.shape), ends - begins)


def unique_counts(x: Tensor, /) -> UniqueCounts:
    """The elements in order, each once, and how often each is there."""
    found = unique_all(x)
    return UniqueCounts(found.values, found.counts)


def unique_inverse(x: Tensor, /) -> UniqueInverse:
    """The elements in order, each once, and which of them each element is."""
    found = unique_all(x)
    return UniqueInverse(found.values, found.inverse_indices)


def unique_values(x: Tensor, /) -> Tensor:
    """The elements in order, each once."""
    return unique_all(x).values


def isin(x1: Tensor, x2: Tensor, /, *, invert: bool = False) -> Tensor:
    """Which elements of ``x1`` are in ``x2``."""
    return tensor(x1, "isin").isin(x2, invert=invert)
