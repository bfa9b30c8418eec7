"""Random expressions against direct evaluation, over every assignment of their variables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from hypothesis import given, settings
from hypothesis import strategies as some

from tg_shape import Expr, Variable, bounds_of, coefficient, linear_terms, sint, smax, smin, symbolic_stride

Array = npt.NDArray[np.int64]
X, Y, Z, W = Variable("x", 0, 11), Variable("y", -5, 4), Variable("z", 0, 2), Variable("w", 3, 9)
ONLY = Variable("only", 2, 2)
VARIABLES = (X, Y, Z, W, ONLY)
GRID = dict(
    zip(VARIABLES, np.meshgrid(*[np.arange(v.vmin, v.vmax + 1) for v in VARIABLES], indexing="ij"), strict=True)
)
Evaluate = Callable[..., Array]


class Pair(NamedTuple):
    """What the constructors made, and the values that it must have."""

    e: sint
    want: Any

    def __repr__(self) -> str:
        return f"<{self.e!r}>"


constants = some.sampled_from([-12, -7, -4, -3, -2, -1, 1, 2, 3, 4, 6, 8, 12, 16, 24])
leaves = some.one_of(
    some.sampled_from([Pair(v, GRID[v]) for v in VARIABLES]), some.integers(-13, 13).map(lambda c: Pair(c, c))
)


def arithmetic(children: some.SearchStrategy[Pair]) -> some.SearchStrategy[Pair]:
    scaled = some.tuples(children, constants)
    return some.one_of(
        some.tuples(children, children).map(lambda p: Pair(p[0][0] + p[1][0], p[0][1] + p[1][1])),
        some.tuples(children, children).map(lambda p: Pair(p[0][0] - p[1][0], p[0][1] - p[1][1])),
        scaled.map(lambda p: Pair(p[0][0] * p[1], p[0][1] * p[1])),
        scaled.map(lambda p: Pair(p[0][0] // p[1], p[0][1] // p[1])),
        scaled.map(lambda p: Pair(p[0][0] // p[1], p[0][1] // p[1])),
        scaled.map(lambda p: Pair(p[0][0] % p[1], p[0][1] % p[1])),
        scaled.map(lambda p: Pair(p[0][0] % p[1], p[0][1] % p[1])),
        some.tuples(children, constants).map(  # the parts of one division, which recombine
            lambda p: Pair(p[0][0] // p[1] * p[1] + p[0][0] % p[1], p[0][1])
        ),
    )


digits = some.sampled_from([2, 3, 4, 6])


def numerals(children: some.SearchStrategy[Pair]) -> some.SearchStrategy[Pair]:
    """Two digits of a number put together, of the right number and of a wrong one, with a right and a wrong weight."""
    made = some.tuples(children, children, children, digits, digits, some.sampled_from([1, 1, 2]))

    def put(p: tuple[Pair, Pair, Pair, int, int, int]) -> Pair:
        (x, u), (y, v), (z, w), a, b, k = p
        return Pair((x // a * k + y) % b * a + z % a, (u // a * k + v) % b * a + w % a)

    return some.one_of(
        made.map(put),
        made.map(lambda p: put((p[0], Pair(0, 0), p[0], *p[3:]))),
        made.map(lambda p: put((p[0], p[1], p[0], *p[3:]))),
    )


def rich(children: some.SearchStrategy[Pair]) -> some.SearchStrategy[Pair]:
    pairs = some.tuples(children, children)
    return some.one_of(
        arithmetic(children),
        pairs.map(lambda p: Pair(p[0][0] * p[1][0], p[0][1] * p[1][1])),
        pairs.map(lambda p: Pair(smax(p[0][0], p[1][0]), np.maximum(p[0][1], p[1][1]))),
        pairs.map(lambda p: Pair(smin(p[0][0], p[1][0]), np.minimum(p[0][1], p[1][1]))),
        pairs.map(
            lambda p: Pair(
                p[0][0] + 0 * X if isinstance(p[0][0], int) else p[0][0].lt(p[1][0]),
                p[0][1] if isinstance(p[0][0], int) else (p[0][1] < p[1][1]) * 1,
            )
        ),
        # a divisor that is an expression, and at least 1
        pairs.map(lambda p: Pair((p[0][0] // (p[1][0] * p[1][0] + 1)), p[0][1] // (p[1][1] * p[1][1] + 1))),
        pairs.map(lambda p: Pair((p[0][0] % (p[1][0] * p[1][0] + 1)), p[0][1] % (p[1][1] * p[1][1] + 1))),
        some.tuples(children, some.sampled_from([Z + 1, W, W - 2, Z * 3 + 2])).map(
            lambda p: Pair(p[0][0] // p[1], p[0][1] // np.asarray(value(p[1])))
        ),
        some.tuples(children, some.sampled_from([Z + 1, W, W - 2, Z * 3 + 2])).map(
            lambda p: Pair(p[0][0] % p[1], p[0][1] % np.asarray(value(p[1])))
        ),
    )


def value(e: Expr) -> Array:
    """A sum of variables over the whole grid."""
    terms, const = linear_terms(e)
    return np.add.reduce([np.full_like(GRID[X], const), *(GRID[v] * c for v, c in terms)])  # type: ignore[index, no-any-return]


numbers = some.recursive(leaves, arithmetic, max_leaves=8)
rich_numbers = some.recursive(leaves, rich, max_leaves=8)


def condition(pair: tuple[str, Pair, Pair]) -> Pair:
    op, (a, x), (b, y) = pair
    if not isinstance(a, Expr):
        a, x = a + (X - 5), x + GRID[X] - 5
    made = {"lt": lambda: a.lt(b), "ge": lambda: a.ge(b), "eq": lambda: a.eq(b), "ne": lambda: a.ne(b)}[op]()  # type: ignore[union-attr]
    want = {"lt": np.less, "ge": np.greater_equal, "eq": np.equal, "ne": np.not_equal}[op](x, y)
    return Pair(made, want.astype(np.int64))


compared = some.tuples(
    some.sampled_from(["lt", "ge", "eq", "ne"]),
    numbers,
    some.one_of(numbers, some.integers(-13, 13).map(lambda c: Pair(c, c))),
)
conditions = some.recursive(
    compared.map(condition),
    lambda c: some.one_of(
        some.tuples(c, c).map(lambda p: Pair(both(p[0][0], p[1][0]), p[0][1] & p[1][1])),
        some.tuples(c, c).map(lambda p: Pair(either(p[0][0], p[1][0]), p[0][1] | p[1][1])),
        c.map(lambda p: Pair(~p[0] if isinstance(p[0], Expr) else 1 - p[0], 1 - p[1])),
    ),
    max_leaves=6,
)


def both(a: sint, b: sint) -> sint:
    return a & b


def either(a: sint, b: sint) -> sint:
    return a | b


def check(e: sint, want: Any, evaluate_all: Evaluate) -> None:
    got = evaluate_all(e, *VARIABLES)
    got, want = np.broadcast_arrays(got, want)
    np.testing.assert_array_equal(got, want, err_msg=f"{e}")
    lo, hi = bounds_of(e)
    assert lo <= np.min(want) and np.max(want) <= hi, (
        f"{e} has bounds {lo}..{hi} but values {np.min(want)}..{np.max(want)}"
    )


@settings(max_examples=600)
@given(pair=numbers)
def test_arithmetic_is_exact_and_bounded(pair: Pair, evaluate_all: Evaluate) -> None:
    check(*pair, evaluate_all)


@settings(max_examples=500)
@given(pair=rich_numbers)
def test_products_extrema_and_symbolic_divisors_are_exact_and_bounded(pair: Pair, evaluate_all: Evaluate) -> None:
    check(*pair, evaluate_all)


@settings(max_examples=200)
@given(pair=numerals(numbers))
def test_digits_recombine_only_where_they_belong_together(pair: Pair, evaluate_all: Evaluate) -> None:
    check(*pair, evaluate_all)


@settings(max_examples=500)
@given(pair=conditions)
def test_conditions_are_exact_and_bounded(pair: Pair, evaluate_all: Evaluate) -> None:
    check(*pair, evaluate_all)


@settings(max_examples=200)
@given(pair=some.one_of(rich_numbers, conditions))
def test_rebuilding_a_node_from_its_parts_gives_the_node(pair: Pair) -> None:
    e = pair[0]
    if isinstance(e, Expr):
        twins = {v: Variable(f"{v.name}'", v.vmin, v.vmax) for v in VARIABLES}
        there = e.substitute(twins)
        assert isinstance(there, Expr)
        assert there.substitute({t: v for v, t in twins.items()}) is e


@settings(max_examples=200)
@given(pair=some.one_of(rich_numbers, conditions), data=some.data())
def test_substitution_keeps_the_value(pair: Pair, data: Any, evaluate_all: Evaluate) -> None:
    e = pair[0]
    if not isinstance(e, Expr):
        return
    high, low = Variable("high", 0, 2), Variable("low", 0, 3)
    split = e.substitute({X: high * 4 + low})
    a, b = np.meshgrid(np.arange(3), np.arange(4), indexing="ij")
    rest = {v: data.draw(some.integers(v.vmin, v.vmax)) for v in VARIABLES[1:]}
    got = evaluate_all(split.substitute(rest) if isinstance(split, Expr) else split, high, low)
    want = [
        [e.evaluate({X: int(4 * i + j), **rest}) for i, j in zip(r, s, strict=True)] for r, s in zip(a, b, strict=True)
    ]
    np.testing.assert_array_equal(np.broadcast_to(got, (3, 4)), want)


@settings(max_examples=150)
@given(pair=some.one_of(rich_numbers, conditions), data=some.data())
def test_text_evaluates_to_the_value(pair: Pair, data: Any) -> None:
    e = pair[0]
    if isinstance(e, Expr):
        values = {v.name: data.draw(some.integers(v.vmin, v.vmax)) for v in VARIABLES}
        assert int(eval(e.render(), {"max": max, "min": min}, dict(values))) == e.evaluate(values)


@settings(max_examples=200)
@given(pair=numbers)
def test_linear_terms_sum_to_the_expression(pair: Pair) -> None:
    e = pair[0]
    terms, total = linear_terms(e)
    again: sint = total
    for atom, c in terms:
        again = again + atom * c
    assert again is e or bounds_of(again - e) == (0, 0)  # what has one value may have become that number


@settings(max_examples=200)
@given(pair=numbers, data=some.data())
def test_a_coefficient_is_a_slope(pair: Pair, data: Any) -> None:
    e, v = pair[0], data.draw(some.sampled_from(VARIABLES))
    slope, terms = coefficient(e, v), linear_terms(e)[0]
    if slope is None:
        assert any(atom is not v and v in atom.variables() for atom, _ in terms)
        return
    assert slope == dict(terms).get(v, 0)
    at = {u: data.draw(some.integers(u.vmin, u.vmax)) for u in VARIABLES}
    other = data.draw(some.integers(v.vmin, v.vmax))
    low, high = (e.evaluate({**at, v: x}) if isinstance(e, Expr) else e for x in (at[v], other))
    assert high - low == slope * (other - at[v])


@settings(max_examples=200)
@given(pair=numbers, data=some.data())
def test_a_stride_is_a_slope_of_what_else_varies(pair: Pair, data: Any) -> None:
    e, v = pair[0], data.draw(some.sampled_from(VARIABLES))
    slope = symbolic_stride(e, v)
    if slope is None:
        assert coefficient(e, v) is None
        return
    at = {u: data.draw(some.integers(u.vmin, u.vmax)) for u in VARIABLES}
    other = data.draw(some.integers(v.vmin, v.vmax))
    low, high = (e.evaluate({**at, v: x}) if isinstance(e, Expr) else e for x in (at[v], other))
    assert not isinstance(slope, Expr) or v not in slope.variables()
    assert high - low == (slope.evaluate(at) if isinstance(slope, Expr) else slope) * (other - at[v])


def nonnegative_numerators(e: sint) -> bool:
    return isinstance(e, int) or all(
        n.args[0].vmin >= 0 if isinstance(n.args[0], Expr) else n.args[0] >= 0
        for n in [e]
        if n.op in ("floordiv", "mod") and isinstance(n.args[1], int)
    )


@settings(max_examples=200)
@given(pair=numbers)
def test_numerators_of_constant_divisors_are_not_negative(pair: Pair) -> None:
    from tg_shape import topological

    if isinstance(pair[0], Expr):
        assert all(nonnegative_numerators(n) for n in topological(pair[0]))
