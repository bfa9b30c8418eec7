"""Integer arithmetic of scalars: SOP1, SOP2, SOPC, SOPK.

Results stand in the order destination, SCC; sources in the order of the encoding, then SCC where it is read. What reads
its destination has it as the first source, and constants of 16 bits as the last.

Sources: AMD, "RDNA3 Instruction Set Architecture", sections 16.1 to 16.4; "RDNA4", the same; "CDNA3", 12.1 to 12.5.
"""

from __future__ import annotations

from collections.abc import Callable

from ...engine import I16, I32, I64, Emitter, InstructionSet, Type, Value, scalar
from ...engine.handlers import Semantics
from ..architecture import Architecture

Scalar = Callable[..., Value]
OLDER = {
    "s_and_not1": "s_andn2", "s_or_not1": "s_orn2", "s_ctz_i32": "s_ff1_i32", "s_clz_i32_u32": "s_flbit_i32_b32",
    "s_clz_i32_u64": "s_flbit_i32_b64", "s_cls_i32_i64": "s_flbit_i32_i64", "s_cls_i32": "s_flbit_i32",
}  # fmt: skip
"""What gfx11 calls so, and gfx9 and gfx10 otherwise; by how the names begin."""
NEWER = {
    "s_add_u32": "s_add_co_u32", "s_add_i32": "s_add_co_i32", "s_sub_u32": "s_sub_co_u32", "s_sub_i32": "s_sub_co_i32",
    "s_addc_u32": "s_add_co_ci_u32", "s_subb_u32": "s_sub_co_ci_u32", "s_addk_i32": "s_addk_co_i32",
}  # fmt: skip
"""What gfx12 calls otherwise."""


def _older(name: str) -> str:
    """The name of an instruction on gfx9 and gfx10."""
    return next((old + name[len(new) :] for new, old in OLDER.items() if name.startswith(new)), name)


def add(to: InstructionSet, arch: Architecture) -> None:
    """Adds the handlers of this subject."""

    def put(name: str, semantics: Semantics, results: list[Type], sources: list[Type]) -> None:
        if arch.generation < 11:
            name = _older(name)
        elif arch.generation >= 12:
            name = NEWER.get(name, name)
        to.scalar(name, semantics, [scalar(kind) for kind in results], [scalar(kind) for kind in sources])

    for bits, kind in ((32, I32), (64, I64)):
        for name, logic in _LOGIC.items():
            put(f"s_{name}_b{bits}", _with_scc(logic), [kind, I32], [kind, kind])
        for name, op in (("lshl_b", "shl"), ("lshr_b", "lshr"), ("ashr_i", "ashr")):
            put(f"s_{name}{bits}", _with_scc(_shift(op)), [kind, I32], [kind, I32])
        put(f"s_bfe_u{bits}", _with_scc(_extract(signed=False)), [kind, I32], [kind, I32])
        put(f"s_bfe_i{bits}", _with_scc(_extract(signed=True)), [kind, I32], [kind, I32])
        put(f"s_bfm_b{bits}", _bit_mask(kind), [kind], [I32, I32])
        put(f"s_cselect_b{bits}", _choose, [kind], [kind, kind, I32])
        put(f"s_cmov_b{bits}", lambda e, old, x, scc: _choose(e, x, old, scc), [kind], [kind, kind, I32])
        put(f"s_mov_b{bits}", lambda e, x: x, [kind], [kind])
        put(f"s_not_b{bits}", _with_scc(lambda e, x: ~x), [kind, I32], [kind])
        put(f"s_brev_b{bits}", lambda e, x: e.intrinsic("bitreverse", x), [kind], [kind])
        put(f"s_wqm_b{bits}", _with_scc(_whole_quads), [kind, I32], [kind])
        put(f"s_quadmask_b{bits}", _with_scc(_quads), [kind, I32], [kind])
        for value in (0, 1):
            put(f"s_bcnt{value}_i32_b{bits}", _with_scc(_count_of(value)), [I32, I32], [kind])
            put(f"s_bitset{value}_b{bits}", _set_bit(value), [kind], [kind, I32])
            put(f"s_bitcmp{value}_b{bits}", _test_bit(value), [I32], [kind, I32])
        put(f"s_ctz_i32_b{bits}", _first("cttz"), [I32], [kind])
        put(f"s_clz_i32_u{bits}", _first("ctlz"), [I32], [kind])
        put(f"s_cls_i32{'_i64' if bits == 64 else ''}", _sign_run, [I32], [kind])
        if arch.generation < 11:
            put(f"s_ff0_i32_b{bits}", lambda e, x: _first("cttz")(e, ~x), [I32], [kind])
    _arithmetic(put)
    _compare(put)
    _constants(put)
    if arch.generation >= 12:
        put("s_add_nc_u64", lambda e, x, y: x + y, [I64], [I64, I64])
        put("s_sub_nc_u64", lambda e, x, y: x - y, [I64], [I64, I64])
        put("s_mul_u64", lambda e, x, y: x * y, [I64], [I64, I64])


