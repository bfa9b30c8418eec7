"""What methods return that find elements, by the names of PyTorch's."""

from __future__ import annotations

from typing import Generic, NamedTuple

from ..array.array import A


class Found(NamedTuple, Generic[A]):
    """Elements, and where they are along an axis."""

    values: A
    indices: A


class Extremes(NamedTuple, Generic[A]):
    """The least and the greatest element."""

    min: A
    max: A
