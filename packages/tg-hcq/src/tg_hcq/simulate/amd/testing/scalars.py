"""What scalar instructions do, once more, in Python's integers: written from the manuals, and by no handler's author's
shortcuts. Names are those of gfx11.

Sources: AMD, "RDNA3 Instruction Set Architecture", 16.1 to 16.4; "RDNA4", the same; "CDNA3", 12.1 to 12.5.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from ...engine.testing import HALF, SINGLE, Format

ALIASES = {
    "s_andn2": "s_and_not1", "s_orn2": "s_or_not1", "s_ff1_i32": "s_ctz_i32", "s_flbit_i32_b32": "s_clz_i32_u32",
    "s_flbit_i32_b64": "s_clz_i32_u64", "s_flbit_i32_i64": "s_cls_i32_i64", "s_flbit_i32": "s_cls_i32",
    "s_add_co_ci_u32": "s_addc_u32", "s_sub_co_ci_u32": "s_subb_u32", "s_add_co_": "s_add_", "s_sub_co_": "s_sub_",
    "s_addk_co_i32": "s_addk_i32",
}  # fmt: skip


@dataclass
class Before:
    """What an instruction finds.

    Attributes:
      sources: the operands' bits.
      old: the destination's bits.
      scc: the condition.
      constant: the 16 bits of SOPK.
      exec: the mask.
    """

    sources: tuple[int, ...]
    old: int = 0
    scc: int = 0
    constant: int = 0
    exec: int = 0


@dataclass
class After:
    """What it leaves; None is unchanged.

    Attributes:
      result: the destination's bits.
      scc: the condition.
      exec: the mask.
    """

    result: int | None = None
    scc: int | None = None
    exec: int | None = None


def known(name: str) -> bool:
    """Whether there is a specification of an instruction."""
    return _find(name) is not None


def specification(name: str, before: Before) -> After:
    """What an instruction leaves.

    Raises:
      KeyError: if there is none.
    """
    found = _find(name)
    if found is None:
        raise KeyError(name)
    return found(before)


def _find(name: str) -> Callable[[Before], After] | None:
    for alias, canonical in ALIASES.items():
        if name.startswith(alias):
            name = canonical + name[len(alias) :]
            break
    for pattern, make in _RULES:
        if match := re.fullmatch(pattern, name):
            return make(*match.groups())
    return None


def signed(x: int, bits: int) -> int:
    """A pattern as a number with a sign."""
    return x - (x >> bits - 1 << bits)


def _modulo(x: int, bits: int) -> int:
    return x % (1 << bits)


def _nonzero(bits: int, of: Callable[[Before], int]) -> Callable[[Before], After]:
    def found(b: Before) -> After:
        result = _modulo(of(b), bits)
        return After(result, int(result != 0))

    return found


def _plain(bits: int, of: Callable[[Before], int]) -> Callable[[Before], After]:
    return lambda b: After(_modulo(of(b), bits))


_OPS: dict[str, Callable[[int, int], int]] = {
    "and": lambda x, y: x & y, "or": lambda x, y: x | y, "xor": lambda x, y: x ^ y, "nand": lambda x, y: ~(x & y),
    "nor": lambda x, y: ~(x | y), "xnor": lambda x, y: ~(x ^ y), "and_not1": lambda x, y: x & ~y,
    "or_not1": lambda x, y: x | ~y, "and_not0": lambda x, y: ~x & y, "or_not0": lambda x, y: ~x | y,
    "andn1": lambda x, y: ~x & y, "orn1": lambda x, y: ~x | y,
}  # fmt: skip
_COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    "eq": lambda x, y: x == y, "lg": lambda x, y: x != y, "gt": lambda x, y: x > y, "ge": lambda x, y: x >= y,
    "lt": lambda x, y: x < y, "le": lambda x, y: x <= y,
}  # fmt: skip


def _logic(op: str, bits: str) -> Callable[[Before], After]:
    return _nonzero(int(bits), lambda b: _OPS[op](*b.sources))


def _exec(op: str, what: str, bits: str) -> Callable[[Before], After]:
    def found(b: Before) -> After:
        mask = (1 << int(bits)) - 1
        new = _OPS[op](b.sources[0], b.exec & mask) & mask
        return After(b.exec & mask if what == "save" else new, int(new != 0), b.exec & ~mask | new)

    return found


def _shift(way: str, kind: str, bits: str) -> Callable[[Before], After]:
    def result(b: Before) -> int:
        x, count = b.sources[0], b.sources[1] % int(bits)
        return x << count if way == "lshl" else (signed(x, int(bits)) if kind == "i" else x) >> count

    return _nonzero(int(bits), result)


def _extract(kind: str, bits: str) -> Callable[[Before], After]:
    def result(b: Before) -> int:
        size = int(bits)
        x, offset, width = b.sources[0], b.sources[1] % size, min(b.sources[1] >> 16 & 127, size)
        field = ((signed(x, size) if kind == "i" else x) >> offset) % (1 << width)
        return signed(field, width) if kind == "i" and width else field

    return _nonzero(int(bits), result)


def _sum(sign: int, kind: str) -> Callable[[Before], After]:
    def found(b: Before) -> After:
        x, y = b.sources
        if kind == "i":
            exact = signed(x, 32) + sign * signed(y, 32)
            return After(_modulo(exact, 32), int(not -(1 << 31) <= exact < 1 << 31))
        exact = x + sign * y
        return After(_modulo(exact, 32), int(not 0 <= exact < 1 << 32))

    return found


def _carried(sign: int) -> Callable[[Before], After]:
    def found(b: Before) -> After:
        exact = b.sources[0] + sign * (b.sources[1] + b.scc)
        return After(_modulo(exact, 32), int(not 0 <= exact < 1 << 32))

    return found


def _extreme(which: str, kind: str) -> Callable[[Before], After]:
    def found(b: Before) -> After:
        x, y = (signed(s, 32) if kind == "i" else s for s in b.sources)
        first = x < y if which == "min" else x >= y
        return After(_modulo(x if first else y, 32), int(first))

    return found


def _compare(how: str, kind: str, bits: str) -> Callable[[Before], After]:
    def found(b: Before) -> After:
        x, y = (signed(s, int(bits)) if kind == "i" else s for s in b.sources)
        return After(scc=int(_COMPARISONS[how](x, y)))

    return found


def _compare_constant(how: str, kind: str) -> Callable[[Before], After]:
    def found(b: Before) -> After:
        x, y = b.old, b.constant
        if kind == "i":
            x, y = signed(x, 32), signed(y, 16)
        return After(scc=int(_COMPARISONS[how](x, y)))

    return found


def _add_constant(b: Before) -> After:
    exact = signed(b.old, 32) + signed(b.constant, 16)
    return After(_modulo(exact, 32), int(not -(1 << 31) <= exact < 1 << 31))


def _position(way: str, value: str, bits: str) -> Callable[[Before], After]:
    """Of the first bit of a value, from the lowest or from the highest."""

    def result(b: Before) -> int:
        places = range(int(bits)) if way == "low" else range(int(bits) - 1, -1, -1)
        found = [i for i in places if b.sources[0] >> i & 1 == int(value)]
        return -1 if not found else found[0] if way == "low" else int(bits) - 1 - found[0]

    return _plain(32, result)


def _sign_run(bits: str) -> Callable[[Before], After]:
    def result(b: Before) -> int:
        text = f"{b.sources[0]:0{bits}b}"
        run = len(text) - len(text.lstrip(text[0]))
        return -1 if run == int(bits) else run

    return _plain(32, result)


def _quads(what: str, bits: str) -> Callable[[Before], After]:
    def result(b: Before) -> int:
        quads = [b.sources[0] >> i & 15 for i in range(0, int(bits), 4)]
        return sum(((15 << 4 * i) if what == "wqm" else 1 << i) for i, quad in enumerate(quads) if quad)

    return _nonzero(int(bits), result)


def _shift_add(amount: str) -> Callable[[Before], After]:
    def found(b: Before) -> After:
        exact = (b.sources[0] << int(amount)) + b.sources[1]
        return After(_modulo(exact, 32), int(exact >= 1 << 32))

    return found


def _pack(first: str, second: str) -> Callable[[Before], After]:
    def half(x: int, which: str) -> int:
        return x >> 16 if which == "h" else x & 0xFFFF

    return _plain(32, lambda b: half(b.sources[0], first) | half(b.sources[1], second) << 16)


def _set_bit(value: str, bits: str) -> Callable[[Before], After]:
    def result(b: Before) -> int:
        bit = 1 << b.sources[0] % int(bits)
        return b.old | bit if value == "1" else b.old & ~bit

    return _plain(int(bits), result)


def _high(kind: str) -> Callable[[Before], After]:
    def result(b: Before) -> int:
        x, y = (signed(s, 32) if kind == "i" else s for s in b.sources)
        return x * y >> 32

    return _plain(32, result)


# floats


def _format(bits: str) -> Format:
    return HALF if bits == "16" else SINGLE


def _float(bits: str, of: Callable[..., int]) -> Callable[[Before], After]:
    mask = (1 << int(bits)) - 1
    return lambda b: After(of(*(s & mask for s in b.sources)))


def _order(form: Format, x: int, y: int) -> int | None:
    """-1, 0 or 1; None if one is NaN."""
    if form.is_nan(x) or form.is_nan(y):
        return None
    a, b = (math.inf * (-1 if n & form.sign else 1) if form.is_infinite(n) else form.value(n) for n in (x, y))
    return (a > b) - (a < b)


_ORDERS: dict[str, tuple[int | None, ...]] = {
    "lt": (-1,), "eq": (0,), "le": (-1, 0), "gt": (1,), "lg": (-1, 1), "ge": (0, 1), "o": (-1, 0, 1), "u": (None,),
    "nge": (-1, None), "nlg": (0, None), "ngt": (-1, 0, None), "nle": (1, None), "neq": (-1, 1, None),
    "nlt": (0, 1, None),
}  # fmt: skip


def _compare_floats(how: str, bits: str) -> Callable[[Before], After]:
    form, mask = _format(bits), (1 << int(bits)) - 1
    return lambda b: After(scc=int(_order(form, b.sources[0] & mask, b.sources[1] & mask) in _ORDERS[how]))


def _rounded(how: str, bits: str) -> Callable[[Before], After]:
    form = _format(bits)
    ways: dict[str, Callable[[Fraction], int]] = {
        "ceil": math.ceil, "floor": math.floor, "trunc": math.trunc, "rndne": round,
    }  # fmt: skip
    of = ways[how]

    def result(x: int) -> int:
        if form.is_nan(x) or form.is_infinite(x):
            return x
        return form.round(Fraction(of(form.value(x))), x & form.sign)

    return _float(bits, result)


def _float_extreme(which: str, how: str, bits: str) -> Callable[[Before], After]:
    form = _format(bits)

    def result(x: int, y: int) -> int:
        if form.is_nan(x) or form.is_nan(y):
            return form.nan if how == "imum" or (form.is_nan(x) and form.is_nan(y)) else y if form.is_nan(x) else x
        order = _order(form, x, y)
        if order == 0:  # of the zeros, that with the sign is less
            return x | y if which == "min" else x & y
        return x if (order == -1) == (which == "min") else y

    return _float(bits, result)


def _fused(bits: str, of: Callable[[Before], tuple[int, int, int]]) -> Callable[[Before], After]:
    form, mask = _format(bits), (1 << int(bits)) - 1

    def found(b: Before) -> After:
        x, y, z = (number & mask for number in of(b))
        return After(form.fma(x, y, z))

    return found


def _to_half_towards_zero(x: int) -> int:
    if SINGLE.is_nan(x) or SINGLE.is_infinite(x):
        return SINGLE.convert(x, HALF)
    sign = x >> 31 << 15
    near = HALF.round(abs(SINGLE.value(x)), 0)
    if near == HALF.infinity or HALF.value(near) > abs(SINGLE.value(x)):
        near -= 1
    return sign | near


_RULES: list[tuple[str, Callable[..., Callable[[Before], After]]]] = [
    (r"s_(and|or|xor|nand|nor|xnor|and_not1|or_not1)_b(32|64)", _logic),
    (r"s_(\w+)_(save|wr)exec_b(32|64)", _exec),
    (r"s_(lshl|lshr|ashr)_([bi])(32|64)", _shift),
    (r"s_bfe_([ui])(32|64)", _extract),
    (r"s_bfm_b(32|64)", lambda bits: _plain(int(bits), lambda b: (
        (1 << b.sources[0] % int(bits)) - 1) << b.sources[1] % int(bits))),
    (r"s_cselect_b(?:32|64)", lambda: lambda b: After(b.sources[0 if b.scc else 1])),
    (r"s_cmov_b(?:32|64)", lambda: lambda b: After(b.sources[0] if b.scc else b.old)),
    (r"s_mov_b(?:32|64)", lambda: lambda b: After(b.sources[0])),
    (r"s_not_b(32|64)", lambda bits: _nonzero(int(bits), lambda b: ~b.sources[0])),
    (r"s_brev_b(32|64)", lambda bits: _plain(int(bits), lambda b: int(f"{b.sources[0]:0{bits}b}"[::-1], 2))),
    (r"s_(wqm|quadmask)_b(32|64)", _quads),
    (r"s_bcnt([01])_i32_b(32|64)", lambda value, bits: _nonzero(
        32, lambda b: f"{b.sources[0]:0{bits}b}".count(value))),
    (r"s_bitset([01])_b(32|64)", _set_bit),
    (r"s_bitcmp([01])_b(32|64)", lambda value, bits: lambda b: After(
        scc=int(b.sources[0] >> b.sources[1] % int(bits) & 1 == int(value)))),
    (r"s_ctz_i32_b(32|64)", lambda bits: _position("low", "1", bits)),
    (r"s_ff0_i32_b(32|64)", lambda bits: _position("low", "0", bits)),
    (r"s_clz_i32_u(32|64)", lambda bits: _position("high", "1", bits)),
    (r"s_cls_i32", lambda: _sign_run("32")),
    (r"s_cls_i32_i64", lambda: _sign_run("64")),
    (r"s_add_([iu])32", lambda kind: _sum(1, kind)),
    (r"s_sub_([iu])32", lambda kind: _sum(-1, kind)),
    (r"s_addc_u32", lambda: _carried(1)),
    (r"s_subb_u32", lambda: _carried(-1)),
    (r"s_absdiff_i32", lambda: _nonzero(32, lambda b: abs(signed(_modulo(b.sources[0] - b.sources[1], 32), 32)))),
    (r"s_abs_i32", lambda: _nonzero(32, lambda b: abs(signed(b.sources[0], 32)))),
    (r"s_(min|max)_([iu])32", _extreme),
    (r"s_mul_hi_([iu])32", _high),
    (r"s_mul_i32", lambda: _plain(32, lambda b: b.sources[0] * b.sources[1])),
    (r"s_(add|sub)_nc_u64", lambda op: _plain(64, lambda b: b.sources[0] + (1 if op == "add" else -1) * b.sources[1])),
    (r"s_mul_u64", lambda: _plain(64, lambda b: b.sources[0] * b.sources[1])),
    (r"s_lshl([1234])_add_u32", _shift_add),
    (r"s_pack_([lh])([lh])_b32_b16", _pack),
    (r"s_sext_i32_i(8|16)", lambda bits: _plain(32, lambda b: signed(b.sources[0] % (1 << int(bits)), int(bits)))),
    (r"s_bitreplicate_b64_b32", lambda: _plain(64, lambda b: sum(
        3 << 2 * i for i in range(32) if b.sources[0] >> i & 1))),
    (r"s_cmp_(eq|lg|gt|ge|lt|le)_([iu])(32|64)", _compare),
    (r"s_cmpk_(eq|lg|gt|ge|lt|le)_([iu])32", _compare_constant),
    (r"s_movk_i32", lambda: _plain(32, lambda b: signed(b.constant, 16))),
    (r"s_cmovk_i32", lambda: _plain(32, lambda b: signed(b.constant, 16) if b.scc else b.old)),
    (r"s_addk_i32", lambda: _add_constant),
    (r"s_mulk_i32", lambda: _plain(32, lambda b: b.old * signed(b.constant, 16))),
    (r"s_(add|sub|mul)_f(16|32)", lambda op, bits: _float(bits, getattr(_format(bits), op))),
    (r"s_cmp_(\w+)_f(16|32)", _compare_floats),
    (r"s_(ceil|floor|trunc|rndne)_f(16|32)", _rounded),
    (r"s_(min|max)(imum|_num)_f(16|32)", _float_extreme),
    (r"s_fmac_f(16|32)", lambda bits: _fused(bits, lambda b: (b.sources[0], b.sources[1], b.old))),
    (r"s_fmaak_f(32)", lambda bits: _fused(bits, lambda b: (b.sources[0], b.sources[1], b.sources[2]))),
    (r"s_fmamk_f(32)", lambda bits: _fused(bits, lambda b: (b.sources[0], b.sources[1], b.sources[2]))),
    (r"s_cvt_f32_i32", lambda: lambda b: After(SINGLE.round(Fraction(signed(b.sources[0], 32))))),
    (r"s_cvt_f32_u32", lambda: lambda b: After(SINGLE.round(Fraction(b.sources[0])))),
    (r"s_cvt_i32_f32", lambda: _plain(32, lambda b: SINGLE.to_int(b.sources[0], -(1 << 31), (1 << 31) - 1))),
    (r"s_cvt_u32_f32", lambda: _plain(32, lambda b: SINGLE.to_int(b.sources[0], 0, (1 << 32) - 1))),
    (r"s_cvt_f32_f16", lambda: lambda b: After(HALF.convert(b.sources[0] & 0xFFFF, SINGLE))),
    (r"s_cvt_hi_f32_f16", lambda: lambda b: After(HALF.convert(b.sources[0] >> 16, SINGLE))),
    (r"s_cvt_f16_f32", lambda: lambda b: After(SINGLE.convert(b.sources[0], HALF))),
    (r"s_cvt_pk_rtz_f16_f32", lambda: lambda b: After(
        _to_half_towards_zero(b.sources[0]) | _to_half_towards_zero(b.sources[1]) << 16)),
]  # fmt: skip
