"""The exact forms that index expressions must take."""

from __future__ import annotations

import pytest
from tg_shape import Expr, Variable, ceildiv, resolve, smax, smin

I, J, K = Variable("i", 0, 9), Variable("j", 0, 3), Variable("k", 0, 3)
X, Y = Variable("x", -20, 100), Variable("y", 0, 1000)
A = Variable("a", 0, 1)
N, M = Variable("n", 1, 64), Variable("m", 1, 64)


def text(e: object) -> str:
    return e.render() if isinstance(e, Expr) else str(e)


@pytest.mark.parametrize(("e", "want"), [
    # flat sums in a fixed order, the constant last
    (K + J * 4 + I * 16 + 5 - K, "i*16 + j*4 + 5"),
    ((I + 1) * (J + 2), "i*2 + j + i*j + 2"),
    (I - I, "0"),
    (-(I - J), "-i + j"),
    (3 - I, "-i + 3"),
    (I * 0, "0"),
    (A * A, "a"),
    # splits of a bounded sum
    ((I * 16 + J * 4 + K) // 64, "i//4"),
    ((I * 16 + J * 4 + K) // 16, "i"),
    ((I * 16 + J * 4 + K) // 4, "i*4 + j"),
    ((I * 16 + J * 4 + K) % 16, "j*4 + k"),
    ((I * 16 + J * 4 + K) % 4, "k"),
    ((I * 16 + J * 4 + K) // 4 % 4, "j"),
    ((I * 16 + J * 4 + K) // 2, "i*8 + j*2 + k//2"),
    ((I * 20 + J * 4 + K) // 16, "i + (i + j)//4"),
    ((I * 20 + J * 4 + K) % 16, "k + (i + j)%4*4"),
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
    (I // 100, "0"),
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
    (Y // 4 * 4 + Y % 4 + I * 3 + 1, "i*3 + y + 1"),
    ((Y + 3) // 4 * 4 + (Y + 3) % 4, "y + 3"),
    # negative numerators and divisors
    (X // 4, "(x + 20)//4 - 5"),
    (X % 4, "(x + 20)%4"),
    ((-I) // 10, "(-i + 10)//10 - 1"),
    ((9 - I) // 10, "0"),
    ((9 - I) % 10, "-i + 9"),
    (Y // -4, "(-y + 1000)//4 - 250"),
    # flips
    ((39 - I * 4 - J) // 4, "-i + 9"),
    ((39 - I * 4 - J) % 4, "-j + 3"),
    ((7 * J + 3) // 4 * 4 + (7 * J + 3) % 4, "j*7 + 3"),
])  # fmt: skip
def test_arithmetic(e: Expr, want: str) -> None:
    assert text(e) == want


@pytest.mark.parametrize(("e", "want"), [
    (I < 10, "1"),
    (I < 0, "0"),
    (I >= 3, "-i < -2"),
    (I < 3, "i < 3"),
    (I * 4 < 10, "i < 3"),
    (I * 4 + J < 12, "i < 3"),
    (I * 4 + J >= 12, "-i < -2"),
    (I * 4 + J < 13, "i*4 + j < 13"),
    (I * 4 - J < 13, "i*4 - j < 13"),
    (I * 4 - J < 1, "i*4 - j < 1"),
    (I * 8 - J < 6, "i < 2"),
    ((I * 8 - J).eq(6), "i == 1 and j == 2"),
    ((I * 8 - J).eq(1), "0"),
    (Y // 4 < 3, "y < 12"),
    (Y // 4 >= 3, "-y < -11"),
    (Y // 4 + I < 3, "i*4 + y < 12"),
    (I.eq(3), "i == 3"),
    ((I * 2).eq(3), "0"),
    ((-I).eq(-3), "i == 3"),
    ((I * 4 + J).eq(14), "i == 3 and j == 2"),
    ((I * 4 + J).eq(400), "0"),
    (I.ne(3), "i != 3"),
    ((I < 3) & (I < 5), "i < 3"),
    ((I < 3) | (I < 5), "i < 5"),
    ((I < 3) & (I >= 3), "0"),
    ((I < 3) | (I >= 3), "1"),
    ((I < 4) & (I >= 3), "i == 3"),
    ((I < 4) & I.ne(9), "i < 4"),
    (I.eq(3) & I.ne(3), "0"),
    ((I < 3) & (J < 2) & (I < 3), "i < 3 and j < 2"),
    ((I < 3) & ((I < 3) | (J < 2)), "i < 3"),
    ((I < 3) | ((I < 3) & (J < 2)), "i < 3"),
    (((I < 3) & (J < 2)) & ((K < 2) & (I < 3)), "i < 3 and j < 2 and k < 2"),
    (~((I < 3) & (J < 2)), "-i < -2 or -j < -1"),
    (~~(I < 3), "i < 3"),
    ((I < 3).eq(1), "i < 3"),  # type: ignore[union-attr]
    ((I < 3).eq(0), "-i < -2"),  # type: ignore[union-attr]
])  # fmt: skip
def test_conditions(e: Expr, want: str) -> None:
    assert text(e) == want


@pytest.mark.parametrize(("e", "want"), [
    (smax(I, 3), "max(i, 3)"),
    (smax(I, 9), "9"),
    (smax(I, 0), "i"),
    (smin(I, 9), "i"),
    (smin(I + 1, I + 3, I), "i"),
    (smax(I, smax(J, 3, I)), "max(i, 3)"),
    (smax(N, N - 1), "n"),
    (ceildiv(N * 4, 4), "n"),
    (ceildiv(17, 4), "5"),
])  # fmt: skip
def test_extrema(e: Expr, want: str) -> None:
    assert text(e) == want


I_N, J_M = Variable("i", 0, N - 1), Variable("j", 0, M - 1)


@pytest.mark.parametrize(("e", "want"), [
    (N * 4 // 4, "n"),
    (N * M // M, "n"),
    (N * 4 // N, "4"),
    (N * 4 % N, "0"),
    ((I_N * M + J_M) // M, "i"),
    ((I_N * M + J_M) % M, "j"),
    ((I_N * 4 + J) // 4, "i"),
    ((J * N + I_N) // N, "j"),
    ((J * N + I_N) % N, "i"),
    ((J * N + I_N) // (4 * N), "0"),
    ((I * 4 * N + J * N + I_N) // (4 * N), "i"),
    ((I * 4 * N + J * N + I_N) % (4 * N), "i + j*n"),
    ((Y * N + I_N) // (4 * N), "y//4"),
    ((Y * N + I_N) % (4 * N), "i + n*(y%4)"),
    (Y // N * N + Y % N, "y"),
    (Y // N // M, "y//(m*n)"),
    ((N + 1) * (M + 1) // (M + 1), "n + 1"),
    (((N + 1) * Y + I_N) // (N + 1), "y"),
    (((N + 1) * Y + I_N) % (N + 1), "i"),
    (I_N < N, "1"),
    (I_N * M + J_M < N * M, "1"),
    (N * M <= I_N * M + J_M, "0"),
    (I_N.eq(N), "0"),
])  # fmt: skip
def test_symbolic_sizes(e: Expr, want: str) -> None:
    assert text(e) == want


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


def test_resolve() -> None:
    assert resolve(I < 10, False)
    assert not resolve(I < 0)
    assert resolve(I < 5) and not resolve(I < 5, False)
    assert resolve(True, False) and not resolve(0)
