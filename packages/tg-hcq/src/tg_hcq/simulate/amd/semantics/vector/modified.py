"""The routine of modified instructions of lanes: sources and results of the plain one lie in rows of its own.

It selects, permutes and negates sources, sets the rounding of the host, lets the plain instruction work on a copy of
the record, and brings the result to where it belongs. So no instruction has a handler for each of its modifiers.

Sources: AMD, "RDNA3 Instruction Set Architecture", 3.4.1 "Mode register", 7.2 "VALU Operands", 7.7 "DPP"; "AMD Instinct
MI300 Instruction Set Architecture", 12.10 "SDWA and DPP"; of OMOD, "Vega Instruction Set Architecture", 6.2 "Operands":
with it subnormal results are zero, and -0 is +0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ....engine import F16, F32, F64, I1, I16, I32, I64, Emitter, FaultKind, InstructionSet, Type, Value
from ....engine.emitter import STRIP
from ....engine.handlers import active_bits
from ....engine.state import EXEC, NEXT, OPERANDS, RECORD_BYTES
from ... import modifiers as m
from ...architecture import Architecture
from ...modifiers import Kind
from ...registers import FLOATS, temporaries
from .alu import mode
from .numbers import magnitude

SINGLES_IN, SINGLES_OUT, OTHERS_IN, OTHERS_OUT = 0x10, 0x20, 0x40, 0x80  # in MODE: subnormals are allowed
NAN_CLAMPS, IEEE = 0x100, 0x200  # in MODE: DX10_CLAMP, and quieting of NaN
WORDS = I32.of(STRIP)
_NORMAL = {16: 2.0**-14, 32: 2.0**-126, 64: 2.0**-1022}  # the least normal number, by the bits of a format
_ROUNDINGS = 0b00_11_10_01  # LLVM's number of each of AMD's (nearest even, up, down, towards zero), two bits each


def add(to: InstructionSet, arch: Architecture) -> None:
    """Adds the routines."""
    rows = temporaries(arch)
    to.routine("ptr @modified(ptr %w, ptr %r, ptr %plain, i64 %meta)", lambda e: _modified(e, rows))
    to.routine(
        "ptr @source(ptr %w, ptr %r, i32 %offset, i32 %kind, i32 %mods, i32 %to, i32 %mode)", lambda e: _source(e)
    )
    to.routine("i64 @permute(ptr %w, i32 %from, i32 %to, i32 %how, i32 %masks)", _permute)
    to.routine(
        "void @result(ptr %w, i32 %to, i32 %from, i32 %kind, i32 %mods, i32 %mode, i64 %active, i32 %keeps)",
        lambda e: _result(e, arch.generation < 12),
    )


def _argument(e: Emitter, name: str, kind: Type = I32) -> Value:
    return Value(e, kind, f"%{name}")


def _slot_of(e: Emitter, record: str, index: Value) -> Value:
    place = e.at(record, (e.convert("zext", index, I64) << 2) + OPERANDS)
    return e.load(I32, place, 4)


def _modified(e: Emitter, rows: int) -> None:
    layout = e.layout
    meta = _argument(e, "meta", I64)

    def bits(position: int, count: int) -> Value:
        return e.convert("trunc", meta >> position & (1 << count) - 1, I32)

    results, sources, rounding = bits(0, 2), bits(2, 2), bits(20, 2)
    e.do(f"%copy = alloca [{RECORD_BYTES} x i8], align 64")
    e.store(e.load(I32.of(RECORD_BYTES // 4), "%r", 8), "%copy", 8)
    how_sources, how_result, how, masks = (e.slot(i) for i in (m.SOURCES, m.RESULT, m.PERMUTATION, m.PERMUTED))
    for index in (m.SOURCES, m.RESULT, m.PERMUTATION, m.PERMUTED):
        e.store(e.value(I32, 0), e.at("%copy", OPERANDS + 4 * index))
    real_mode, executing = mode(e), e.exec()
    floats = e.compare("ne", bits(23, 1), 0)
    obeyed = e.select(floats, real_mode, FLOATS)
    # what rounds in two formats is not known where their modes differ
    apart = e.compare("eq", rounding, 3) & e.compare("ne", (obeyed ^ obeyed >> 2) & 3, 0)
    e.do(f"br i1 {apart.text}, label %unknown, label %known")
    e.label("unknown")
    e.fault(FaultKind.UNDECODABLE)
    e.label("known")
    temporary = [layout.vector(rows + 2 * i) for i in range(5)]  # three sources, what is permuted, the result
    e.do("br label %start")
    e.label("start")
    permutes = e.compare("ne", how, 0)
    e.do(f"br i1 {permutes.text}, label %permuting, label %fetch")
    e.label("permuting")
    first = _slot_of(e, "%r", results)
    wide = _is(e, bits(8, 4), Kind.B64, Kind.F64, Kind.PACKED_F32)
    e.check(first, e.select(wide, e.value(I32, 2), 1))
    allowed = e.emit(I64, f"call i64 @permute(ptr %w, i32 {first.text}, i32 {temporary[3]}, i32 {how.text}, "
                          f"i32 {masks.text})")  # fmt: skip
    e.do("br label %permuted")
    e.label("permuted")
    e.do("br label %fetch")
    e.label("fetch")
    writes = e.emit(I64, f"phi i64 [ -1, %start ], [ {allowed.text}, %permuted ]")
    for i in range(3):
        more = e.compare("ugt", sources, i)
        kind = bits(8 + 4 * i, 4)
        wanted = e.binary("and", more, e.compare("ne", kind, int(Kind.MASK)))
        e.do(f"br i1 {wanted.text}, label %source{i}, label %after{i}")
        e.label(f"source{i}")
        position = results + i
        offset = _slot_of(e, "%r", position)
        if i == 0:
            offset = e.select(permutes, e.value(I32, temporary[3]), offset)
        mods = how_sources >> 8 * i & 0xFF
        came = e.emit(I64, f"call ptr @source(ptr %w, ptr %r, i32 {offset.text}, i32 {kind.text}, i32 {mods.text}, "
                           f"i32 {temporary[i]}, i32 {obeyed.text})")  # fmt: skip
        fine = e.emit(I1, f"icmp ne ptr {came.text}, null")
        e.do(f"br i1 {fine.text}, label %place{i}, label %poison")
        e.label(f"place{i}")
        place = e.at("%copy", (e.convert("zext", position, I64) << 2) + OPERANDS)
        e.store(e.value(I32, temporary[i]), place, 4)
        e.do(f"br label %after{i}")
        e.label(f"after{i}")
    kind = bits(4, 4)
    target = e.slot(0)
    of_row = e.compare("ne", kind, int(Kind.MASK))
    e.store(e.select(of_row, e.value(I32, temporary[4]), target), e.at("%copy", OPERANDS), 4)
    # the plain instruction finds the usual modes, and the lanes that it may write
    e.store((real_mode & ~0xFF) | FLOATS, e.at("%w", layout.scalar("mode")), 4)
    shift = e.select(e.compare("uge", rounding, 2), e.value(I32, 2), 0)
    asked = e.select(e.compare("eq", rounding, 0), e.value(I32, 0), e.binary("lshr", obeyed, shift) & 3)
    # OMOD is a product (LLVM makes one of it, ``SIFoldOperands::tryFoldOMod``): rounded in the format of the result,
    # also where the instruction itself rounds whatever the mode
    shift = e.select(_is(e, kind, Kind.F32, Kind.PACKED_F32), e.value(I32, 0), 2)
    asked_after = e.binary("lshr", obeyed, shift) & 3
    turned, turned_after = e.compare("ne", asked, 0), e.compare("ne", asked | asked_after, 0)
    e.declarations["declare void @llvm.set.rounding(i32)"] = None
    e.do(f"br i1 {turned.text}, label %turn, label %work")
    e.label("turn")
    _round_as(e, asked)
    e.do("br label %work")
    e.label("work")
    inside = executing & writes
    e.do(f"br i1 {permutes.text}, label %narrow, label %call")
    e.label("narrow")
    e.set_field(EXEC, inside)
    e.do("br label %call")
    e.label("call")
    done = e.emit(I64, "call ptr %plain(ptr %w, ptr %copy)")
    e.do(f"br i1 {permutes.text}, label %widen, label %called")
    e.label("widen")
    e.set_field(EXEC, executing)
    e.do("br label %called")
    e.label("called")
    e.store(real_mode, e.at("%w", layout.scalar("mode")), 4)
    fine = e.emit(I1, f"icmp ne ptr {done.text}, null")
    e.do(f"br i1 {fine.text}, label %finish, label %restore.bad")
    e.label("finish")
    e.do(f"br i1 {of_row.text}, label %write, label %restore")
    e.label("write")
    e.do(f"br i1 {turned_after.text}, label %write.turn, label %write.call")
    e.label("write.turn")
    _round_as(e, asked_after)
    e.do("br label %write.call")
    e.label("write.call")
    e.do(f"call void @result(ptr %w, i32 {target.text}, i32 {temporary[4]}, i32 {kind.text}, i32 {how_result.text}, "
         f"i32 {obeyed.text}, i64 {inside.text}, i32 {bits(22, 1).text})")  # fmt: skip
    e.do("br label %restore")
    for name, after in (("restore", "leave"), ("restore.bad", "poison")):
        e.label(name)
        e.do(f"br i1 {turned_after.text}, label %{name}.turn, label %{after}")
        e.label(f"{name}.turn")
        e.do("call void @llvm.set.rounding(i32 1)")
        e.do(f"br label %{after}")
    e.label("poison")
    e.do("ret ptr null")
    e.label("leave")
    distance = e.convert("sext", e.load(I32, e.at("%r", NEXT)), I64)
    e.do(f"ret ptr {e.at('%r', distance)}")


def _round_as(e: Emitter, asked: Value) -> None:
    """Lets the host round as two bits of MODE say."""
    host = e.binary("lshr", e.value(I32, _ROUNDINGS), asked << 1) & 3
    e.do(f"call void @llvm.set.rounding(i32 {host.text})")


def _strips(e: Emitter, body: Callable[[Value], None]) -> None:
    """A loop over the strips of a wave."""
    e.do("br label %before")
    e.label("before")
    e.do("br label %strip")
    e.label("strip")
    lane = e.emit(I64, "phi i64 [ 0, %before ], [ %next, %strip.end ]")
    body(lane)
    e.do("br label %strip.end")
    e.label("strip.end")
    e.do(f"%next = add i64 {lane.text}, {STRIP}")
    e.do(f"%more = icmp ult i64 %next, {e.layout.lanes}")
    e.do("br i1 %more, label %strip, label %done")
    e.label("done")


def _row(e: Emitter, offset: Value, lane: Value) -> str:
    return e.at("%w", e.convert("zext", offset, I64) + (lane << 2))


def _pick(e: Emitter, choices: Iterable[tuple[Value, Value | int]], default: Value | int, kind: Type = I32) -> Value:
    """The value of the first condition that holds."""
    found = e.value(kind, default)
    for condition, value in reversed(list(choices)):
        found = e.select(condition, e.value(kind, value), found)
    return found


def _is(e: Emitter, kind: Value, *kinds: Kind) -> Value:
    tests = [e.compare("eq", kind, int(k)) for k in kinds]
    found = tests[0]
    for test in tests[1:]:
        found = found | test
    return found


def _flushed(e: Emitter, x: Value, exponent: Value | int, fraction: Value | int, wanted: Value) -> Value:
    """Without the fraction where the exponent is zero, if that is wanted."""
    gone = e.select(wanted, e.value(I32, fraction), 0)
    low = e.compare("eq", x & e.value(x.type, e.value(I32, exponent)), 0)
    return e.select(low, x & e.value(x.type, ~gone), x)


def _source(e: Emitter) -> None:
    offset, kind, mods, to, of_mode = (_argument(e, name) for name in ("offset", "kind", "mods", "to", "mode"))
    layout = e.layout
    wide = _is(e, kind, Kind.B64, Kind.F64, Kind.PACKED_F32)
    e.check(offset, e.select(wide, e.value(I32, 2), 1))
    in_row = e.compare("sge", offset, layout.rows)
    row = e.select(in_row, offset, layout.rows)
    base = e.scalar_address(e.select(in_row, e.value(I32, EXEC), offset))
    single = e.load(I32, base, 4), e.load(I32, e.at(base, 4), 4)

    def bit(number: int) -> Value:
        return e.compare("ne", mods & number, 0)

    part = mods >> m.PART & 7
    half = _is(e, kind, Kind.B16, Kind.F16, Kind.BF16)
    packed, packed_f16, packed_f32, mixed, f64 = (
        _is(e, kind, Kind.PACKED, Kind.PACKED_F16), _is(e, kind, Kind.PACKED_F16), _is(e, kind, Kind.PACKED_F32),
        _is(e, kind, Kind.MIXED), _is(e, kind, Kind.F64),
    )  # fmt: skip
    f16, f32 = _is(e, kind, Kind.F16, Kind.BF16), _is(e, kind, Kind.F32, Kind.MIXED, Kind.PACKED_F32)
    is_byte, is_part = e.compare("ule", part, 4), e.compare("ne", part, 0)
    selects, selects_other = bit(m.SELECT), bit(m.SELECT_OTHER)
    shift = _pick(e, [(~is_part, e.select(half & selects, e.value(I32, 16), 0)), (is_byte, (part - 1) << 3)],
                  (part - 5) << 4) & 31  # fmt: skip
    keep = _pick(e, [(~is_part, -1), (is_byte, 0xFF)], 0xFFFF)
    extend = e.select(bit(m.PART_SIGNED), (keep >> 1) + 1, 0)
    sign = _pick(e, [(f16, 0x8000), (f32, -(1 << 31))], 0)
    negative, positive = bit(m.NEGATE), bit(m.ABSOLUTE)
    low_and, low_xor = ~e.select(positive, sign, 0), e.select(negative, sign, 0)
    high_sign = e.select(f64, e.value(I32, -(1 << 31)), 0)
    high_and, high_xor = ~e.select(positive, high_sign, 0), e.select(negative, high_sign, 0)
    halves_xor = e.select(negative, e.value(I32, 0x8000), 0) | e.select(positive, e.value(I32, -(1 << 31)), 0)
    flush_single = e.compare("eq", of_mode & SINGLES_IN, 0)
    flush_other = e.compare("eq", of_mode & OTHERS_IN, 0)
    exponent = _pick(e, [(f16, 0x7C00), (f32, 0x7F800000)], -1)
    fraction = _pick(e, [(_is(e, kind, Kind.F16), 0x3FF), (f32, 0x7FFFFF)], 0)
    flush_low = (f16 & flush_other) | (f32 & flush_single)
    # a scalar condition of operands that are read again and again

    def strip(lane: Value) -> None:
        lo, hi = (
            e.select(in_row, e.load(WORDS, _row(e, row + further, lane), 4), e.value(WORDS, word))
            for further, word in ((0, single[0]), (layout.row_bytes, single[1]))
        )

        def wide_of(number: Value) -> Value:
            return e.value(WORDS, number)

        plain = (lo >> wide_of(shift) & wide_of(keep) ^ wide_of(extend)) - wide_of(extend)
        plain = _flushed(e, plain & wide_of(low_and) ^ wide_of(low_xor), exponent, fraction, flush_low)
        high = hi & wide_of(high_and) ^ wide_of(high_xor)
        tiny = e.compare("eq", high & 0x7FF00000, 0) & e.value(I1.of(STRIP), f64 & flush_other)
        plain, high = e.select(tiny, e.value(WORDS, 0), plain), e.select(tiny, high & -(1 << 31), high)
        pair = (e.select(selects, lo >> 16, lo) & 0xFFFF) | (e.select(selects_other, lo << 16, lo) & -(1 << 16))
        pair = pair ^ wide_of(halves_xor)
        for by in (0, 16):
            pair = e.select(packed_f16, _flushed(e, pair, 0x7C00 << by, 0x3FF << by, flush_other), pair)
        first, second = e.select(selects, hi, lo), e.select(selects_other, lo, hi)
        top = e.value(I32, -(1 << 31))
        first = _flushed(e, first ^ wide_of(e.select(negative, top, 0)), 0x7F800000, 0x7FFFFF, flush_single)
        second = _flushed(e, second ^ wide_of(e.select(positive, top, 0)), 0x7F800000, 0x7FFFFF, flush_single)
        chosen = e.convert("trunc", e.select(selects, lo >> 16, lo), I16)
        from_half = e.bits(e.convert("fpext", e.bits(_half_flushed(e, chosen, flush_other), F16), F32), I32)
        some = e.select(selects_other, from_half, _flushed(e, lo, 0x7F800000, 0x7FFFFF, flush_single))
        some = some & wide_of(low_and) ^ wide_of(low_xor)
        found = _pick(e, [(packed, pair), (packed_f32, first), (mixed, some)], plain, WORDS)
        e.store(found, _row(e, to, lane), 4)
        e.store(e.select(packed_f32, second, high), _row(e, to + layout.row_bytes, lane), 4)

    _strips(e, strip)
    e.do("ret ptr %w")


def _half_flushed(e: Emitter, x: Value, wanted: Value) -> Value:
    tiny = e.compare("eq", x & 0x7C00, 0) & e.value(I1.of(STRIP), wanted)
    return e.select(tiny, x & -0x8000, x)


def _permute(e: Emitter) -> None:
    """Copies two rows as a permutation says; which lanes are written."""
    layout, count = e.layout, e.layout.lanes
    start, to, how, masks = (_argument(e, name) for name in ("from", "to", "how", "masks"))
    kind = I32.of(count)
    e.declarations[f"declare {kind} @llvm.stepvector.{kind.mangled}()"] = None
    lane = e.emit(kind, f"call {kind} @llvm.stepvector.{kind.mangled}()")
    control = how & 0x1FF
    n = e.value(kind, control & 15)
    row, inside = lane & -16, lane & 15

    def between(first: int, last: int) -> Value:
        return e.compare("uge", control, first) & e.compare("ule", control, last)

    everywhere = e.value(I1.of(count), 1)

    def valid(of: Value) -> Value:
        return e.compare("ult", of, 16)

    quad = (lane & -4) | e.binary("lshr", e.value(kind, control), (lane & 3) << 1) & 3
    eight = (lane & -8) | e.binary("lshr", e.value(kind, how & 0xFFFFFF), (lane & 7) * 3) & 7
    cases: list[tuple[Value, Value, Value]] = [
        (e.compare("ne", how & m.OF_EIGHT, 0), eight, everywhere),
        (between(0, 0xFF), quad, everywhere),
        (between(0x101, 0x10F), lane + n, valid(inside + n)),
        (between(0x111, 0x11F), lane - n, valid(inside - n)),
        (between(0x121, 0x12F), row | (inside - n & 15), everywhere),
        (between(0x130, 0x130), lane + 1, e.compare("ult", lane, count - 1)),
        (between(0x134, 0x134), lane + 1 & count - 1, everywhere),
        (between(0x138, 0x138), lane - 1, e.compare("ne", lane, 0)),
        (between(0x13C, 0x13C), lane - 1 & count - 1, everywhere),
        (between(0x140, 0x140), row | (inside ^ 15), everywhere),
        (between(0x141, 0x141), lane ^ 7, everywhere),
        (between(0x142, 0x142), row - 1, e.compare("ne", row, 0)),
        (between(0x143, 0x143), (lane & -32) - 1, e.compare("uge", lane, 32)),
        (between(0x150, 0x15F), row | n, everywhere),
    ]  # fmt: skip
    index, there = row | (inside ^ n), everywhere
    for condition, found, fine in reversed(cases):
        index, there = e.select(condition, found, index), e.select(condition, fine, there)
    index = index & count - 1
    e.do(f"%indices = alloca [{count} x i32], align 64")
    e.do(f"%raw = alloca [{2 * count} x i32], align 64")
    e.do(f"%there = alloca [{count} x i32], align 64")
    e.store(index, "%indices", 4)
    e.store(e.convert("zext", there, I32), "%there", 4)
    for word in (0, 1):
        found = e.load(kind, e.at("%w", e.convert("zext", start + word * layout.row_bytes, I64)), 4)
        e.store(found, e.at("%raw", word * layout.row_bytes), 4)
    executing = e.field(EXEC)
    inactive = e.compare("ne", how & m.FETCH_INACTIVE, 0)
    bound = e.compare("ne", how & (m.BOUND_CONTROL | m.OF_EIGHT), 0)
    e.do("br label %go")
    e.label("go")
    e.do("br label %lane")
    e.label("lane")
    at = e.emit(I64, "phi i64 [ 0, %go ], [ %at.next, %lane ]")
    allowed = e.emit(I64, "phi i64 [ 0, %go ], [ %allowed.next, %lane ]")
    source = e.convert("zext", e.load(I32, e.at("%indices", at << 2), 4), I64)
    runs = e.compare("ne", e.binary("lshr", executing, source) & 1, 0) | inactive
    usable = e.compare("ne", e.load(I32, e.at("%there", at << 2), 4), 0) & runs
    for word in (0, 1):
        value = e.load(I32, e.at("%raw", (source << 2) + word * layout.row_bytes), 4)
        place = e.at("%w", e.convert("zext", to + word * layout.row_bytes, I64) + (at << 2))
        e.store(e.select(usable, value, 0), place, 4)
    wide = e.convert("zext", masks, I64)
    in_row = e.compare("ne", e.binary("lshr", wide, (at >> 4 & 3) + 4) & 1, 0)
    in_bank = e.compare("ne", e.binary("lshr", wide, at >> 2 & 3) & 1, 0)
    of_row = e.compare("ne", how & m.OF_ROW, 0)
    masked = (in_row & in_bank) | ~of_row
    write = e.convert("zext", (usable | bound) & masked, I64)
    e.do(f"%allowed.next = or i64 {allowed.text}, {(write << at).text}")
    e.do(f"%at.next = add i64 {at.text}, 1")
    e.do(f"%lane.more = icmp ult i64 %at.next, {count}")
    e.do("br i1 %lane.more, label %lane, label %lane.done")
    e.label("lane.done")
    e.do("ret i64 %allowed.next")


def _result(e: Emitter, modes: bool) -> None:
    to, start, kind, mods, of_mode, keeps = (
        _argument(e, name) for name in ("to", "from", "kind", "mods", "mode", "keeps")
    )
    layout, executing = e.layout, _argument(e, "active", I64)
    f16, f32, f64, packed_f16, packed_f32 = (
        _is(e, kind, k) for k in (Kind.F16, Kind.F32, Kind.F64, Kind.PACKED_F16, Kind.PACKED_F32)
    )
    half = _is(e, kind, Kind.B16, Kind.F16, Kind.BF16)
    clamps = e.compare("ne", mods & m.CLAMP, 0)
    nan_clamps = e.compare("ne", of_mode & NAN_CLAMPS, 0) if modes else e.value(I1, 1)
    flush_single = e.compare("eq", of_mode & SINGLES_OUT, 0)
    flush_other = e.compare("eq", of_mode & OTHERS_OUT, 0)
    factor = mods >> m.OMOD & 3
    ieee = e.compare("ne", of_mode & IEEE, 0) if modes else e.value(I1, 0)
    scales = e.compare("ne", factor, 0) & ~ieee
    exponent = _pick(e, [(e.compare("eq", factor, 1), 1), (e.compare("eq", factor, 2), 2)], -1)
    part, unused = mods >> m.INTO & 7, mods >> m.UNUSED & 3
    high = half & e.compare("ne", mods & m.HIGH, 0)
    is_part, is_byte = e.compare("ne", part, 0), e.compare("ule", part, 4)
    shift = _pick(e, [(high, 16), (~is_part, 0), (is_byte, (part - 1) << 3)], (part - 5) << 4) & 31
    size = _pick(e, [(is_part & is_byte, 0xFF), (is_part | half, 0xFFFF)], -1)
    # what of the register is not written: it stays, or has zeros, or copies of the sign above
    stays = e.select(is_part, e.compare("eq", unused, 2), high | (half & e.compare("ne", keeps, 0)))
    signed = is_part & e.compare("eq", unused, 1)
    covered = e.binary("shl", size, shift)
    sign_bit = e.binary("shl", (size >> 1) + 1, shift)

    def number(x: Value, scaled: Value) -> Value:
        """OMOD, which makes zero without a sign of all that is below the normal numbers, and the clamp."""
        float_type = x.type
        scale = _pick(e, [(e.compare("eq", exponent, 1), e.constant(float_type.of(0), 2.0)),
                          (e.compare("eq", exponent, 2), e.constant(float_type.of(0), 4.0))],
                      e.constant(float_type.of(0), 0.5), float_type.of(0))  # fmt: skip
        scaled_x = x * e.value(float_type, scale)
        tiny = e.compare("olt", magnitude(e, scaled_x), _NORMAL[float_type.bits])
        scaled_x = e.select(tiny, e.constant(float_type, 0.0), scaled_x)
        x = e.select(scaled, scaled_x, x)
        below, above = e.compare("olt", x, 0.0), e.compare("ogt", x, 1.0)
        nan = e.compare("uno", x, x) & e.value(I1.of(STRIP), nan_clamps)
        clamped = e.select(below | nan, e.constant(float_type, 0.0), e.select(above, e.constant(float_type, 1.0), x))
        return e.select(clamps, clamped, x)

    def of_single(word: Value) -> Value:
        out = e.bits(number(e.bits(word, F32), scales & flush_single), I32)
        return _flushed(e, out, 0x7F800000, 0x7FFFFF, flush_single)

    def of_half(word: Value) -> Value:
        """The low half of a word."""
        short = e.bits(e.convert("trunc", word, I16), F16)
        out = e.bits(number(short, scales & flush_other), I16)
        return e.convert("zext", _half_flushed(e, out, flush_other), I32)

    def strip(lane: Value) -> None:
        lo = e.load(WORDS, _row(e, start, lane), 4)
        hi = e.load(WORDS, _row(e, start + layout.row_bytes, lane), 4)
        old = [e.load(WORDS, _row(e, to + further, lane), 4) for further in (0, layout.row_bytes)]
        both = e.convert("zext", lo, I64) | (e.convert("zext", hi, I64) << 32)
        double = e.bits(number(e.bits(both, F64), scales & flush_other), I64)
        tiny = e.compare("eq", double & (0x7FF << 52), 0) & e.value(I1.of(STRIP), flush_other)
        double = e.select(tiny, double & -(1 << 63), double)
        halves = of_half(lo) | (of_half(lo >> 16) << 16)
        low = _pick(
            e,
            [(f32 | packed_f32, of_single(lo)), (f16, of_half(lo)), (packed_f16, halves),
             (f64, e.convert("trunc", double, I32))],
            lo, WORDS,
        )  # fmt: skip
        top = _pick(e, [(packed_f32, of_single(hi)), (f64, e.convert("trunc", double >> 32, I32))], hi, WORDS)

        def all_of(x: Value) -> Value:
            return e.value(WORDS, x)

        moved = low << all_of(shift) & all_of(covered)
        negative = e.compare("ne", moved & all_of(sign_bit), 0)
        above = all_of(~(covered | (e.binary("shl", e.value(I32, 1), shift) - 1)))
        rest = e.select(negative, above, e.value(WORDS, 0))
        rest = e.select(signed, rest, e.value(WORDS, 0))
        rest = e.select(stays, old[0] & all_of(~covered), rest)
        active = active_bits(e, executing, lane)
        e.store(e.select(active, moved | rest, old[0]), _row(e, to, lane), 4)
        wide = _is(e, kind, Kind.B64, Kind.F64, Kind.PACKED_F32)
        e.store(e.select(active & e.value(I1.of(STRIP), wide), top, old[1]), _row(e, to + layout.row_bytes, lane), 4)

    _strips(e, strip)
    e.do("ret void")
