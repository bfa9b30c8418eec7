"""Enumerations whose members are plain attributes are Enums in everything that programs do with these."""

from __future__ import annotations

import copy
import enum
import pickle

import pytest

from tg_dtype import fast_members


@fast_members
class Colour(enum.Enum):
    """Members for the tests."""

    RED = 1
    GREEN = 2


def test_members_are_plain_attributes() -> None:
    assert not hasattr(type(Colour), "__getattr__"), "each lookup of a member would make and call a method"
    assert type(Colour).__getattribute__ is type.__getattribute__
    assert vars(Colour)["RED"] is Colour.RED and type(Colour.RED).__hash__ is object.__hash__


def test_the_class_lists_and_finds_its_members() -> None:
    assert [*Colour] == [Colour.RED, Colour.GREEN] == [*reversed(Colour)][::-1] and len(Colour) == 2
    assert Colour(2) is Colour["GREEN"] is Colour.GREEN and dict(Colour.__members__) == {c.name: c for c in Colour}
    assert Colour.RED in Colour and bool(Colour) and repr(Colour) == "<enum 'Colour'>" and "RED" in dir(Colour)
    with pytest.raises(KeyError):
        Colour["BLUE"]
    with pytest.raises(ValueError, match="3 is not a valid Colour"):
        Colour(3)
    with pytest.raises(AttributeError, match="BLUE"):
        _ = Colour.BLUE  # type: ignore[attr-defined]


def test_members_are_members_of_an_enum() -> None:
    red = Colour.RED
    assert isinstance(red, enum.Enum) and isinstance(red, Colour) and issubclass(Colour, enum.Enum)
    assert (red.name, red.value, repr(red), str(red)) == ("RED", 1, "<Colour.RED: 1>", "Colour.RED")
    assert {red: 3}[Colour(1)] == 3 and red != Colour.GREEN


def test_members_stay() -> None:
    with pytest.raises(TypeError, match="cannot"):

        class More(Colour):  # type: ignore[misc]
            BLUE = 3

    with pytest.raises(AttributeError, match="cannot"):
        Colour.RED = 3  # type: ignore[misc]
    with pytest.raises(AttributeError, match="cannot"):
        del Colour.RED
    assert [*Colour] == [Colour.RED, Colour.GREEN]


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_members_are_one_object(protocol: int) -> None:
    for colour in Colour:
        assert pickle.loads(pickle.dumps(colour, protocol)) is colour
        assert copy.copy(colour) is copy.deepcopy(colour) is colour
