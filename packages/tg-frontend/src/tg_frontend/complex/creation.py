"""Complex tensors made from nothing, or like others."""

from __future__ import annotations

import math

from tg_dtype import dtypes, part_dtype

from ..array.array import Array
from ..array.shapes import args_to_tuple
from ..host.coerce import is_arraylike, to_dtype
from ..host.transfer import is_array
from ..ops.creation import device_or_dtype, dtype_behind
from ..ops.new import are_sizes
from .parts import composed, is_complex, kept, plain_class

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def _leaf(z: Any, requires_grad: Any) -> Any:
    return z if requires_grad is None else z.requires_grad_(requires_grad)


def _kind(dtype: Any) -> Any:
    """The dtype of parts."""
    found = to_dtype(dtype)
    return part_dtype(found) if found.kind == "complex" else None


def constant(name: str) -> Callable[..., Any]:
    """``zeros``, ``ones``, ``empty``, ``eye``, ``arange``: as floats, and no imaginary part."""

    def method(cls: Any, *args: Any, dtype: Any = None, requires_grad: Any = None, **kwargs: Any) -> Any:
        args, dtype = dtype_behind(args, dtype)
        kind = None if dtype is None else _kind(dtype)
        if kind is None:
            raise TypeError(f"{name}: sizes and bounds are no complex numbers")
        re = getattr(plain_class(cls), name)(*args, dtype=kind, **kwargs)
        return _leaf(composed(re, re.zeros_like()), requires_grad)

    method.__name__ = name
    return method


def full(
    cls: Any, shape: Any, fill_value: Any, device: Any = None, dtype: Any = None, requires_grad: Any = None
) -> Any:
    device, dtype = device_or_dtype(device, dtype)
    value = fill_value.item() if hasattr(fill_value, "item") else fill_value
    kind = _kind(dtype) if dtype is not None else part_dtype(dtypes.from_py(1j))
    if kind is None:
        raise TypeError(f"full: {value} into a tensor of {to_dtype(dtype).name}")
    number = complex(value)
    plain = plain_class(cls)
    re, im = (plain.full(shape, part, device, kind) for part in (number.real, number.imag))
    return _leaf(composed(re, im), requires_grad)


def scalar_tensor(cls: Any, s: Any, *, dtype: Any = None, device: Any = None, requires_grad: Any = None) -> Any:
    return full(cls, (), s, device, dtype, requires_grad)


def linspace(
    cls: Any, start: Any, stop: Any, steps: int = 50, device: Any = None, dtype: Any = None, requires_grad: Any = None,
    *, endpoint: bool = True, axis: int = 0,
) -> Any:  # fmt: skip
    kind = _kind(dtype) if dtype is not None else part_dtype(dtypes.from_py(1j))
    if kind is None:
        raise TypeError(f"linspace: complex bounds of {to_dtype(dtype).name}")
    if isinstance(steps, complex) or is_complex(steps):
        raise TypeError(f"linspace: {steps!r} is not a number of steps")
    ends: list[Any] = [bound.detach() if isinstance(bound, Array) else complex(bound) for bound in (start, stop)]
    if device is None:
        device = next((bound.device for bound in ends if isinstance(bound, Array)), None)
    split = [
        (one.real, one.imag) if is_complex(one) or isinstance(one, complex) else (one, one.zeros_like()) for one in ends
    ]
    make = plain_class(cls).linspace
    re, im = (
        make(first, last, steps, device, kind, endpoint=endpoint, axis=axis) for first, last in zip(*split, strict=True)
    )
    return _leaf(composed(re, im), requires_grad)


def drawn(name: str, scale: float = 1.0) -> Callable[..., Any]:
    """``rand`` and ``randn``: both parts are drawn, of a normal number with half its variance."""

    def method(cls: Any, *shape: Any, dtype: Any = None, requires_grad: Any = None, **kwargs: Any) -> Any:
        kind = None if dtype is None else _kind(dtype)
        if kind is None:
            raise TypeError(f"{name}: sizes are no complex numbers")
        draw = getattr(plain_class(cls), name)
        re, im = (draw(*shape, dtype=kind, **kwargs) for _ in (0, 1))
        if scale != 1.0:
            re, im = ((part * scale).detach().contiguous() for part in (re, im))
        return _leaf(composed(re, im), requires_grad)

    method.__name__ = name
    return method


HALF = math.sqrt(0.5)


def like(name: str) -> Callable[..., Any]:
    """``zeros_like`` and others, whose dtype may be given."""

    def method(x: Any, dtype: Any = None, **kwargs: Any) -> Any:
        wish, shape = kwargs.pop("requires_grad", None), kwargs.pop("shape", None)
        kind = x.dtype if dtype is None else to_dtype(dtype)
        if kind.kind != "complex":
            real: Array = x._parts[0] if is_complex(x) else x
            sized = {} if shape is None else {"shape": shape}
            return getattr(real, name)(dtype=kind, requires_grad=wish, **kwargs, **sized)
        device = kwargs.pop("device", None) or x.device
        make = getattr(plain_class(x), name.removesuffix("_like"))
        return make(*(x.shape if shape is None else args_to_tuple((shape,), name)), dtype=kind, device=device,
                    requires_grad=wish, **kwargs)  # fmt: skip

    method.__name__ = name
    return method


def full_like(
    x: Any, fill_value: Any, dtype: Any = None, device: Any = None, requires_grad: Any = None, *, shape: Any = None
) -> Any:
    kind = to_dtype(dtype) if dtype is not None else x.dtype
    if kind.kind != "complex":
        raise TypeError(f"full_like: {fill_value} into a tensor of {kind.name}")
    return full(type(x), x.shape if shape is None else shape, fill_value, device or x.device, kind, requires_grad)


def const_like(x: Any, fill_value: Any) -> Any:
    return full_like(x, fill_value)


def new(name: str) -> Callable[..., Any]:
    """``new_zeros`` and others."""

    def method(x: Any, *shape: Any, dtype: Any = None, device: Any = None, **kwargs: Any) -> Any:
        kind = x.dtype if dtype is None else to_dtype(dtype)
        make = getattr(plain_class(x), name.removeprefix("new_"))
        return make(*shape, dtype=kind, device=device or x.device, **kwargs)

    method.__name__ = name
    return method


def new_tensor(x: Any, data: Any, device: Any = None, dtype: Any = None, requires_grad: Any = None) -> Any:
    made = data.detach().clone() if isinstance(data, Array) else plain_class(x)(data)
    kind = x.dtype if dtype is None else to_dtype(dtype)
    if kind.kind != "complex" and is_complex(made) and not isinstance(data, Array) and not is_array(data):
        raise TypeError(f"new_tensor: complex numbers into a tensor of {kind.name}; cast a tensor of them")
    if kind.kind in ("float", "complex") and not isinstance(data, Array) and not is_arraylike(data):
        made = plain_class(x)(data, dtype=kind)  # whose digits the default dtype may not have
    made = made.to(device or x.device).cast(kind)
    return _leaf(made, requires_grad)


def new_of(x: Any, *data: Any, device: Any = None) -> Any:
    return new("new_empty")(x, *(data or (0,)), device=device) if are_sizes(data) else new_tensor(x, data[0], device)


def complex_(re: Any, im: Any) -> Any:
    raise TypeError(f"complex: the parts are floats, got {re.dtype.name} and {getattr(im, 'dtype', type(im))}")


def copied_parts(z: Any) -> Any:
    """The same numbers in memory of their own."""
    return composed(*(kept(part) for part in z._parts))
