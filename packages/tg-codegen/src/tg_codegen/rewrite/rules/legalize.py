"""Dtypes that a language cannot compute with: stored as integers of their size, computed with as fp32.

A float16, bfloat16 or fp8 that the renderer lacks is loaded as bits, widened exactly, and rounded to nearest even when
it is stored or cast to; in between it keeps the precision of fp32. Private scratch of such a dtype becomes fp32, so
that a staged tile is widened once, unless a matrix instruction takes it as it is. Bool, where it is missing as memory,
is stored as uint8.
"""

from __future__ import annotations

import math

from tg_dtype import AddrSpace, DType, FloatFormat, PtrDType, dtypes, float_format, to_bits
from tg_lazy import Ops

from ...ir.facts import pointer_base
from ...ir.spec import ARRAYS, LANE_MOVES
from ...ir.uop import UOp, UOps, const
from ...machine.renderer import Renderer

_STORAGE = {1: dtypes.uint8, 2: dtypes.uint16}
_U32 = dtypes.uint32


def _like(u: UOp, value: float) -> UOp:
    return const(value, u.dtype)


def _where(condition: UOp, yes: UOp, no: UOp) -> UOp:
    return condition.alu(Ops.WHERE, yes, no)


def decode(bits: UOp, dtype: DType) -> UOp:
    """Bits of the float ``dtype``, in an unsigned integer of its size, as fp32. Exact."""
    f = float_format(dtype)
    wide = bits.cast(_U32)
    if f.bias == 127:
        return wide.alu(Ops.SHL, _like(wide, 23 - f.mantissa)).bitcast(dtypes.float32)
    sign_bit = f.exponent + f.mantissa
    sign = wide.alu(Ops.SHR, _like(wide, sign_bit)).alu(Ops.SHL, _like(wide, 31))
    size = wide.alu(Ops.AND, _like(wide, (1 << sign_bit) - 1))
    moved = size.alu(Ops.SHL, _like(wide, 23 - f.mantissa))
    normal = moved.alu(Ops.ADD, _like(wide, (127 - f.bias) << 23))
    tiny = size.cast(dtypes.float32)
    tiny = tiny.alu(Ops.MUL, _like(tiny, 2.0 ** (1 - f.bias - f.mantissa))).bitcast(_U32)
    result = _where(size.alu(Ops.CMPLT, _like(wide, 1 << f.mantissa)), tiny, normal)
    special = to_bits(f.largest, dtype)
    beyond = _like(wide, special).alu(Ops.CMPLT, size)
    result = _where(beyond, moved.alu(Ops.OR, _like(wide, 0x7F800000)), result).alu(Ops.OR, sign)
    if not f.signed_zero:
        result = _where(wide.alu(Ops.CMPEQ, _like(wide, to_bits(math.nan, dtype))), _like(wide, 0x7FC00000), result)
    return result.bitcast(dtypes.float32)


def encode(x: UOp, dtype: DType) -> UOp:
    """fp32 rounded to nearest even to ``dtype``, as its bits in an unsigned integer of its size."""
    storage = _STORAGE[dtype.scalar().itemsize]
    f = float_format(dtype)
    if x.is_const:
        return const(to_bits(x.arg, dtype), storage.vec(x.dtype.count))
    bits = x.bitcast(_U32)
    size = bits.alu(Ops.AND, _like(bits, 0x7FFFFFFF))
    sign = bits.alu(Ops.SHR, _like(bits, 31)).alu(Ops.SHL, _like(bits, f.exponent + f.mantissa))
    result = _round(size, f)
    largest = to_bits(f.largest, dtype)
    # The code of infinity follows that of the largest; so does that of NaN where -0.0 would be.
    overflow = largest + 1 if f.has_inf or not f.signed_zero else largest
    result = _where(_like(bits, largest).alu(Ops.CMPLT, result), _like(bits, overflow), result)
    is_nan = _like(bits, 0x7F800000).alu(Ops.CMPLT, size)
    result = _where(is_nan, _like(bits, to_bits(math.nan, dtype)), result)
    signed = result.alu(Ops.OR, sign)
    if not f.signed_zero:
        signed = _where(result.alu(Ops.CMPEQ, _like(bits, 0)), result, signed)
    return signed.cast(storage)


