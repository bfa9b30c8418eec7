"""What numpy's universal functions do with a tensor: they give tensors, by the methods that go by their names.

``np.sin(tensor)`` is ``tensor.sin()``, and an array beside a tensor becomes one: ``array + tensor``, as
``tensor + array`` does. ``np.add.reduce``, ``accumulate`` and ``outer`` are known where there is a method for them.
Functions without one, and calls with ``out`` or ``where``, take the tensor's values as arrays, and give arrays.
"""

from __future__ import annotations

import operator

from .base import Base

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


def _as_tensors(inputs: tuple[Any, ...]) -> list[Any]:
    """The inputs, arrays among them as tensors beside the first tensor."""
    first = next(x for x in inputs if isinstance(x, Base))
    return [
        x if isinstance(x, (Base, bool, int, float, complex)) else type(first)(x, device=first.device) for x in inputs
    ]


def _call(name: str, inputs: tuple[Any, ...]) -> Any:
    """The result of a function by the method of its name; NotImplemented where there is none."""
    known = _OPERATORS.get(name)
    if known is not None:
        left, right = _as_tensors(inputs)
        return known(left, right)
    if name not in _METHODS and name not in _NAMES:
        return NotImplemented
    first, *rest = _as_tensors(inputs)
    if not isinstance(first, Base):
        first = type(rest[0])(first, device=rest[0].device)
    return getattr(first, _NAMES.get(name, name))(*rest)


def apply_ufunc(ufunc: Any, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``getattr(ufunc, method)(*inputs, **kwargs)`` where tensors are among the inputs."""
    name, found = ufunc.__name__, NotImplemented
    if method == "__call__" and not kwargs.keys() - {"dtype"}:
        found = _call(name, inputs)
        if found is not NotImplemented and kwargs.get("dtype") is not None:
            found = found.cast(kwargs["dtype"])
    elif method == "reduce" and name in _REDUCTIONS and not kwargs.keys() - {"axis", "keepdims"} and len(inputs) < 3:
        axis = inputs[1] if len(inputs) == 2 else kwargs.get("axis", 0)
        found = getattr(inputs[0], _REDUCTIONS[name])(axis, bool(kwargs.get("keepdims", False)))
    elif method == "accumulate" and name in _RUNNING and not kwargs.keys() - {"axis"} and len(inputs) < 3:
        found = getattr(inputs[0], _RUNNING[name])(inputs[1] if len(inputs) == 2 else kwargs.get("axis", 0))
    elif method == "outer" and not kwargs:
        first, second = _as_tensors(inputs)
        if isinstance(first, Base) and isinstance(second, Base):
            shape = (*first.shape, *(1 for _ in second.shape))
            found = _call(name, (first.reshape(shape), second))  # type: ignore[attr-defined]
    if found is not NotImplemented:
        return found
    for out in kwargs.get("out", ()):
        if isinstance(out, Base):
            raise TypeError(f"{name}: numpy cannot write into a tensor; assign the result")
    arrays = [x.numpy() if isinstance(x, Base) else x for x in inputs]  # type: ignore[attr-defined]
    return getattr(ufunc, method)(*arrays, **kwargs)
