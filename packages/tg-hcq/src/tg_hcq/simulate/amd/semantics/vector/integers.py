"""Integers of lanes.

Source: AMD, "RDNA3 Instruction Set Architecture", 16.7 to 16.10 (VOP2, VOP1, VOP3); of gfx950 alone: "AMD Instinct
MI350 Instruction Set Architecture", chapter 12.
"""

from __future__ import annotations

from collections.abc import Callable

from ....engine import I16, I32, I64, Emitter, Type, Value
from ....engine.handlers import Semantics
from ...modifiers import Kind
from .alu import Lanes, lanes_of

B16, B32, B64, MASK = Kind.B16, Kind.B32, Kind.B64, Kind.MASK
Binary = Callable[[Emitter, Value, Value], Value]


def add(to: Lanes) -> None:
    """Adds the handlers of this subject."""
    _bitwise(to)
    _sums(to)
    _carries(to)
    _shifts(to)
    _products(to)
    _ordered(to)
    _fields(to)
    _counts(to)
    _differences(to)


def operator(op: str) -> Binary:
    """An operator by LLVM's name."""
    return lambda e, x, y: e.binary(op, x, y)


def intrinsic(name: str) -> Binary:
    """An intrinsic of two operands by LLVM's name."""
    return lambda e, x, y: e.intrinsic(name, x, y)


def swapped(of: Binary) -> Binary:
    """With the second operand first."""
    return lambda e, x, y: of(e, y, x)


def low_bits(e: Emitter, x: Value, bits: int, signed: bool = False) -> Value:
    """The lowest bits, extended to the same type."""
    return e.convert("sext" if signed else "zext", e.convert("trunc", x, Type("i", bits)), x.type)


def _bitwise(to: Lanes) -> None:
    for op in ("and", "or", "xor"):
        to.op(f"v_{op}_b32", operator(op), [B32], [B32, B32])
        to.op(f"v_{op}_b16", operator(op), [B16], [B16, B16])
    to.op("v_xnor_b32", lambda e, x, y: ~(x ^ y), [B32], [B32, B32])
    to.op("v_not_b32", lambda e, x: ~x, [B32], [B32])
    to.op("v_not_b16", lambda e, x: ~x, [B16], [B16])
    to.op("v_mov_b32", lambda e, x: x, [B32], [B32])
    to.op("v_mov_b16", lambda e, x: x, [B16], [B16])
    to.op("v_mov_b64", lambda e, x: x, [B64], [B64])
    to.op("v_or3_b32", lambda e, x, y, z: x | y | z, [B32], [B32] * 3)
    to.op("v_xor3_b32", lambda e, x, y, z: x ^ y ^ z, [B32], [B32] * 3)
    to.op("v_and_or_b32", lambda e, x, y, z: x & y | z, [B32], [B32] * 3)
    to.op("v_lshl_or_b32", lambda e, x, n, y: x << (n & 31) | y, [B32], [B32] * 3)
    to.op("v_bfi_b32", lambda e, x, y, z: (x & y) | (~x & z), [B32], [B32] * 3)
    to.op("v_pk_mov_b32", lambda e, x, y: e.convert("zext", x, I64) | (e.convert("zext", y, I64) << 32), [B64],
          [B32, B32])  # fmt: skip
    to.op("v_swap_b32", lambda e, x, y: (y, x), [B32, B32], [B32, B32])
    to.op("v_cndmask_b32", lambda e, x, y, c: e.select(c, y, x), [B32], [Kind.F32, Kind.F32, MASK], floats=False)
    to.op("v_cndmask_b16", lambda e, x, y, c: e.select(c, y, x), [B16], [Kind.F16, Kind.F16, MASK], floats=False)
    for kind in (B32, B16):
        to.op(f"v_bitop3_b{kind.type.bits}", _bit_function, [kind], [kind] * 3, keeps=True)


def _bit_function(e: Emitter, x: Value, y: Value, z: Value) -> Value:
    """A function of three bits; the record's immediate is its truth table (MI350, 12.8, V_BITOP3_B32)."""
    table, found = e.convert("trunc", e.immediate(), x.type.of(0)), e.value(x.type, 0)
    for number in range(8):
        one = e.value(x.type, e.value(table.type, 0) - (table >> number & 1))
        for value, bit in ((x, 4), (y, 2), (z, 1)):
            one = one & (value if number & bit else ~value)
        found = found | one
    return found


