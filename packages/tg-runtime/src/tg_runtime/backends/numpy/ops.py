"""The function of each op with numpy, and how values of each type are held.

A value is an array of the node's shape. Types that numpy has not (bfloat16, fp8) are held as float32 and rounded to
their own precision after every op; in memory they are their bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from tg_codegen.rewrite.rules.trigonometric import two_over_pi
from tg_dtype import ConstType, DType, dtypes, float_format, from_bits, interop, to_bits
from tg_lazy import Ops

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

SUM_BLOCK = 512
"""Terms of a sum of floats that one accumulator of numpy's may add up."""


def compute_dtype(dtype: DType) -> np.dtype[Any]:
    """The numpy type in which values of ``dtype`` are computed."""
    return np.dtype(interop.to_numpy_name(dtype) or "float32")


def storage_dtype(dtype: DType) -> np.dtype[Any]:
    """The numpy type of ``dtype`` in memory: its own, or its bits."""
    return np.dtype(interop.to_numpy_name(dtype) or f"uint{dtype.itemsize * 8}")


def held_as_is(dtype: DType) -> bool:
    """Whether numpy has the type, so that values need not be rounded, and stand in memory as they are."""
    return interop.to_numpy_name(dtype) is not None


_DECODED: dict[DType, Array] = {}


def _decoded(dtype: DType) -> Array:
    """The value of every bit pattern of a small float type."""
    if dtype not in _DECODED:
        _DECODED[dtype] = np.array([from_bits(b, dtype) for b in range(1 << dtype.bits)], np.float32)
    return _DECODED[dtype]


def decode(bits: Array, dtype: DType) -> Array:
    """Values from what is in memory. A bool is true where its byte is not 0; as a value its byte is 1."""
    if dtype is dtypes.bool:
        truth: Array = np.not_equal(bits.view(np.uint8), 0)
        return truth
    if held_as_is(dtype):
        return bits
    if dtype is dtypes.bfloat16:
        wide: Array = (bits.astype(np.uint32) << 16).view(np.float32)
        return wide
    found: Array = _decoded(dtype)[bits]
    return found


def encode(values: Array, dtype: DType) -> Array:
    """The bits of values in memory, rounded to nearest even."""
    if held_as_is(dtype):
        return values
    x = np.ascontiguousarray(values, np.float32)
    if dtype is dtypes.bfloat16:
        raw: Array = x.view(np.uint32)
        rounded = (raw + 0x7FFF + ((raw >> 16) & 1)) >> 16
        halves: Array = np.where(np.isnan(x), (raw >> 16) | 0x40, rounded).astype(np.uint16)
        return halves
    return _encode_fp8(x, dtype)


def _encode_fp8(x: Array, dtype: DType) -> Array:
    positive = _decoded(dtype)[:128].astype(np.float64)
    count = int(np.isfinite(positive).sum())
    finite = positive[:count]
    # one step beyond the greatest value: what rounds there has overflowed
    steps = np.append(finite, 2 * finite[-1] - finite[-2])
    middle = (steps[1:] + steps[:-1]) / 2
    size = np.abs(x.astype(np.float64))
    low = np.searchsorted(middle, size, side="left")
    tie = (low < count) & (size == middle[np.minimum(low, count - 1)]) & (low % 2 == 1)
    code = np.where(tie, low + 1, low)
    code = np.where(code >= count, to_bits(math.inf, dtype), code)
    code = np.where(np.isnan(x), to_bits(math.nan, dtype), code)
    sign = np.signbit(x) if float_format(dtype).signed_zero else np.signbit(x) & (code != 0)
    signed: Array = (code | (sign.astype(np.int64) << 7)).astype(np.uint8)
    return signed


def round_to(values: Array, dtype: DType) -> Array:
    """Values of ``compute_dtype`` rounded to the precision of ``dtype``."""
    return values if held_as_is(dtype) else decode(encode(values, dtype), dtype)


