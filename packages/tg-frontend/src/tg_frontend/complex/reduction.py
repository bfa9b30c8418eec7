"""Reductions and scans of complex numbers."""

from __future__ import annotations

from ..array.axes import axes_of
from ..array.counted import only
from ..ops.similarity import nuclear_norm
from .arithmetic import eq, mul, sub
from .componentwise import cast
from .elementary import abs as modulus
from .parts import composed, is_complex

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def _cast(z: Any, dtype: Any) -> Any:
    return z if dtype is None else cast(z, dtype)


def sum(
    z: Any, axis: Any = None, keepdim: bool = False, dtype: Any = None, *, where: Any = None, initial: Any = None
) -> Any:
    z = _cast(z, dtype)
    if not is_complex(z):
        return z.sum(axis, keepdim, dtype, where=where, initial=initial)
    out = composed(*(part.sum(axis, keepdim, where=where) for part in z._parts))
    return out if initial is None else out + initial


def mean(z: Any, axis: Any = None, keepdim: bool = False, dtype: Any = None, *, where: Any = None) -> Any:
    z = _cast(z, dtype)
    if not is_complex(z):
        return z.mean(axis, keepdim, dtype, where=where)
    return composed(*(part.mean(axis, keepdim, where=where) for part in z._parts))


def nansum(
    z: Any, axis: Any = None, keepdim: bool = False, dtype: Any = None, *, where: Any = None, initial: Any = None
) -> Any:
    return sum(isnan(z).where(0, z), axis, keepdim, dtype, where=where, initial=initial)


def cumsum(z: Any, axis: int = 0, dtype: Any = None) -> Any:
    z = _cast(z, dtype)
    return composed(*(part.cumsum(axis) for part in z._parts)) if is_complex(z) else z.cumsum(axis, dtype)


def trace(z: Any, offset: int = 0, dim1: int = 0, dim2: int = 1, dtype: Any = None) -> Any:
    z = _cast(z, dtype)
    if not is_complex(z):
        return z.trace(offset, dim1, dim2, dtype)
    return composed(*(part.trace(offset, dim1, dim2) for part in z._parts))


def prod(
    z: Any, axis: Any = None, keepdim: bool = False, dtype: Any = None, *, where: Any = None, initial: Any = None
) -> Any:
    z = _cast(z, dtype)
    if not is_complex(z):
        return z.prod(axis, keepdim, dtype, where=where, initial=initial)
    axes = axes_of(z, axis, "prod")
    out = composed(*(only(part, where, one, "prod") for part, one in zip(z._parts, (1, 0), strict=True)))
    for one in axes:
        out = _prod_along(out, one)
    out = out if initial is None else out * initial
    return out if keepdim else out.reshape(tuple(n for i, n in enumerate(out.shape) if i not in axes))


def _prod_along(z: Any, axis: int) -> Any:
    """The product along an axis that stays, of size 1: halves times halves."""
    count = z._ints()[axis]
    if count == 0:
        shape = tuple(1 if i == axis else n for i, n in enumerate(z.shape))
        return type(z).ones(*shape, dtype=z.dtype, device=z.device)
    while count > 1:
        half = count // 2
        parts = z.split([half, half, count - 2 * half], axis)
        both = mul(parts[0], parts[1])
        z = both.cat(parts[2], dim=axis).contiguous() if count % 2 else both.contiguous()
        count = half + count % 2
    return z


def cumprod(z: Any, axis: int = 0, dtype: Any = None) -> Any:
    z = _cast(z, dtype)
    if not is_complex(z):
        return z.cumprod(axis, dtype)
    where = z._axis(axis, "cumprod")
    return z.clone() if z.ndim == 0 else running(z, where, mul)


def running(z: Any, axis: int, combine: Callable[[Any, Any], Any]) -> Any:
    """Each element combined with all before it along an axis, in steps that double.

    Source: W. D. Hillis and G. L. Steele, "Data parallel algorithms", Communications of the ACM 29 (1986).
    """
    count, step = z._ints()[axis], 1
    out = z.clone()
    while step < count:  # each element and the one ``step`` before
        head, rest = out.split([step, count - step], axis)
        before, _ = out.split([count - step, step], axis)
        out = head.cat(combine(rest, before), dim=axis).contiguous()
        step *= 2
    return out


