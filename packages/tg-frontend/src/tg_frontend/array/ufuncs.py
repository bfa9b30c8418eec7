"""What numpy's universal functions do with a tensor: they give tensors, by the methods that go by their names.

``np.sin(tensor)`` is ``tensor.sin()``, and an array beside a tensor becomes one: ``array + tensor``, as
``tensor + array`` does. ``np.add.reduce``, ``accumulate`` and ``outer`` are known where there is a method for them.
What else there is (functions without a method, ``where``, ``reduceat``, ``at``) numpy computes on the host: see
:mod:`.numpy_calls`.
"""

from __future__ import annotations

import operator

from tg_dtype import can_safe_cast, dtypes

from ..host.coerce import to_dtype
from ..host.transfer import number_of
from .base import Base
from .lending import wants_gradient
from .numpy_calls import check_flow, check_written, has_no_tensor, on_host, tensors_of
from .operands import beside, check_range, weak_dtype

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_OPERATORS = {
    "add": operator.add, "subtract": operator.sub, "multiply": operator.mul, "divide": operator.truediv,
    "true_divide": operator.truediv, "floor_divide": operator.floordiv, "remainder": operator.mod,
    "power": operator.pow, "matmul": operator.matmul, "bitwise_and": operator.and_, "bitwise_or": operator.or_,
    "bitwise_xor": operator.xor, "left_shift": operator.lshift, "right_shift": operator.rshift,
    "equal": operator.eq, "not_equal": operator.ne, "less": operator.lt, "less_equal": operator.le,
    "greater": operator.gt, "greater_equal": operator.ge,
}  # fmt: skip
_NAMES = {
    "rint": "round", "degrees": "rad2deg", "radians": "deg2rad", "invert": "bitwise_not", "conjugate": "conj",
    "fabs": "abs",
}  # fmt: skip
"""Methods by numpy's names, where theirs are others."""
_REAL = ("bool", "int", "uint", "float")
_KINDS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys("fabs heaviside rint frexp".split(), ("float",)), "reciprocal": ("float", "complex"),
    **dict.fromkeys("less less_equal greater greater_equal maximum minimum fmax fmin sign".split(), _REAL),
    **dict.fromkeys("ldexp logaddexp logaddexp2".split(), _REAL),  # of which PyTorch's take complex numbers, too
    "conjugate": ("int", "uint", "float", "complex"),
}  # fmt: skip
"""Kinds of numbers for which a method does what numpy does; of integers numpy often gives floats, or the reverse."""
_ONE_OF: dict[str, tuple[str, ...]] = {
    "nextafter": ("float",), "power": ("int", "uint", "float", "complex"),
    **dict.fromkeys("left_shift right_shift".split(), ("int", "uint")),
    **dict.fromkeys("floor_divide remainder fmod divmod".split(), ("int", "uint", "float")),
}  # fmt: skip
"""Likewise, of which one at the least has to be among the operands."""
_COMPARISONS = frozenset("equal not_equal less less_equal greater greater_equal".split())
_SLOPELESS = frozenset("ceil copysign fix floor rint sign trunc".split())
"""Functions whose slope is zero wherever there is one."""
_METHODS = frozenset(
    """
    absolute arccos arccosh arcsin arcsinh arctan arctan2 arctanh ceil copysign cos cosh deg2rad divmod exp exp2 expm1
    float_power floor fmax fmin fmod frexp gcd heaviside hypot isfinite isinf isnan lcm ldexp log log10 log1p log2
    logaddexp logaddexp2 logical_and logical_not logical_or logical_xor maximum minimum negative nextafter positive
    rad2deg reciprocal sign signbit sin sinh sqrt square tan tanh trunc
    """.split()
)
_REDUCTIONS = {
    "add": "sum", "multiply": "prod", "maximum": "max", "minimum": "min", "logical_and": "all", "logical_or": "any",
}  # fmt: skip
_RUNNING = {"add": "cumsum", "multiply": "cumprod"}


def _as_tensors(inputs: tuple[Any, ...], what: str) -> list[Any]:
    """The inputs, arrays among them as tensors beside the first tensor."""
    first = next(x for x in inputs if isinstance(x, Base))
    return [x if isinstance(x, Base) else _beside(first, x, what) for x in inputs]


def _beside(first: Base, x: Any, what: str) -> Any:
    """An input that is no tensor: a Python number, which numpy's float64 and complex128 are, too; else a tensor."""
    if isinstance(x, (bool, int, float, complex)) or what in _COMPARISONS:  # which are exact beside Python's numbers
        x = number_of(x)
    return x if isinstance(x, (bool, int, float, complex)) else beside(type(first), x, (first,))


def _check_range(inputs: tuple[Any, ...], found: Any, what: str) -> None:
    """Sees to it that integers of numpy are in the dtype of a result, if that is one of integers.

    Raises:
      OverflowError: if one is not.
    """
    for value in map(number_of, inputs):
        for out in tensors_of(found) if type(value) is int else ():
            if out.dtype.kind in ("int", "uint"):
                check_range(value, out.dtype, what)


