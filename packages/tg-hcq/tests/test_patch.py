"""The patch table against a walk in C's terms, and its refusals."""

from __future__ import annotations

import random
from array import array

import pytest

from tg_hcq import PatchTable
from tg_shape import Expr, Variable, sint

A, B = Variable("a", 0, 2**64 - 1), Variable("b", -100, 100)


def expr(value: sint) -> Expr:
    assert isinstance(value, Expr)
    return value


def walk(table: PatchTable, changed: list[int], spaces: list[array[int]]) -> None:
    """The loop of the module's docstring, with C's arithmetic: 64-bit values, truncation to 32 bits."""
    for i in changed:
        for r in range(table.sums[5 * i - 1] if i else 0, table.sums[5 * i + 4]):
            space, dword, shift, mask = table.rows[4 * r : 4 * r + 4]
            value = table.values[i]
            bits = (value >> shift if shift >= 0 else value << -shift) & 0xFFFFFFFF
            spaces[space][dword] = (spaces[space][dword] & ~mask & 0xFFFFFFFF) | (bits & mask)


def test_fields_of_every_width_and_place() -> None:
    rng = random.Random(1)
    table = PatchTable()
    fields: list[tuple[Expr, int, int, int, int, int]] = []
    free = {(space, dword): 0 for space in range(3) for dword in range(50)}
    for _ in range(200):
        space, dword = rng.choice(list(free))
        low = free[space, dword]
        width = rng.randint(1, 32)
        if low + width > 32:
            continue
        free[space, dword] = low + width
        field = (expr(rng.choice([A, B, A // 3, B * 5 + 1])), space, dword, width, low, rng.randrange(64))
        table.add(field[0], space, dword, width=width, low=low, shift=field[5], part=True)
        fields.append(field)
    table.seal()
    start = [array("I", [rng.getrandbits(32) for _ in range(50)]) for _ in range(3)]
    mine, theirs = [array("I", s) for s in start], [array("I", s) for s in start]
    for _ in range(20):
        env = {A: rng.getrandbits(64), B: rng.randint(-100, 100)}
        changed = table.resolve(env)
        table.apply(changed, mine)
        walk(table, changed, theirs)
        assert mine == theirs
        for field_value, space, dword, width, low, shift in fields:
            value = (field_value.evaluate(env) & 2**64 - 1) >> shift
            assert mine[space][dword] >> low & ((1 << width) - 1) == value & ((1 << width) - 1)
    for (space, dword), used in free.items():
        assert mine[space][dword] >> used == start[space][dword] >> used  # bits that nobody asked for stay


def test_only_what_changed_is_written() -> None:
    table = PatchTable()
    table.add_bytes(A, 0, 0, 8)
    table.add_bytes(B, 0, 8, 4)
    table.add_bytes(expr(A // 2**41 + 8), 0, 12, 2)
    table.seal()
    words = array("I", bytes(16))
    assert table.resolve({A: 1 << 40, B: -1}) == [0, 1, 2]
    table.apply([0, 1, 2], [words])
    assert words.tolist() == [0, 256, 0xFFFFFFFF, 8]
    assert table.resolve({A: 1 << 40, B: 5}) == [1]
    words[0] = 77  # nobody writes it again
    table.apply([1], [words])
    assert words.tolist() == [77, 256, 5, 8]
    assert table.resolve({A: 1 << 40, B: 5}) == []


def test_a_value_is_computed_once() -> None:
    table = PatchTable()
    for dword in range(10):
        table.add(expr(A + 1), 0, dword)
    assert len(table) == 1


def test_a_failed_resolve_changes_nothing() -> None:
    table = PatchTable()
    table.add(A, 0, 0)
    table.add(B, 0, 1)
    table.seal()
    table.resolve({A: 1, B: 1})
    before = table.values.tolist()
    with pytest.raises(ValueError, match="no value for variable b"):
        table.resolve({A: 2})
    with pytest.raises(ValueError, match=r"b is 101, outside of -100 to 100"):
        table.resolve({A: 2, B: 101})
    with pytest.raises(ValueError, match=r"a is 4294967296, which does not fit in 0 to 4294967295"):
        table.resolve({A: 2**32, B: 1})
    assert table.values.tolist() == before
    assert table.resolve({A: 2, B: 1}) == [0]


def test_an_expression_without_its_variable() -> None:
    table = PatchTable()
    table.add(expr(A + B), 0, 0)
    table.seal()
    with pytest.raises((ValueError, KeyError), match="b"):
        table.resolve({A: 2})


@pytest.mark.parametrize(("width", "low", "shift"), [(0, 0, 0), (33, 0, 0), (16, 17, 0), (8, -1, 0), (8, 0, 64)])
def test_fields_that_do_not_exist(width: int, low: int, shift: int) -> None:
    with pytest.raises(ValueError, match="no field"):
        PatchTable().add(A, 0, 0, width=width, low=low, shift=shift)


def test_a_sealed_table_is_closed() -> None:
    table = PatchTable()
    table.seal()
    table.seal()
    assert table.resolve({}) == []
    with pytest.raises(ValueError, match="sealed"):
        table.add(A, 0, 0)
