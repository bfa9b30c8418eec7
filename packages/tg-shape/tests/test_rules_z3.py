"""The rules proved with an SMT solver: the equations for all integers, and that expressions keep their meaning."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import pytest

from tg_shape import Expr, Variable, bounds_of, sint, smax, smin, topological

z3 = pytest.importorskip("z3", reason="needs z3-solver")

Term = Any  # z3 has no type information
DIVISORS = (2, 3, 4, 6, 8, 12)


def proved(claim: Term, *given: Term, about: str = "") -> bool:
    """Whether ``claim`` is proved to follow from ``given`` for all integers; False if the solver gives up.

    Raises:
        AssertionError: if there is a counterexample.
    """
    solver = z3.Solver()
    solver.set("rlimit", 2_000_000)  # a measure of work: the same on every machine
    solver.add(*given, z3.Not(claim))
    found = solver.check()
    assert found != z3.sat, f"{about} is wrong at {solver.model()}"
    return bool(found == z3.unsat)


def floordiv(a: Term, b: int) -> Term:
    """Python's ``//``; for a positive divisor z3's integer division floors too."""
    return a / b if b > 0 else (-a) / (-b)


def mod(a: Term, b: int) -> Term:
    return a % b if b > 0 else -((-a) % (-b))


# -- the equations of the rule tables ----------------------------------------------------------------------------------
X, Y, R, K, Q = z3.Ints("x y r k q")


def equations() -> Iterator[tuple[str, Term, list[Term]]]:
    """Every equation in the tables of `tg_shape.rules`, with its side conditions."""
    for c in DIVISORS:
        yield f"the defining law, {c}", z3.And(X == c * (X / c) + X % c, 0 <= X % c, X % c < c), []
        for a in (-3, -1, 2, 5):
            yield f"whole multiples //, {c} {a}", (c * a * X + Y) / c == a * X + Y / c, []
            yield f"whole multiples %, {c} {a}", (c * a * X + Y) % c == Y % c, []
        for q in (-2, 0, 3):
            inside = [q * c <= Y, q * c + c > Y]
            yield f"one period //, {c} {q}", Y / c == q, inside
            yield f"one period %, {c} {q}", Y % c == Y - q * c, inside
            yield f"numerator from 0, {c} {q}", Y / c == q + (Y - q * c) / c, []
        yield f"negative divisor, {c}", z3.And(X == -c * floordiv(X, -c) + mod(X, -c), mod(X, -c) <= 0), []
        yield f"negative divisor bound, {c}", -mod(X, -c) < c, []
    for g, d in product(DIVISORS, DIVISORS):
        small = [R >= 0, g > R]
        yield f"partial multiples //, {g} {d}", (g * X + R) / (g * d) == X / d, small
        yield f"partial multiples %, {g} {d}", (g * X + R) % (g * d) == g * (X % d) + R, small
        yield f"nested quotient, {g} {d}", (X / g + Y) / d == (X + g * Y) / (g * d), []
        yield f"remainder in quotient, {g} {d}", (X % (g * d)) / g == (X / g) % d, []
        yield f"remainder in remainder, {g} {d}", (d * (X % g) + Y) % d == (d * X + Y) % d, []
        yield f"remainder in remainder, {g} of {g * d}", (X % (g * d) + Y) % g == (X + Y) % g, []
        joined = g * ((X / g + Y) % d) + X % g == (X + g * Y) % (g * d)
        yield f"joined remainders, {g} {d}", joined, []
    for g in DIVISORS:
        for c in (-7, -1, 0, 5, 12):
            yield f"g*x < c, {g} {c}", (g * X < c) == (-(-c // g) > X), []
            yield f"x//a + y < c, {g} {c}", (X / g + Y < c) == (X + g * Y < g * c), []
            yield f"-(x//a) + y < c, {g} {c}", (-(X / g) + Y < c) == (-X + g * Y < g * c - g + 1), []
            for lo, hi in ((0, 1), (-3, 0), (-1, 1), (2, 4), (0, 6)):
                small = [lo <= R, hi >= R]
                if (q := (c - 1 - hi) // g) == (c - 1 - lo) // g:
                    yield f"small terms, {g} {c} {lo} {hi}", (g * X + R < c) == (q + 1 > X), small
                if hi - lo < g:
                    s = lo + (c - lo) % g
                    both = z3.And((c - s) // g == X, s == R)
                    yield f"digits, {g} {c} {lo} {hi}", (g * X + R == c) == (both if s <= hi else False), small


@pytest.mark.parametrize("family", ["law", "multiples", "period", "numerator", "negative", "quotient", "remainder",
                                    "joined", "g*x", "x//a", "small", "digits"])  # fmt: skip
def test_the_equations_of_the_rules_hold_for_all_integers(family: str) -> None:
    chosen = [(name, claim, given) for name, claim, given in equations() if family in name]
    assert chosen
    for name, claim, given in chosen:
        assert proved(claim, *given, about=name), name


def test_a_false_equation_is_not_proved() -> None:
    with pytest.raises(AssertionError):
        proved((X + Y) / 4 == X / 4 + Y / 4)


# -- what the constructors make ----------------------------------------------------------------------------------------
class Known:
    """An expression beside the term that it must equal, built without any simplification."""

    def __init__(self, e: sint, term: Term) -> None:
        self.e, self.term = e, term

    def __repr__(self) -> str:
        return f"{self.term} made {self.e}"


BOUNDS = {"a": (0, 63), "b": (-9, 30), "c": (0, 3), "d": (5, 100_000), "e": (-1_000_000, 1_000_000)}
LEAVES = [Known(Variable(n, lo, hi), z3.Int(n)) for n, (lo, hi) in BOUNDS.items()]
DOMAIN = [z3.And(z3.Int(n) >= lo, z3.Int(n) <= hi) for n, (lo, hi) in BOUNDS.items()]


def bit(claim: Term) -> Term:
    return z3.If(claim, 1, 0)


OPERATIONS: dict[str, Callable[[list[Term]], Term]] = {
    "add": lambda a: z3.Sum(a),
    "mul": lambda a: z3.Product(a),
    "lt": lambda a: bit(a[0] < a[1]),
    "eq": lambda a: bit(a[0] == a[1]),
    "ne": lambda a: bit(a[0] != a[1]),
    "and": lambda a: bit(z3.And([x == 1 for x in a])),
    "or": lambda a: bit(z3.Or([x == 1 for x in a])),
}


def as_term(e: sint) -> Term:
    """A constructed expression as a z3 term."""
    if isinstance(e, int):
        return z3.IntVal(e)
    done: dict[Expr, Term] = {}
    for node in topological(e):
        a = [z3.IntVal(x) if isinstance(x, int) else done[x] for x in node.args]
        if isinstance(node, Variable):
            done[node] = z3.Int(node.name)
        elif node.op == "floordiv":
            done[node] = a[0] / a[1]  # a normal form's divisor is positive
        elif node.op == "mod":
            done[node] = a[0] % a[1]
        elif node.op in ("max", "min"):
            out = a[0]
            for x in a[1:]:
                out = z3.If(out > x, out, x) if node.op == "max" else z3.If(out < x, out, x)
            done[node] = out
        else:
            done[node] = OPERATIONS[node.op](a)
    return done[e]


def linear(draw: random.Random, parts: list[Known]) -> Known:
    """A small integer combination."""
    chosen = draw.sample(parts, draw.randint(1, 3))
    e: sint = draw.choice([0, 0, 1, -1, 7, -16, 33])
    term = z3.IntVal(e)
    for part in chosen:
        k = draw.choice([1, 1, 1, -1, 2, 3, 4, -4, 6, 8, 16, 64])
        e, term = e + part.e * k, term + part.term * k
    return Known(e, term)


def divided(draw: random.Random, x: Known) -> Known:
    k = draw.choice([2, 3, 4, 4, 6, 8, 16, 64, -4, -3])
    kind = draw.randrange(3)
    if kind == 0:
        return Known(x.e // k, floordiv(x.term, k))
    if kind == 1:
        return Known(x.e % k, mod(x.term, k))
    return Known(x.e // k * k + x.e % k * 1, floordiv(x.term, k) * k + mod(x.term, k))


def compared(draw: random.Random, x: Known, y: Known) -> Known:
    e = x.e if isinstance(x.e, Expr) else x.e + Variable("a", 0, 63)
    term = x.term if isinstance(x.e, Expr) else x.term + z3.Int("a")
    made, claim = draw.choice(
        [
            (e.lt(y.e), term < y.term),  # type: ignore[union-attr]
            (e.ge(y.e), term >= y.term),  # type: ignore[union-attr]
            (e.eq(y.e), term == y.term),  # type: ignore[union-attr]
            (e.ne(y.e), term != y.term),  # type: ignore[union-attr]
        ]
    )
    return Known(made, z3.If(claim, 1, 0))


def expressions(seed: int, make: Callable[[random.Random], Known]) -> Iterator[Known]:
    draw = random.Random(seed)
    for _ in range(25):
        yield make(draw)


def arithmetic(draw: random.Random) -> Known:
    parts = list(LEAVES)
    for _ in range(draw.randint(1, 2)):
        parts.append(divided(draw, linear(draw, parts[-3:] + draw.sample(LEAVES, 2))))
    return linear(draw, [parts[-1], *draw.sample(LEAVES, 2)])


def conditions(draw: random.Random) -> Known:
    one = compared(draw, divided(draw, linear(draw, LEAVES)), linear(draw, LEAVES[:3]))
    two = compared(draw, linear(draw, LEAVES), Known(0, z3.IntVal(0)))
    kind = draw.randrange(4)
    if kind == 0:
        return Known(one.e & two.e, z3.If(z3.And(one.term == 1, two.term == 1), 1, 0))
    if kind == 1:
        return Known(one.e | two.e, z3.If(z3.Or(one.term == 1, two.term == 1), 1, 0))
    if kind == 2:
        return Known(~one.e if isinstance(one.e, Expr) else 1 - one.e, 1 - one.term)
    return one


def extrema(draw: random.Random) -> Known:
    x, y = divided(draw, linear(draw, LEAVES)), linear(draw, LEAVES)
    if draw.random() < 0.5:
        return Known(smax(x.e, y.e), z3.If(x.term > y.term, x.term, y.term))
    return Known(smin(x.e, y.e), z3.If(x.term < y.term, x.term, y.term))


@pytest.mark.parametrize("make", [arithmetic, conditions, extrema])
@pytest.mark.parametrize("seed", range(4))
def test_a_constructed_expression_is_the_one_asked_for(make: Callable[[random.Random], Known], seed: int) -> None:
    given_up = 0
    for known in expressions(seed, make):
        lo, hi = bounds_of(known.e)
        term = as_term(known.e)
        claim = z3.And(term == known.term, lo <= term, term <= hi)
        given_up += not proved(claim, *DOMAIN, about=repr(known))
    assert given_up <= 2