def _sums(to: Lanes) -> None:
    for op in ("add", "sub"):
        for rev in ("", "rev") if op == "sub" else ("",):
            turn = swapped if rev else (lambda of: of)
            names = f"v_{op}{rev}_nc_u32 v_{op}{rev}_u32"
            to.op(names, turn(operator(op)), [B32], [B32, B32])
            to.op(_clamped(names), turn(intrinsic(f"u{op}.sat")), [B32], [B32, B32])
            names = f"v_{op}{rev}_nc_u16 v_{op}{rev}_u16"
            to.op(names, turn(operator(op)), [B16], [B16, B16])
            to.op(_clamped(names), turn(intrinsic(f"u{op}.sat")), [B16], [B16, B16])
        for kind in (B32, B16):
            bits = kind.type.bits
            names = f"v_{op}_nc_i{bits} v_{op}_i{bits}"
            to.op(names, operator(op), [kind], [kind] * 2, keeps=True)
            to.op(_clamped(names), intrinsic(f"s{op}.sat"), [kind], [kind] * 2, keeps=True)
    to.op("v_add3_u32", lambda e, x, y, z: x + y + z, [B32], [B32] * 3)
    to.op("v_xad_u32", lambda e, x, y, z: (x ^ y) + z, [B32], [B32] * 3)
    to.op("v_add_lshl_u32", lambda e, x, y, n: (x + y) << (n & 31), [B32], [B32] * 3)
    to.op("v_lshl_add_u32", lambda e, x, n, y: (x << (n & 31)) + y, [B32], [B32] * 3)
    to.op("v_lshl_add_u64", _shift_add, [B64], [B64, B32, B64])
    to.op("v_add_nc_u64 v_add_u64", operator("add"), [B64], [B64, B64])


def _shift_add(e: Emitter, x: Value, n: Value, y: Value) -> Value:
    """Shifts of up to 4 are known (MI300, 12.8, V_LSHL_ADD_U64: S1[2:0]); above them nothing is said."""
    return (x << e.convert("zext", n & 7, I64)) + y


def _clamped(names: str) -> str:
    return " ".join(f"{name}.clamp" for name in names.split())


def _carries(to: Lanes) -> None:
    def with_carry(x_sign: int, y_sign: int, takes: bool) -> Semantics:
        def semantics(e: Emitter, x: Value, y: Value, *carry: Value) -> tuple[Value, Value]:
            wide = [e.convert("zext", v, I64) for v in (x, y, *carry)]
            total = wide[0] + wide[1] if x_sign == y_sign else wide[0] - wide[1] if x_sign > 0 else wide[1] - wide[0]
            if takes:
                total = total + wide[2] if x_sign == y_sign else total - wide[2]
            return e.convert("trunc", total, I32), e.compare("ne", total >> 32, 0)

        return semantics

    for base, signs, old in (("add", (1, 1), "addc"), ("sub", (1, -1), "subb"), ("subrev", (-1, 1), "subbrev")):
        to.op(f"v_{base}_co_u32", with_carry(*signs, False), [B32, MASK], [B32, B32])
        to.op(f"v_{base}_co_ci_u32 v_{old}_co_u32", with_carry(*signs, True), [B32, MASK], [B32, B32, MASK])


def _shifts(to: Lanes) -> None:
    for name, op in (("lshlrev_b", "shl"), ("lshrrev_b", "lshr"), ("ashrrev_i", "ashr")):

        def shift(e: Emitter, n: Value, x: Value, op: str = op) -> Value:
            """By as many bits as fit."""
            bits = x.type.bits
            count = e.convert("zext" if bits > n.type.bits else "trunc", n, Type("i", bits)) & bits - 1
            return e.binary(op, x, count)

        to.op(f"v_{name}32", shift, [B32], [B32, B32])
        to.op(f"v_{name}64", shift, [B64], [B32, B64])
        to.op(f"v_{name}16", shift, [B16], [B16, B16])
    to.op("v_alignbit_b32", lambda e, x, y, n: e.intrinsic("fshr", x, y, n), [B32], [B32] * 3)
    to.op("v_alignbyte_b32", lambda e, x, y, n: e.intrinsic("fshr", x, y, (n & 3) << 3), [B32], [B32] * 3)


