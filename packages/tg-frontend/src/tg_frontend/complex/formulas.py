"""Functions of complex numbers that are formulas of others: activations, statistics, norms and logarithms of sums."""

from __future__ import annotations

import math

from tg_dtype import dtypes

from ..host.coerce import to_dtype
from ..ops.loss import reduced
from . import elementary
from .arithmetic import add, div, mul, pow, sub
from .componentwise import cast, conj
from .elementary import modulus
from .parts import composed, is_complex, joint, kept, plain_class, whole
from .products import matmul
from .reduction import norm, running, var

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


# *** activations ***


def silu(z: Any) -> Any:
    return mul(z, elementary.sigmoid(z))


def softsign(z: Any) -> Any:
    return div(z, modulus(*z._parts) + 1.0)


def tanhshrink(z: Any) -> Any:
    return sub(z, elementary.tanh(z))


def _either(condition: Any, one: Any, other: Any) -> Any:
    """Elements of one of two complex tensors."""
    return composed(*(condition.where(a, b) for a, b in zip(one._parts, other._parts, strict=True)))


def sinc(z: Any) -> Any:
    near = modulus(*z._parts) < 1e-3  # where the series has all digits, and the quotient's gradient would be 0 / 0
    angle = mul(_either(near, z.ones_like(), z), math.pi)
    square = mul(_either(near, z, z.zeros_like()), math.pi).square()
    series = add(add(mul(square, -1 / 6), mul(square.square(), 1 / 120)), 1.0)
    return _either(near, series, div(elementary.sin(angle), angle))


def ldexp(t: Any, other: Any) -> Any:
    return mul(t, pow(2.0, other) if hasattr(other, "dtype") else 2.0**other)


def cast_before(name: str) -> Callable[..., Any]:
    """A function of real numbers, with a dtype that complex ones are cast to before."""

    def method(z: Any, axis: int = -1, dtype: Any = None) -> Any:
        if dtype is None or to_dtype(dtype).kind == "complex":
            raise TypeError(f"{name}: complex numbers have no order; give a dtype of floats, or take .real")
        return getattr(cast(z, dtype), name)(axis)

    method.__name__ = name
    return method


# *** logarithms of sums of powers ***


def logaddexp(t: Any, x: Any) -> Any:
    kind = joint((t, x), "logaddexp")
    a, b = (composed(*(kept(part) for part in whole(one, "logaddexp", kind))) for one in (t, x))
    first = a._parts[0].detach() >= b._parts[0].detach()
    more, less = _either(first, a, b), _either(first, b, a)
    gap = sub(less, more)
    # exp of both is 0, whatever the angle; or both are infinite, and have no sum but by their angles
    lowest = more._parts[0].detach() == -math.inf
    gap = _either(lowest, gap.zeros_like(), gap)
    highest = less._parts[0].detach() == math.inf
    shown = [_either(highest, one, one.zeros_like()) for one in (a, b)]
    beyond = elementary.log(add(*map(elementary.exp, shown)))
    gap = _either(highest, gap.zeros_like(), gap)
    plain = add(more, elementary.log1p(elementary.exp(gap)))
    return _either(lowest, less, _either(highest, beyond, plain))


def logsumexp(z: Any, axis: Any = None, keepdim: bool = False) -> Any:
    if not is_complex(z):
        raise TypeError("logsumexp: an argument is complex that tells how, not what is summed")
    re, im = z._parts
    most = re.detach().max(axis, keepdim=True) if re.numel() else re.detach().sum(axis, keepdim=True)
    most = most.isinf().where(0.0, most)
    total = elementary.exp(composed(re - most, kept(im))).sum(axis, keepdim=keepdim)
    found = elementary.log(total)
    return composed(found._parts[0] + most.reshape(found.shape), found._parts[1])


def logcumsumexp(z: Any, axis: int = 0) -> Any:
    where = z._axis(axis, "logcumsumexp")
    if z.ndim == 0:
        return z.clone()
    out = running(z, where, logaddexp)
    turns = (out._parts[1].detach() * (0.5 / math.pi)).round()  # whatever the order of the sums was
    return composed(kept(out._parts[0]), out._parts[1] - turns * (2 * math.pi))


# *** statistics ***


def _deviations(name: str, of: Callable[..., Any]) -> Callable[..., Any]:
    """A measure of the spread, and the mean."""

    def method(z: Any, axis: Any = None, *, keepdim: bool = False, correction: Any = 1) -> Any:
        if isinstance(axis, bool):  # PyTorch's unbiased
            axis, correction = None, int(axis)
        return of(z, axis, keepdim=keepdim, correction=correction), z.mean(axis, keepdim)

    method.__name__ = name
    return method


def _deviation(z: Any, *args: Any, **kwargs: Any) -> Any:
    return var(z, *args, **kwargs).sqrt()


var_mean = _deviations("var_mean", var)
std_mean = _deviations("std_mean", _deviation)


def _variables(x: Any, rowvar: bool) -> Any:
    """Variables as rows."""
    if x.ndim > 2:
        raise ValueError(f"cov: rows of a matrix are wanted, got shape {x.shape}")
    return x.reshape((1, -1)) if x.ndim < 2 else x if rowvar else x.T