Put = Callable[[str, Semantics, "list[Type]", "list[Type]"], None]


def _arithmetic(put: Put) -> None:
    pair = [I32, I32]
    put("s_add_u32", _carry("add"), pair, pair)
    put("s_sub_u32", _carry("sub"), pair, pair)
    put("s_add_i32", _overflow("add"), pair, pair)
    put("s_sub_i32", _overflow("sub"), pair, pair)
    put("s_addc_u32", _add_with_carry, pair, [I32, I32, I32])
    put("s_subb_u32", _subtract_with_borrow, pair, [I32, I32, I32])
    put("s_absdiff_i32", _with_scc(lambda e, x, y: _absolute(e, x - y)), pair, pair)
    put("s_abs_i32", _with_scc(_absolute), pair, [I32])
    for sign, prefix in (("i", "s"), ("u", "u")):
        put(f"s_min_{sign}32", _extreme(f"{prefix}lt"), pair, pair)
        put(f"s_max_{sign}32", _extreme(f"{prefix}ge"), pair, pair)
        put(f"s_mul_hi_{sign}32", _high_product("sext" if sign == "i" else "zext"), [I32], pair)
    put("s_mul_i32", lambda e, x, y: x * y, [I32], pair)
    for amount in (1, 2, 3, 4):
        put(f"s_lshl{amount}_add_u32", _shift_add(amount), pair, pair)
    for first in "lh":
        for second in "lh":
            put(f"s_pack_{first}{second}_b32_b16", _pack(first, second), [I32], pair)
    put("s_sext_i32_i8", lambda e, x: e.convert("sext", e.convert("trunc", x, Type("i", 8)), I32), [I32], [I32])
    put("s_sext_i32_i16", lambda e, x: e.convert("sext", e.convert("trunc", x, I16), I32), [I32], [I32])
    put("s_bitreplicate_b64_b32", _replicate, [I64], [I32])


def _compare(put: Put) -> None:
    tests = {"eq": "eq", "lg": "ne", "gt": "gt", "ge": "ge", "lt": "lt", "le": "le"}
    for name, how in tests.items():
        for sign, prefix in (("i", "s"), ("u", "u")):
            test = how if how in ("eq", "ne") else prefix + how
            put(f"s_cmp_{name}_{sign}32", _test(test), [I32], [I32, I32])
            put(f"s_cmpk_{name}_{sign}32", _test(test), [I32], [I32, I32])
        if name in ("eq", "lg"):
            put(f"s_cmp_{name}_u64", _test(how), [I32], [I64, I64])


def _constants(put: Put) -> None:
    put("s_movk_i32", lambda e, number: number, [I32], [I32])
    put("s_cmovk_i32", lambda e, old, number, scc: _choose(e, number, old, scc), [I32], [I32, I32, I32])
    put("s_addk_i32", _overflow("add"), [I32, I32], [I32, I32])
    put("s_mulk_i32", lambda e, x, number: x * number, [I32], [I32, I32])