def _products(to: Lanes) -> None:
    to.op("v_mul_lo_u32", operator("mul"), [B32], [B32, B32])
    to.op("v_mul_lo_u16", operator("mul"), [B16], [B16, B16])
    for sign, extend in (("u", "zext"), ("i", "sext")):
        signed = sign == "i"

        def wide(e: Emitter, x: Value, y: Value, extend: str = extend) -> Value:
            return e.convert(extend, x, I64) * e.convert(extend, y, I64)

        def product24(e: Emitter, x: Value, y: Value, signed: bool = signed, wide: Binary = wide) -> Value:
            return wide(e, low_bits(e, x, 24, signed), low_bits(e, y, 24, signed))

        to.op(f"v_mul_hi_{sign}32", lambda e, x, y, wide=wide: e.convert("trunc", wide(e, x, y) >> 32, I32),
              [B32], [B32, B32])  # fmt: skip
        to.op(f"v_mul_{sign}32_{sign}24", lambda e, x, y, of=product24: e.convert("trunc", of(e, x, y), I32),
              [B32], [B32, B32])  # fmt: skip
        to.op(f"v_mul_hi_{sign}32_{sign}24", lambda e, x, y, of=product24: e.convert("trunc", of(e, x, y) >> 32, I32),
              [B32], [B32, B32])  # fmt: skip
        to.op(f"v_mad_{sign}32_{sign}24", lambda e, x, y, z, of=product24: e.convert("trunc", of(e, x, y), I32) + z,
              [B32], [B32] * 3)  # fmt: skip
        to.op(f"v_mad_{sign}32_{sign}24.clamp", _clamped_sum(product24, extend), [B32], [B32] * 3)
        to.op(f"v_mad_{sign}64_{sign}32 v_mad_co_{sign}64_{sign}32", _wide_sum(wide, signed), [B64, MASK],
              [B32, B32, B64])  # fmt: skip
        to.op(f"v_mad_nc_{sign}64_{sign}32", lambda e, x, y, z, wide=wide: wide(e, x, y) + z, [B64], [B32, B32, B64])
        to.op(f"v_mad_{sign}32_{sign}16", _sum_of_halves(extend), [B32], [B16, B16, B32])
        to.op(f"v_mad_{sign}16", lambda e, x, y, z: x * y + z, [B16], [B16] * 3, keeps=True)
        to.op(f"v_mad_legacy_{sign}16", lambda e, x, y, z: x * y + z, [B16], [B16] * 3)


def _sum_of_halves(extend: str) -> Semantics:
    return lambda e, x, y, z: e.convert(extend, x, I32) * e.convert(extend, y, I32) + z


def _clamped_sum(product: Binary, extend: str) -> Semantics:
    def semantics(e: Emitter, x: Value, y: Value, z: Value) -> Value:
        total = product(e, x, y) + e.convert(extend, z, I64)
        if extend == "zext":
            return e.convert("trunc", e.intrinsic("umin", total, 0xFFFFFFFF), I32)
        bounded = e.intrinsic("smax", e.intrinsic("smin", total, 0x7FFFFFFF), -(1 << 31))
        return e.convert("trunc", bounded, I32)

    return semantics


def _wide_sum(product: Binary, signed: bool) -> Semantics:
    """A sum of 65 bits; the mask has the highest."""

    def semantics(e: Emitter, x: Value, y: Value, z: Value) -> tuple[Value, Value]:
        p = product(e, x, y)
        total = p + z
        carry = e.compare("ult", total, p)
        if not signed:
            return total, carry
        signs = e.compare("slt", p, 0) ^ e.compare("slt", z, 0)
        return total, carry ^ signs

    return semantics


def _ordered(to: Lanes) -> None:
    for sign, prefix in (("u", "u"), ("i", "s")):
        least, most = intrinsic(f"{prefix}min"), intrinsic(f"{prefix}max")
        for kind in (B32, B16):
            suffix = f"{sign}{kind.type.bits}"
            to.op(f"v_min_{suffix}", least, [kind], [kind] * 2)
            to.op(f"v_max_{suffix}", most, [kind], [kind] * 2)
            for name, inner, outer in (
                ("min3", least, least), ("max3", most, most), ("maxmin", most, least), ("minmax", least, most),
            ):  # fmt: skip
                to.op(f"v_{name}_{suffix}",
                      lambda e, x, y, z, inner=inner, outer=outer: outer(e, inner(e, x, y), z),
                      [kind], [kind] * 3, keeps=True)  # fmt: skip
            to.op(f"v_med3_{suffix}", middle(least, most), [kind], [kind] * 3, keeps=True)


def middle(least: Binary, most: Binary) -> Semantics:
    """The one of three that is neither the least nor the most."""
    return lambda e, x, y, z: most(e, least(e, x, y), least(e, most(e, x, y), z))