def cov(
    x: Any, correction: Any = None, fweights: Any = None, aweights: Any = None, *, y: Any = None, rowvar: bool = True,
    bias: bool = False, dtype: Any = None,
) -> Any:  # fmt: skip
    rows = _variables(x, rowvar)
    if y is not None:
        more = _variables(y, rowvar)
        if more.shape[1] != rows.shape[1]:
            raise ValueError(f"cov: {rows.shape[1]} observations of some variables, {more.shape[1]} of others")
        rows = rows.cat(more)
    if dtype is not None:
        rows = cast(rows, dtype)
    if not is_complex(rows):
        return rows.cov(correction, fweights, aweights, bias=bias)
    correction = int(not bias) if correction is None else correction
    if fweights is not None and fweights.dtype.kind not in ("int", "uint"):
        raise TypeError(f"cov: fweights are integers, got a tensor of {fweights.dtype.name}")
    given = [one for one in (fweights, aweights) if one is not None]
    for one in given:
        if is_complex(one) or one.shape != (rows.shape[1],):
            raise ValueError(f"cov: weights of shape {one.shape} and {one.dtype.name} for {rows.shape[1]} observations")
    kind = rows._parts[0].dtype
    if not given:
        apart = sub(rows, rows.mean(1, keepdim=True))
        count = max(0, rows.shape[1] - correction)
        out = div(matmul(apart, conj(apart.T)), rows._parts[0].full_like(count, shape=()))
    else:
        weights = given[0].cast(kind) if len(given) == 1 else given[0].cast(kind) * given[1].cast(kind)
        total = weights.sum()
        apart = sub(rows, div(mul(rows, weights).sum(1, keepdim=True), total))
        taken = 1 if aweights is None else (weights * aweights.cast(kind)).sum() / total
        out = div(matmul(mul(apart, weights), conj(apart.T)), (total - taken * correction).maximum(0))
        for one in given:
            wrong = one.lt(0).any()
            out = composed(*(wrong.where(math.nan, part) for part in out._parts))
    return out.reshape(()) if rows.shape[0] == 1 else out


def corrcoef(x: Any, y: Any = None, rowvar: bool = True, *, dtype: Any = None) -> Any:
    found = cov(x, y=y, rowvar=rowvar, dtype=dtype)
    if not is_complex(found):
        return cast(x, dtype).corrcoef(None if y is None else cast(y, dtype), rowvar)
    if found.ndim == 0:
        return div(found, found)
    deviation = found._parts[0].diagonal().sqrt()
    scaled = (part / deviation.unsqueeze(1) / deviation for part in found._parts)
    return composed(*(part.clip(-1, 1) for part in scaled))


# *** norms and losses ***


def l1_loss(x: Any, target: Any, reduction: str = "mean", weight: Any = None) -> Any:
    apart = sub(x, target)
    if x.shape != target.shape:
        raise ValueError(f"l1_loss: shapes {x.shape} and {target.shape} differ")
    return modulus(*apart._parts).l1_loss(apart._parts[0].zeros_like().detach(), reduction, weight)


def renorm(x: Any, p: float, dim: int, maxnorm: float) -> Any:
    if not p > 0 or not maxnorm >= 0 or x.ndim < 2:
        raise ValueError(f"renorm: the {p}-norm to at most {maxnorm} of slices of shape {x.shape}")
    axis = x._axis(dim, "renorm")
    length = norm(x, p, tuple(i for i in range(x.ndim) if i != axis), keepdim=True)
    return _either(length > maxnorm, mul(x, maxnorm / (length + 1e-7)), x)


def normalize(x: Any, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Any:
    return div(x, norm(x, p, x._axis(dim, "normalize"), keepdim=True).maximum(eps))


def pairwise_distance(x: Any, other: Any, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Any:
    apart = add(sub(x, other), eps)
    return norm(apart, p, apart.ndim - 1, keepdim)


def triplet_margin_loss(
    x: Any, positive: Any, negative: Any, margin: float = 1.0, p: float = 2.0, eps: float = 1e-6, swap: bool = False,
    reduction: str = "mean",
) -> Any:  # fmt: skip
    if not margin > 0:
        raise ValueError(f"triplet_margin_loss: margin {margin!r} is not positive")
    near, far = pairwise_distance(x, positive, p, eps), pairwise_distance(x, negative, p, eps)
    if swap:
        far = far.minimum(pairwise_distance(positive, negative, p, eps))
    return reduced((near - far + margin).relu(), reduction)


def logspace(
    cls: Any, start: Any, stop: Any, steps: int = 50, base: Any = 10.0, device: Any = None, dtype: Any = None,
    requires_grad: Any = None, *, endpoint: bool = True, axis: int = 0,
) -> Any:  # fmt: skip
    exponents = plain_class(cls).linspace(
        start, stop, steps, device, dtype or dtypes.from_py(1j), endpoint=endpoint, axis=axis
    )
    out = pow(base, exponents).detach()
    return out if requires_grad is None else out.requires_grad_(requires_grad)
