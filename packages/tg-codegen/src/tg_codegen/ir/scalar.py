"""Elementwise ops on Python scalars, with every result exactly as its dtype holds it."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, isfinite, ldexp

from tg_dtype import ConstType, DType, dtypes, from_bits, to_bits, truncate
from tg_lazy import SHIFTS, SPEC, Ops

from .spec import LANE_MOVES
from .uop import UOp, UOps, is_alu


def scalar_function(u: UOp, fused: bool = False) -> Callable[..., ConstType]:
    """The function of one lane of each operand that an elementwise node is.

    A shift by an amount outside the width gives 0.

    Args:
      fused: whether MULACC of floats rounds once; else it rounds the product too.

    Raises:
      TypeError: if the node is not elementwise.
    """
    scalar, source = u.dtype.scalar(), u.src[0].dtype.scalar()
    if u.op is Ops.CAST:
        return lambda x: truncate(x, scalar)
    if u.op is Ops.BITCAST:
        return lambda x: from_bits(to_bits(x, source), scalar)
    python = SPEC[u.op].python if isinstance(u.op, Ops) else None
    if python is None:
        raise TypeError(f"{u!r} is not a function of scalars")
    exact = python
    if u.op is Ops.MULACC and dtypes.is_float(scalar):
        if fused:
            return lambda a, b, c: multiply_add(a, b, c, scalar)
        return lambda a, b, c: truncate(truncate(a * b, scalar) + c, scalar)
    if u.op in SHIFTS:
        bits = scalar.bits
        return lambda a, b: truncate(exact(a, b), scalar) if 0 <= b < bits else 0
    return lambda *operands: truncate(exact(*operands), scalar)


def evaluate(u: UOp, *operands: ConstType, fused: bool = False) -> ConstType:
    """One lane of an elementwise node, given one lane of each of its operands.

    >>> from tg_codegen.ir.uop import const
    >>> evaluate(const(1, dtypes.uint8).alu(Ops.ADD, const(2, dtypes.uint8)), 250, 10)
    4
    """
    return scalar_function(u, fused)(*operands)


def constant_lanes(u: UOp) -> tuple[ConstType, ...] | None:
    """The value of each lane of a vector that is made from constants alone; None for another node.

    >>> from tg_codegen.ir.uop import const, vectorize
    >>> lanes = vectorize(*(const(n, dtypes.int32) for n in range(4)))
    >>> constant_lanes(lanes.alu(Ops.CMPLT, const(3, dtypes.int32.vec(4))))
    (True, True, True, False)
    """
    waiting, seen = [u], set()
    while waiting:
        node = waiting.pop()
        if node not in seen:
            seen.add(node)
            if not (node.is_const or (node.src and (node.op in LANE_MOVES or is_alu(node)))):
                return None
            waiting += node.src
    known: dict[UOp, tuple[ConstType, ...]] = {}
    for node in u.toposort():
        known[node] = _lanes(node, [known[operand] for operand in node.src])
    return known[u]


def _lanes(u: UOp, of: list[tuple[ConstType, ...]]) -> tuple[ConstType, ...]:
    if u.is_const:
        return (u.arg,) * u.dtype.count
    if u.op is UOps.VECTORIZE:
        return tuple(lanes[0] for lanes in of)
    if u.op is UOps.BROADCAST:
        return of[0] * u.dtype.count
    if u.op is UOps.GEP:
        joined = tuple(lane for lanes in of for lane in lanes)
        return tuple(joined[lane] for lane in u.arg)
    function, count = scalar_function(u), u.dtype.count
    wide = [lanes if len(lanes) == count else lanes * count for lanes in of]  # WHERE may have one condition
    return tuple(function(*lane) for lane in zip(*wide, strict=True))


def multiply_add(a: float, b: float, c: float, dtype: DType) -> ConstType:
    """``a * b + c`` with one rounding, to ``dtype``.

    >>> multiply_add(1 + 2**-52, 1 - 2**-52, -1.0, dtypes.float64) == -(2.0**-104)
    True
    """
    if not (isfinite(a) and isfinite(b) and isfinite(c)):
        return truncate(a * b + c, dtype)
    (an, ad), (bn, bd), (cn, cd) = a.as_integer_ratio(), b.as_integer_ratio(), c.as_integer_ratio()
    numerator, denominator = an * bn * cd + cn * ad * bd, ad * bd * cd
    if numerator == 0:
        return truncate(a * b + c, dtype)
    exponent, mantissa = dtypes.finfo(dtype)
    below = denominator.bit_length() - 1  # every denominator is a power of two
    size = abs(numerator)
    unit = max(size.bit_length() - below - mantissa - 1, 2 - (1 << (exponent - 1)) - mantissa)
    shift = unit + below
    if shift <= 0:
        steps = size << -shift
    else:
        half, rest = 1 << (shift - 1), size & ((1 << shift) - 1)
        steps = size >> shift
        steps += rest > half or (rest == half and steps & 1)
    try:
        rounded = ldexp(steps, unit)
    except OverflowError:
        rounded = inf
    return truncate(rounded if numerator > 0 else -rounded, dtype)
