"""numpy's functions of tensors: ``np.mean(tensor)``, ``np.concatenate``, ``np.linalg.inv`` give tensors.

What has the arguments of a function of the standard is that function; the rest is here. Any other numpy computes on the
host.
"""

from __future__ import annotations

import inspect
import sys

from .. import fft, linalg
from ..array.lending import wants_gradient
from ..array.numpy_calls import check_flow, has_no_tensor, tensors_of
from ..array.operands import beside
from ..host import transfer
from ..ops.products import contracted
from ..tensor import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_STANDARD = {
    "sum": 3, "prod": 3, "searchsorted": 4, "reshape": 2, "astype": 2, "broadcast_to": 2, "moveaxis": 3, "repeat": 3,
    "roll": 3, "take_along_axis": 3, "tensordot": 3, "permute_dims": 2, "expand_dims": 2, "tile": 2,
    **dict.fromkeys(
        "all any argmax argmin argsort count_nonzero max min mean sort stack concat flip tril triu vecdot".split(), 2
    ),
    **dict.fromkeys("cumulative_prod cumulative_sum matrix_transpose nonzero unstack".split(), 1),
}  # fmt: skip
"""Names of numpy whose functions are the standard's, with how many arguments mean the same by position."""
_OTHERS = {"amax": "max", "amin": "min", "concatenate": "concat"}
_METHODS = {
    "isin": 4, "rot90": 3, "diagonal": 4, "swapaxes": 3, "isclose": 5, "allclose": 5,
    **dict.fromkeys(
        "nanmean kron inner cross diag hsplit vsplit dsplit bincount trapezoid squeeze".split(), 2
    ),
    **dict.fromkeys(
        "nan_to_num fliplr flipud ravel unique corrcoef "
        "atleast_1d atleast_2d atleast_3d".split(), 1
    ),
}  # fmt: skip
"""Names of methods that take numpy's arguments, as far."""
_LINALG = (
    "cholesky det inv matrix_power matrix_rank pinv slogdet solve svdvals eigvalsh eigh tensorsolve tensorinv"
).split()
_FFT = (
    "fft ifft fft2 ifft2 fftn ifftn rfft irfft rfft2 irfft2 rfftn irfftn hfft ihfft fftshift ifftshift"
).split()
_IGNORED: dict[str, tuple[Any, ...]] = {
    "kind": (None, "stable"), "order": (None, "C", "K", "A"), "like": (None,), "subok": (True, False),
    "optimize": (True, False, "greedy", "optimal"), "overwrite_input": (True, False),
}  # fmt: skip
"""Arguments of numpy with those of their values that say here what is so anyway."""


_SLOPELESS = frozenset("zeros_like ones_like full_like empty_like round around where norm".split())
"""Functions whose floats need not depend on those that they are given."""


def _given(args: Any, device: str) -> Any:
    """Arguments with tensors for arrays."""
    if type(args) in (list, tuple):
        return type(args)(_given(part, device) for part in args)
    return Tensor(args, device=device) if transfer.is_array(args) and args.ndim else args


def _is_plain(value: Any) -> bool:
    """Whether something is a number, or a list in which there is neither a tensor nor an array."""
    if type(value) in (list, tuple):
        return all(map(_is_plain, value))
    return isinstance(value, (bool, int, float, complex))


def _limited(function: Callable[..., Any], most: int) -> Callable[..., Any]:
    """A function for at most so many arguments by position: what numpy has behind them is something else."""

    def call(*args: Any, **kwargs: Any) -> Any:
        return NotImplemented if len(args) > most else function(*args, **kwargs)

    return call


