from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tg_shape import Expr, Variable, dumps, loads, sint, smax, smin

n, m = Variable("n", 1, 10), Variable("m", 0, 63)


@pytest.mark.parametrize(
    "e",
    [
        0, -7, n, n.bind(3), n * 4 + 1, n.bind(3) * m, (n * 3 + m) // 5, (n + m) % 7, n.lt(4), n.eq(9), n.ne(2),
        smax(n, m, 3), smin(n * 2, m), n.lt(4) & m.lt(5), n.lt(2) | m.lt(9), (n + 1) * (m + 2) // 3 + n % 4,
    ],
)  # fmt: skip
def test_there_and_back(e: sint) -> None:
    assert loads(dumps(e)) is e or loads(dumps(e)) == e
    assert "\n" not in dumps(e) and "\t" not in dumps(e)


@given(st.lists(st.tuples(st.sampled_from("+*/%-"), st.integers(1, 9), st.booleans()), max_size=8))
def test_random_expressions(steps: list[tuple[str, int, bool]]) -> None:
    e: sint = n
    for op, number, other in steps:
        operand: sint = m + number if other else number
        if op == "+":
            e = e + operand
        elif op == "-":
            e = e - operand
        elif op == "*":
            e = e * operand
        elif op == "/":
            e = e // operand
        else:
            e = e % operand
    back = loads(dumps(e))
    assert back is e if isinstance(e, Expr) else back == e


def test_bounds_are_told_apart() -> None:
    assert loads(dumps(Variable("n", 1, 20))) is not n


@pytest.mark.parametrize("e", [Variable("i", 0, n), Variable("a b", 0, 3)])
def test_what_has_no_text(e: Variable) -> None:
    with pytest.raises(ValueError, match="has no text"):
        dumps(e)


@pytest.mark.parametrize("text", ["", "x", "var n 1", "var n 5 1", "add #0 1", "var n 1 2;foo #0", "bind 1 2",
                                  "var n 1 2;bind #0 #0", "add"])  # fmt: skip
def test_what_is_no_text(text: str) -> None:
    with pytest.raises(ValueError, match="no text of a symbolic integer"):
        loads(text)