def _fields(to: Lanes) -> None:
    def extract(signed: bool) -> Semantics:
        def semantics(e: Emitter, x: Value, offset: Value, width: Value) -> Value:
            offset, width = offset & 31, width & 31
            moved = e.binary("ashr" if signed else "lshr", x, offset)
            ones = (e.value(x.type, 1) << width) - 1
            found = moved & ones
            if not signed:
                return found
            sign = e.binary("lshr", ones, 1) + 1  # the field's highest bit; of an empty field the mask is empty, too
            return (((found ^ sign) - sign) & e.select(e.compare("eq", width, 0), e.value(x.type, 0), -1))

        return semantics

    to.op("v_bfe_u32", extract(False), [B32], [B32] * 3)
    to.op("v_bfe_i32", extract(True), [B32], [B32] * 3)
    to.op("v_bfm_b32", lambda e, w, o: ((e.value(w.type, 1) << (w & 31)) - 1) << (o & 31), [B32], [B32, B32])
    to.op("v_bfrev_b32", lambda e, x: e.intrinsic("bitreverse", x), [B32], [B32])
    to.op("v_perm_b32", permute, [B32], [B32] * 3)
    to.op("v_pack_b32_f16", _pack, [B32], [Kind.F16, Kind.F16], floats=False)
    to.op("v_cvt_pk_u16_u32", _narrow("umin", "umax", 0xFFFF, 0), [B32], [B32, B32])
    to.op("v_cvt_pk_i16_i32", _narrow("smin", "smax", 0x7FFF, -0x8000), [B32], [B32, B32])
    to.op("v_sat_pk_u8_i16", _narrow_bytes, [B16], [B32])
    for sign, low, high in (("i", -128, 127), ("u", 0, 255)):
        to.op(f"v_ashr_pk_{sign}8_i32", _shifted_bytes(low, high), [B16], [B32] * 3, keeps=True)
    to.op("v_cvt_i32_i16", lambda e, x: e.convert("sext", x, I32), [B32], [B16])
    to.op("v_cvt_u32_u16", lambda e, x: e.convert("zext", x, I32), [B32], [B16])
    to.op("v_prng_b32", _generate, [B32], [B32])


def permute(e: Emitter, x: Value, y: Value, selector: Value) -> Value:
    """Four bytes out of eight, of which the second operand has the lower ones, and constants by selectors from 8 on."""
    data = e.convert("zext", y, I64) | (e.convert("zext", x, I64) << 32)
    found = e.value(x.type, 0)
    for i in range(4):
        select = selector >> 8 * i & 0xFF
        byte = e.convert("trunc", data >> (e.convert("zext", select & 7, I64) << 3), I32) & 0xFF
        # 8 to 11: the signs of bytes 1, 3, 5 and 7
        which = e.convert("zext", (select & 3) << 4, I64) + 15
        sign = e.value(x.type, 0) - (e.convert("trunc", data >> which, I32) & 1) & 0xFF
        byte = e.select(e.compare("ult", select, 8), byte, sign)
        byte = e.select(e.compare("eq", select, 12), e.value(x.type, 0), byte)
        byte = e.select(e.compare("ugt", select, 12), e.value(x.type, 0xFF), byte)
        found = found | byte << 8 * i
    return found


def _four_times(of: Callable[[Emitter, Value, Value], Value]) -> Semantics:
    """For the four bytes from each of the first ones on; sums are of 16 bits."""

    def semantics(e: Emitter, x: Value, y: Value, z: Value) -> Value:
        found = e.value(x.type, 0)
        for i in range(4):
            total = of(e, e.convert("trunc", x >> 8 * i, I32), y) + e.convert("trunc", z >> 16 * i, I32)
            found = found | e.convert("zext", total & 0xFFFF, I64) << 16 * i
        return found

    return semantics


def halves(e: Emitter, x: Value) -> tuple[Value, Value]:
    """The low and the high 16 bits of a register."""
    return e.convert("trunc", x, I16), e.convert("trunc", x >> 16, I16)


def joined(e: Emitter, low: Value, high: Value) -> Value:
    """Two halves, of integers or floats, as a register."""
    low, high = (e.bits(v, v.type.integer) if v.type.kind == "f" else v for v in (low, high))
    return e.convert("zext", low, I32) | (e.convert("zext", high, I32) << 16)


def _pack(e: Emitter, x: Value, y: Value) -> Value:
    return joined(e, x, y)


def _narrow(least: str, most: str, high: int, low: int) -> Semantics:
    def semantics(e: Emitter, x: Value, y: Value) -> Value:
        x, y = (e.intrinsic(most, e.intrinsic(least, v, high), low) for v in (x, y))
        return joined(e, e.convert("trunc", x, I16), e.convert("trunc", y, I16))

    return semantics


