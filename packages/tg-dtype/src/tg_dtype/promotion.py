"""Promotion: the type in which operands of several types meet.

Tensors with axes decide over tensors of no axes, and those over numbers of Python (:func:`result_dtype`). Among
operands of one tier the lattice decides (:func:`least_upper_dtype`). Its order is that of JAX (its documentation, "Type
promotion semantics"): bool < integers < floats, a float never widens because an integer meets it, and signed meets
unsigned of the same width one width up::

    bool -> i8 -> i16 -> i32 -> i64 ---.            .-> f16 --.
        \\      /      /      /           +-> ? -> fp8 -+         +-> f32 -> f64
         `-> u8 -> u16 -> u32 -> u64 -'    (four)   `-> bf16 -'

Complex numbers are above floats, as in PyTorch: f32 -> c64 -> c128 and f64 -> c128, so that c64 and f64 meet in c128.

Two joins are no type of their own and are settled last: int64 with uint64 meets in "some float", which becomes
``dtypes.default_float``; two fp8 types meet in "some half", which becomes float16 (it holds all of them exactly).
"""

from __future__ import annotations

from .catalog import dtypes
from .dtype import DType
from .limits import float_format, maximum, minimum

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_CATEGORIES = {"bool": 0, "int": 1, "uint": 1, "float": 2, "complex": 3}
_SOME_FLOAT, _SOME_HALF = "some float", "some half"
_EIGHT = (dtypes.fp8e4m3, dtypes.fp8e5m2, dtypes.fp8e4m3fnuz, dtypes.fp8e5m2fnuz)
_COVERS: dict[DType | str, tuple[DType | str, ...]] = {
    dtypes.bool: (dtypes.int8, dtypes.uint8),
    dtypes.int8: (dtypes.int16,),
    dtypes.uint8: (dtypes.int16, dtypes.uint16),
    dtypes.int16: (dtypes.int32,),
    dtypes.uint16: (dtypes.int32, dtypes.uint32),
    dtypes.int32: (dtypes.int64,),
    dtypes.uint32: (dtypes.int64, dtypes.uint64),
    dtypes.int64: (_SOME_FLOAT,),
    dtypes.uint64: (_SOME_FLOAT,),
    _SOME_FLOAT: _EIGHT,
    **dict.fromkeys(_EIGHT, (_SOME_HALF,)),
    _SOME_HALF: (dtypes.float16, dtypes.bfloat16),
    dtypes.float16: (dtypes.float32,),
    dtypes.bfloat16: (dtypes.float32,),
    dtypes.float32: (dtypes.float64, dtypes.complex64),
    dtypes.float64: (dtypes.complex128,),
    dtypes.complex64: (dtypes.complex128,),
    dtypes.complex128: (),
}


def _upward_closures() -> dict[DType | str, frozenset[DType | str]]:
    above: dict[DType | str, frozenset[DType | str]] = {}
    for node in reversed(_COVERS):  # written from low to high, so everything above is known already
        above[node] = frozenset({node}).union(*(above[up] for up in _COVERS[node]))
    return above


_ABOVE = _upward_closures()
_joins: dict[frozenset[DType], DType | str] = {}


def _join(scalars: frozenset[DType]) -> DType | str:
    found = _joins.get(scalars)
    if found is None:
        common = frozenset.intersection(*(_ABOVE[d] for d in scalars))
        # The least upper bound is the one from which every other upper bound can be reached.
        found = next(node for node in common if _ABOVE[node] == common)
        _joins[scalars] = found
    return found


