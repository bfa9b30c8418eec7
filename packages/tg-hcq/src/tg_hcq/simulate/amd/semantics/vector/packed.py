"""Two numbers in a register or in a pair of them, mixed precision, and dot products of integers.

Source: AMD, "RDNA3 Instruction Set Architecture", 16.6 "VOP3P Instructions"; "AMD Instinct MI300 Instruction Set
Architecture", 12.7 (of 32 bits).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ....engine import F16, F32, F64, I32, I64, Emitter, Value
from ....engine.handlers import Semantics
from ...modifiers import Kind
from .alu import Lanes
from .floats import extreme, extreme_by_mode
from .integers import halves, intrinsic, joined, low_bits, operator
from .numbers import HALF, fused, narrowed, widened, without_subnormals


def add(to: Lanes) -> None:
    """Adds the handlers of this subject."""
    _of_integers(to)
    _of_halves(to)
    _of_singles(to)
    _mixed(to)
    _dots(to)


def twice(of: Semantics, floats: bool = False) -> Semantics:
    """The same with both halves."""

    def semantics(e: Emitter, *values: Value) -> Value:
        parts = [halves(e, v) for v in values]
        results = []
        for half in zip(*parts, strict=True):
            found = of(e, *((e.bits(v, F16) for v in half) if floats else half))
            assert isinstance(found, Value)
            results.append(found)
        return joined(e, *results)

    return semantics


def _of_integers(to: Lanes) -> None:
    packed = Kind.PACKED
    for op in ("add", "sub"):
        for sign, prefix in (("u", "u"), ("i", "s")):
            to.op(f"v_pk_{op}_{sign}16", twice(operator(op)), [packed], [packed] * 2)
            to.op(f"v_pk_{op}_{sign}16.clamp", twice(intrinsic(f"{prefix}{op}.sat")), [packed], [packed] * 2)
    to.op("v_pk_mul_lo_u16", twice(operator("mul")), [packed], [packed] * 2)
    for sign, prefix in (("u", "u"), ("i", "s")):
        to.op(f"v_pk_mad_{sign}16", twice(lambda e, x, y, z: x * y + z), [packed], [packed] * 3)
        for op in ("min", "max"):
            to.op(f"v_pk_{op}_{sign}16", twice(intrinsic(f"{prefix}{op}")), [packed], [packed] * 2)
    for name, op in (("lshlrev_b", "shl"), ("lshrrev_b", "lshr"), ("ashrrev_i", "ashr")):
        to.op(f"v_pk_{name}16", twice(lambda e, n, x, op=op: e.binary(op, x, n & 15)), [packed], [packed] * 2)


def _of_halves(to: Lanes) -> None:
    packed = Kind.PACKED_F16
    for op in ("add", "mul"):
        to.op(f"v_pk_{op}_f16", twice(operator(f"f{op}"), True), [packed], [packed] * 2)
    to.op("v_pk_fma_f16 v_pk_fmac_f16", twice(fused, True), [packed], [packed] * 3)
    for op, most in (("min", False), ("max", True)):
        number, both = extreme(HALF, most, True), extreme(HALF, most, False)
        to.op(f"v_pk_{op}_f16", twice(extreme_by_mode(HALF, most), True), [packed], [packed] * 2)
        to.op(f"v_pk_{op}_num_f16", twice(number, True), [packed], [packed] * 2)
        to.op(f"v_pk_{op}imum_f16", twice(both, True), [packed], [packed] * 2)
        to.op(f"v_pk_{op}imum3_f16", twice(lambda e, x, y, z, of=both: of(e, of(e, x, y), z), True),
              [packed], [packed] * 3)  # fmt: skip


def _of_singles(to: Lanes) -> None:
    packed = Kind.PACKED_F32

    def pair(of: Semantics) -> Semantics:
        def semantics(e: Emitter, *values: Value) -> Value:
            results = []
            for shift in (0, 32):
                found = of(e, *(e.bits(e.convert("trunc", v >> shift, I32), F32) for v in values))
                assert isinstance(found, Value)
                results.append(e.convert("zext", e.bits(found, I32), I64))
            return results[0] | (results[1] << 32)

        return semantics

    for op in ("add", "mul"):
        to.op(f"v_pk_{op}_f32", pair(operator(f"f{op}")), [packed], [packed] * 2)
    to.op("v_pk_fma_f32", pair(fused), [packed], [packed] * 3)


def _mixed(to: Lanes) -> None:
    sources = [Kind.MIXED] * 3
    to.op("v_fma_mix_f32", fused, [Kind.F32], sources)
    to.op("v_fma_mixlo_f16 v_fma_mixhi_f16", lambda e, x, y, z: narrowed(e, fused(e, x, y, z), F16), [Kind.F16],
          sources, keeps=True)  # fmt: skip


def _dots(to: Lanes) -> None:
    for count, bits in ((2, 16), (4, 8), (8, 4)):
        parts = Kind.PACKED if bits == 16 else Kind.B32
        for sign, signed in (("i", True), ("u", False)):
            names = f"v_dot{count}_{sign}32_{sign}{bits} v_dot{count}c_{sign}32_{sign}{bits}"
            to.op(names, dot(bits, [signed, signed]), [Kind.B32], [parts, parts, Kind.B32])
        for which in range(4):
            to.op(f"v_dot{count}_i32_iu{bits}.{which}", dot(bits, [bool(which & 1), bool(which & 2)]),
                  [Kind.B32], [Kind.B32] * 3)  # fmt: skip
    packed = Kind.PACKED_F16
    to.op("v_dot2_f32_f16 v_dot2c_f32_f16 v_dot2acc_f32_f16", _of_pairs(_half), [Kind.F32], [packed, packed, Kind.F32])
    to.op("v_dot2_f32_bf16 v_dot2c_f32_bf16 v_dot2acc_f32_bf16", _of_pairs(_brain), [Kind.F32],
          [Kind.PACKED, Kind.PACKED, Kind.F32])  # fmt: skip


def _half(e: Emitter, bits: Value) -> Value:
    return e.convert("fpext", e.bits(bits, F16), F32)


def _brain(e: Emitter, bits: Value) -> Value:
    """Its subnormals are those of float32, which are zero."""
    return without_subnormals(e, e.bits(e.convert("zext", bits, I32) << 16, F32))


def _of_pairs(number: Callable[[Emitter, Value], Value]) -> Semantics:
    """The low product is added first, then the high one; subnormal float32 are zero, whatever the mode.

    Hostile hardware adds the three in any order, and rounds once or twice.

    Sources: RDNA 3, 16.6; LLVM, ``SITargetLowering::performFMACombine`` (of subnormal numbers, and that it is done only
    where contraction is allowed); the review of that function, D49146 ("this operation only rounds a single time").
    """

    def semantics(e: Emitter, x: Value, y: Value, z: Value) -> Value:
        total = without_subnormals(e, z)
        (a, b), (c, d) = ((number(e, first), number(e, second))
                          for first, second in zip(halves(e, x), halves(e, y), strict=True))  # fmt: skip
        return without_subnormals(e, _sum_of_products(e, total, a, b, c, d))

    return semantics


def _sum_of_products(e: Emitter, total: Value, a: Value, b: Value, c: Value, d: Value) -> Value:
    found = e.intrinsic("fma", c, d, e.intrinsic("fma", a, b, total))
    if e.hostile:
        which = e.drawn(total.type.lanes) & 3
        others = (
            e.intrinsic("fma", a, b, e.intrinsic("fma", c, d, total)),
            total + e.intrinsic("fma", a, b, c * d),
            narrowed(e, widened(e, a * b, F64) + widened(e, c * d, F64) + widened(e, total, F64), F32),
        )
        for number, other in enumerate(others):
            found = e.select(e.compare("eq", which, number), other, found)
    return found


def dot(bits: int, signed: Sequence[bool]) -> Semantics:
    """A sum of products of the parts of two registers, and a third one."""

    def semantics(e: Emitter, x: Value, y: Value, z: Value) -> Value:
        for at in range(0, 32, bits):
            a, b = (low_bits(e, v >> at, bits, s) for v, s in zip((x, y), signed, strict=True))
            z = z + a * b
        return z

    return semantics