def _call(name: str, inputs: list[Any]) -> Any:
    """The result of a function by the method of its name; NotImplemented where there is none."""
    kinds = {x.dtype.kind for x in inputs if isinstance(x, Base)}
    met = kinds | {type(x).__name__ for x in inputs if not isinstance(x, Base)}
    if any(isinstance(x, complex) for x in inputs):
        kinds.add("complex")
    if not kinds.issubset(_KINDS.get(name, kinds)) or met.isdisjoint(_ONE_OF.get(name, met)):
        return NotImplemented
    known = _OPERATORS.get(name)
    if known is not None:
        left, right = inputs
        return known(left, right)
    if name not in _METHODS and name not in _NAMES:
        return NotImplemented
    first, *rest = inputs
    if name == "sign":  # which is NaN of a NaN, and 0 in PyTorch
        return _sign(first)
    if not isinstance(first, Base):  # a Python number
        first = type(rest[0])(first, device=rest[0].device, dtype=weak_dtype(rest[0].dtype, first))
    return getattr(first, _NAMES.get(name, name))(*rest)


def _sign(x: Any) -> Any:
    return x.isnan().where(x.detach(), x.sign()) if x.dtype.kind == "float" else x.sign()


def _called(name: str, inputs: tuple[Any, ...], dtype: Any) -> Any:
    """The result of a function, computed in a dtype if one is given that every input can have without a loss."""
    if dtype is None:
        return _call(name, _as_tensors(inputs, name))
    wanted = to_dtype(dtype)
    given = _as_tensors(inputs, name)
    if not all(can_safe_cast(x.dtype, wanted) for x in given if isinstance(x, Base)):
        return NotImplemented
    found = _call(name, [x.cast(wanted) if isinstance(x, Base) else x for x in given])  # type: ignore[attr-defined]
    return found if isinstance(found, Base) and found.dtype is wanted else NotImplemented


def _known(name: str, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The result by methods of tensors; NotImplemented where there are none."""
    asked = kwargs.keys() - {"out"}
    if method == "__call__" and not asked - {"dtype"}:
        return _called(name, inputs, kwargs.get("dtype"))
    if not inputs or not isinstance(inputs[0], Base):
        return NotImplemented
    x: Any = inputs[0]
    ordered = x.dtype.kind in _KINDS.get(name, (x.dtype.kind,))
    wide = {"dtype": dtypes.uint64} if name in _RUNNING and x.dtype.kind == "uint" else {}  # int64 in methods
    if method == "reduce" and name in _REDUCTIONS and ordered and not asked - {"axis", "keepdims"}:
        return getattr(x, _REDUCTIONS[name])(kwargs.get("axis", 0), bool(kwargs.get("keepdims", False)), **wide)
    if method == "accumulate" and name in _RUNNING and not asked - {"axis"}:
        return getattr(x, _RUNNING[name])(kwargs.get("axis", 0), **wide)
    if method == "outer" and not asked:
        first, second = _as_tensors(inputs, name)
        if isinstance(second, Base):
            return _call(name, [first.reshape((*first.shape, *(1 for _ in second.shape))), second])
    return NotImplemented


def _stored(found: Any, outs: tuple[Any, ...]) -> bool:
    """Whether a result was written to the one tensor that it is for: it is of its shape and dtype."""
    if len(outs) != 1 or not isinstance(outs[0], Base) or not isinstance(found, Base):
        return False
    out: Any = outs[0]
    if (found.shape, found.dtype, found.device) != (out.shape, out.dtype, out.device):
        return False
    out.assign(found)
    return True


def apply_ufunc(ufunc: Any, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``getattr(ufunc, method)(*inputs, **kwargs)`` where tensors are among the inputs, or what is written into.

    Raises:
      RuntimeError: if a gradient is required that would not flow: through numpy, or to what is written into.
      OverflowError: if a number is given that the dtype has not of the result, or of what ``at`` writes into.
    """
    name = ufunc.__name__
    outs = kwargs.get("out", ())
    tensors = list(tensors_of([inputs, outs, kwargs.get("where")]))
    if not (outs and any(map(wants_gradient, tensors))) and any(isinstance(x, Base) for x in inputs):
        found = NotImplemented if has_no_tensor(inputs) else _known(name, method, inputs, kwargs)
        if found is not NotImplemented:
            _check_range(inputs, found, name)
        if found is not NotImplemented and not outs:
            check_flow(name, found, tensors, _SLOPELESS)
            return found
        if found is not NotImplemented and _stored(found, outs):
            return outs[0]
    written = inputs[:1] if method == "at" else outs
    if method == "at":
        check_written(f"{name}.at", inputs[0], inputs[2] if len(inputs) > 2 else 0)
    return on_host(name, getattr(ufunc, method), inputs, kwargs, written, tensors[0])
