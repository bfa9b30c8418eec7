"""Every method of Tensor: how a call of it is drawn, and what numpy says that it computes.

A row draws a call for a given first operand, or gives up (None) where the method cannot take it. References compute in
float64 and int64; what the result's own type makes of their values is up to the caller.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
Draw = random.Random


@dataclass(frozen=True)
class Ref:
    """An operand: the number of a value."""

    number: int


@dataclass(frozen=True)
class Value:
    """What a program has computed so far.

    Attributes:
      array: its value by numpy.
      exact: whether it is the same in whatever order and precision it is computed.
    """

    array: Array
    exact: bool

    @property
    def kind(self) -> str:
        """``f``, ``i`` or ``b``."""
        return {"f": "f", "b": "b"}.get(self.array.dtype.kind, "i")


@dataclass(frozen=True)
class Call:
    """A call of a method; the first argument is the tensor itself.

    Attributes:
      name: of the method.
      args: and ``kwargs``: operands (:class:`Ref`) and other arguments, lists and tuples of them too.
      reference: called likewise, with arrays.
    """

    name: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    reference: Callable[..., Any]


@dataclass(frozen=True)
class Row:
    """A method.

    Attributes:
      draw: makes a call for a pool of values and the number of the first operand; None where it does not fit.
      exact: whether exact operands give an exact result.
      wants_exact: whether it jumps, so that only exact operands have one right result.
      smooth: whether finite differences tell its gradient.
    """

    draw: Callable[[Pool, int], Call | None]
    exact: bool = False
    wants_exact: bool = False
    smooth: bool = False


@dataclass
class Pool:
    """The values of a program, and the generator of its choices."""

    pick: Draw
    values: list[Value] = field(default_factory=list)

    def like(self, number: int, kinds: str = "fi", exact: bool = False) -> int | None:
        """Another value that broadcasts with this one."""
        shape, fitting = self.values[number].array.shape, []
        for i, value in enumerate(self.values):
            if value.kind in kinds and (value.exact or not exact):
                try:
                    if math.prod(np.broadcast_shapes(shape, value.array.shape)) <= MOST:
                        fitting.append(i)
                except ValueError:
                    continue
        return self.pick.choice(fitting) if fitting else None

    def make(self, array: Array) -> int:
        """A new input, and its number."""
        self.values.append(Value(array, True))
        return len(self.values) - 1

    def floats(self, *shape: int) -> int:
        """An input of exact fractions."""
        numbers = [self.pick.randrange(-16, 17) / 8 for _ in range(math.prod(shape))]
        return self.make(np.array(numbers, np.float64).reshape(shape))

    def ints(self, low: int, high: int, *shape: int) -> int:
        """An input of integers from ``low`` to below ``high``."""
        numbers = [self.pick.randrange(low, high) for _ in range(math.prod(shape))]
        return self.make(np.array(numbers, np.int64).reshape(shape))

    def axis(self, array: Array) -> int:
        """An axis, counted from either end."""
        return self.pick.randrange(-array.ndim, array.ndim)

    def axes(self, array: Array) -> Any:
        """None, an axis, or some axes."""
        if not array.ndim or self.pick.random() < 0.3:
            return None
        some = self.pick.sample(range(array.ndim), self.pick.randint(1, array.ndim))
        return some[0] if len(some) == 1 and self.pick.random() < 0.7 else tuple(some)


MOST = 20_000
"""Elements of a value."""
ROWS: dict[str, Row] = {}
NOT_A_COMPUTATION = frozenset(
    "T assign backward const_like data detach device dtype element_size empty empty_like from_blob from_dlpack grad "
    "gradient is_floating_point is_realized item lazydata manual_seed nbytes ndim no_grad numel numpy realize replace "
    "requires_grad requires_grad_ schedule schedule_with_vars sequential shape size to to_ tolist train training "
    "retain_grad register_hook set_rng_state get_rng_state allclose backward_ device_ type".split()
)
"""Attributes that compute nothing, or only say or move what is there; memory has a fuzzer of its own."""
RANDOM = frozenset(
    "dropout glorot_uniform kaiming_normal kaiming_uniform multinomial normal rand rand_like randint randn randn_like "
    "randperm scaled_uniform uniform bernoulli xavier_uniform xavier_normal".split()
)
"""Methods that draw random numbers: their distributions have tests."""


def row(name: str, draw: Callable[[Pool, int], Call | None], **facts: bool) -> None:
    """Adds a method."""
    assert name not in ROWS, name
    ROWS[name] = Row(draw, **facts)


def unary(name: str, reference: Callable[[Array], Any], kinds: str = "f", within: Callable[[Array], Any] | None = None,
          **facts: bool) -> None:  # fmt: skip
    """A method without arguments, for values that ``within`` accepts."""

    def draw(pool: Pool, i: int) -> Call | None:
        value = pool.values[i]
        if value.kind not in kinds or (within is not None and not np.all(within(value.array))):
            return None
        return Call(name, (Ref(i),), {}, reference)

    row(name, draw, **facts)


def binary(name: str, reference: Callable[[Array, Array], Any], kinds: str = "fi",
           within: Callable[[Array, Array], Any] | None = None, **facts: bool) -> None:  # fmt: skip
    """A method of two operands that broadcast; the other one may be a number."""

    def draw(pool: Pool, i: int) -> Call | None:
        value = pool.values[i]
        if value.kind not in kinds:
            return None
        other: Any
        if pool.pick.random() < 0.25 and value.kind != "b":
            other = pool.pick.choice([1, 2, 3, 5]) if value.kind == "i" else pool.pick.choice([-2.5, 0.5, 1.0, 3])
            operand: Array = np.asarray(other)
        else:
            j = pool.like(i, value.kind, facts.get("wants_exact", False))
            if j is None:
                return None
            other, operand = Ref(j), pool.values[j].array
        if within is not None and not np.all(within(value.array, operand)):
            return None
        return Call(name, (Ref(i), other), {}, reference)

    row(name, draw, **facts)


def reduction(name: str, reference: Callable[..., Any], kinds: str = "fi", **facts: bool) -> None:
    """A method of axes and ``keepdim``."""

    def draw(pool: Pool, i: int) -> Call | None:
        value = pool.values[i]
        if value.kind not in kinds or not value.array.size:
            return None
        kwargs = {"axis": pool.axes(value.array), "keepdim": pool.pick.random() < 0.5}
        return Call(name, (Ref(i),), kwargs, reference)

    row(name, draw, **facts)


def along(name: str, reference: Callable[..., Any], keyword: str = "axis", kinds: str = "f", most: int = 1 << 30,
          **facts: bool) -> None:  # fmt: skip
    """A method of one axis."""

    def draw(pool: Pool, i: int) -> Call | None:
        value = pool.values[i]
        if value.kind not in kinds or not value.array.ndim or not 0 < value.array.size:
            return None
        axis = pool.axis(value.array)
        if value.array.shape[axis] > most:
            return None
        return Call(name, (Ref(i),), {keyword: axis}, reference)

    row(name, draw, **facts)


# -- elementwise -------------------------------------------------------------------------------------------------------


def _sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def _erf(x: Array) -> Array:
    return np.vectorize(math.erf, otypes=[float])(x) if x.size else x


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
                   ("sigmoid", _sigmoid), ("erf", _erf), ("erfc", lambda x: 1 - _erf(x))):  # fmt: skip
    unary(_name, _fn, smooth=True)
for _name, _fn in (("exp", np.exp), ("exp2", np.exp2), ("expm1", np.expm1), ("sinh", np.sinh), ("cosh", np.cosh),
                   ("softplus", lambda x: np.logaddexp(x, 0)), ("logsigmoid", lambda x: -np.logaddexp(-x, 0))):
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


# -- movement ----------------------------------------------------------------------------------------------------------


def _factors(pick: Draw, size: int) -> tuple[int, ...]:
    dims = []
    for _ in range(pick.randint(0, 2)):
        divisors = [d for d in range(1, size + 1) if size % d == 0] if size <= 5000 else [1]
        dims.append(pick.choice(divisors or [1]))
        size //= dims[-1]
    return (*dims, size)


def _reshape(name: str) -> None:
    def draw(pool: Pool, i: int) -> Call | None:
        size = pool.values[i].array.size
        if not size:
            return None
        shape = _factors(pool.pick, size)
        if pool.pick.random() < 0.3:
            hole = pool.pick.randrange(len(shape))
            shape = (*shape[:hole], -1, *shape[hole + 1 :])
        return Call(name, (Ref(i), shape), {}, np.reshape)

    row(name, draw, exact=True)


_reshape("reshape")
_reshape("view")


def _permute(pool: Pool, i: int) -> Call:
    order = list(range(pool.values[i].array.ndim))
    pool.pick.shuffle(order)
    return Call("permute", (Ref(i), tuple(order)), {}, np.transpose)


def _transpose(pool: Pool, i: int) -> Call | None:
    array = pool.values[i].array
    if not array.ndim:
        return None
    return Call("transpose", (Ref(i), pool.axis(array), pool.axis(array)), {}, np.swapaxes)


def _expand(pool: Pool, i: int) -> Call | None:
    shape = tuple(pool.pick.choice([2, 3]) if d == 1 else d for d in pool.values[i].array.shape)
    if pool.pick.random() < 0.4:
        shape = (pool.pick.choice([1, 2, 5]), *shape)
    if not shape or math.prod(shape) > MOST:
        return None
    return Call("expand", (Ref(i), shape), {}, np.broadcast_to)


def _shrink(pool: Pool, i: int) -> Call:
    bounds = []
    for d in pool.values[i].array.shape:
        low = pool.pick.randint(0, max(d - 1, 0))
        bounds.append((low, pool.pick.randint(low, d)))
    return Call("shrink", (Ref(i), tuple(bounds)), {}, lambda x, b: x[tuple(slice(*pair) for pair in b)])


def _shrink_to(pool: Pool, i: int) -> Call:
    shape = tuple(pool.pick.randint(min(1, d), d) for d in pool.values[i].array.shape)
    return Call("shrink_to", (Ref(i), shape), {}, lambda x, s: x[tuple(slice(0, n) for n in s)])


def _pad(pool: Pool, i: int) -> Call | None:
    array = pool.values[i].array
    if not array.ndim or not array.size or array.size > 3000 or pool.values[i].kind == "b":
        return None
    axes = pool.pick.randint(1, array.ndim)
    pairs = [(pool.pick.randint(0, 3), pool.pick.randint(0, 3)) for _ in range(axes)]  # the last axis first, as PyTorch
    mode = pool.pick.choice(["constant", "constant", "reflect", "replicate", "circular"])
    for (low, high), d in zip(pairs, array.shape[::-1], strict=False):
        if (mode == "reflect" and max(low, high) >= d) or (mode == "circular" and max(low, high) > d):
            mode = "constant"
    flat = tuple(n for pair in pairs for n in pair)
    value = pool.pick.choice([0, 0, 2])

    def reference(x: Array, padding: Sequence[int], mode: str, value: float) -> Array:
        widths = [(0, 0)] * x.ndim
        for k in range(len(padding) // 2):
            widths[x.ndim - 1 - k] = (padding[2 * k], padding[2 * k + 1])
        if mode == "constant":
            return np.pad(x, widths, constant_values=value)
        return np.pad(x, widths, {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}[mode])  # type: ignore[call-overload,no-any-return]

    return Call("pad", (Ref(i), flat), {"mode": mode, "value": value}, reference)


def _pad_to(pool: Pool, i: int) -> Call | None:
    array = pool.values[i].array
    shape = tuple(d + pool.pick.randint(0, 3) for d in array.shape)
    if not shape or math.prod(shape) > MOST:
        return None
    return Call("pad_to", (Ref(i), shape), {},
                lambda x, s: np.pad(x, [(0, n - d) for n, d in zip(s, x.shape, strict=True)]))  # fmt: skip


def _flip(pool: Pool, i: int) -> Call | None:
    array = pool.values[i].array
    if not array.ndim:
        return None
    some = tuple(pool.pick.sample(range(array.ndim), pool.pick.randint(1, array.ndim)))
    return Call("flip", (Ref(i), some), {}, np.flip)


def _roll(pool: Pool, i: int) -> Call | None:
    array = pool.values[i].array
    if not array.ndim or not array.size:
        return None
    axis = pool.pick.choice([None, pool.axis(array)])
    return Call("roll", (Ref(i), pool.pick.randint(-7, 7), axis), {}, np.roll)


def _repeat(pool: Pool, i: int) -> Call | None:
    array = pool.values[i].array
    times = tuple(pool.pick.choice([1, 1, 2, 3]) for _ in range(max(array.ndim, 1)))
    if array.size * math.prod(times) > MOST:
        return None
    return Call("repeat", (Ref(i), times), {}, np.tile)


def _repeat_interleave(pool: Pool, i: int) -> Call | None:
    array = pool.values[i].array
    if not array.ndim or array.size > 3000:
        return None
    axis = pool.pick.choice([None, pool.axis(array)])
    return Call("repeat_interleave", (Ref(i), pool.pick.randint(1, 3), axis), {}, np.repeat)


def _joined(name: str, reference: Callable[..., Any]) -> None:
    def draw(pool: Pool, i: int) -> Call | None:
        value = pool.values[i]
        if not value.array.ndim or value.array.size > 3000:
            return None
        fitting = [j for j, v in enumerate(pool.values) if v.array.shape == value.array.shape and v.kind == value.kind]
        others = [pool.pick.choice(fitting) for _ in range(pool.pick.randint(0, 2))]
        axis = pool.axis(value.array)
        return Call(name, (Ref(i), *map(Ref, others)), {"dim": axis}, lambda *a, dim: reference(a, axis=dim))

    row(name, draw, exact=True)


_joined("cat", np.concatenate)


def _stack(pool: Pool, i: int) -> Call | None:
    value = pool.values[i]
    if value.array.size > 3000:
        return None
    fitting = [j for j, v in enumerate(pool.values) if v.array.shape == value.array.shape and v.kind == value.kind]
    others = [pool.pick.choice(fitting) for _ in range(pool.pick.randint(0, 2))]
    axis = pool.pick.randint(0, value.array.ndim)
    return Call("stack", (Ref(i), *map(Ref, others)), {"dim": axis}, lambda *a, dim: np.stack(a, dim))


def _split(pool: Pool, i: int) -> Call | None:
    array = pool.values[i].array
    if not array.ndim:
        return None
    axis = pool.axis(array)
    if not array.shape[axis]:
        return None
    size = pool.pick.randint(1, array.shape[axis])
    return Call("split", (Ref(i), size), {"dim": axis},
                lambda x, n, dim: np.split(x, list(range(n, x.shape[dim], n)), dim)[:4])  # fmt: skip


def _chunk(pool: Pool, i: int) -> Call | None:
    array = pool.values[i].array
    if not array.ndim:
        return None
    axis = pool.axis(array)
    if not array.shape[axis]:
        return None

    def reference(x: Array, count: int, dim: int) -> Any:
        size = -(-x.shape[dim] // count)
        return np.split(x, list(range(size, x.shape[dim], size)), dim)[:4]

    return Call("chunk", (Ref(i), pool.pick.randint(1, 4)), {"dim": axis}, reference)


def _squeeze(pool: Pool, i: int) -> Call:
    array = pool.values[i].array
    ones = [k for k, d in enumerate(array.shape) if d == 1]
    if ones and pool.pick.random() < 0.6:
        return Call("squeeze", (Ref(i), pool.pick.choice(ones)), {}, np.squeeze)
    return Call("squeeze", (Ref(i),), {}, np.squeeze)


def _unsqueeze(pool: Pool, i: int) -> Call | None:
    array = pool.values[i].array
    if array.ndim > 4:
        return None
    return Call("unsqueeze", (Ref(i), pool.pick.randint(-array.ndim - 1, array.ndim)), {}, np.expand_dims)


def _flatten(pool: Pool, i: int) -> Call | None:
    array = pool.values[i].array
    if array.ndim < 2:
        return None
    start = pool.pick.randrange(array.ndim)
    end = pool.pick.randrange(start, array.ndim)
    return Call("flatten", (Ref(i), start, end), {},
                lambda x, s, e: x.reshape(*x.shape[:s], math.prod(x.shape[s : e + 1]), *x.shape[e + 1 :]))  # fmt: skip


def _unflatten(pool: Pool, i: int) -> Call | None:
    array = pool.values[i].array
    if not array.ndim or not array.size:
        return None
    axis = pool.pick.randrange(array.ndim)
    sizes = _factors(pool.pick, array.shape[axis])
    return Call("unflatten", (Ref(i), axis, sizes), {},
                lambda x, a, s: x.reshape(*x.shape[:a], *s, *x.shape[a + 1 :]))  # fmt: skip


def _unfold(pool: Pool, i: int) -> Call | None:
    array = pool.values[i].array
    if not array.ndim or not array.size:
        return None
    axis = pool.axis(array)
    size, step = pool.pick.randint(1, array.shape[axis]), pool.pick.randint(1, 3)
    if array.size * size > MOST:
        return None

    def reference(x: Array, axis: int, size: int, step: int) -> Array:
        windows = np.lib.stride_tricks.sliding_window_view(x, size, axis)
        return windows[(slice(None),) * (axis % x.ndim) + (slice(None, None, step),)]

    return Call("unfold", (Ref(i), axis, size, step), {}, reference)


def _triangle(name: str, reference: Callable[..., Any]) -> None:
    def draw(pool: Pool, i: int) -> Call | None:
        if pool.values[i].array.ndim < 2:
            return None
        return Call(name, (Ref(i), pool.pick.randint(-3, 3)), {}, reference)

    row(name, draw, exact=True)


def _diagonal(pool: Pool, i: int) -> Call | None:
    array = pool.values[i].array
    if array.ndim < 2:
        return None
    a, b = pool.pick.sample(range(array.ndim), 2)
    if not min(array.shape[a], array.shape[b]):
        return None
    offset = pool.pick.randint(1 - array.shape[a], array.shape[b] - 1)
    return Call("diagonal", (Ref(i), offset, a, b), {}, np.diagonal)


def _diag(pool: Pool, i: int) -> Call | None:
    array = pool.values[i].array
    if array.ndim not in (1, 2) or array.size > 100 or 0 in array.shape:
        return None
    most = 3 if array.ndim == 1 else min(array.shape) - 1
    return Call("diag", (Ref(i), pool.pick.randint(-most, most)), {}, np.diag)


for _name, _draw in (("permute", _permute), ("transpose", _transpose), ("expand", _expand), ("shrink", _shrink),
                     ("shrink_to", _shrink_to), ("pad", _pad), ("pad_to", _pad_to), ("flip", _flip), ("roll", _roll),
                     ("repeat", _repeat), ("repeat_interleave", _repeat_interleave), ("stack", _stack),
                     ("split", _split), ("chunk", _chunk), ("squeeze", _squeeze), ("unsqueeze", _unsqueeze),
                     ("flatten", _flatten), ("unflatten", _unflatten), ("unfold", _unfold), ("diagonal", _diagonal),
                     ("diag", _diag)):  # fmt: skip
    row(_name, _draw, exact=True)
_triangle("tril", np.tril)
_triangle("triu", np.triu)


def _rearrange(pool: Pool, i: int) -> Call | None:
    if pool.values[i].array.ndim != 3:
        return None
    return Call("rearrange", (Ref(i), "a b c -> c (b a)"), {},
                lambda x, _: x.transpose(2, 1, 0).reshape(x.shape[2], -1))  # fmt: skip


row("rearrange", _rearrange, exact=True)


def _meshgrid(pool: Pool, i: int) -> Call | None:
    array = pool.values[i].array
    if array.ndim != 1 or array.size > 40:
        return None
    j = pool.floats(pool.pick.randint(1, 5))
    return Call("meshgrid", (Ref(i), Ref(j)), {"indexing": pool.pick.choice(["ij", "xy"])},
                lambda x, y, indexing: tuple(np.meshgrid(x, y, indexing=indexing)))  # fmt: skip


row("meshgrid", _meshgrid, exact=True)

# -- reductions --------------------------------------------------------------------------------------------------------


def _numpy_axes(fn: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, axis, keepdim: fn(x, axis=axis, keepdims=keepdim)


reduction("sum", _numpy_axes(np.sum), exact=True, smooth=True)
reduction("max", _numpy_axes(np.max), exact=True)
reduction("min", _numpy_axes(np.min), exact=True)
reduction("mean", _numpy_axes(np.mean), "f", smooth=True)
reduction("all", _numpy_axes(np.all), "fib", exact=True, wants_exact=True)
reduction("any", _numpy_axes(np.any), "fib", exact=True, wants_exact=True)


def _prod(pool: Pool, i: int) -> Call | None:
    value = pool.values[i]
    if value.kind != "f" or not 0 < value.array.size <= 64 or np.abs(value.array).max() > 4:
        return None
    kwargs = {"axis": pool.axes(value.array), "keepdim": pool.pick.random() < 0.5}
    return Call("prod", (Ref(i),), kwargs, _numpy_axes(np.prod))


row("prod", _prod, smooth=True)


def _spread(name: str, reference: Callable[..., Any]) -> None:
    def draw(pool: Pool, i: int) -> Call | None:
        value = pool.values[i]
        if value.kind != "f" or not value.array.size:
            return None
        axes = pool.axes(value.array)
        chosen = range(value.array.ndim) if axes is None else (axes,) if isinstance(axes, int) else axes
        if math.prod(value.array.shape[a] for a in chosen) < 2 or np.ptp(value.array, axis=axes).min() < 0.1:
            return None
        kwargs = {"axis": axes, "keepdim": pool.pick.random() < 0.5, "correction": pool.pick.choice([0, 1])}
        return Call(name, (Ref(i),), kwargs, reference)

    row(name, draw, smooth=True)


def _var(x: Array, axis: Any, keepdim: bool, correction: int) -> Any:
    return np.var(x, axis=axis, keepdims=keepdim, ddof=correction)


_spread("var", _var)
_spread("std", lambda x, **k: np.sqrt(_var(x, **k)))
_spread("var_mean", lambda x, **k: (_var(x, **k), np.mean(x, axis=k["axis"], keepdims=k["keepdim"])))
_spread("std_mean", lambda x, **k: (np.sqrt(_var(x, **k)), np.mean(x, axis=k["axis"], keepdims=k["keepdim"])))


def _logsumexp(x: Array, axis: Any = None, keepdim: bool = False) -> Any:
    top = x.max(axis=axis, keepdims=True)
    total = np.log(np.exp(x - top).sum(axis=axis, keepdims=True)) + top
    return total if keepdim else np.squeeze(total, axis)


along("logsumexp", _logsumexp, smooth=True)
along("softmax", lambda x, axis: np.exp(x - _logsumexp(x, axis, True)), smooth=True)
along("softmin", lambda x, axis: np.exp(-x - _logsumexp(-x, axis, True)), smooth=True)
along("log_softmax", lambda x, axis: x - _logsumexp(x, axis, True), smooth=True)
along("argmax", lambda x, axis: np.argmax(x, axis), kinds="fi", exact=True, wants_exact=True)
along("argmin", lambda x, axis: np.argmin(x, axis), kinds="fi", exact=True, wants_exact=True)
along("cumsum", lambda x, axis: np.cumsum(x, axis), kinds="fi", exact=True, smooth=True)
along("logcumsumexp", lambda x, axis: np.logaddexp.accumulate(x, axis), most=200, smooth=True)


def _cumprod(pool: Pool, i: int) -> Call | None:
    value = pool.values[i]
    if value.kind != "f" or not value.array.ndim or not 0 < value.array.size <= 200 or np.abs(value.array).max() > 2.5:
        return None
    axis = pool.axis(value.array)
    if value.array.shape[axis] > 24:
        return None
    return Call("cumprod", (Ref(i), axis), {}, np.cumprod)


row("cumprod", _cumprod, smooth=True)


def _running(ufunc: Any, better: Callable[[Array, Array], Any]) -> Callable[..., Any]:
    def reference(x: Array, axis: int) -> Any:
        values = ufunc.accumulate(x, axis)
        moved, best = np.moveaxis(x, axis, 0), np.zeros(np.moveaxis(x, axis, 0).shape, np.int64)
        for k in range(1, len(moved)):
            seen = np.take_along_axis(moved, best[k - 1 : k], 0)[0]
            best[k] = np.where(better(moved[k], seen), k, best[k - 1])  # the last of equal ones, as in PyTorch
        return values, np.moveaxis(best, 0, axis)

    return reference


along("cummax", _running(np.maximum, np.greater_equal), kinds="fi", most=200, exact=True, wants_exact=True)
along("cummin", _running(np.minimum, np.less_equal), kinds="fi", most=200, exact=True, wants_exact=True)


def _sorting(name: str, reference: Callable[..., Any]) -> None:
    def draw(pool: Pool, i: int) -> Call | None:
        value = pool.values[i]
        if value.kind == "b" or not value.array.ndim or not 0 < value.array.size <= 3000:
            return None
        kwargs = {"dim": pool.axis(value.array), "descending": pool.pick.random() < 0.5}
        return Call(name, (Ref(i),), kwargs, reference)

    row(name, draw, exact=True, wants_exact=True)


def _argsort(x: Array, dim: int, descending: bool) -> Array:
    return np.argsort(-x if descending else x, dim, kind="stable")


_sorting("argsort", _argsort)
_sorting("sort", lambda x, **k: (np.take_along_axis(x, _argsort(x, **k), k["dim"]), _argsort(x, **k)))


def _topk(pool: Pool, i: int) -> Call | None:
    value = pool.values[i]
    if value.kind == "b" or not value.array.ndim or not 0 < value.array.size <= 3000:
        return None
    axis = pool.axis(value.array)
    kwargs = {"dim": axis, "largest": pool.pick.random() < 0.5}

    def reference(x: Array, k: int, dim: int, largest: bool) -> Any:
        order = np.take(_argsort(x, dim, largest), range(k), dim)
        return np.take_along_axis(x, order, dim), order

    return Call("topk", (Ref(i), pool.pick.randint(1, value.array.shape[axis])), kwargs, reference)


row("topk", _topk, exact=True, wants_exact=True)

# -- indexing ----------------------------------------------------------------------------------------------------------


def _index(pool: Pool, array: Array, axis: int) -> int:
    shape = [pool.pick.randint(1, d) for d in array.shape]
    shape[axis] = pool.pick.randint(1, 6)
    return pool.ints(0, array.shape[axis], *shape)


def _gather(pool: Pool, i: int) -> Call | None:
    array = pool.values[i].array
    if not array.ndim or not array.size or array.size > 3000:
        return None
    axis = pool.axis(array)

    def reference(x: Array, dim: int, index: Array) -> Array:
        cut = tuple(slice(None) if k == dim % x.ndim else slice(0, n) for k, n in enumerate(index.shape))
        return np.take_along_axis(x[cut], index, dim)

    return Call("gather", (Ref(i), axis, Ref(_index(pool, array, axis))), {}, reference)


row("gather", _gather, exact=True)


def _scattered(x: Array, dim: int, index: Array, src: Array, reduce: str | None, include_self: bool = True) -> Array:
    out, touched, counts = x.copy(), np.zeros(x.shape, bool), np.zeros(x.shape)
    for place in np.ndindex(*index.shape):
        to = list(place)
        to[dim] = int(index[place])
        at = tuple(to)
        new, first = src[place], not touched[at] and not include_self
        touched[at] = True
        counts[at] += 1
        if reduce is None or first:
            out[at] = new
        elif reduce in ("add", "sum", "mean"):
            out[at] += new
        elif reduce in ("multiply", "prod"):
            out[at] *= new
        else:
            out[at] = max(out[at], new) if reduce == "amax" else min(out[at], new)
    if reduce == "mean":
        out = np.where(touched, out / np.maximum(counts + include_self, 1), out)
    return out


def _scatter(pool: Pool, i: int) -> Call | None:
    value = pool.values[i]
    if value.kind != "f" or not value.array.ndim or not 0 < value.array.size <= 500:
        return None
    axis, reduce = pool.axis(value.array) % value.array.ndim, pool.pick.choice([None, "add", "multiply"])
    index = _index(pool, value.array, axis)
    if reduce is None:  # which of several writes stays is nobody's promise: no place is written twice
        shape, size = list(pool.values[index].array.shape), value.array.shape[axis]
        shape[axis] = min(shape[axis], size)
        rows = [pool.pick.sample(range(size), shape[axis]) for _ in range(math.prod(shape) // shape[axis])]
        others = [n for k, n in enumerate(shape) if k != axis]
        pool.values[index] = Value(np.moveaxis(np.array(rows).reshape(*others, shape[axis]), -1, axis), True)
    src = pool.floats(*pool.values[index].array.shape)
    return Call("scatter", (Ref(i), axis, Ref(index), Ref(src)), {"reduce": reduce}, _scattered)


row("scatter", _scatter, exact=True)


def _scatter_reduce(pool: Pool, i: int) -> Call | None:
    value = pool.values[i]
    if value.kind != "f" or not value.array.ndim or not 0 < value.array.size <= 500:
        return None
    axis = pool.axis(value.array) % value.array.ndim
    index = _index(pool, value.array, axis)
    src = pool.floats(*pool.values[index].array.shape)
    reduce = pool.pick.choice(["sum", "prod", "mean", "amax", "amin"])
    kwargs = {"reduce": reduce, "include_self": pool.pick.random() < 0.5}
    return Call("scatter_reduce", (Ref(i), axis, Ref(index), Ref(src)), kwargs, _scattered)


row("scatter_reduce", _scatter_reduce)


def _one_hot(pool: Pool, i: int) -> Call | None:
    value = pool.values[i]
    if value.kind != "i" or not 0 < value.array.size <= 900 or value.array.min() < 0 or value.array.max() > 11:
        return None
    return Call("one_hot", (Ref(i), 12), {}, lambda x, n: (x[..., None] == np.arange(n)).astype(np.int64))


row("one_hot", _one_hot, exact=True)


def _masked_select(pool: Pool, i: int) -> Call | None:
    array = pool.values[i].array
    if not array.size or array.size > 500:
        return None
    mask = pool.make(np.array([pool.pick.random() < 0.5 for _ in range(array.size)], bool).reshape(array.shape))
    return Call("masked_select", (Ref(i), Ref(mask)), {}, lambda x, m: x[m])


row("masked_select", _masked_select, exact=True)


def _nonzero(pool: Pool, i: int) -> Call | None:
    array = pool.values[i].array
    if not array.ndim or not array.size or array.size > 500:
        return None
    return Call("nonzero", (Ref(i),), {}, np.argwhere)


row("nonzero", _nonzero, exact=True, wants_exact=True)

# -- products, windows, losses -----------------------------------------------------------------------------------------


def _matmul(name: str) -> None:
    def draw(pool: Pool, i: int) -> Call | None:
        value = pool.values[i]
        if value.kind != "f" or not value.array.ndim or not value.array.size:
            return None
        inner = value.array.shape[-1]
        j = pool.floats(inner, pool.pick.randint(1, 20)) if pool.pick.random() < 0.8 else pool.floats(inner)
        return Call(name, (Ref(i), Ref(j)), {}, np.matmul)

    row(name, draw, exact=True, smooth=True)


_matmul("matmul")
_matmul("dot")


def _linear(pool: Pool, i: int) -> Call | None:
    value = pool.values[i]
    if value.kind != "f" or not value.array.ndim or not value.array.size:
        return None
    n = pool.pick.randint(1, 20)
    w, b = pool.floats(value.array.shape[-1], n), pool.floats(n)
    return Call("linear", (Ref(i), Ref(w), Ref(b)), {}, lambda x, w, b: x @ w + b)


def _einsum(pool: Pool, i: int) -> Call | None:
    value = pool.values[i]
    if value.kind != "f" or value.array.ndim != 2 or not value.array.size:
        return None
    j = pool.floats(value.array.shape[1], pool.pick.randint(1, 9))
    formula = pool.pick.choice(["ij,jk->ik", "ij,jk->ki", "ij,jk->k", "ij,jk->ijk"])
    if value.array.size * 9 > MOST:
        return None
    return Call("einsum", (formula, Ref(i), Ref(j)), {}, np.einsum)


def _attention(pool: Pool, i: int) -> Call | None:
    value = pool.values[i]
    if value.kind != "f" or value.array.ndim < 2 or not 0 < value.array.size <= 4000 or np.abs(value.array).max() > 9:
        return None
    *batch, _, width = value.array.shape
    keys = pool.pick.randint(1, 17)
    k, v = pool.floats(*batch, keys, width), pool.floats(*batch, keys, pool.pick.randint(1, 9))

    def reference(q: Array, k: Array, v: Array) -> Array:
        scores = q @ np.swapaxes(k, -1, -2) / math.sqrt(q.shape[-1])
        return np.exp(scores - _logsumexp(scores, -1, True)) @ v  # type: ignore[no-any-return]

    return Call("scaled_dot_product_attention", (Ref(i), Ref(k), Ref(v)), {}, reference)


row("linear", _linear, exact=True, smooth=True)
row("einsum", _einsum, exact=True, smooth=True)
row("scaled_dot_product_attention", _attention, smooth=True)


def _normalised(x: Array, axis: Any, eps: float = 1e-5) -> Array:
    return (x - x.mean(axis=axis, keepdims=True)) / np.sqrt(x.var(axis=axis, keepdims=True) + eps)  # type: ignore[no-any-return]


along("layernorm", lambda x, axis: _normalised(x, axis % x.ndim if axis != -1 else -1), smooth=True)
along("normalize", lambda x, dim: x / np.maximum(np.sqrt((x * x).sum(dim, keepdims=True)), 1e-12), "dim")


def _batchnorm(pool: Pool, i: int) -> Call | None:
    value = pool.values[i]
    if value.kind != "f" or value.array.ndim < 2 or not value.array.size:
        return None
    n = value.array.shape[1]
    w, b, m, s = (pool.floats(n) for _ in range(4))

    def reference(x: Array, *each: Array) -> Array:
        w, b, m, s = (a.reshape(-1, *[1] * (x.ndim - 2)) for a in each)
        return (x - m) * s * w + b

    return Call("batchnorm", (Ref(i), Ref(w), Ref(b), Ref(m), Ref(s)), {}, reference)


row("batchnorm", _batchnorm, exact=True, smooth=True)


def _image(pool: Pool, i: int) -> tuple[int, Array]:
    """The value itself if it may be a batch of images, else a new one."""
    value = pool.values[i]
    if value.kind == "f" and value.array.ndim == 4 and 0 < value.array.size <= 2000:
        return i, value.array
    shape = [pool.pick.randint(1, 3), pool.pick.choice([1, 2, 4]), pool.pick.randint(3, 9), pool.pick.randint(3, 9)]
    j = pool.floats(*shape)
    return j, pool.values[j].array


def _windows(x: Array, kernel: Sequence[int], stride: int, padding: int, dilation: int, value: float) -> Array:
    """(n, c, oy, ox, ky, kx)."""
    x = np.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)), constant_values=value)
    reach = [dilation * (k - 1) + 1 for k in kernel]
    seen = np.lib.stride_tricks.sliding_window_view(x, reach, (2, 3))
    return seen[:, :, ::stride, ::stride, ::dilation, ::dilation]


def _convolution(x: Array, w: Array, b: Array | None = None, groups: int = 1, stride: int = 1, dilation: int = 1,
                 padding: int = 0) -> Array:  # fmt: skip
    seen = _windows(x, w.shape[2:], stride, padding, dilation, 0)
    parts = [np.einsum("ncyxij,ocij->noyx", s, k)
             for s, k in zip(np.split(seen, groups, 1), np.split(w, groups, 0), strict=True)]  # fmt: skip
    out = np.concatenate(parts, 1)
    return out if b is None else out + b[:, None, None]


def _conv2d(pool: Pool, i: int) -> Call | None:
    j, x = _image(pool, i)
    groups = pool.pick.choice([g for g in (1, 1, 2, 4) if x.shape[1] % g == 0])
    outputs = groups * pool.pick.randint(1, 3)
    kernel = [pool.pick.randint(1, min(3, d)) for d in x.shape[2:]]
    w, b = pool.floats(outputs, x.shape[1] // groups, *kernel), pool.floats(outputs)
    kwargs: dict[str, Any] = {"groups": groups, "stride": pool.pick.randint(1, 2), "padding": pool.pick.randint(0, 2)}
    if pool.pick.random() < 0.3 and all(2 * (k - 1) + 1 <= d for k, d in zip(kernel, x.shape[2:], strict=True)):
        kwargs["dilation"] = 2
    return Call("conv2d", (Ref(j), Ref(w), Ref(b)), kwargs, _convolution)


def _conv_transpose2d(pool: Pool, i: int) -> Call | None:
    j, x = _image(pool, i)
    kernel = [pool.pick.randint(1, 3) for _ in range(2)]
    w = pool.floats(x.shape[1], pool.pick.randint(1, 3), *kernel)
    kwargs = {"stride": pool.pick.randint(1, 2), "padding": pool.pick.randint(0, min(kernel) - 1)}

    def reference(x: Array, w: Array, stride: int, padding: int) -> Array:
        n, _, h, width = x.shape
        ky, kx = w.shape[2:]
        out = np.zeros((n, w.shape[1], (h - 1) * stride + ky, (width - 1) * stride + kx))
        for y in range(h):
            for z in range(width):
                out[:, :, y * stride : y * stride + ky, z * stride : z * stride + kx] += np.einsum(
                    "nc,coij->noij", x[:, :, y, z], w)  # fmt: skip
        return out[:, :, padding : out.shape[2] - padding, padding : out.shape[3] - padding]

    return Call("conv_transpose2d", (Ref(j), Ref(w)), kwargs, reference)


row("conv2d", _conv2d, exact=True, smooth=True)
row("conv_transpose2d", _conv_transpose2d, exact=True, smooth=True)


def _pooling(name: str, value: float, reference: Callable[..., Any], **facts: bool) -> None:
    def draw(pool: Pool, i: int) -> Call | None:
        j, x = _image(pool, i)
        kernel = pool.pick.randint(1, min(3, *x.shape[2:]))
        stride, padding = pool.pick.randint(1, 3), pool.pick.randint(0, kernel // 2)
        kwargs = {"kernel_size": kernel, "stride": stride, "padding": padding}

        def pooled(x: Array, kernel_size: int, stride: int, padding: int) -> Any:
            return reference(_windows(x, (kernel_size, kernel_size), stride, padding, 1, value), (-1, -2))

        return Call(name, (Ref(j),), kwargs, pooled)

    row(name, draw, **facts)


_pooling("avg_pool2d", 0.0, np.mean, smooth=True)
_pooling("max_pool2d", -np.inf, np.max, exact=True)


def _max_unpool2d(pool: Pool, i: int) -> Call | None:
    shape = (pool.pick.randint(1, 2), pool.pick.randint(1, 2), pool.pick.randint(1, 4), pool.pick.randint(1, 4))
    x = pool.floats(*shape)
    count = 4 * shape[2] * shape[3]
    places = [pool.pick.sample(range(count), shape[2] * shape[3]) for _ in range(shape[0] * shape[1])]
    index = pool.make(np.array(places, np.int64).reshape(shape))

    def reference(x: Array, index: Array, kernel_size: int) -> Array:
        out = np.zeros((*x.shape[:2], 4 * x.shape[2] * x.shape[3]))
        np.put_along_axis(out, index.reshape(*x.shape[:2], -1), x.reshape(*x.shape[:2], -1), 2)
        return out.reshape(*x.shape[:2], 2 * x.shape[2], 2 * x.shape[3])

    return Call("max_unpool2d", (Ref(x), Ref(index)), {"kernel_size": 2}, reference)


row("max_unpool2d", _max_unpool2d, exact=True)


def _interpolate(pool: Pool, i: int) -> Call | None:
    j, _ = _image(pool, i)
    size = (pool.pick.randint(1, 12), pool.pick.randint(1, 12))

    def reference(x: Array, size: Sequence[int], mode: str, align_corners: bool) -> Array:
        for axis, n in zip((2, 3), size, strict=True):
            old = x.shape[axis]
            at = np.arange(n) * ((old - 1) / max(n - 1, 1)) if align_corners else (np.arange(n) + 0.5) * (old / n) - 0.5
            at = np.clip(at, 0, old - 1)
            low = np.floor(at).astype(int)
            high, part = np.minimum(low + 1, old - 1), at - low
            part = part.reshape(-1, *[1] * (3 - axis))
            x = np.take(x, low, axis) * (1 - part) + np.take(x, high, axis) * part
        return x

    return Call("interpolate", (Ref(j), size), {"mode": "linear", "align_corners": pool.pick.random() < 0.5}, reference)


row("interpolate", _interpolate, smooth=True)


def _classes(pool: Pool, i: int) -> tuple[int, int, Array] | None:
    value = pool.values[i]
    if value.kind != "f" or value.array.ndim != 2 or not value.array.size or np.abs(value.array).max() > 30:
        return None
    y = pool.ints(0, value.array.shape[1], value.array.shape[0])
    return i, y, value.array


def _reduced(losses: Array, reduction: str) -> Any:
    return losses if reduction == "none" else losses.mean() if reduction == "mean" else losses.sum()


def _loss(name: str, of: Callable[[Array, Array], Array]) -> None:
    def draw(pool: Pool, i: int) -> Call | None:
        found = _classes(pool, i)
        if found is None:
            return None
        kwargs = {"reduction": pool.pick.choice(["mean", "sum", "none"])}
        return Call(name, (Ref(found[0]), Ref(found[1])), kwargs, lambda x, y, reduction: _reduced(of(x, y), reduction))

    row(name, draw, smooth=True)


def _picked(x: Array, y: Array) -> Array:
    return -x[np.arange(len(y)), y]


_loss("nll_loss", _picked)
_loss("cross_entropy", lambda x, y: _picked(x - _logsumexp(x, 1, True), y))
_loss("sparse_categorical_crossentropy", lambda x, y: _picked(x - _logsumexp(x, 1, True), y))


def _binary_loss(name: str, of: Callable[[Array, Array], Array], unit: bool) -> None:
    def draw(pool: Pool, i: int) -> Call | None:
        array = pool.values[i].array
        if pool.values[i].kind != "f" or not array.size or np.abs(array).max() > 9:
            return None
        if unit and (array.min() < 0.05 or array.max() > 0.95):
            return None
        y = pool.make(np.array([pool.pick.random() < 0.5 for _ in range(array.size)], np.float64).reshape(array.shape))
        kwargs = {"reduction": pool.pick.choice(["mean", "sum", "none"])}
        return Call(name, (Ref(i), Ref(y)), kwargs, lambda x, y, reduction: _reduced(of(x, y), reduction))

    row(name, draw, smooth=True)


_binary_loss("binary_crossentropy", lambda x, y: -(y * np.log(x) + (1 - y) * np.log(1 - x)), True)
_binary_loss("binary_crossentropy_logits", lambda x, y: np.logaddexp(x, 0) - x * y, False)


# -- creation: methods of the class ------------------------------------------------------------------------------------


def _created(name: str, draw: Callable[[Pool], Call]) -> None:
    row(name, lambda pool, i: draw(pool), exact=True)


def _shape(pool: Pool) -> tuple[int, ...]:
    return tuple(pool.pick.randint(1, 6) for _ in range(pool.pick.randint(0, 3)))


_created("zeros", lambda pool: Call("zeros", (_shape(pool),), {}, np.zeros))
_created("ones", lambda pool: Call("ones", (_shape(pool),), {}, np.ones))
_created("full", lambda pool: Call("full", (_shape(pool), 2.5), {}, np.full))
_created("eye", lambda pool: Call("eye", (pool.pick.randint(1, 6), pool.pick.randint(1, 6)), {}, np.eye))
_created("arange", lambda pool: Call(
    "arange", (pool.pick.randint(-5, 5), pool.pick.randint(6, 20), pool.pick.randint(1, 3)), {}, np.arange
))  # fmt: skip
_created("linspace", lambda pool: Call("linspace", (-1, 3, 2 ** pool.pick.randint(0, 3) + 1), {}, np.linspace))