def cast(x: Array, src: DType, dst: DType) -> Array:
    """``x`` converted as :mod:`tg_dtype.cast` says: floats saturate into integers, NaN becomes 0."""
    if dst is dtypes.bool:
        truth: Array = np.not_equal(x, 0)
        return truth
    if dtypes.is_float(src) and dtypes.is_int(dst):
        low, high = int(dtypes.min(dst)), int(dtypes.max(dst))
        wide = x.astype(np.float64)
        inside = np.where((wide > float(low)) & (wide < float(high)), wide, 0).astype(storage_dtype(dst))
        inside = np.where(wide >= float(high), np.array(high, inside.dtype), inside)
        return np.where(wide <= float(low), np.array(low, inside.dtype), inside)
    if not held_as_is(dst) and src in (dtypes.float64, dtypes.int64, dtypes.uint64):
        x = _round_to_odd(x)
    return round_to(x.astype(compute_dtype(dst)), dst)


def _round_to_odd(x: Array) -> Array:
    """float32 from a wider type such that rounding it once more to a narrow float gives what one rounding would."""
    near = x.astype(np.float32)
    if x.dtype == np.float64:
        above = np.abs(near.astype(np.float64)) > np.abs(x)
        exact = (near.astype(np.float64) == x) | ~np.isfinite(x) | ~np.isfinite(near)
    else:
        exact_value = x.astype(np.longdouble)
        above = np.abs(near.astype(np.longdouble)) > np.abs(exact_value)
        exact = near.astype(np.longdouble) == exact_value
    down = np.where(above, np.nextafter(near, np.float32(0)), near)
    return np.where(exact, near, (down.view(np.uint32) | 1).view(np.float32))


def bitcast(x: Array, src: DType, dst: DType) -> Array:
    """The bits of ``x`` taken as ``dst``."""
    raw = np.ascontiguousarray(encode(x, src))
    return decode(raw.view(storage_dtype(dst)).reshape(x.shape), dst)


def _idiv(a: Array, b: Array) -> Array:
    quotient = a // b
    toward_zero: Array = quotient + ((np.fmod(a, b) != 0) & ((a < 0) != (b < 0))).astype(a.dtype)
    return toward_zero


def _neg(x: Array) -> Array:
    if x.dtype == np.bool_:
        return x
    negated: Array = np.negative(x)
    return negated


def _sub(a: Array, b: Array) -> Array:
    return a ^ b if a.dtype == np.bool_ else a - b


def _bool_safe(divide: Callable[[Array, Array], Array]) -> Callable[[Array, Array], Array]:
    def apply(a: Array, b: Array) -> Array:
        if a.dtype != np.bool_:
            return divide(a, b)
        truth: Array = np.not_equal(divide(a.astype(np.int8), b.astype(np.int8)), 0)
        return truth

    return apply


def _in_double(function: Callable[..., Any]) -> Callable[..., Array]:
    """A function of floats, which numpy has for float32 only with errors of up to 4 units in the last place."""

    def apply(*operands: Array) -> Array:
        dtype = operands[0].dtype
        found: Array = np.asarray(function(*(x.astype(np.float64) for x in operands))).astype(dtype)
        return found

    return apply


def _right_angles(angle: float) -> tuple[float, int]:
    """An angle minus the nearest multiple of a right angle, and that multiple modulo 4."""
    words = two_over_pi(40)
    bits = sum(word << 32 * place for place, word in enumerate(reversed(words)))
    numerator, denominator = angle.as_integer_ratio()
    product, unit = numerator * bits, denominator << 32 * len(words)
    count = (2 * product + unit) // (2 * unit)
    # `bits` is 2/pi, so that this is the rest times pi/2, rounded once
    return ((product - count * unit) << 32 * len(words)) / (unit * bits), count % 4


def _sine(angle: float, ahead: int) -> float:
    """The sine of an angle plus a number of right angles."""
    rest, count = _right_angles(angle)
    count += ahead
    found = math.cos(rest) if count & 1 else math.sin(rest)
    return -found if count & 2 else found


def _tangent(angle: float) -> float:
    rest, count = _right_angles(angle)
    return -1 / math.tan(rest) if count & 1 else math.tan(rest)


def _of_an_angle(function: Callable[..., Any], exactly: Callable[[float], float]) -> Callable[[Array], Array]:
    """numpy's function; of large angles, which neither numpy nor the C library reduces exactly, another."""

    def apply(x: Array) -> Array:
        found: Array = np.asarray(function(x))
        large = (np.abs(x) > 1e5) & np.isfinite(x)
        if large.any():
            found[large] = [exactly(angle) for angle in x[large].tolist()]
        return found

    return apply


