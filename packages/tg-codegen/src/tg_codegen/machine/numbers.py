"""Numbers of a machine model, each a field that states its unit and where it comes from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import MISSING, Field, field, fields
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T")


class Quantity(NamedTuple):
    """A field of a model, for people.

    Attributes:
      name: the field's.
      value: its default.
      unit: of the value.
      meaning: what it is.
      source: a manual, a paper, or a probe of :mod:`bench.hardware`.
    """

    name: str
    value: float
    unit: str
    meaning: str
    source: str


def number(value: T, unit: str, meaning: str, source: str) -> T:
    """A field of a dataclass with a default, its unit, what it means and its source."""
    found: Any = field(default=value, metadata={"unit": unit, "meaning": meaning, "source": source})
    made: T = found
    return made


def numbers(model: type[Any]) -> Iterator[Quantity]:
    """The numbers of a model, in the order in which they stand there.

    Raises:
      ValueError: if a field has no unit, no source or no default.
    """
    found: tuple[Field[Any], ...] = fields(model)
    for each in found:
        if each.default is MISSING or not {"unit", "meaning", "source"} <= each.metadata.keys():
            raise ValueError(f"{model.__name__}.{each.name} has no default, unit or source: declare it by number(…)")
        yield Quantity(each.name, each.default, **each.metadata)
