"""The three instructions that make a division exact.

Source: AMD, "RDNA3 Instruction Set Architecture", 16.10 (V_DIV_SCALE, V_DIV_FMAS, V_DIV_FIXUP). Where its pseudocode
cannot make a division right, this is what does:

- V_DIV_FMAS multiplies by two to the 64 or -64 (128 or -128 of doubles), as the third source is at least 2 or not
  ("RDNA3.5 Instruction Set Architecture", the same section), and rounds once, behind that: subnormal quotients are
  right, as LLVM takes for granted (``SITargetLowering::LowerFDIV32``); a sum that overflows, as that of no division
  does where it is scaled down, is rounded before, as the pseudocode has it;
- V_DIV_SCALE scales a denominator down whose reciprocal is subnormal, also where the quotient is;
- V_DIV_FIXUP takes a NaN of finite operands for an overflow.
"""

from __future__ import annotations

from ....engine import I32, Emitter, Value
from ....engine.handlers import Semantics
from ...modifiers import Kind
from .alu import Lanes
from .numbers import DOUBLE, HALF, SINGLE, Format, fused, is_nan, magnitude, narrowed, pattern, raw, widened


def add(to: Lanes) -> None:
    """Adds the handlers of this subject."""
    for of, power, tiny, far in ((SINGLE, 64, 23, 96), (DOUBLE, 128, 53, 768)):
        to.op(f"v_div_scale_{of.suffix}", _scale(of, power, tiny, far), [of.kind, Kind.MASK], [of.kind] * 3,
              fixed=True)  # fmt: skip
        to.op(f"v_div_fmas_{of.suffix}", _fused(of, power), [of.kind], [*[of.kind] * 3, Kind.MASK])
    for of in (HALF, SINGLE, DOUBLE):
        to.op(f"v_div_fixup_{of.suffix}", _fixup(of), [of.kind], [of.kind] * 3,
              keeps=True if of is HALF else None)  # fmt: skip


def _exponent(e: Emitter, x: Value, of: Format) -> Value:
    """With its bias."""
    return raw(e, x) >> of.fraction & 2 * of.bias + 1


def _scale(of: Format, power: int, tiny: int, far: int) -> Semantics:
    least = 2.0 ** (1 - of.bias)

    def subnormal(e: Emitter, x: Value) -> Value:
        return e.compare("olt", magnitude(e, x), least) & e.compare("one", x, 0.0)

    def quotient(e: Emitter, x: Value, y: Value) -> Value:
        if of is DOUBLE:
            return e.binary("fdiv", x, y)
        wide = DOUBLE.kind.type
        return narrowed(e, e.binary("fdiv", widened(e, x, wide), widened(e, y, wide)), x.type)

    def semantics(e: Emitter, x: Value, low: Value, high: Value) -> tuple[Value, Value]:
        up, down = x * 2.0**power, x * 2.0**-power
        zero = e.compare("oeq", low, 0.0) | e.compare("oeq", high, 0.0)
        distant = e.compare("sge", _exponent(e, high, of) - _exponent(e, low, of), far)
        small = subnormal(e, low)
        inverse = subnormal(e, quotient(e, e.constant(low.type, 1.0), low))
        result = subnormal(e, quotient(e, high, low))
        is_low, is_high = e.compare("oeq", x, low), e.compare("oeq", x, high)
        shrunk = e.compare("ule", _exponent(e, high, of), tiny)
        no = e.compare("ne", raw(e, x), raw(e, x))
        found = e.select(shrunk, up, x)
        found = e.select(result, e.select(is_high, up, x), found)
        found = e.select(inverse, down, found)
        found = e.select(inverse & result, e.select(is_low, down, x), found)
        found = e.select(small, up, found)
        found = e.select(distant, e.select(is_low, up, x), found)
        found = e.select(zero, pattern(e, x.type, of.nan), found)
        flag = e.select(zero, no, e.select(distant, ~no, e.select(small, no, result)))
        return found, flag

    return semantics