def var(z: Any, *args: Any, mean: Any = None, dtype: Any = None, **kwargs: Any) -> Any:
    z = _cast(z, dtype)
    if not is_complex(z):
        return z.var(*args, mean=mean if mean is None else _cast(mean, z.dtype), **kwargs)
    parts = z._parts
    means = (None, None) if mean is None else mean._parts if is_complex(mean) else (mean, mean * 0)
    re, im = (part.var(*args, mean=one, **kwargs) for part, one in zip(parts, means, strict=True))
    return re + im


def std(z: Any, *args: Any, **kwargs: Any) -> Any:
    return var(z, *args, **kwargs).sqrt()


def norm(z: Any, p: Any = 2, axis: Any = None, keepdim: bool = False) -> Any:
    return nuclear_norm(z, axis, keepdim) if p == "nuc" else modulus(z).norm(p, axis, keepdim)


def dist(t: Any, other: Any, *args: Any, **kwargs: Any) -> Any:
    return norm(sub(t, other), *args, **kwargs)


def _not_zero(z: Any) -> Any:
    return eq(z, 0).logical_not()


def any(z: Any, axis: Any = None, keepdim: bool = False, *, where: Any = None) -> Any:
    return _not_zero(z).any(axis, keepdim, where=where)


def all(z: Any, axis: Any = None, keepdim: bool = False, *, where: Any = None) -> Any:
    return _not_zero(z).all(axis, keepdim, where=where)


def count_nonzero(z: Any, *args: Any, **kwargs: Any) -> Any:
    return _not_zero(z).count_nonzero(*args, **kwargs)


def nonzero(z: Any, *args: Any, **kwargs: Any) -> Any:
    return _not_zero(z).nonzero(*args, **kwargs)


def nonzero_static(z: Any, *, size: int, fill_value: int = -1) -> Any:
    return _not_zero(z).nonzero_static(size=size, fill_value=fill_value)


def logical_not(z: Any) -> Any:
    return eq(z, 0)


def _logical(t: Any) -> Any:
    return _not_zero(t) if is_complex(t) else t


def logical_and(t: Any, x: Any) -> Any:
    return _logical(t).logical_and(_logical(x) if not isinstance(x, complex) else bool(x))


def logical_or(t: Any, x: Any) -> Any:
    return _logical(t).logical_or(_logical(x) if not isinstance(x, complex) else bool(x))


def logical_xor(t: Any, x: Any) -> Any:
    return _logical(t).logical_xor(_logical(x) if not isinstance(x, complex) else bool(x))


def isnan(z: Any) -> Any:
    return z._parts[0].isnan().logical_or(z._parts[1].isnan())


def isinf(z: Any) -> Any:
    return z._parts[0].isinf().logical_or(z._parts[1].isinf())


def isfinite(z: Any) -> Any:
    return z._parts[0].isfinite().logical_and(z._parts[1].isfinite())


def isreal(z: Any) -> Any:
    return z._parts[1] == 0


def isclose(t: Any, other: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Any:
    gap = modulus(sub(t, other)) if is_complex(sub(t, other)) else sub(t, other).abs()
    bound = (other.abs() if hasattr(other, "dtype") else abs(other)) * rtol + atol
    near = (gap <= bound).logical_and(gap.isfinite()).logical_or(eq(t, other))
    if equal_nan:
        both = t.isnan().logical_and(other.isnan() if hasattr(other, "dtype") else other != other)
        near = near.logical_or(both)
    return near


def allclose(t: Any, other: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> bool:
    return bool(isclose(t, other, rtol, atol, equal_nan).all().item())


def equal(t: Any, other: Any, equal_nan: bool = False) -> bool:
    if t.shape != other.shape:
        return False
    same = eq(t, other)
    return bool((same | (t.isnan() & other.isnan()) if equal_nan else same).all().item())