def _scc(e: Emitter, test: Value) -> Value:
    return e.convert("zext", test, I32)


def _with_scc(of: Scalar) -> Semantics:
    """SCC says whether the result is not zero."""

    def semantics(e: Emitter, *sources: Value) -> tuple[Value, Value]:
        found = of(e, *sources)
        return found, _scc(e, e.compare("ne", found, 0))

    return semantics


_LOGIC: dict[str, Scalar] = {
    "and": lambda e, x, y: x & y, "or": lambda e, x, y: x | y, "xor": lambda e, x, y: x ^ y,
    "nand": lambda e, x, y: ~(x & y), "nor": lambda e, x, y: ~(x | y), "xnor": lambda e, x, y: ~(x ^ y),
    "and_not1": lambda e, x, y: x & ~y, "or_not1": lambda e, x, y: x | ~y,
}  # fmt: skip


def _amount(e: Emitter, count: Value, kind: Type) -> Value:
    """The low bits of a count, 5 or 6 of them."""
    return e.convert("zext", count & (kind.bits - 1), kind)


def _shift(op: str) -> Scalar:
    return lambda e, x, count: e.binary(op, x, _amount(e, count, x.type))


def _extract(signed: bool) -> Scalar:
    """Bits 22 to 16 of the second operand say how many; more than there are leave zeros, or signs, above."""

    def semantics(e: Emitter, x: Value, how: Value) -> Value:
        shifted = e.binary("ashr" if signed else "lshr", x, _amount(e, how, x.type))
        width = e.convert("zext", (how >> 16) & 0x7F, x.type)
        spare = e.intrinsic("umin", e.intrinsic("usub.sat", e.value(x.type, x.type.bits), width), x.type.bits - 1)
        field = e.binary("ashr" if signed else "lshr", shifted << spare, spare)
        return e.select(e.compare("eq", width, 0), e.value(x.type, 0), field)

    return semantics


def _bit_mask(kind: Type) -> Scalar:
    def semantics(e: Emitter, count: Value, offset: Value) -> Value:
        one = e.value(kind, 1)
        return ((one << _amount(e, count, kind)) - 1) << _amount(e, offset, kind)

    return semantics


def _choose(e: Emitter, x: Value, y: Value, scc: Value) -> Value:
    return e.select(e.compare("ne", scc, 0), x, y)


def _whole_quads(e: Emitter, mask: Value) -> Value:
    """All bits of each four of which one is set."""
    return _any_of_four(e, mask) * 15


def _any_of_four(e: Emitter, mask: Value) -> Value:
    """The lowest bit of each four, set where one of them is."""
    pairs = mask | (mask >> 1)
    lowest = 0x1111_1111 if mask.type.bits == 32 else 0x1111_1111_1111_1111
    return (pairs | (pairs >> 2)) & lowest