def least_upper_dtype(*dtypes_: DType) -> DType:
    """The least type to which all operands convert; vectors of one length join lane by lane.

    Args:
      *dtypes_: at least one type. Identical types give themselves, whatever they are.

    Raises:
      TypeError: if void, a pointer or an image meets another type, or vectors of different lengths meet.
      ValueError: if called with nothing.

    Example:
      >>> from tg_dtype import dtypes, least_upper_dtype
      >>> least_upper_dtype(dtypes.int8, dtypes.uint8), least_upper_dtype(dtypes.int64, dtypes.float16)
      (dtypes.int16, dtypes.float16)
      >>> least_upper_dtype(dtypes.float16, dtypes.bfloat16), least_upper_dtype(dtypes.int64, dtypes.uint64)
      (dtypes.float32, dtypes.float32)
    """
    kinds = frozenset(dtypes_)
    if len(kinds) == 1:
        return dtypes_[0]
    if not kinds:
        raise ValueError("least_upper_dtype: give at least one dtype")
    lanes = {d.count for d in kinds}
    if len(lanes) != 1 or any(d.kind == "void" for d in kinds):
        raise TypeError(f"no dtype holds both {' and '.join(sorted(d.name for d in kinds))}")
    joined = _join(frozenset(d.scalar() for d in kinds))
    if isinstance(joined, str):
        joined = dtypes.default_float if joined is _SOME_FLOAT else dtypes.float16
    return joined.vec(lanes.pop())


def weaker_dtype(strong: DType, weak: DType) -> DType:
    """The type in which an operand meets one of a lower tier, which can raise its category but widens nothing in it.

    The categories are bool, integers, floats and complex numbers. Beside a complex number a float makes the parts.

    Raises:
      TypeError: if one of them is void, a pointer or an image.

    Example:
      >>> from tg_dtype import dtypes, weaker_dtype
      >>> weaker_dtype(dtypes.float16, dtypes.float64), weaker_dtype(dtypes.int8, dtypes.float64)
      (dtypes.float16, dtypes.float64)
      >>> weaker_dtype(dtypes.float32, dtypes.complex128), weaker_dtype(dtypes.uint8, dtypes.int64)
      (dtypes.complex64, dtypes.uint8)
    """
    if strong is weak:
        return strong
    if strong.kind == "void" or weak.kind == "void":
        raise TypeError(f"no dtype holds both {strong.name} and {weak.name}")
    if _CATEGORIES[weak.kind] <= _CATEGORIES[strong.kind]:
        return strong
    return complex_dtype(strong) if strong.kind == "float" else weak


def result_dtype(dimensioned: Iterable[DType], scalars: Iterable[DType] = (), numbers: Iterable[DType] = ()) -> DType:
    """The type of what is computed from operands of three tiers, as PyTorch has it.

    Within a tier operands meet as :func:`least_upper_dtype` says; a tier gives way to the one before it, as
    :func:`weaker_dtype` says. (PyTorch's documentation, "Tensor Attributes", ``torch.dtype``.)

    Args:
      dimensioned: types of tensors with axes.
      scalars: types of tensors of no axes.
      numbers: types of numbers of Python: bool, the default ones, complex64.

    Raises:
      TypeError: if void, a pointer or an image meets another type.
      ValueError: if there is no operand.

    Example:
      >>> from tg_dtype import dtypes, result_dtype
      >>> result_dtype([dtypes.float16, dtypes.bfloat16], [dtypes.float64]), result_dtype([dtypes.int8], [dtypes.int64])
      (dtypes.float32, dtypes.int8)
      >>> result_dtype([dtypes.bool], [dtypes.uint8], [dtypes.float32])
      dtypes.float32
    """
    found: DType | None = None
    for tier in (dimensioned, scalars, numbers):
        kinds = tuple(tier)
        if kinds:
            joined = least_upper_dtype(*kinds)
            found = joined if found is None else weaker_dtype(found, joined)
    if found is None:
        raise ValueError("result_dtype: give at least one dtype")
    return found


def least_upper_float(dtype: DType) -> DType:
    """The type in which a function such as ``exp`` of ``dtype`` is computed: itself, or ``default_float``.

    Complex numbers are computed with as they are.

    Raises:
      TypeError: if ``dtype`` is void, a pointer or an image.
    """
    if dtype.kind == "void":
        raise TypeError(f"{dtype.name} does not convert to a float")
    return dtype if dtype.kind in ("float", "complex") else dtypes.default_float.vec(dtype.count)


def complex_dtype(dtype: DType) -> DType:
    """The complex type whose parts hold numbers of ``dtype``: complex128 for float64, else complex64.

    Raises:
      TypeError: if ``dtype`` is void, a pointer or an image.

    Example:
      >>> from tg_dtype import complex_dtype, dtypes
      >>> complex_dtype(dtypes.float64), complex_dtype(dtypes.float16), complex_dtype(dtypes.complex128)
      (dtypes.complex128, dtypes.complex64, dtypes.complex128)
    """
    return least_upper_dtype(least_upper_float(dtype), dtypes.complex64)