_FUNCTIONS: dict[Ops, Callable[..., Any]] = {
    Ops.EXP: np.exp,
    Ops.EXP2: np.exp2,
    Ops.EXPM1: np.expm1,
    Ops.LOG: np.log,
    Ops.LOG2: np.log2,
    Ops.LOG10: np.log10,
    Ops.LOG1P: np.log1p,
    Ops.SIN: _of_an_angle(np.sin, lambda x: _sine(x, 0)),
    Ops.COS: _of_an_angle(np.cos, lambda x: _sine(x, 1)),
    Ops.TAN: _of_an_angle(np.tan, _tangent),
    Ops.ASIN: np.arcsin,
    Ops.ACOS: np.arccos,
    Ops.ATAN: np.arctan,
    Ops.SINH: np.sinh,
    Ops.COSH: np.cosh,
    Ops.TANH: np.tanh,
    Ops.ASINH: np.arcsinh,
    Ops.ACOSH: np.arccosh,
    Ops.ATANH: np.arctanh,
    Ops.ERF: np.vectorize(math.erf, otypes=[np.float64]),
    Ops.ERFC: np.vectorize(math.erfc, otypes=[np.float64]),
}
fxn_for_op: dict[Ops, Callable[..., Any]] = {
    Ops.NEG: _neg,
    Ops.NOT: np.invert,
    Ops.RECIP: np.reciprocal,
    Ops.SQRT: np.sqrt,
    **{op: _in_double(function) for op, function in _FUNCTIONS.items()},
    Ops.TRUNC: np.trunc,
    Ops.CAST: cast,
    Ops.BITCAST: bitcast,
    Ops.ADD: np.add,
    Ops.SUB: _sub,
    Ops.MUL: np.multiply,
    Ops.FDIV: np.divide,
    Ops.IDIV: _bool_safe(_idiv),
    Ops.MOD: _bool_safe(np.fmod),
    Ops.POW: _in_double(np.power),
    Ops.MAX: np.maximum,
    Ops.CMPLT: np.less,
    Ops.CMPEQ: np.equal,
    Ops.CMPNE: np.not_equal,
    Ops.AND: np.bitwise_and,
    Ops.OR: np.bitwise_or,
    Ops.XOR: np.bitwise_xor,
    Ops.SHL: np.left_shift,
    Ops.SHR: np.right_shift,
    Ops.WHERE: np.where,
    Ops.MULACC: lambda a, b, c: a * b + c,
    Ops.REDUCE: lambda x, op, axes, start: _REDUCE[op](x, axes, start),
}

_REDUCE: dict[Ops, Callable[[Array, tuple[int, ...], ConstType], Array]] = {
    Ops.ADD: lambda x, axes, start: (
        np.any(x, axes, keepdims=True) if x.dtype == np.bool_ else summed(x, axes)
    ),
    Ops.MUL: lambda x, axes, start: (
        np.all(x, axes, keepdims=True) if x.dtype == np.bool_ else np.prod(x, axes, x.dtype, keepdims=True)
    ),
    Ops.MAX: lambda x, axes, start: np.max(x, axes, keepdims=True, initial=start),
}


def summed(x: Array, axes: tuple[int, ...]) -> Array:
    """Sums over axes, each of which keeps size 1; long ones of floats in blocks.

    numpy adds in pairs along what is contiguous only. Along others it adds row to row, and what a large total loses of
    each small term grows with their number.
    """
    for axis in axes:
        while np.issubdtype(x.dtype, np.floating) and x.shape[axis] > SUM_BLOCK:
            full = x.shape[axis] // SUM_BLOCK
            head, tail = np.split(x, [full * SUM_BLOCK], axis)
            blocks = head.reshape(*x.shape[:axis], full, SUM_BLOCK, *x.shape[axis + 1 :])
            rest = np.sum(tail, axis, x.dtype, keepdims=True)
            x = np.concatenate([np.sum(blocks, axis + 1, x.dtype), rest], axis)
    return np.asarray(np.sum(x, axes, x.dtype, keepdims=True))