def _fused(of: Format, power: int) -> Semantics:
    def semantics(e: Emitter, x: Value, y: Value, z: Value, wanted: Value) -> Value:
        total = fused(e, x, y, z)
        large = e.compare("ugt", _exponent(e, z, of), of.bias)
        factor, inverse = (
            e.select(large, e.constant(z.type, 2.0**n), e.constant(z.type, 2.0**-n)) for n in (power, -power)
        )
        scaled = total * factor
        # in the middle of two subnormals lies what was rounded to it: what was lost says which of them is nearer
        between = total - scaled * inverse
        half, lost = 2.0 ** (power - of.bias - of.fraction), _lost(e, of, x, y, z, total)
        nearest = e.compare("eq", e.emit(I32, "call i32 @llvm.get.rounding()"), 1)
        e.declarations["declare i32 @llvm.get.rounding()"] = None
        steps = e.value(raw(e, scaled).type, 0)
        for sign, number in ((half, 1), (-half, -1)):
            beyond = e.compare("ogt" if number > 0 else "olt", lost, 0.0)
            moves = e.compare("oeq", between, sign) & beyond & e.value(beyond.type, nearest)
            steps = e.select(moves, e.value(steps.type, number), steps)
        negative = e.compare("slt", raw(e, scaled), 0)
        steps = e.select(negative, e.value(steps.type, 0) - steps, steps)
        return e.select(wanted, e.bits(raw(e, scaled) + steps, z.type), total)

    return semantics


def _sum(e: Emitter, x: Value, y: Value) -> tuple[Value, Value]:
    """Rounded, and what that lost (D. E. Knuth, "The Art of Computer Programming", 4.2.2)."""
    total = x + y
    second = total - x
    return total, (x - (total - second)) + (y - second)


def _lost(e: Emitter, of: Format, x: Value, y: Value, z: Value, total: Value) -> Value:
    """What rounding lost of ``x * y + z``, or a number of its sign.

    Source: S. Boldo and J.-M. Muller, "Exact and Approximated Error of the FMA", IEEE Transactions on Computers 60,
    2011; small numbers are scaled before, so that the product has all its digits.
    """
    if of is SINGLE:
        x, y, z, total = (widened(e, v, DOUBLE.kind.type) for v in (x, y, z, total))
        product, rest = x * y, e.constant(x.type, 0.0)
    else:
        x, z, total = (v * 2.0**256 for v in (x, z, total))
        product = x * y
        rest = e.intrinsic("fma", x, y, product * -1.0)
    most, least = _sum(e, z, rest)
    near, far = _sum(e, product, most)
    return ((near - total) + far) + least


def _fixup(of: Format) -> Semantics:
    def semantics(e: Emitter, x: Value, low: Value, high: Value) -> Value:
        kind = x.type
        sign = raw(e, low) ^ raw(e, high)
        sign = sign & of.sign

        def signed(value: Value) -> Value:
            return e.bits(raw(e, magnitude(e, value)) | sign, kind)

        infinity = pattern(e, kind, of.infinity)
        found = e.select(is_nan(e, x), infinity, x)
        if of is not HALF:
            under = e.compare("slt", _exponent(e, high, of) - _exponent(e, low, of),
                              -150 if of is SINGLE else -1075)  # fmt: skip
            found = e.select(under, e.binary("fdiv", high, low), found)
        none, no_low = e.compare("oeq", high, 0.0), e.compare("oeq", low, 0.0)
        endless, endless_low = (e.compare("oeq", magnitude(e, v), infinity) for v in (high, low))
        found = e.select(endless_low | none, e.constant(kind, 0.0), found)
        found = e.select(no_low | endless, infinity, found)
        found = signed(found)
        wrong = (none & no_low) | (endless & endless_low)
        found = e.select(wrong, pattern(e, kind, of.nan | 1 << of.bits - 1), found)
        for value in (low, high):
            quiet = e.bits(raw(e, value) | 1 << of.fraction - 1, kind)
            found = e.select(is_nan(e, value), quiet, found)
        return found

    return semantics