def part_dtype(dtype: DType) -> DType:
    """The type of the real and the imaginary part of a complex type.

    Raises:
      TypeError: if ``dtype`` is not complex.

    Example:
      >>> from tg_dtype import dtypes, part_dtype
      >>> part_dtype(dtypes.complex64)
      dtypes.float32
    """
    if dtype.kind != "complex":
        raise TypeError(f"part_dtype: {dtype.name} is not complex")
    return dtypes.float32 if dtype is dtypes.complex64 else dtypes.float64


def sum_acc_dtype(dtype: DType) -> DType:
    """The type of the accumulator of a sum: at least 32 bits, of the same kind; bool counts in ``default_int``.

    Raises:
      TypeError: if ``dtype`` is void, a pointer or an image.

    Example:
      >>> from tg_dtype import dtypes, sum_acc_dtype
      >>> sum_acc_dtype(dtypes.uint8), sum_acc_dtype(dtypes.bfloat16), sum_acc_dtype(dtypes.bool)
      (dtypes.uint32, dtypes.float32, dtypes.int32)
    """
    if dtype.kind == "void":
        raise TypeError(f"sum: {dtype.name} cannot be added up")
    if dtype.kind == "complex":
        return dtype
    if dtype.kind == "float":
        floor = dtypes.float32
    elif dtype.kind == "uint":
        floor = dtypes.uint32
    elif dtype.kind == "int":
        floor = dtypes.int32
    else:
        floor = dtypes.default_int
    return least_upper_dtype(dtype.scalar(), floor).vec(dtype.count)


def sum_dtype(dtype: DType) -> DType:
    """The type that a sum or a product returns: floats stay what they are, integers and bools give int64.

    So sums of integers do not wrap, as in PyTorch and numpy; of uint64 there is no wider type.

    Raises:
      TypeError: if ``dtype`` is void, a pointer or an image.

    Example:
      >>> from tg_dtype import dtypes, sum_dtype
      >>> sum_dtype(dtypes.float16), sum_dtype(dtypes.int8), sum_dtype(dtypes.uint64)
      (dtypes.float16, dtypes.int64, dtypes.uint64)
    """
    if dtype.kind == "void":
        raise TypeError(f"sum: {dtype.name} cannot be added up")
    if dtype.kind in ("float", "complex") or dtype.scalar() is dtypes.uint64:
        return dtype
    return dtypes.int64.vec(dtype.count)


def can_safe_cast(src: DType, dst: DType) -> bool:
    """True when every value of ``src`` is a value of ``dst``, so that the cast can be undone.

    Example:
      >>> from tg_dtype import can_safe_cast, dtypes
      >>> can_safe_cast(dtypes.uint8, dtypes.float16), can_safe_cast(dtypes.int32, dtypes.float32)
      (True, False)
    """
    if src is dst:
        return True
    if src.count != dst.count or src.kind == "void" or dst.kind == "void":
        return False
    if src.kind == "bool":
        return True
    if src.kind == "complex" or dst.kind == "complex":
        if dst.kind != "complex":
            return False
        return can_safe_cast(part_dtype(src) if src.kind == "complex" else src, part_dtype(dst))
    if dst.kind == "bool" or (src.kind == "float" and dst.kind != "float"):
        return False
    if src.kind == "float":
        low, high = float_format(src), float_format(dst)
        least = low.bias + low.mantissa <= high.bias + high.mantissa
        special = low.has_inf <= high.has_inf and low.signed_zero <= high.signed_zero
        return least and special and low.largest <= high.largest and low.mantissa <= high.mantissa
    if dst.kind == "float":
        digits = src.bits - (src.kind == "int")
        exponent, mantissa = dtypes.finfo(dst)
        return digits <= mantissa + 1 and src.bits - 1 < 1 << (exponent - 1)
    return minimum(dst) <= minimum(src) and maximum(src) <= maximum(dst)