def _round(size: UOp, f: FloatFormat) -> UOp:
    """The bits of a magnitude, rounded; what overflows is larger than the largest."""
    drop = 23 - f.mantissa
    odd = size.alu(Ops.SHR, _like(size, drop)).alu(Ops.AND, _like(size, 1))
    up = size.alu(Ops.ADD, odd).alu(Ops.ADD, _like(size, (1 << (drop - 1)) - 1))
    normal = up.alu(Ops.SHR, _like(size, drop))
    if f.bias == 127:
        return normal
    normal = normal.alu(Ops.SUB, _like(size, (127 - f.bias) << f.mantissa))
    # Adding the float whose unit is that of the subnormals lets the addition round.
    x = size.bitcast(dtypes.float32)
    unit = _like(x, 2.0 ** (24 - f.bias - f.mantissa))
    tiny = x.alu(Ops.ADD, unit).bitcast(_U32).alu(Ops.SUB, _like(size, to_bits(unit.arg, dtypes.float32)))
    below = size.alu(Ops.CMPLT, _like(size, to_bits(f.smallest_normal, dtypes.float32)))
    return _where(below, tiny, normal)


def _to_single(x: UOp, exact: bool) -> UOp:
    """A number as fp32; if ``exact``, so that rounding it again is as good as rounding once: rounded to odd."""
    if not exact:
        return x.cast(dtypes.float32)
    single = x.cast(dtypes.float32)
    back = single.cast(x.dtype.scalar())
    bits, wide_bits = single.bitcast(_U32), dtypes.uint64
    mask = (1 << 63) - 1

    def size(v: UOp) -> UOp:
        raw = v.bitcast(wide_bits)
        return raw.alu(Ops.AND, _like(raw, mask))

    away = size(x).alu(Ops.CMPLT, size(back)).cast(_U32)
    inexact = size(x).alu(Ops.CMPNE, size(back)).cast(_U32)
    return bits.alu(Ops.SUB, away).alu(Ops.OR, inexact).bitcast(dtypes.float32)


# For each size of an integer: magnitudes from 2**a on lose their low d bits. What is left has 24 bits at most, and the
# place at which bfloat16 rounds, a - 8 or more, is above what is lost.
_SHORTEN = {4: ((24, 8),), 8: ((24, 15), (39, 30), (54, 45))}


def _shorten(x: UOp) -> UOp:
    """An integer near ``x`` that fp32 holds exactly and that rounds to the same narrow float: rounded to odd."""
    scalar = x.dtype.scalar()
    size = x if dtypes.is_unsigned(scalar) else x.alu(Ops.XOR, x.alu(Ops.SHR, _like(x, scalar.bits - 1)))
    result = x
    for least, drop in _SHORTEN[scalar.itemsize]:
        low = x.alu(Ops.AND, _like(x, (1 << drop) - 1))
        odd = low.alu(Ops.CMPNE, _like(x, 0)).cast(scalar).alu(Ops.SHL, _like(x, drop))
        short = x.alu(Ops.XOR, low).alu(Ops.OR, odd)
        result = _where(size.alu(Ops.CMPLT, _like(x, 1 << least)), result, short)
    return result


_MOVES = frozenset({*LANE_MOVES, Ops.WHERE})