def _bound(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function for the arguments that it has: numpy may have more."""
    signature = inspect.signature(function)

    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            signature.bind(*args, **kwargs)
        except TypeError:
            return NotImplemented
        return function(*args, **kwargs)

    return call


def _renamed(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of the standard that takes what it knows by name only by position, too, in the same order."""
    signature = inspect.signature(function)
    names = list(signature.parameters)
    fixed = sum(p.kind is not p.KEYWORD_ONLY for p in signature.parameters.values())

    def call(*args: Any, **kwargs: Any) -> Any:
        extra = dict(zip(names[fixed:], args[fixed:], strict=False))
        first = [kwargs.pop(name) for name in ("a", "arr", "m", "arrays") if name in kwargs]
        given = (*first, *args[:fixed])
        given += tuple(kwargs.pop(name) for name in names[len(given) : fixed] if name in kwargs)
        try:
            signature.bind(*given, **extra, **kwargs)
        except TypeError:
            return NotImplemented  # an argument that the standard does not have
        return function(*given, **extra, **kwargs)

    return call


def _counted(name: str) -> Callable[..., Any]:
    """A reduction of floats that count, or that begins with a number."""

    def call(a: Any, axis: Any = None, *, keepdims: bool = False, **kwargs: Any) -> Any:
        if a.dtype.kind not in ("float", "complex"):
            return NotImplemented
        if name in ("std", "var"):
            kwargs["correction"] = kwargs.pop("ddof", 0)
        return getattr(a, name)(axis, keepdim=keepdims, **kwargs)

    return call


_COUNTED = {
    f"numpy.{name}": _counted(name)
    for name in "sum prod max min amax amin mean std var nansum nanmean".split()
}  # fmt: skip
"""Reductions that take ``where`` and ``initial``."""


def _deviation(name: str) -> Callable[..., Any]:
    def call(a: Any, axis: Any = None, dtype: Any = None, *, ddof: float = 0, keepdims: bool = False) -> Any:
        numbers = a if dtype is None else a.cast(dtype)
        return getattr(numbers, name)(axis, keepdim=keepdims, correction=ddof)

    return call


def _running(name: str) -> Callable[..., Any]:
    def call(a: Any, axis: int | None = None, dtype: Any = None) -> Any:
        kind = _sum_dtype(a, dtype)
        return getattr(a.flatten() if axis is None else a, name)(0 if axis is None else axis, kind)

    return call


def _nansum(a: Any, axis: Any = None, dtype: Any = None, *, keepdims: bool = False) -> Any:
    return a.nansum(axis, keepdims, dtype=_sum_dtype(a, dtype))


def _trace(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None) -> Any:
    return a.trace(offset, axis1, axis2, _sum_dtype(a, dtype))


def _sum_dtype(a: Any, dtype: Any) -> Any:
    """The dtype of sums and products: where none is given, of unsigned integers uint64, as numpy has it."""
    return "uint64" if dtype is None and a.dtype.kind == "uint" else dtype


def _like(name: str) -> Callable[..., Any]:
    def call(a: Any, *value: Any, dtype: Any = None, shape: Any = None, device: Any = None) -> Any:
        like = a if shape is None else a.new_empty(shape)
        return getattr(like, f"{name}_like")(*value, dtype=dtype)

    return call


def _where(condition: Any, *branches: Any) -> Any:
    if not branches:
        return condition.nonzero(as_tuple=True)
    condition = condition if isinstance(condition, Tensor) else Tensor(condition)
    condition = condition if condition.dtype.kind == "bool" else condition.ne(0)
    return condition.where(*branches)


def _clip(a: Any, a_min: Any = None, a_max: Any = None, *, min: Any = None, max: Any = None) -> Any:
    return a.clip(a_min if min is None else min, a_max if max is None else max)


def _around(a: Any, decimals: int = 0) -> Any:
    return NotImplemented if a.dtype.kind == "bool" else a.round(decimals)


def _stacked(name: str) -> Callable[..., Any]:
    """Of one tensor, its rows are what is put together."""

    def call(tup: Any) -> Any:
        return getattr(Tensor, name)(list(tup) if isinstance(tup, Tensor) else tup)

    return call


def _average(a: Any, axis: Any = None, weights: Any = None, *, keepdims: bool = False) -> Any:
    if weights is not None or a.dtype.kind not in ("float", "complex"):
        return NotImplemented
    return a.mean(axis, keepdims)


def _median(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    if a.dtype.kind != "float" or isinstance(axis, tuple):
        return NotImplemented
    return a.quantile(0.5, axis, keepdims)


def _quantile(name: str, whole: int) -> Callable[..., Any]:
    """Of floats: those of integers are float64 in numpy, or integers again, by its methods."""

    def call(a: Any, q: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
        if a.dtype.kind != "float" or isinstance(axis, tuple) or not isinstance(q, (int, float)):
            return NotImplemented
        return getattr(a, name)(q / whole, axis, keepdims)

    return call


def _transpose(a: Any, axes: Any = None) -> Any:
    return a.permute(*(axes if axes is not None else range(a.ndim - 1, -1, -1)))


def _take(a: Any, indices: Any, axis: int | None = None) -> Any:
    return a.take(indices if isinstance(indices, Tensor) else Tensor(indices, device=a.device), axis)


def _diff(a: Any, n: int = 1, axis: int = -1, **edges: Any) -> Any:
    if a.dtype.kind != "float" and not all(isinstance(edge, Tensor) for edge in edges.values()):
        return NotImplemented  # what numpy puts beside integers is int64
    return a.diff(n, axis, **edges)


def _both(a: Any, b: Any) -> tuple[Any, Any]:
    """Two operands as tensors."""
    first, second = (x if isinstance(x, Tensor) else beside(Tensor, x, (a, b)) for x in (a, b))
    return first, second


def _outer(a: Any, b: Any) -> Any:
    first, second = _both(a, b)
    return first.flatten().outer(second.flatten())


def _dot(a: Any, b: Any) -> Any:
    """Of more than two axes, over the last of one and the last but one of the other, whatever the others are."""
    first, second = _both(a, b)
    if first.ndim == 0 or second.ndim == 0:
        return first * second
    return contracted(first, second, ((-1,), (-min(second.ndim, 2),)), "dot")


def _vdot(a: Any, b: Any) -> Any:
    first, second = _both(a, b)
    return first.flatten().vdot(second.flatten())


def _imag(a: Any) -> Any:
    return a.imag if a.is_complex() else a.zeros_like()


def _norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    return linalg.norm(x, ord, axis, keepdims)


def _handlers() -> dict[str, Callable[..., Any]]:
    """What is called for each of numpy's functions, by module and name."""
    home = sys.modules[__name__.rpartition(".")[0]]
    found = {f"numpy.{name}": _limited(_renamed(getattr(home, name)), most) for name, most in _STANDARD.items()}
    found |= {f"numpy.{name}": found[f"numpy.{known}"] for name, known in _OTHERS.items()}
    found |= {f"numpy.{name}": _limited(getattr(Tensor, name), most) for name, most in _METHODS.items()}
    found |= {f"numpy.linalg.{name}": getattr(linalg, name) for name in _LINALG}
    found |= {f"numpy.fft.{name}": getattr(fft, name) for name in _FFT}
    own = {name: _deviation(name) for name in ("std", "var")}
    own |= {name: _running(name) for name in ("cumsum", "cumprod")}
    own |= {f"{name}_like": _like(name) for name in ("zeros", "ones", "full", "empty")}
    own |= {name: _stacked(name) for name in ("hstack", "vstack", "dstack", "column_stack")}
    own |= {f"{name}percentile": _quantile(f"{name}quantile", 100) for name in ("", "nan")}
    own |= {f"{name}quantile": _quantile(f"{name}quantile", 1) for name in ("", "nan")}
    own |= {
        "where": _where, "clip": _clip, "round": _around, "around": _around, "take": _take, "transpose": _transpose,
        "linalg.norm": _norm, "shape": lambda a: a.shape, "ndim": lambda a: a.ndim, "real": lambda a: a.real,
        "imag": _imag, "nansum": _nansum, "average": _average, "median": _median, "diff": _diff, "outer": _outer,
        "trace": _trace, "dot": _dot, "vdot": _vdot,
    }  # fmt: skip
    found |= {f"numpy.{name}": _bound(function) for name, function in own.items()}
    return found | {"numpy.einsum": Tensor.einsum}


def numpy_function(name: str, args: Any, kwargs: dict[str, Any]) -> Any:
    """The result of a function of numpy; NotImplemented where there is none here that takes such arguments.

    Raises:
      RuntimeError: if a tensor requires a gradient, which does not flow through the function.
    """
    if not _KNOWN:
        _KNOWN.update(_handlers())
    known = _KNOWN.get(name)
    asked = {key: value for key, value in kwargs.items() if not (key in _IGNORED and value in _IGNORED[key])}
    if not _IGNORED.keys().isdisjoint(asked):
        return NotImplemented
    if asked.keys() & {"where", "initial"}:
        known = _COUNTED.get(name)
    if known is None or "out" in asked or has_no_tensor([args, asked]):
        return NotImplemented
    first = next(tensors_of([args, asked]), None)
    if first is None:  # of ``like``
        return NotImplemented
    given = _given(args, first.device), {key: _given(value, first.device) for key, value in asked.items()}
    try:
        if args and _is_plain(args[0]):
            given = (beside(Tensor, args[0], tensors_of([args, asked])), *given[0][1:]), given[1]
        found = known(*given[0], **given[1])
    except (TypeError, ValueError, IndexError):
        if any(map(wants_gradient, tensors_of([args, asked]))):
            raise
        return NotImplemented  # numpy takes what is not taken here, or says in its way what is wrong
    check_flow(name.rpartition(".")[2], found, tensors_of([args, asked]), _SLOPELESS)
    return found


_KNOWN: dict[str, Any] = {}
