"""The exact forms that index expressions must take."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from tg_shape import Expr, Variable, bounds_of, ceildiv, is_nonnegative, resolve, sint, smax, smin, sym_eval

P, J, K = Variable("i", 0, 9), Variable("j", 0, 3), Variable("k", 0, 3)
X, Y = Variable("x", -20, 100), Variable("y", 0, 1000)
A = Variable("a", 0, 1)
N, M = Variable("n", 1, 64), Variable("m", 1, 64)


def eq(a: sint, b: sint) -> sint:
    assert isinstance(a, Expr)
    return a.eq(b)


def ne(a: sint, b: sint) -> sint:
    assert isinstance(a, Expr)
    return a.ne(b)


def text(e: object) -> str:
    return e.render() if isinstance(e, Expr) else str(e)


@pytest.mark.parametrize(("e", "want"), [
    # flat sums in a fixed order, the constant last
    (K + J * 4 + P * 16 + 5 - K, "i*16 + j*4 + 5"),
    ((P + 1) * (J + 2), "i*2 + j + i*j + 2"),
    (P - P, "0"),
    (-(P - J), "-i + j"),
    (3 - P, "-i + 3"),
    (P * 0, "0"),
    (A * A, "a"),
    # splits of a bounded sum
    ((P * 16 + J * 4 + K) // 64, "i//4"),
    ((P * 16 + J * 4 + K) // 16, "i"),
    ((P * 16 + J * 4 + K) // 4, "i*4 + j"),
    ((P * 16 + J * 4 + K) % 16, "j*4 + k"),
    ((P * 16 + J * 4 + K) % 4, "k"),
    ((P * 16 + J * 4 + K) // 4 % 4, "j"),
    ((P * 16 + J * 4 + K) // 2, "i*8 + j*2 + k//2"),
    ((P * 20 + J * 4 + K) // 16, "i + (i + j)//4"),
    ((P * 20 + J * 4 + K) % 16, "k + (i + j)%4*4"),
    ((Y * 4 + J) // 4, "y"),
    ((Y * 4 + J) % 4, "j"),
    ((Y * 4 + 7) // 4, "y + 1"),
    ((Y * 4 + 7) % 4, "3"),
    ((Y * 6 + J) // 4, "y + (j + y*2)//4"),
    # bounds
    (J // 4, "0"),
    (J % 4, "j"),
    ((J + 4) // 4, "1"),
    ((J - 4) // 4, "-1"),
    ((J - 4) % 4, "j"),
    (P // 100, "0"),
    # nested
    (Y // 4 // 8, "y//32"),
    ((Y // 4 + 1) // 8, "(y + 4)//32"),
    ((Y // 4 + J) // 8, "(j*4 + y)//32"),
    (Y % 32 % 8, "y%8"),
    (Y % 32 // 8, "y//8%4"),
    ((Y % 8 + J) % 4, "(j + y)%4"),
    (Y * 6 % 4, "y%2*2"),
    (Y * 6 // 4, "y + y//2"),
    # recombination
    (Y // 4 * 4 + Y % 4, "y"),
    (X // 4 * 4 + X % 4, "x"),
    (Y // 4 * 12 + Y % 4 * 3, "y*3"),
    (-(Y // 4 * 4) - Y % 4, "-y"),
    (Y // 4 % 8 * 4 + Y % 4, "y%32"),
    (Y // 32 * 32 + Y // 4 % 8 * 4 + Y % 4, "y"),
    (Y // 4 * 4 + Y % 4 + P * 3 + 1, "i*3 + y + 1"),
    ((Y + 3) // 4 * 4 + (Y + 3) % 4, "y + 3"),
    # negative numerators and divisors
    (X // 4, "(x + 20)//4 - 5"),
    (X % 4, "(x + 20)%4"),
    ((-P) // 10, "(-i + 10)//10 - 1"),
    ((9 - P) // 10, "0"),
    ((9 - P) % 10, "-i + 9"),
    (Y // -4, "(-y + 1000)//4 - 250"),
    # flips
    ((39 - P * 4 - J) // 4, "-i + 9"),
    ((39 - P * 4 - J) % 4, "-j + 3"),
    ((7 * J + 3) // 4 * 4 + (7 * J + 3) % 4, "j*7 + 3"),
])  # fmt: skip
def test_arithmetic(e: Expr, want: str) -> None:
    assert text(e) == want


@pytest.mark.parametrize(("e", "want"), [
    (P < 10, "1"),
    (P < 0, "0"),
    (P >= 3, "-i < -2"),
    (P < 3, "i < 3"),
    (P * 4 < 10, "i < 3"),
    (P * 4 + J < 12, "i < 3"),
    (P * 4 + J >= 12, "-i < -2"),
    (P * 4 + J < 13, "i*4 + j < 13"),
    (P * 4 - J < 13, "i < 4"),
    (P * 4 - J < 1, "i < 1"),
    (P * 8 - J < 5, "i < 1"),
    (P * 8 - J < 6, "i*8 - j < 6"),
    (eq(P * 8 - J, 6), "i == 1 and j == 2"),
    (eq(P * 8 - J, 1), "0"),
    (Y // 4 < 3, "y < 12"),
    (Y // 4 >= 3, "-y < -11"),
    (Y // 4 + P < 3, "i*4 + y < 12"),
    (eq(P, 3), "i == 3"),
    (eq(P * 2, 3), "0"),
    (eq(-P, -3), "i == 3"),
    (eq(P * 4 + J, 14), "i == 3 and j == 2"),
    (eq(P * 4 + J, 400), "0"),
    (ne(P, 3), "i != 3"),
    ((P < 3) & (P < 5), "i < 3"),
    ((P < 3) | (P < 5), "i < 5"),
    ((P < 3) & (P >= 3), "0"),
    ((P < 3) | (P >= 3), "1"),
    ((P < 4) & (P >= 3), "i == 3"),
    ((P < 4) & ne(P, 9), "i < 4"),
    (eq(P, 3) & ne(P, 3), "0"),
    ((P < 3) & (J < 2) & (P < 3), "i < 3 and j < 2"),
    ((P < 3) & ((P < 3) | (J < 2)), "i < 3"),
    ((P < 3) | ((P < 3) & (J < 2)), "i < 3"),
    (((P < 3) & (J < 2)) & ((K < 2) & (P < 3)), "i < 3 and j < 2 and k < 2"),
    (~((P < 3) & (J < 2)), "-i < -2 or -j < -1"),
    (~~(P < 3), "i < 3"),
    (eq(P < 3, 1), "i < 3"),
    (eq(P < 3, 0), "-i < -2"),
])  # fmt: skip
def test_conditions(e: Expr, want: str) -> None:
    assert text(e) == want


@pytest.mark.parametrize(("e", "want"), [
    (smax(P, 3), "max(i, 3)"),
    (smax(P, 9), "9"),
    (smax(P, 0), "i"),
    (smin(P, 9), "i"),
    (smin(P + 1, P + 3, P), "i"),
    (smax(P, smax(J, 3, P)), "max(i, 3)"),
    (smax(N, N - 1), "n"),
    (J + smax(2 - J, 0) - smax(J - 2, 0), "2"),
    (3 * smax(J - 1, 0) - 3 * smax(1 - J, 0), "j*3 - 3"),
    (smax(J - 1, 0) + smax(1 - J, 0), "max(j - 1, 0) + max(-j + 1, 0)"),
    (ceildiv(N * 4, 4), "n"),
    (ceildiv(17, 4), "5"),
])  # fmt: skip
def test_extrema(e: Expr, want: str) -> None:
    assert text(e) == want


P_N, J_M = Variable("i", 0, N - 1), Variable("j", 0, M - 1)


@pytest.mark.parametrize(("e", "want"), [
    (N * 4 // 4, "n"),
    (N * M // M, "n"),
    (N * 4 // N, "4"),
    (N * 4 % N, "0"),
    ((P_N * M + J_M) // M, "i"),
    ((P_N * M + J_M) % M, "j"),
    ((P_N * 4 + J) // 4, "i"),
    ((J * N + P_N) // N, "j"),
    ((J * N + P_N) % N, "i"),
    ((J * N + P_N) // (4 * N), "0"),
    ((P * 4 * N + J * N + P_N) // (4 * N), "i"),
    ((P * 4 * N + J * N + P_N) % (4 * N), "i + j*n"),
    ((Y * N + P_N) // (4 * N), "y//4"),
    ((Y * N + P_N) % (4 * N), "i + n*(y%4)"),
    (Y // N * N + Y % N, "y"),
    (Y // N // M, "y//(m*n)"),
    ((N + 1) * (M + 1) // (M + 1), "n + 1"),
    (((N + 1) * Y + P_N) // (N + 1), "y"),
    (((N + 1) * Y + P_N) % (N + 1), "i"),
    ((Y * (4 * N + 4) + J * (N + 1) + Variable("i", 0, N)) // (4 * N + 4), "y"),
    ((Y * (4 * N + 4) + J * (N + 1) + Variable("i", 0, N)) % (4 * N + 4), "i + j + j*n"),
    (P_N < N, "1"),
    (P_N * M + J_M < N * M, "1"),
    (N * M <= P_N * M + J_M, "0"),
    (eq(P_N, N), "0"),
])  # fmt: skip
def test_symbolic_sizes(e: Expr, want: str) -> None:
    assert text(e) == want


def test_a_divisor_that_could_be_0_is_taken_not_to_be() -> None:
    z = Variable("z", 0, 9)
    i = Variable("i", 0, z - 1)
    functions: list[tuple[Callable[..., Any], sint | None]] = [
        (lambda j, z, i, y: (j * z + i) // z, J),
        (lambda j, z, i, y: (j * z + i) % z, i),
        (lambda j, z, i, y: (j * z * 4 + i) // (z * 4), J),
        (lambda j, z, i, y: (y * z + 5) // z, Y + 5 // z),
        (lambda j, z, i, y: (y * z + 5) % (z * 2), None),
    ]
    for function, want in functions:
        e = function(J, z, i, Y)
        assert isinstance(e, Expr) and (want is None or e is want)
        low, high = bounds_of(e)
        numerators = {*range(Y.vmin, Y.vmax + 1, 13), Y.vmax}  # each remainder by each divisor, and both ends
        for j, n, y in itertools.product(range(J.vmax + 1), range(1, 10), numerators):
            for k in range(n):
                value = e.evaluate({J: j, z: n, i: k, Y: y})
                assert value == function(j, n, k, y)
                assert low <= value <= high


def test_a_split_loop_leaves_no_division() -> None:
    outer, inner = Variable("ro", 0, 7), Variable("rv", 0, 15)
    r = Variable("r", 0, 127)
    for e, want in [
        (r // 16, "ro"),
        (r % 16, "rv"),
        (r // 4 % 4, "rv//4"),
        (r // 64, "ro//4"),
        (r * 3 + 1, "ro*48 + rv*3 + 1"),
    ]:
        assert text(e.substitute({r: outer * 16 + inner})) == want  # type: ignore[union-attr]


def test_positive_and_negative_parts_are_a_value_and_nothing_else_is() -> None:
    x = Variable("x", -7, 9)
    assert smax(x, 0) - smax(-x, 0) == x
    for at in range(-7, 10):
        assert sym_eval(smax(x, 5) - smax(-x, 0), {x: at}) == max(at, 5) - max(-at, 0)
        assert sym_eval(smax(x, -2) - smin(x, 3) * 2, {x: at}) == max(at, -2) - 2 * min(at, 3)


def test_depth_is_that_of_the_deepest_operand() -> None:
    x = Variable("x", 0, 99)
    deep = ((x // 3 + 1) % 7) // 2
    assert isinstance(deep, Expr)
    for both in (smax(deep, x), smax(x, deep)):
        assert isinstance(both, Expr) and both.depth == deep.depth + 1


def test_whatever_cannot_be_zero_is_true() -> None:
    assert resolve(Variable("x", -5, -1), False) and resolve(Variable("x", 2, 5), False)
    assert not resolve(Variable("x", -5, 2), False) and not resolve(Variable("x", 0, 2), False)


def test_resolve() -> None:
    assert resolve(P < 10, False)
    assert not resolve(P < 0)
    assert resolve(P < 5) and not resolve(P < 5, False)
    assert resolve(True, False) and not resolve(0)


@pytest.mark.parametrize("names", ["if", "fi"])
@pytest.mark.parametrize("least", [-3, 0, 1])
def test_a_difference_of_products_is_nonnegative_if_every_value_is(names: str, least: int) -> None:
    """In whichever order the names of the factors put them, and whichever sign they have."""
    i, f = Variable(names[0], 0, 7), Variable(names[1], least, 5)
    for k in range(10):
        e = k * f - i * f
        values = [sym_eval(e, {i: a, f: b}) for a in range(8) for b in range(least, 6)]
        assert is_nonnegative(e) is (min(values) >= 0), e


def test_bounds_of_products_whose_variables_occur_elsewhere() -> None:
    """Terms that share a variable are not at their greatest together: ``n*m - n`` is ``n*(m - 1)``."""
    n, m = Variable("n", 1, 4), Variable("m", 1, 5)
    for e in (n * m - n, n * m - m, n * m - n - m, n + m - n * m, 7 - n * m + m):
        values = [sym_eval(e, {n: a, m: b}) for a in range(1, 5) for b in range(1, 6)]
        assert bounds_of(e) == (min(values), max(values)), e


def test_a_condition_absorbs_what_is_narrower() -> None:
    """``a or (a and b)`` is ``a``, however many conditions there are; ``b or (a and c)`` stays as it is."""
    a, b, c = P < 3, J < 2, eq(K, 1)
    both = [a & b, b & a, a & b & c, c & a]
    for narrower in both:
        for wide in (a | narrower, narrower | a, narrower | a | narrower):
            assert wide is a
        assert (a | narrower | c) == (a | c)
    other = b | (a & c)
    assert isinstance(other, Expr) and other.op == "or" and len(other.args) == 2


def test_a_variable_of_one_value_is_a_coefficient() -> None:
    two, three = Variable("two", 2, 2), Variable("three", -3, -3)
    assert P * two is P * 2 and two * P is P * 2
    assert P * J * two is P * J * 2 and (P + 1) * two is P * 2 + 2
    assert P * two * three is P * -6 and (P + two) * (J + three) is P * J - 3 * P + 2 * J - 6
    assert two * three == -6 and two * two == 4


def test_negative_constants_are_in_parentheses() -> None:
    assert [text(e) for e in (-7 // N, -7 % N, N * -7, -7 // (N + 1))] == [
        "(-7)//n",
        "(-7)%n",
        "n*(-7)",
        "(-7)//(n + 1)",
    ]


def test_long_products_of_sums_stay_products() -> None:
    def total(letter: str, count: int) -> sint:
        return sum((Variable(f"{letter}{n}", 0, 3) for n in range(count)), 0)

    terms = total("a", 8) * total("b", 8)
    product = total("a", 8) * total("b", 9)
    assert isinstance(terms, Expr) and (terms.op, len(terms.args)) == ("add", 64)
    assert isinstance(product, Expr) and product.op == "mul" and product.vmax == 24 * 27


def test_an_equation_of_a_variable_and_its_bound_has_solutions_only_within() -> None:
    last, none = eq(P_N, N - 1), eq(P_N, N + 3)
    assert none == 0 and isinstance(last, Expr)
    assert [last.evaluate({N: 4, P_N: i}) for i in range(4)] == [0, 0, 0, 1]


def test_a_term_of_nearly_a_period_is_taken_as_a_whole_one_of_its_sign() -> None:
    x, y = Variable("x", 0, 1), Variable("y", 0, 1)
    assert ((x * -3 + y) // 4, (x * -3 + y) % 4) == (-x, x + y)
    assert ((x * 5 - y) // 6, (x * 5 - y) % 6) != (x, y - x)  # it may be less than 0
    assert ((x * 5 + 1) // 6, (x * 5 + 1) % 6) == (x, 1 - x)