class _Legalizer:
    def __init__(self, renderer: Renderer) -> None:
        self.renderer = renderer
        self.missing = frozenset(d for d in (*dtypes.floats, dtypes.bool) if not renderer.supports_dtype(d))
        self.done: dict[UOp, UOp] = {}
        self.bits: dict[UOp, UOp] = {}
        self.multiplied: set[UOp] = set()

    def computed(self, dtype: DType) -> DType:
        """The dtype in which values of ``dtype`` are kept."""
        scalar = dtype.scalar()
        return dtypes.float32.vec(dtype.count) if scalar in self.missing and not dtypes.is_bool(dtype) else dtype

    def stored(self, dtype: DType) -> DType:
        """The dtype in which values of ``dtype`` lie in memory."""
        scalar = dtype.scalar()
        return _STORAGE[scalar.itemsize].vec(dtype.count) if scalar in self.missing else dtype

    def pointer(self, dtype: DType, bits: bool = False) -> DType:
        """A pointer's dtype; ``bits`` if a matrix instruction takes what is there."""
        if not isinstance(dtype, PtrDType) or dtype.element not in self.missing:
            return dtype
        private = dtype.space is AddrSpace.REG and dtypes.is_float(dtype.base) and not bits
        base = self.computed(dtype.base) if private else self.stored(dtype.base)
        return base.ptr(dtype.size, dtype.space)

    def pack(self, x: UOp, dtype: DType, memory: DType) -> UOp:
        """A computed value of ``dtype`` as ``memory`` holds it."""
        if memory.scalar() is x.dtype.scalar():
            return x
        if dtypes.is_bool(dtype):
            return x.cast(dtypes.uint8)
        known = self.bits.get(x)
        return known if known is not None and known.dtype.scalar() is memory.scalar() else encode(x, dtype.scalar())

    def unpack(self, x: UOp, dtype: DType) -> UOp:
        """What was read from memory as a computed value of ``dtype``."""
        if x.dtype.scalar() is self.computed(dtype).scalar():
            return x
        if dtypes.is_bool(dtype):
            return x.alu(Ops.CMPNE, _like(x, 0))
        wide = decode(x, dtype.scalar())
        self.bits[wide] = x
        return wide

    def node(self, u: UOp, src: tuple[UOp, ...]) -> UOp:
        narrow = u.dtype.scalar() in self.missing and dtypes.is_float(u.dtype)
        if u.op in ARRAYS:
            return UOp(u.op, self.pointer(u.dtype, u in self.multiplied), src, u.arg)
        if u.op is UOps.AFTER:
            return UOp(u.op, src[0].dtype, src, u.arg)
        if u.op is UOps.MATRIX:
            operands = (self.pack(x, s.dtype, self.stored(s.dtype)) for x, s in zip(src[1:], u.src[1:], strict=True))
            return UOp(u.op, u.dtype, (src[0], *operands), u.arg)
        if u.op is UOps.LOAD:
            memory = src[0].dtype.element
            rest = (*src[1:3], self.pack(src[3], u.dtype, memory)) if len(src) > 3 else src[1:]
            return self.unpack(UOp(UOps.LOAD, memory.vec(u.dtype.count), (src[0], *rest)), u.dtype)
        if u.op is UOps.STORE:
            packed = self.pack(src[2], u.src[2].dtype, src[0].dtype.element)
            return UOp(UOps.STORE, u.dtype, (*src[:2], packed, *src[3:]), u.arg)
        if u.op is Ops.CAST and narrow:
            return self.rounded(src[0], u.src[0].dtype, u.dtype.scalar())
        if u.op is Ops.CAST:
            return src[0].cast(u.dtype.scalar())
        if u.op is Ops.BITCAST:
            bits = self.pack(src[0], u.src[0].dtype, self.stored(u.src[0].dtype)).bitcast(self.stored(u.dtype).scalar())
            return self.unpack(bits, u.dtype)
        if not narrow:
            return u.replace(src)
        return self.moved(u, src) or UOp(u.op, self.computed(u.dtype), src, u.arg)

    def moved(self, u: UOp, src: tuple[UOp, ...]) -> UOp | None:
        """What only moves lanes, or chooses between values, done with their bits; None if they are not at hand."""
        if u.op not in _MOVES:
            return None
        values = u.src[1:] if u.op is Ops.WHERE else u.src
        bits: list[UOp] = []
        for before, after in zip(values, src[-len(values) :], strict=True):
            known = encode(after, before.dtype.scalar()) if after.is_const else self.bits.get(after)
            if known is None:
                return None
            bits.append(known)
        return self.unpack(UOp(u.op, self.stored(u.dtype), (*src[: len(src) - len(bits)], *bits), u.arg), u.dtype)

    def rounded(self, x: UOp, source: DType, dtype: DType) -> UOp:
        """A value of the dtype ``source`` converted to the narrow ``dtype``, kept as fp32."""
        if dtypes.is_int(source) and source.scalar().itemsize > 2:
            x = x.cast(dtypes.float64) if self.renderer.supports_dtype(dtypes.float64) else _shorten(x)
        single = _to_single(x, x.dtype.scalar() is dtypes.float64)
        return self.unpack(encode(single, dtype), dtype)

    def run(self, sink: UOp) -> UOp:
        order = sink.toposort()
        there = self.missing.intersection(dtype.element for dtype in {u.dtype for u in order})
        if not there:
            return sink
        if dtypes.float64 in there:
            raise ValueError(f"{self.renderer.name}: this target has no float64, nor a wider float to stand for it")
        factors = (s for u in order if u.op is UOps.MATRIX for s in u.src[1:])
        self.multiplied = {pointer_base(s.src[0]) for s in factors if s.op is UOps.LOAD}
        for u in order:
            self.done[u] = self.node(u, tuple(self.done[s] for s in u.src))
        return self.done[sink]


def legalize(sink: UOp, renderer: Renderer) -> UOp:
    """The kernel with no value of a dtype that ``renderer`` cannot compute with.

    The dtype of a PARAM becomes that of the integers under which the buffer is read.

    Raises:
      ValueError: if there is no dtype in which its values could be computed: float64 where there is none.
    """
    return _Legalizer(renderer).run(sink)


def unread(dtype: DType, renderer: Renderer) -> DType:
    """The dtype of the pointer through which a buffer is passed that the kernel neither reads nor writes.

    The language may not know the buffer's own dtype; then it is the unsigned integer of the same size.

    >>> from tg_codegen.render.c.clang import ClangRenderer
    >>> unread(dtypes.bfloat16, ClangRenderer()).name
    'uint16'
    """
    scalar = dtype.scalar()
    return scalar if renderer.supports_dtype(scalar) else _STORAGE.get(scalar.itemsize, _U32)
