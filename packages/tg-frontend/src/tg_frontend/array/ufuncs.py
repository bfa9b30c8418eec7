"""What numpy's functions do with a tensor.

An operator between an array and a tensor (``array + tensor``) gives a tensor, as ``tensor + array`` does. Any other
function of numpy (``np.sin(tensor)``) takes the tensor's values as an array and gives an array.
"""

from __future__ import annotations

import operator

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


def apply_ufunc(ufunc: Any, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``getattr(ufunc, method)(*inputs, **kwargs)`` where tensors are among the inputs."""
    known = _OPERATORS.get(ufunc.__name__)
    tensors = [x for x in inputs if hasattr(type(x), "lazydata")]
    if known is not None and method == "__call__" and not kwargs:
        first = tensors[0]
        left, right = (x if hasattr(type(x), "lazydata") else type(first)(x, device=first.device) for x in inputs)
        return known(left, right)
    for out in kwargs.get("out", ()):
        if hasattr(type(out), "lazydata"):
            raise TypeError(f"{ufunc.__name__}: numpy cannot write into a tensor; assign the result")
    arrays = [x.numpy() if hasattr(type(x), "lazydata") else x for x in inputs]
    return getattr(ufunc, method)(*arrays, **kwargs)
