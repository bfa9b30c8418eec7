"""What instructions of floats do in a lane, exact and rounded once, from the manuals.

Sources: AMD, "RDNA3 Instruction Set Architecture", chapter 16, and "RDNA4 Instruction Set Architecture", the same, with
what ``semantics.vector.division`` says of V_DIV_SCALE, V_DIV_FMAS and V_DIV_FIXUP; functions with 60 digits.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from decimal import Decimal, localcontext
from fractions import Fraction

from ...engine.testing import DOUBLE, HALF, SINGLE, Format
from .lane_integers import bound, signed
from .rules import Rule, rule

Environment = Rule.Environment
FORMATS = {"f16": HALF, "f32": SINGLE, "f64": DOUBLE}


def rules() -> Iterator[Rule]:
    """The specification of each instruction, by a pattern of its names."""
    for kind, of in FORMATS.items():
        yield from _arithmetic(kind)
        yield from _orders(kind, of)
        yield from _comparisons(kind, of)
        yield from _parts(kind, of)
        yield from _division(kind, of)
        yield from _functions(kind)
    yield from _conversions()
    yield from _packed()
    yield rule("v_trig_preop_f64", ["f64"], ["f64", "b32"], _preop, fixed=True)


def _arithmetic(kind: str) -> Iterator[Rule]:
    two: dict[str, Callable[[Format, int, int], int]] = {
        "add": Format.add, "sub": Format.sub, "mul": Format.mul, "subrev": lambda f, x, y: f.sub(y, x),
    }  # fmt: skip
    for name, of in two.items():
        yield rule(f"v_{name}_{kind}", [kind], [kind] * 2, lambda env, x, y, of=of: of(env.mode.format(kind), x, y))
    yield rule(f"v_(fma|fmac|fmaak)_{kind}", [kind], [kind] * 3,
               lambda env, x, y, z: env.mode.format(kind).fma(x, y, z))  # fmt: skip
    yield rule(f"v_fmamk_{kind}", [kind], [kind] * 3, lambda env, x, k, y: env.mode.format(kind).fma(x, k, y))
    bits = 16 if kind == "f16" else 32

    def scale(env: Environment, x: int, n: int) -> int:
        of = env.mode.format(kind)
        if of.is_nan(x) or of.is_infinite(x) or not x & ~of.sign:
            return x
        power = max(min(signed(n, bits), 5000), -5000)
        return of.round(of.value(x) * Fraction(2) ** power)

    yield rule(f"v_ldexp_{kind}", [kind], [kind, f"b{bits}"], scale)
    if kind == "f32":

        def without_nan(env: Environment, x: int, y: int, z: int | None = None) -> int:
            zero = not x & 0x7FFFFFFF or not y & 0x7FFFFFFF
            of = env.mode.format(kind)
            if z is None:
                return 0 if zero else of.mul(x, y)
            return z if zero else of.fma(x, y, z)

        yield rule("v_mul_(legacy|dx9_zero)_f32", [kind], [kind] * 2, without_nan)
        yield rule("v_(fma|fmac)_(legacy|dx9_zero)_f32", [kind], [kind] * 3, without_nan)


def order(of: Format, x: int) -> int:
    """Numbers by size, and -0 below 0."""
    return -(x & ~of.sign) - 1 if x & of.sign else x


def _signals(of: Format, x: int) -> bool:
    return of.is_nan(x) and not x >> of.fraction - 1 & 1


def _pick(of: Format, env: Environment, most: bool, how: str, x: int, y: int) -> int:
    nans = [v for v in (x, y) if of.is_nan(v)]
    if how == "both" and nans:
        return of.nan
    if how == "mode" and env.mode.ieee and any(_signals(of, v) for v in (x, y)):
        return of.nan
    if len(nans) == 2:
        return of.nan
    if nans:
        return y if of.is_nan(x) else x
    return (max if most else min)((x, y), key=lambda v: order(of, v))


def _orders(kind: str, of: Format) -> Iterator[Rule]:
    for suffix, how, low, high in (("", "mode", "min", "max"), ("_num", "number", "min", "max"),
                                   ("", "both", "minimum", "maximum")):  # fmt: skip

        def pick(env: Environment, most: bool, *values: int, how: str = how) -> int:
            found = values[0]
            for value in values[1:]:
                found = _pick(of, env, most, how, found, value)
            return found

        for name, most in ((low, False), (high, True)):
            yield rule(f"v_{name}{suffix}_{kind}", [kind], [kind] * 2,
                       lambda env, x, y, m=most, p=pick: p(env, m, x, y))  # fmt: skip
            yield rule(f"v_{name}3{suffix}_{kind}", [kind], [kind] * 3,
                       lambda env, x, y, z, m=most, p=pick: p(env, m, x, y, z))  # fmt: skip
        for name, first in ((high + low, True), (low + high, False)):
            yield rule(f"v_{name}{suffix}_{kind}", [kind], [kind] * 3,
                       lambda env, x, y, z, m=first, p=pick: p(env, not m, p(env, m, x, y), z))  # fmt: skip
        if how != "both":

            def middle(env: Environment, *v: int, p: Callable[..., int] = pick) -> int:
                if any(of.is_nan(x) for x in v):
                    return p(env, False, *v)
                return sorted(v, key=lambda x: order(of, x))[1]

            yield rule(f"v_med3{suffix}_{kind}", [kind], [kind] * 3, middle)


def _compare(of: Format, x: int, y: int) -> str:
    """``less``, ``equal``, ``greater`` or ``none``."""
    if of.is_nan(x) or of.is_nan(y):
        return "none"
    if not (x | y) & ~of.sign:
        return "equal"
    a, b = order(of, x), order(of, y)
    return "less" if a < b else "greater" if a > b else "equal"


def _comparisons(kind: str, of: Format) -> Iterator[Rule]:
    true = {"lt": "less", "eq": "equal", "le": "less equal", "gt": "greater", "lg": "less greater",
            "ge": "greater equal", "o": "less equal greater", "u": "none"}  # fmt: skip
    tests = {name: set(words.split()) for name, words in true.items()}
    everything = {"less", "equal", "greater", "none"}
    for name in ("ge", "lg", "gt", "le", "lt"):
        tests[f"n{name}"] = everything - tests[name]
    tests |= {"neq": everything - tests["eq"], "f": set(), "t": everything, "tru": everything}
    for name, outcomes in tests.items():
        yield rule(f"v_cmpx?_{name}_{kind}", ["mask"], [kind] * 2,
                   lambda env, x, y, good=outcomes: int(_compare(of, x, y) in good))  # fmt: skip

    def is_in(env: Environment, x: int, wanted: int) -> int:
        size, minus = x & ~of.sign, bool(x & of.sign)
        if of.is_nan(x):
            number = 0 if _signals(of, x) else 1
        elif of.is_infinite(x):
            number = 2 if minus else 9
        elif size >> of.fraction:
            number = 3 if minus else 8
        elif size:
            number = 4 if minus else 7
        else:
            number = 5 if minus else 6
        return wanted >> number & 1

    yield rule(f"v_cmpx?_class_{kind}", ["mask"], [kind, "b16" if kind == "f16" else "b32"], is_in, plain=True)


def _parts(kind: str, of: Format) -> Iterator[Rule]:
    def whole(env: Environment, x: int, how: Callable[[Fraction], int]) -> int:
        if of.is_nan(x) or of.is_infinite(x):
            return x
        return of.round(Fraction(how(of.value(x))), x & of.sign)

    for name, how in (("trunc", math.trunc), ("ceil", math.ceil), ("floor", math.floor), ("rndne", round)):
        yield rule(f"v_{name}_{kind}", [kind], [kind], lambda env, x, how=how: whole(env, x, how), fixed=True)

    def fraction(env: Environment, x: int) -> int:
        rounded = env.mode.format(kind)
        if of.is_nan(x) or of.is_infinite(x):
            return of.nan
        number = of.value(x)
        rest = number - math.floor(number)
        # the difference of equal numbers is -0 where it is rounded down
        zero = of.sign if rounded.rounding == "down" and x & ~of.sign else 0
        if not x & ~of.sign:
            zero = of.sign if rounded.rounding == "down" else 0
        return min(rounded.round(rest, zero), (of.infinity >> of.fraction + 1 << of.fraction) - 1) if rest else zero

    yield rule(f"v_fract_{kind}", [kind], [kind], fraction)

    def power(x: int) -> int:
        """So that the rest is at least a half and below one."""
        number = abs(of.value(x))
        found = number.numerator.bit_length() - number.denominator.bit_length()
        return found + (number >= Fraction(2) ** found)

    def special(x: int) -> bool:
        return of.is_nan(x) or of.is_infinite(x) or not x & ~of.sign

    bits = 16 if kind == "f16" else 32
    yield rule(f"v_frexp_exp_i{bits}_{kind}", [f"b{bits}"], [kind], lambda env, x: 0 if special(x) else power(x))
    yield rule(f"v_frexp_mant_{kind}", [kind], [kind],
               lambda env, x: x if special(x) else of.round(of.value(x) / Fraction(2) ** power(x)))  # fmt: skip


def _division(kind: str, of: Format) -> Iterator[Rule]:
    def exponent(x: int) -> int:
        return x >> of.fraction & (1 << of.exponent) - 1

    def fixup(env: Environment, x: int, low: int, high: int) -> int:
        sign = (low ^ high) & of.sign
        if of.is_nan(high) or of.is_nan(low):
            return of.nan
        zero = [not v & ~of.sign for v in (low, high)]
        endless = [of.is_infinite(v) for v in (low, high)]
        if all(zero) or all(endless):
            return of.nan
        if zero[0] or endless[1]:
            return sign | of.infinity
        if endless[0] or zero[1]:
            return sign
        if kind != "f16" and exponent(high) - exponent(low) < (-150 if kind == "f32" else -1075):
            return env.mode.format(kind).div(high, low)
        return sign | (of.infinity if of.is_nan(x) else x & ~of.sign)

    yield rule(f"v_div_fixup_{kind}", [kind], [kind] * 3, fixup)
    if kind == "f16":
        return
    shift, tiny, far = (64, 23, 96) if kind == "f32" else (128, 53, 768)

    def fused(env: Environment, x: int, y: int, z: int, wanted: int) -> int:
        rounded = env.mode.format(kind)
        found = rounded.fma(x, y, z)
        if not wanted or special(found):
            return found
        total = of.value(x) * of.value(y) + of.value(z)
        # beyond all numbers, where no division comes: the manual scales what the sum was rounded to
        if abs(total) >= 2 ** (1 << of.exponent - 1):
            total = of.value(found)
        up = exponent(z) > (1 << of.exponent - 1) - 1
        return rounded.round(total * Fraction(2) ** (shift if up else -shift))

    def special(x: int) -> bool:
        return of.is_nan(x) or of.is_infinite(x) or not x & ~of.sign

    yield rule(f"v_div_fmas_{kind}", [kind], [kind] * 3 + ["mask"], fused)

    def subnormal(x: int) -> bool:
        return 0 < x & ~of.sign < 1 << of.fraction

    def times(x: int, power: int) -> int:
        return x if special(x) else of.round(of.value(x) * Fraction(2) ** power)

    def same(x: int, y: int) -> bool:
        return _compare(of, x, y) == "equal"

    def scale(env: Environment, x: int, low: int, high: int) -> tuple[int, int]:
        if not low & ~of.sign or not high & ~of.sign:
            return of.nan, 0
        if exponent(high) - exponent(low) >= far:
            return times(x, shift) if same(x, low) else x, 1
        if subnormal(low):
            return times(x, shift), 0
        inverse, quotient = subnormal(of.div(one(of), low)), subnormal(of.div(high, low))
        if inverse and quotient:
            return times(x, -shift) if same(x, low) else x, 1
        if inverse:
            return times(x, -shift), 0
        if quotient:
            return times(x, shift) if same(x, high) else x, 1
        return (times(x, shift) if exponent(high) <= tiny else x), 0

    yield rule(f"v_div_scale_{kind}", [kind, "mask"], [kind] * 3, scale, fixed=True)


def one(of: Format) -> int:
    """The number 1."""
    return ((1 << of.exponent - 1) - 1) << of.fraction


def true_value(name: str, of: Format, x: int) -> Fraction | int:
    """What a function is of a number, with 60 digits, or the pattern of what is no number or follows no mathematics.

    Args:
      name: as ``rcp``.
      of: of its argument and result; subnormal arguments of 32 bits are zeros.
      x: the pattern of the argument.
    """
    x = _flushed(x) if of is SINGLE else x
    special = _special(name, of, x)
    if special is not None:
        return special
    with localcontext() as context:
        context.prec = 60
        return _FUNCTIONS[name](of.value(x))


def _functions(kind: str) -> Iterator[Rule]:
    of = FORMATS[kind]

    def function(name: str) -> Callable[..., int]:
        def found(env: Environment, x: int) -> int:
            true = true_value(name, of, x)
            bits = true if isinstance(true, int) else of.round(true, x & of.sign if name == "sin" else 0)
            return _flushed(bits) if kind == "f32" else bits

        return found

    for name in _FUNCTIONS:
        if kind == "f64" and name not in ("rcp", "rsq", "sqrt"):
            continue
        names = "rcp(_iflag)?" if name == "rcp" and kind == "f32" else name
        yield rule(f"v_{names}_{kind}", [kind], [kind], function(name), fixed=True, ulps=1)


@functools.cache
def _long_pi() -> Decimal:
    """500 digits, by the mean of Gauss and Legendre."""
    with localcontext() as context:
        context.prec = 520
        a, b, t, p = Decimal(1), 1 / Decimal(2).sqrt(), Decimal("0.25"), Decimal(1)
        for _ in range(10):
            middle = (a + b) / 2
            a, b, t, p = middle, (a * b).sqrt(), t - p * (a - middle) ** 2, 2 * p
        return (a + b) ** 2 / (4 * t)


def _preop(env: Environment, x: int, number: int) -> int:
    """53 bits of 2 / pi, towards zero (RDNA 3, 16.10, V_TRIG_PREOP_F64)."""
    exponent = x >> 52 & 0x7FF
    shift = (number & 31) * 53 + max(exponent - 1077, 0)
    with localcontext() as context:
        context.prec = 500
        digits = int(Fraction(2 / _long_pi()) * 2**1201) << 3000
    segment = digits >> 3000 + 1201 - 53 - shift & (1 << 53) - 1
    size = segment * Fraction(2) ** (-53 - shift + (128 if exponent >= 1968 else 0))
    return DOUBLE.round(Fraction(math.floor(size * 2**1074), 2**1074) if size < Fraction(1, 2**1022) else size)


_PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494459230781640628620899")


def _decimal(x: Fraction) -> Decimal:
    return Decimal(x.numerator) / Decimal(x.denominator)


def _turned(x: Fraction) -> Fraction:
    """The sine of so many turns, by its series."""
    rest = x % 1
    sign = -1 if rest >= Fraction(1, 2) else 1
    rest %= Fraction(1, 2)
    if rest > Fraction(1, 4):
        rest = Fraction(1, 2) - rest
    angle = 2 * _PI * _decimal(rest)
    term = total = angle
    for n in range(1, 24):
        term = -term * angle * angle / (2 * n * (2 * n + 1))
        total += term
    return sign * Fraction(total)


_FUNCTIONS: dict[str, Callable[[Fraction], Fraction]] = {
    "rcp": lambda x: 1 / x,
    "rsq": lambda x: Fraction(1 / _decimal(x).sqrt()),
    "sqrt": lambda x: Fraction(_decimal(x).sqrt()),
    "exp": lambda x: Fraction(Decimal(2) ** _decimal(x)),
    "log": lambda x: Fraction(_decimal(x).ln() / Decimal(2).ln()),
    "sin": _turned,
    "cos": lambda x: _turned(x + Fraction(1, 4)),
}


def _flushed(x: int) -> int:
    return x & SINGLE.sign if not x >> SINGLE.fraction & 0xFF else x


def _special(name: str, of: Format, x: int) -> int | None:
    """The result where the mathematics has none."""
    sign, size = x & of.sign, x & ~of.sign
    if of.is_nan(x):
        return of.nan
    if name in ("sin", "cos"):
        if of.is_infinite(x):
            return of.nan
        if abs(of.value(x)) > 256:
            return 0 if name == "sin" else one(of)
        return sign if name == "sin" and not size else None
    if name == "exp":
        if of.is_infinite(x):
            return 0 if sign else of.infinity
        return of.infinity if of.value(x) > 2000 else 0 if of.value(x) < -2000 else None
    if not size:
        return {"rcp": sign | of.infinity, "rsq": sign | of.infinity, "sqrt": x, "log": of.sign | of.infinity}[name]
    if sign and name != "rcp":
        return of.nan
    if of.is_infinite(x):
        return {"rcp": sign, "rsq": 0, "sqrt": x, "log": x}[name]
    return None


def _conversion(result: str, source: str) -> Callable[..., int]:
    """Of f64, and to f16, the rounding of doubles and halves holds."""
    base, mode = FORMATS[result], "f64" if "f64" in (result, source) or result == "f16" else "f32"

    def convert(env: Environment, x: int) -> int:
        to = Format(base.exponent, base.fraction, env.mode.format(mode).rounding)
        return FORMATS[source].convert(x, to)

    return convert


def _conversions() -> Iterator[Rule]:
    for result in FORMATS:
        for source in FORMATS:
            if {result, source} != {"f16", "f64"} and result != source:
                yield rule(f"v_cvt_{result}_{source}", [result], [source], _conversion(result, source))
    for sign in "iu":
        for kind, bits in (("f32", 32), ("f64", 32), ("f16", 16)):
            of = FORMATS[kind]

            def from_int(env: Environment, x: int, sign: str = sign, kind: str = kind, bits: int = bits) -> int:
                value = signed(x, bits) if sign == "i" else x
                return env.mode.format(kind).round(Fraction(value))

            def to_int(env: Environment, x: int, sign: str = sign, of: Format = of, bits: int = bits) -> int:
                return of.to_int(x, bound(-(1 << 70), sign, bits), bound(1 << 70, sign, bits))

            yield rule(f"v_cvt_{kind}_{sign}{bits}", [kind], [f"b{bits}"], from_int)
            yield rule(f"v_cvt_{sign}{bits}_{kind}", [f"b{bits}"], [kind], to_int)

        def pair(env: Environment, x: int, y: int, sign: str = sign) -> int:
            low, high = bound(-(1 << 70), sign, 16), bound(1 << 70, sign, 16)
            return SINGLE.to_int(x, low, high) & 0xFFFF | SINGLE.to_int(y, low, high) << 16

        yield rule(f"v_cvt_pk_{sign}16_f32", ["b32"], ["f32"] * 2, pair)

    def floor(env: Environment, x: int) -> int:
        if SINGLE.is_nan(x) or SINGLE.is_infinite(x):
            return SINGLE.to_int(x, -(1 << 31), (1 << 31) - 1)
        return bound(math.floor(SINGLE.value(x)), "i", 32)

    yield rule("v_cvt_(flr|floor)_i32_f32", ["b32"], ["f32"], floor)
    half = SINGLE.round(Fraction(1, 2))
    yield rule("v_cvt_(rpi|nearest)_i32_f32", ["b32"], ["f32"],
               lambda env, x: floor(env, env.mode.format("f32").add(x, half)))  # fmt: skip
    for byte in range(4):
        yield rule(f"v_cvt_f32_ubyte{byte}", ["f32"], ["b32"],
                   lambda env, x, b=byte: SINGLE.round(Fraction(x >> 8 * b & 0xFF)))  # fmt: skip
    yield rule("v_cvt_off_f32_i4", ["f32"], ["b32"], lambda env, x: SINGLE.round(Fraction(signed(x & 15, 4), 16)))
    towards = Format(HALF.exponent, HALF.fraction, "zero")
    yield rule("v_cvt_pk_?rtz_f16_f32", ["b32"], ["f32"] * 2,
               lambda env, x, y: SINGLE.convert(x, towards) | SINGLE.convert(y, towards) << 16, fixed=True)  # fmt: skip
    yield rule("v_cvt_pk_f16_f32", ["pf16"], ["f32"] * 2, lambda env, x, y: SINGLE.convert(
        x, env.mode.format("f16")) | SINGLE.convert(y, env.mode.format("f16")) << 16)  # fmt: skip
    brain = Format(8, 7)
    yield rule("v_cvt_f32_bf16", ["f32"], ["b16"], lambda env, x: x << 16)
    yield rule("v_cvt_pk_bf16_f32", ["b32"], ["f32"] * 2,
               lambda env, x, y: SINGLE.convert(x, brain) | SINGLE.convert(y, brain) << 16, fixed=True)  # fmt: skip


def _packed() -> Iterator[Rule]:
    def both(of: Callable[..., int], bits: int) -> Callable[..., int]:
        def found(env: Environment, *values: int) -> int:
            ones = (1 << bits) - 1
            low, high = ([v >> at & ones for v in values] for at in (0, bits))
            return of(env, *low) | of(env, *high) << bits

        return found

    for kind, packed, bits in (("f16", "pf16", 16), ("f32", "pf32", 32)):
        for name, op in (("add", Format.add), ("mul", Format.mul)):
            yield rule(f"v_pk_{name}_{kind}", [packed], [packed] * 2,
                       both(lambda env, x, y, op=op, k=kind: op(env.mode.format(k), x, y), bits))  # fmt: skip
        yield rule(f"v_pk_fmac?_{kind}", [packed], [packed] * 3,
                   both(lambda env, x, y, z, k=kind: env.mode.format(k).fma(x, y, z), bits))  # fmt: skip
    for name, most in (("min", False), ("max", True)):
        for suffix, how in (("", "mode"), ("_num", "number"), ("imum", "both")):
            yield rule(f"v_pk_{name}{suffix}_f16", ["pf16"], ["pf16"] * 2,
                       both(lambda env, x, y, m=most, h=how: _pick(HALF, env, m, h, x, y), 16))  # fmt: skip

        def three(env: Environment, x: int, y: int, z: int, m: bool = most) -> int:
            return _pick(HALF, env, m, "both", _pick(HALF, env, m, "both", x, y), z)

        yield rule(f"v_pk_{name}imum3_f16", ["pf16"], ["pf16"] * 3, both(three, 16))

    def mixed(env: Environment, x: int, y: int, z: int) -> int:
        return env.mode.format("f32").fma(x, y, z)

    yield rule("v_fma_mix_f32", ["f32"], ["mix"] * 3, mixed)
    yield rule("v_fma_mix(lo|hi)_f16", ["f16"], ["mix"] * 3,
               lambda env, *v: SINGLE.convert(mixed(env, *v), env.mode.format("f16")))  # fmt: skip
    for kind, pair, wide in (("f16", "pf16", lambda bits: HALF.convert(bits, SINGLE)),
                             ("bf16", "pi16", lambda bits: _flushed(bits << 16))):  # fmt: skip

        def dot(env: Environment, x: int, y: int, z: int, wide: Callable[[int], int] = wide) -> int:
            """LLVM, ``performFMACombine``: subnormal float32 are zero whatever the mode."""
            of, total = env.mode.format("f32"), _flushed(z)
            for at in (0, 16):
                total = of.fma(wide(x >> at & 0xFFFF), wide(y >> at & 0xFFFF), total)
            return _flushed(total)

        yield rule(f"v_dot2(c|acc)?_f32_{kind}", ["f32"], [pair, pair, "f32"], dot)
