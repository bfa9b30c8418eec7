"""Parts of numbers, special values, and reductions by their own names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .elementwise import _sigmoid, _small
from .reductions import _numpy_axes
from .table import Array, Call, Pool, Ref, along, binary, reduction, row, unary

for _name, _compare in (("lt", np.less), ("gt", np.greater), ("le", np.less_equal), ("ge", np.greater_equal)):
    binary(_name, _compare, exact=True, wants_exact=True)
for _name, _both in (("logical_and", np.logical_and), ("logical_or", np.logical_or), ("logical_xor", np.logical_xor)):
    binary(_name, _both, "fib", exact=True, wants_exact=True)
binary("fmax", np.fmax, exact=True)
binary("fmin", np.fmin, exact=True)
binary("heaviside", np.heaviside, "f", exact=True, wants_exact=True)
binary("gcd", np.gcd, "i", exact=True)
binary("lcm", np.lcm, "i", exact=True)
binary("hypot", np.hypot, "f", within=lambda x, y: (np.abs(x) >= 0.1).all() & (np.abs(y) >= 0.1).all(), smooth=True)
binary("xlogy", lambda x, y: x * np.log(y), "f", within=lambda x, y: y >= 0.1, smooth=True)
binary("float_power", lambda x, y: x.astype(float) ** y, "f",
       within=lambda x, y: (x >= 0.1).all() & _small(x).all() & (np.abs(y) <= 4).all())  # fmt: skip
unary("positive", np.positive, "fi", exact=True)
unary("frac", lambda x: x - np.trunc(x), exact=True, wants_exact=True)
unary("signbit", np.signbit, "fi", exact=True, wants_exact=True)
unary("nan_to_num", np.nan_to_num, "fi", exact=True)
unary("frexp", lambda x: tuple(np.frexp(x)), exact=True, wants_exact=True)
unary("sinc", np.sinc, within=lambda x: np.abs(x) >= 0.1, smooth=True)
unary("logit", lambda x: np.log(x / (1 - x)), within=lambda x: (x >= 0.05) & (x <= 0.95), smooth=True)
unary("deg2rad", np.deg2rad, smooth=True)
unary("rad2deg", np.rad2deg, smooth=True)
unary("tanhshrink", lambda x: x - np.tanh(x), smooth=True)
unary("softshrink", lambda x: np.sign(x) * np.maximum(np.abs(x) - 0.5, 0))
unary("hardshrink", lambda x: np.where(np.abs(x) <= 0.5, 0, x), exact=True, wants_exact=True)

reduction("amax", _numpy_axes(np.max), exact=True)
reduction("amin", _numpy_axes(np.min), exact=True)
reduction("count_nonzero", _numpy_axes(np.count_nonzero), "fib", exact=True, wants_exact=True)
reduction("nansum", _numpy_axes(np.nansum), exact=True, smooth=True)
reduction("nanmean", _numpy_axes(np.nanmean), "f", smooth=True)
along("aminmax", lambda x, axis: (x.min(axis), x.max(axis)), kinds="fi", exact=True)


def _with(name: str, drawn: Callable[[Pool], tuple[Any, ...]], reference: Callable[..., Any], **facts: bool) -> None:
    """A method of floats and numbers that are drawn."""

    def draw(pool: Pool, i: int) -> Call | None:
        return Call(name, (Ref(i), *drawn(pool)), {}, reference) if pool.values[i].kind == "f" else None

    row(name, draw, **facts)


_with("threshold", lambda pool: (pool.pick.choice([-1.5, 0.0, 0.7]), 3.0), lambda x, t, v: np.where(x <= t, v, x),
      exact=True, wants_exact=True)  # fmt: skip
_with("ldexp", lambda pool: (pool.pick.randint(-6, 6),), lambda x, n: x * 2.0**n, exact=True, smooth=True)


def _glu(pool: Pool, i: int) -> Call | None:
    array = pool.values[i].array
    even = [axis for axis, size in enumerate(array.shape) if size % 2 == 0 and size]
    if pool.values[i].kind != "f" or not even or not np.all(_small(array)):
        return None

    def reference(x: Array, dim: int) -> Array:
        value, gate = np.split(x, 2, dim)
        return value * _sigmoid(gate)

    return Call("glu", (Ref(i), pool.pick.choice(even)), {}, reference)


def _prelu(pool: Pool, i: int) -> Call | None:
    array = pool.values[i].array
    if pool.values[i].kind != "f":
        return None
    weight = pool.floats(array.shape[1] if array.ndim > 1 and array.shape[1] and pool.pick.random() < 0.5 else 1)

    def reference(x: Array, w: Array) -> Array:
        return np.where(x < 0, x * (w[0] if len(w) == 1 else w.reshape(-1, *[1] * (x.ndim - 2))), x)

    return Call("prelu", (Ref(i), Ref(weight)), {}, reference)


row("glu", _glu, smooth=True)
row("prelu", _prelu, exact=True)


def _combined(name: str, reference: Callable[..., Any], least: float) -> None:
    def draw(pool: Pool, i: int) -> Call | None:
        if pool.values[i].kind != "f" or (a := pool.like(i, "f")) is None or (b := pool.like(a, "f")) is None:
            return None
        shapes = [pool.values[n].array.shape for n in (i, a, b)]
        try:
            if np.prod(np.broadcast_shapes(*shapes)) > 20_000 or np.abs(pool.values[b].array).min(initial=9) < least:
                return None
        except ValueError:
            return None
        return Call(name, (Ref(i), Ref(a), Ref(b)), {"value": pool.pick.choice([1, 0.5, -2.0])}, reference)

    row(name, draw, smooth=True)


_combined("addcmul", lambda x, a, b, value: x + value * a * b, 0.0)
_combined("addcdiv", lambda x, a, b, value: x + value * a / b, 0.1)