def _narrow_bytes(e: Emitter, x: Value) -> Value:
    low, high = (e.intrinsic("smin", e.intrinsic("smax", v, 0), 255) for v in halves(e, x))
    return low | high << 8


def _shifted_bytes(low: int, high: int) -> Semantics:
    """Two numbers shifted by the same count, each as the nearest of a byte."""

    def semantics(e: Emitter, x: Value, y: Value, count: Value) -> Value:
        first, second = (
            e.intrinsic("smin", e.intrinsic("smax", e.binary("ashr", v, count & 31), low), high) & 0xFF for v in (x, y)
        )
        return e.convert("trunc", first | second << 8, I16)

    return semantics


def _generate(e: Emitter, x: Value) -> Value:
    return (x << 1) ^ e.select(e.compare("slt", x, 0), e.value(x.type, 197), 0)


def _counts(to: Lanes) -> None:
    def leading(e: Emitter, x: Value) -> Value:
        return e.select(e.compare("eq", x, 0), e.value(x.type, -1), e.intrinsic("ctlz", x, False))

    def trailing(e: Emitter, x: Value) -> Value:
        return e.select(e.compare("eq", x, 0), e.value(x.type, -1), e.intrinsic("cttz", x, False))

    def signs(e: Emitter, x: Value) -> Value:
        return leading(e, x ^ e.binary("ashr", x, 31))

    to.op("v_clz_i32_u32 v_ffbh_u32", leading, [B32], [B32])
    to.op("v_ctz_i32_b32 v_ffbl_b32", trailing, [B32], [B32])
    to.op("v_cls_i32 v_ffbh_i32", signs, [B32], [B32])
    to.op("v_bcnt_u32_b32", lambda e, x, y: e.intrinsic("ctpop", x) + y, [B32], [B32, B32])
    for name, start in (("lo", 0), ("hi", 32)):

        def below(e: Emitter, x: Value, y: Value, start: int = start) -> Value:
            """Counts the bits of the lanes before this one."""
            lane = e.convert("zext", lanes_of(e), I64)
            before = (e.value(lane.type, 1) << lane) - 1
            return e.intrinsic("ctpop", x & e.convert("trunc", before >> start, I32)) + y

        to.op(f"v_mbcnt_{name}_u32_b32", below, [B32], [B32, B32])


def _differences(to: Lanes) -> None:
    def apart(e: Emitter, x: Value, y: Value) -> Value:
        return e.intrinsic("umax", x, y) - e.intrinsic("umin", x, y)

    def of_parts(bits: int, masked: bool = False) -> Callable[[Emitter, Value, Value], Value]:
        def total(e: Emitter, x: Value, y: Value) -> Value:
            found = e.value(x.type, 0)
            for at in range(0, 32, bits):
                a, b = (v >> at & (1 << bits) - 1 for v in (x, y))
                one = apart(e, a, b)
                found = found + (e.select(e.compare("eq", b, 0), e.value(x.type, 0), one) if masked else one)
            return found

        return total

    bytes_apart, halves_apart, masked = of_parts(8), of_parts(16), of_parts(8, True)
    to.op("v_sad_u8", lambda e, x, y, z: bytes_apart(e, x, y) + z, [B32], [B32] * 3)
    to.op("v_sad_hi_u8", lambda e, x, y, z: (bytes_apart(e, x, y) << 16) + z, [B32], [B32] * 3)
    to.op("v_sad_u16", lambda e, x, y, z: halves_apart(e, x, y) + z, [B32], [B32] * 3)
    to.op("v_sad_u32", lambda e, x, y, z: apart(e, x, y) + z, [B32], [B32] * 3)
    to.op("v_msad_u8", lambda e, x, y, z: masked(e, x, y) + z, [B32], [B32] * 3)
    to.op("v_qsad_pk_u16_u8", _four_times(bytes_apart), [B64], [B64, B32, B64])
    to.op("v_mqsad_pk_u16_u8", _four_times(masked), [B64], [B64, B32, B64])
    to.op("v_lerp_u8", _mean_of_bytes, [B32], [B32] * 3)


def _mean_of_bytes(e: Emitter, x: Value, y: Value, rounding: Value) -> Value:
    found = e.value(x.type, 0)
    for at in range(0, 32, 8):
        total = (x >> at & 0xFF) + (y >> at & 0xFF) + (rounding >> at & 1)
        found = found | (total >> 1) << at
    return found
