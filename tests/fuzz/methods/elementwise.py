"""Methods that compute each element by itself."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .table import Array, Call, Pool, Ref, binary, row, unary


def _sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def _erf(x: Array) -> Array:
    return np.vectorize(math.erf, otypes=[float])(x) if x.size else x


def _erfc(x: Array) -> Array:
    return np.vectorize(math.erfc, otypes=[float])(x) if x.size else x


def _small(x: Array) -> Any:
    return np.abs(x) <= 8


unary("abs", np.abs, "fi", exact=True)
unary("neg", np.negative, "fi", exact=True)
unary("square", np.square, "fi", exact=True, smooth=True)
unary("sign", np.sign, "fi", exact=True, wants_exact=True)
unary("ceil", np.ceil, "f", exact=True, wants_exact=True)
unary("floor", np.floor, "f", exact=True, wants_exact=True)
unary("trunc", np.trunc, "f", exact=True, wants_exact=True)
unary("round", np.rint, "f", exact=True, wants_exact=True)
unary("isnan", np.isnan, "f", exact=True)
unary("isfinite", np.isfinite, "f", exact=True)
unary("isinf", np.isinf, "f", exact=True)
unary("logical_not", np.logical_not, "fib", exact=True, wants_exact=True)
unary("bitwise_not", np.invert, "ib", exact=True)
unary("relu", lambda x: np.maximum(x, 0), "fi", exact=True)
unary("relu6", lambda x: np.clip(x, 0, 6), "f", exact=True)
_fn: Callable[[Array], Any]
for _name, _fn in (("sin", np.sin), ("cos", np.cos), ("tanh", np.tanh), ("atan", np.arctan), ("asinh", np.arcsinh),
                   ("sigmoid", _sigmoid), ("erf", _erf), ("erfc", _erfc)):  # fmt: skip
    unary(_name, _fn, smooth=True)
for _name, _fn in (
    ("exp", np.exp),
    ("exp2", np.exp2),
    ("expm1", np.expm1),
    ("sinh", np.sinh),
    ("cosh", np.cosh),
    ("softplus", lambda x: np.logaddexp(x, 0)),
    ("logsigmoid", lambda x: -np.logaddexp(-x, 0)),
):
    unary(_name, _fn, within=_small, smooth=True)  # fmt: skip
unary("log1p", np.log1p, within=lambda x: x >= -0.9, smooth=True)
unary("tan", np.tan, within=lambda x: np.abs(np.cos(x)) > 0.1, smooth=True)
unary("asin", np.arcsin, within=lambda x: np.abs(x) <= 0.9, smooth=True)
unary("acos", np.arccos, within=lambda x: np.abs(x) <= 0.9, smooth=True)
unary("atanh", np.arctanh, within=lambda x: np.abs(x) <= 0.9, smooth=True)
unary("acosh", np.arccosh, within=lambda x: x >= 1.1, smooth=True)
for _name, _fn in (("log", np.log), ("log2", np.log2), ("log10", np.log10), ("sqrt", np.sqrt),
                   ("rsqrt", lambda x: 1 / np.sqrt(x))):  # fmt: skip
    unary(_name, _fn, within=lambda x: x >= 0.1, smooth=True)
unary("reciprocal", lambda x: 1 / x, within=lambda x: np.abs(x) >= 0.1, smooth=True)
unary("silu", lambda x: x * _sigmoid(x), within=_small, smooth=True)
unary("swish", lambda x: x * _sigmoid(x), within=_small, smooth=True)
unary("gelu", lambda x: 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))), within=_small,
      smooth=True)  # fmt: skip
unary("quick_gelu", lambda x: x * _sigmoid(1.702 * x), within=_small, smooth=True)
unary("mish", lambda x: x * np.tanh(np.logaddexp(x, 0)), within=_small, smooth=True)
unary("softsign", lambda x: x / (1 + np.abs(x)))
unary("elu", lambda x: np.where(x > 0, x, np.expm1(x)), within=_small)
unary("celu", lambda x: np.maximum(x, 0) + np.minimum(0, np.expm1(x)), within=_small)
unary("selu", lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(x)), within=_small)
unary("leaky_relu", lambda x: np.where(x < 0, 0.01 * x, x))
unary("hardsigmoid", lambda x: np.clip(x / 6 + 0.5, 0, 1))
unary("hardswish", lambda x: x * np.clip(x + 3, 0, 6) / 6)
unary("hardtanh", lambda x: np.clip(x, -1, 1), exact=True)
unary("contiguous", lambda x: x, "fib", exact=True)
unary("contiguous_backward", lambda x: x, "f", exact=True)
unary("clone", lambda x: x, "fib", exact=True)
unary("ones_like", np.ones_like, "fib", exact=True)
unary("zeros_like", np.zeros_like, "fib", exact=True)

binary("add", np.add, exact=True, smooth=True)
binary("sub", np.subtract, exact=True, smooth=True)
binary("mul", np.multiply, exact=True, smooth=True)
binary("maximum", np.maximum, exact=True)
binary("minimum", np.minimum, exact=True)
binary("div", np.true_divide, "f", within=lambda x, y: np.abs(y) >= 0.1, smooth=True)
binary("idiv", lambda x, y: np.trunc(x / y).astype(np.int64), "i", within=lambda x, y: (y != 0) & (np.abs(x) < 1 << 40),
       exact=True)  # fmt: skip
binary("mod", np.mod, "fi", within=lambda x, y: np.abs(y) >= 0.1, exact=True, wants_exact=True)
binary("remainder", np.mod, "fi", within=lambda x, y: np.abs(y) >= 0.1, exact=True, wants_exact=True)
binary("floor_divide", np.floor_divide, "fi", within=lambda x, y: np.abs(y) >= 0.1, exact=True, wants_exact=True)
binary("divmod", lambda x, y: tuple(np.divmod(x, y)), "fi", within=lambda x, y: np.abs(y) >= 0.1, exact=True,
       wants_exact=True)  # fmt: skip
binary("atan2", np.arctan2, "f", within=lambda x, y: np.abs(y) >= 0.1, smooth=True)
binary("fmod", np.fmod, "fi", within=lambda x, y: np.abs(y) >= 0.1, exact=True, wants_exact=True)
binary("bitwise_and", np.bitwise_and, "ib", exact=True)
binary("bitwise_or", np.bitwise_or, "ib", exact=True)
binary("bitwise_xor", np.bitwise_xor, "ib", exact=True)
binary("eq", np.equal, exact=True, wants_exact=True)
binary("ne", np.not_equal, exact=True, wants_exact=True)
binary("copysign", np.copysign, "f", exact=True, wants_exact=True)
binary("logaddexp", np.logaddexp, "f", within=lambda x, y: _small(x).all() & _small(y).all(), smooth=True)
binary("isclose", lambda x, y: np.isclose(x, y), "f", exact=True, wants_exact=True)


def _shift(name: str, reference: Callable[[Array, int], Array]) -> None:
    def draw(pool: Pool, i: int) -> Call | None:
        value = pool.values[i]
        if value.kind != "i" or np.any(value.array < 0) or np.any(value.array > 1000):
            return None
        return Call(name, (Ref(i), pool.pick.randint(0, 4)), {}, reference)

    row(name, draw, exact=True)


_shift("lshift", np.left_shift)
_shift("rshift", np.right_shift)


def _pow(pool: Pool, i: int) -> Call | None:
    value = pool.values[i]
    if value.kind == "i" and np.all(np.abs(value.array) < 30):
        return Call("pow", (Ref(i), pool.pick.randint(0, 3)), {}, np.power)
    if value.kind == "f" and np.all(np.abs(value.array) < 30):
        positive = np.all(value.array > 0.1)
        exponent = pool.pick.choice([0, 1, 2, 3, *([0.5, -1, -1.5, 2.25] if positive else [])])
        return Call("pow", (Ref(i), exponent), {}, lambda x, e: np.power(x, float(e)))
    return None


row("pow", _pow, smooth=True)


def _clamp(name: str) -> None:
    def draw(pool: Pool, i: int) -> Call | None:
        value = pool.values[i]
        if value.kind == "b":
            return None
        bounds = [0, 1, 3, 7] if value.kind == "i" else [-4, -1, 0, 1, 3]  # unsigned types refuse what is negative
        low, high = sorted(pool.pick.choice(bounds) for _ in range(2))
        both = pool.pick.choice([(low, high), (None, high), (low, None)])
        return Call(name, (Ref(i), *both), {}, lambda x, a, b: np.clip(x, a, b))

    row(name, draw, exact=True)


_clamp("clamp")
_clamp("clip")


def _where(pool: Pool, i: int) -> Call | None:
    if pool.values[i].kind != "b":
        return None
    j = pool.like(i)
    k = None if j is None else pool.like(j, pool.values[j].kind)
    if j is None or k is None:
        return None
    try:
        np.broadcast_shapes(*(pool.values[n].array.shape for n in (i, j, k)))
    except ValueError:
        return None
    return Call("where", (Ref(i), Ref(j), Ref(k)), {}, np.where)


row("where", _where, exact=True)


def _lerp(pool: Pool, i: int) -> Call | None:
    j = pool.like(i, "f")
    if pool.values[i].kind != "f" or j is None:
        return None
    return Call("lerp", (Ref(i), Ref(j), 0.25), {}, lambda x, y, w: x + (y - x) * w)


row("lerp", _lerp, smooth=True)


def _masked_fill(pool: Pool, i: int) -> Call | None:
    array = pool.values[i].array
    if pool.values[i].kind == "b":
        return None
    mask = pool.make(np.array([pool.pick.random() < 0.4 for _ in range(array.size)], bool).reshape(array.shape))
    return Call("masked_fill", (Ref(i), Ref(mask), 3), {}, lambda x, m, v: np.where(m, np.asarray(v, x.dtype), x))


row("masked_fill", _masked_fill, exact=True)


def _full_like(pool: Pool, i: int) -> Call:
    return Call("full_like", (Ref(i), 1), {}, lambda x, v: np.full_like(x, v))


row("full_like", _full_like, exact=True)


def _cast(name: str, dtype: str, *argument: str) -> None:
    def draw(pool: Pool, i: int) -> Call | None:
        value = pool.values[i]
        if not value.exact or (value.array.size and np.abs(value.array.astype(np.float64)).max() >= 100):
            return None
        to = bool if dtype == "bool" else np.float64 if dtype.startswith(("float", "bfloat")) else np.int64
        return Call(name, (Ref(i), *argument), {}, lambda x, *_: np.trunc(x).astype(to) if to is np.int64
                    and x.dtype.kind == "f" else x.astype(to))  # fmt: skip

    row(name, draw, wants_exact=True)


_cast("cast", "int32", "int32")
for _name, _dtype in (("bool", "bool"), ("int", "int32"), ("short", "int16"), ("long", "int64"), ("float", "float32"),
                      ("double", "float64"), ("half", "float16"), ("bfloat16", "bfloat16")):  # fmt: skip
    _cast(_name, _dtype)


def _bitcast(pool: Pool, i: int) -> Call | None:
    value = pool.values[i]
    if value.kind != "i":
        return None
    return Call("bitcast", (Ref(i), None), {}, lambda x, _: x)  # the caller chooses a type of the same size


row("bitcast", _bitcast, exact=True)