def _quads(e: Emitter, mask: Value) -> Value:
    """A bit for each four, set where one of them is."""
    found, bits = _any_of_four(e, mask), mask.type.bits
    packed = e.value(mask.type, 0)
    for quad in range(bits // 4):
        packed = packed | (found >> 3 * quad & 1 << quad)
    return packed


def _count_of(value: int) -> Scalar:
    def semantics(e: Emitter, x: Value) -> Value:
        ones = e.intrinsic("ctpop", x if value else ~x)
        return e.convert("trunc", ones, I32)

    return semantics


def _set_bit(value: int) -> Scalar:
    def semantics(e: Emitter, old: Value, index: Value) -> Value:
        bit = e.value(old.type, 1) << _amount(e, index, old.type)
        return old | bit if value else old & ~bit

    return semantics


def _test_bit(value: int) -> Scalar:
    def semantics(e: Emitter, x: Value, index: Value) -> Value:
        bit = e.convert("trunc", x >> _amount(e, index, x.type), I32) & 1
        return bit if value else bit ^ 1

    return semantics


def _first(intrinsic: str) -> Scalar:
    """The position of the first one from one end, or -1."""

    def semantics(e: Emitter, x: Value) -> Value:
        found = e.convert("trunc", e.intrinsic(intrinsic, x, False), I32)
        return e.select(e.compare("eq", x, 0), e.value(I32, -1), found)

    return semantics


def _sign_run(e: Emitter, x: Value) -> Value:
    """How many bits from the top equal the sign; -1 if all do."""
    return _first("ctlz")(e, x ^ e.binary("ashr", x, x.type.bits - 1))


def _carry(op: str) -> Semantics:
    def semantics(e: Emitter, x: Value, y: Value) -> tuple[Value, Value]:
        found = e.binary(op, x, y)
        return found, _scc(e, e.compare("ult", found, x) if op == "add" else e.compare("ult", x, y))

    return semantics


def _overflow(op: str) -> Semantics:
    def semantics(e: Emitter, x: Value, y: Value) -> tuple[Value, Value]:
        found = e.binary(op, x, y)
        other = found ^ y if op == "add" else x ^ y
        return found, _sign(e, (found ^ x) & other)

    return semantics


def _sign(e: Emitter, x: Value) -> Value:
    return x >> x.type.bits - 1


def _add_with_carry(e: Emitter, x: Value, y: Value, scc: Value) -> tuple[Value, Value]:
    total = e.convert("zext", x, I64) + e.convert("zext", y, I64) + e.convert("zext", scc, I64)
    return e.convert("trunc", total, I32), e.convert("trunc", total >> 32, I32)


def _subtract_with_borrow(e: Emitter, x: Value, y: Value, scc: Value) -> tuple[Value, Value]:
    total = e.convert("zext", x, I64) - e.convert("zext", y, I64) - e.convert("zext", scc, I64)
    return e.convert("trunc", total, I32), e.convert("trunc", total >> 63, I32)


def _absolute(e: Emitter, x: Value) -> Value:
    return e.intrinsic("abs", x, False)


def _extreme(how: str) -> Semantics:
    """SCC says whether the first one is taken."""

    def semantics(e: Emitter, x: Value, y: Value) -> tuple[Value, Value]:
        first = e.compare(how, x, y)
        return e.select(first, x, y), _scc(e, first)

    return semantics


def _high_product(extend: str) -> Scalar:
    def semantics(e: Emitter, x: Value, y: Value) -> Value:
        return e.convert("trunc", (e.convert(extend, x, I64) * e.convert(extend, y, I64)) >> 32, I32)

    return semantics


def _shift_add(amount: int) -> Semantics:
    def semantics(e: Emitter, x: Value, y: Value) -> tuple[Value, Value]:
        total = (e.convert("zext", x, I64) << amount) + e.convert("zext", y, I64)
        return e.convert("trunc", total, I32), _scc(e, e.compare("ne", total >> 32, 0))

    return semantics


def _pack(first: str, second: str) -> Scalar:
    def semantics(e: Emitter, x: Value, y: Value) -> Value:
        low = x >> 16 if first == "h" else x & 0xFFFF
        return low | (y & -0x10000 if second == "h" else y << 16)

    return semantics


def _replicate(e: Emitter, x: Value) -> Value:
    """Each bit twice."""
    wide = e.convert("zext", x, I64)
    for shift, mask in ((16, 0x0000FFFF0000FFFF), (8, 0x00FF00FF00FF00FF), (4, 0x0F0F0F0F0F0F0F0F),
                        (2, 0x3333333333333333), (1, 0x5555555555555555)):  # fmt: skip
        wide = (wide | (wide << shift)) & mask
    return wide | (wide << 1)


def _test(how: str) -> Scalar:
    return lambda e, x, y: _scc(e, e.compare(how, x, y))
