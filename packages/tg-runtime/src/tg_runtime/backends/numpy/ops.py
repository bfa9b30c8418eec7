"""Kernel ASTs executed op by op with numpy: the function of each op, memory through views, and the executor.

A value is an array of the node's shape. Types that numpy has not (bfloat16, fp8) are held as float32 and rounded to
their own precision after every op; in memory they are their bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import repeat
from typing import TYPE_CHECKING, Any

import numpy as np

from tg_codegen.rewrite.rules.trigonometric import two_over_pi
from tg_dtype import ConstType, DType, dtypes, float_format, from_bits, interop, to_bits
from tg_lazy import LazyOp, Ops, identity
from tg_shape import ShapeTracker, Variable, View, sint, sym_eval

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

Env = Mapping[Variable, int]

SUM_BLOCK = 512
"""Terms of a sum of floats that one accumulator of numpy's may add up."""


def compute_dtype(dtype: DType) -> np.dtype[Any]:
    """The numpy type in which values of ``dtype`` are computed."""
    return np.dtype(interop.to_numpy_name(dtype) or "float32")


def storage_dtype(dtype: DType) -> np.dtype[Any]:
    """The numpy type of ``dtype`` in memory: its own, or its bits."""
    return np.dtype(interop.to_numpy_name(dtype) or f"uint{dtype.itemsize * 8}")


_DECODED: dict[DType, Array] = {}


def _decoded(dtype: DType) -> Array:
    """The value of every bit pattern of a small float type."""
    if dtype not in _DECODED:
        _DECODED[dtype] = np.array([from_bits(b, dtype) for b in range(1 << dtype.bits)], np.float32)
    return _DECODED[dtype]


def decode(bits: Array, dtype: DType) -> Array:
    """Values from what is in memory. A bool is true where its byte is not 0; as a value its byte is 1."""
    if dtype is dtypes.bool:
        truth: Array = np.not_equal(bits.view(np.uint8), 0)
        return truth
    if interop.to_numpy_name(dtype) is not None:
        return bits
    if dtype is dtypes.bfloat16:
        wide: Array = (bits.astype(np.uint32) << 16).view(np.float32)
        return wide
    found: Array = _decoded(dtype)[bits]
    return found


def encode(values: Array, dtype: DType) -> Array:
    """The bits of values in memory, rounded to nearest even."""
    if interop.to_numpy_name(dtype) is not None:
        return values
    x = np.ascontiguousarray(values, np.float32)
    if dtype is dtypes.bfloat16:
        raw: Array = x.view(np.uint32)
        rounded = (raw + 0x7FFF + ((raw >> 16) & 1)) >> 16
        halves: Array = np.where(np.isnan(x), (raw >> 16) | 0x40, rounded).astype(np.uint16)
        return halves
    return _encode_fp8(x, dtype)


def _encode_fp8(x: Array, dtype: DType) -> Array:
    positive = _decoded(dtype)[:128].astype(np.float64)
    count = int(np.isfinite(positive).sum())
    finite = positive[:count]
    # one step beyond the greatest value: what rounds there has overflowed
    steps = np.append(finite, 2 * finite[-1] - finite[-2])
    middle = (steps[1:] + steps[:-1]) / 2
    size = np.abs(x.astype(np.float64))
    low = np.searchsorted(middle, size, side="left")
    tie = (low < count) & (size == middle[np.minimum(low, count - 1)]) & (low % 2 == 1)
    code = np.where(tie, low + 1, low)
    code = np.where(code >= count, to_bits(math.inf, dtype), code)
    code = np.where(np.isnan(x), to_bits(math.nan, dtype), code)
    sign = np.signbit(x) if float_format(dtype).signed_zero else np.signbit(x) & (code != 0)
    signed: Array = (code | (sign.astype(np.int64) << 7)).astype(np.uint8)
    return signed


def round_to(values: Array, dtype: DType) -> Array:
    """Values of ``compute_dtype`` rounded to the precision of ``dtype``."""
    return values if interop.to_numpy_name(dtype) is not None else decode(encode(values, dtype), dtype)


def cast(x: Array, src: DType, dst: DType) -> Array:
    """``x`` converted as :mod:`tg_dtype.cast` says: floats saturate into integers, NaN becomes 0."""
    if dst is dtypes.bool:
        truth: Array = np.not_equal(x, 0)
        return truth
    if dtypes.is_float(src) and dtypes.is_int(dst):
        low, high = int(dtypes.min(dst)), int(dtypes.max(dst))
        wide = x.astype(np.float64)
        inside = np.where((wide > float(low)) & (wide < float(high)), wide, 0).astype(storage_dtype(dst))
        inside = np.where(wide >= float(high), np.array(high, inside.dtype), inside)
        return np.where(wide <= float(low), np.array(low, inside.dtype), inside)
    if interop.to_numpy_name(dst) is None and src in (dtypes.float64, dtypes.int64, dtypes.uint64):
        x = _round_to_odd(x)
    return round_to(x.astype(compute_dtype(dst)), dst)


def _round_to_odd(x: Array) -> Array:
    """float32 from a wider type such that rounding it once more to a narrow float gives what one rounding would."""
    near = x.astype(np.float32)
    if x.dtype == np.float64:
        above = np.abs(near.astype(np.float64)) > np.abs(x)
        exact = (near.astype(np.float64) == x) | ~np.isfinite(x) | ~np.isfinite(near)
    else:
        exact_value = x.astype(np.longdouble)
        above = np.abs(near.astype(np.longdouble)) > np.abs(exact_value)
        exact = near.astype(np.longdouble) == exact_value
    down = np.where(above, np.nextafter(near, np.float32(0)), near)
    return np.where(exact, near, (down.view(np.uint32) | 1).view(np.float32))


def bitcast(x: Array, src: DType, dst: DType) -> Array:
    """The bits of ``x`` taken as ``dst``."""
    raw = np.ascontiguousarray(encode(x, src))
    return decode(raw.view(storage_dtype(dst)).reshape(x.shape), dst)


def _idiv(a: Array, b: Array) -> Array:
    quotient = a // b
    toward_zero: Array = quotient + ((np.fmod(a, b) != 0) & ((a < 0) != (b < 0))).astype(a.dtype)
    return toward_zero


def _neg(x: Array) -> Array:
    if x.dtype == np.bool_:
        return x
    negated: Array = np.negative(x)
    return negated


def _sub(a: Array, b: Array) -> Array:
    return a ^ b if a.dtype == np.bool_ else a - b


def _bool_safe(divide: Callable[[Array, Array], Array]) -> Callable[[Array, Array], Array]:
    def apply(a: Array, b: Array) -> Array:
        if a.dtype != np.bool_:
            return divide(a, b)
        truth: Array = np.not_equal(divide(a.astype(np.int8), b.astype(np.int8)), 0)
        return truth

    return apply


def _in_double(function: Callable[..., Any]) -> Callable[..., Array]:
    """A function of floats, which numpy has for float32 only with errors of up to 4 units in the last place."""

    def apply(*operands: Array) -> Array:
        dtype = operands[0].dtype
        found: Array = np.asarray(function(*(x.astype(np.float64) for x in operands))).astype(dtype)
        return found

    return apply


def _right_angles(angle: float) -> tuple[float, int]:
    """An angle minus the nearest multiple of a right angle, and that multiple modulo 4."""
    words = two_over_pi(40)
    bits = sum(word << 32 * place for place, word in enumerate(reversed(words)))
    numerator, denominator = angle.as_integer_ratio()
    product, unit = numerator * bits, denominator << 32 * len(words)
    count = (2 * product + unit) // (2 * unit)
    # `bits` is 2/pi, so that this is the rest times pi/2, rounded once
    return ((product - count * unit) << 32 * len(words)) / (unit * bits), count % 4


def _sine(angle: float, ahead: int) -> float:
    """The sine of an angle plus a number of right angles."""
    rest, count = _right_angles(angle)
    count += ahead
    found = math.cos(rest) if count & 1 else math.sin(rest)
    return -found if count & 2 else found


def _tangent(angle: float) -> float:
    rest, count = _right_angles(angle)
    return -1 / math.tan(rest) if count & 1 else math.tan(rest)


def _of_an_angle(function: Callable[..., Any], exactly: Callable[[float], float]) -> Callable[[Array], Array]:
    """numpy's function; of large angles, which neither numpy nor the C library reduces exactly, another."""

    def apply(x: Array) -> Array:
        found: Array = np.asarray(function(x))
        large = (np.abs(x) > 1e5) & np.isfinite(x)
        if large.any():
            found[large] = [exactly(angle) for angle in x[large].tolist()]
        return found

    return apply


_FUNCTIONS: dict[Ops, Callable[..., Any]] = {
    Ops.EXP: np.exp,
    Ops.EXP2: np.exp2,
    Ops.EXPM1: np.expm1,
    Ops.LOG: np.log,
    Ops.LOG2: np.log2,
    Ops.LOG10: np.log10,
    Ops.LOG1P: np.log1p,
    Ops.SIN: _of_an_angle(np.sin, lambda x: _sine(x, 0)),
    Ops.COS: _of_an_angle(np.cos, lambda x: _sine(x, 1)),
    Ops.TAN: _of_an_angle(np.tan, _tangent),
    Ops.ASIN: np.arcsin,
    Ops.ACOS: np.arccos,
    Ops.ATAN: np.arctan,
    Ops.SINH: np.sinh,
    Ops.COSH: np.cosh,
    Ops.TANH: np.tanh,
    Ops.ASINH: np.arcsinh,
    Ops.ACOSH: np.arccosh,
    Ops.ATANH: np.arctanh,
    Ops.ERF: np.vectorize(math.erf, otypes=[np.float64]),
    Ops.ERFC: np.vectorize(math.erfc, otypes=[np.float64]),
}
fxn_for_op: dict[Ops, Callable[..., Any]] = {
    Ops.NEG: _neg,
    Ops.NOT: np.invert,
    Ops.RECIP: np.reciprocal,
    Ops.SQRT: np.sqrt,
    **{op: _in_double(function) for op, function in _FUNCTIONS.items()},
    Ops.TRUNC: np.trunc,
    Ops.CAST: cast,
    Ops.BITCAST: bitcast,
    Ops.ADD: np.add,
    Ops.SUB: _sub,
    Ops.MUL: np.multiply,
    Ops.FDIV: np.divide,
    Ops.IDIV: _bool_safe(_idiv),
    Ops.MOD: _bool_safe(np.fmod),
    Ops.POW: _in_double(np.power),
    Ops.MAX: np.maximum,
    Ops.CMPLT: np.less,
    Ops.CMPEQ: np.equal,
    Ops.CMPNE: np.not_equal,
    Ops.AND: np.bitwise_and,
    Ops.OR: np.bitwise_or,
    Ops.XOR: np.bitwise_xor,
    Ops.SHL: np.left_shift,
    Ops.SHR: np.right_shift,
    Ops.WHERE: np.where,
    Ops.MULACC: lambda a, b, c: a * b + c,
    Ops.REDUCE: lambda x, op, axes, start: _REDUCE[op](x, axes, start),
}

_REDUCE: dict[Ops, Callable[[Array, tuple[int, ...], ConstType], Array]] = {
    Ops.ADD: lambda x, axes, start: (
        np.any(x, axes, keepdims=True) if x.dtype == np.bool_ else summed(x, axes)
    ),
    Ops.MUL: lambda x, axes, start: (
        np.all(x, axes, keepdims=True) if x.dtype == np.bool_ else np.prod(x, axes, x.dtype, keepdims=True)
    ),
    Ops.MAX: lambda x, axes, start: np.max(x, axes, keepdims=True, initial=start),
}


def summed(x: Array, axes: tuple[int, ...]) -> Array:
    """Sums over axes, each of which keeps size 1; long ones of floats in blocks.

    numpy adds in pairs along what is contiguous only. Along others it adds row to row, and what a large total loses of
    each small term grows with their number.
    """
    for axis in axes:
        while np.issubdtype(x.dtype, np.floating) and x.shape[axis] > SUM_BLOCK:
            full = x.shape[axis] // SUM_BLOCK
            head, tail = np.split(x, [full * SUM_BLOCK], axis)
            blocks = head.reshape(*x.shape[:axis], full, SUM_BLOCK, *x.shape[axis + 1 :])
            rest = np.sum(tail, axis, x.dtype, keepdims=True)
            x = np.concatenate([np.sum(blocks, axis + 1, x.dtype), rest], axis)
    return np.asarray(np.sum(x, axes, x.dtype, keepdims=True))


def _ints(values: Sequence[sint], env: Env) -> tuple[int, ...]:
    return tuple(v if isinstance(v, int) else sym_eval(v, dict(env)) for v in values)


def _concrete(view: View, env: Env) -> tuple[tuple[int, ...], tuple[int, ...], int, list[tuple[int, int]] | None]:
    """shape, strides (elements), offset (elements) of the first valid element, and the valid range of each axis."""
    shape, strides = _ints(view.shape, env), _ints(view.strides, env)
    offset = _ints((view.offset,), env)[0]
    mask = None
    if view.mask is not None:
        mask = []
        for (first, last), dim in zip(view.mask, shape, strict=True):
            low, high = _ints((first, last), env)
            mask.append((max(low, 0), max(min(high, dim), max(low, 0))))
        offset += sum(low * stride for (low, _), stride in zip(mask, strides, strict=True))
    return shape, strides, offset, mask


def _through(flat: Array, view: View, env: Env, fill: Any) -> Array:
    """One view over a flat array; ``fill`` where masked."""
    shape, strides, offset, mask = _concrete(view, env)
    inner = shape if mask is None else tuple(high - low for low, high in mask)
    if 0 in inner:
        return np.full(shape, fill, flat.dtype)
    steps = tuple(s * flat.itemsize for s in strides)
    # the constructor checks that every element lies inside, as_strided would not
    part: Array = np.ndarray(inner, flat.dtype, flat, offset * flat.itemsize, steps)
    if mask is None:
        return part
    out = np.full(shape, fill, flat.dtype)
    out[tuple(slice(low, high) for low, high in mask)] = part
    return out


def _reaches_out(view: View, size: int, env: Env) -> bool:
    """Whether a view shows places outside of ``size`` elements, as the lower of several may where none is looked at."""
    shape, strides, offset, mask = _concrete(view, env)
    inner = shape if mask is None else tuple(high - low for low, high in mask)
    ends = [(dim - 1) * stride for dim, stride in zip(inner, strides, strict=True)]
    return 0 not in inner and (
        offset + sum(e for e in ends if e < 0) < 0 or offset + sum(e for e in ends if e > 0) >= size
    )


def load_through(flat: Array, st: ShapeTracker, env: Env, fill: Any = 0) -> Array:
    """A flat array seen through a ShapeTracker, shape ``st.shape``; ``fill`` where masked.

    Raises:
      ValueError: if an element lies outside of the array.
    """
    sizes = [flat.size, *(math.prod(_ints(view.shape, env)) for view in st.views)]
    if len(st.views) > 1 and any(map(_reaches_out, st.views, sizes, repeat(env))):
        place, keep = _places(st, env)
        if place.size and keep.any() and not 0 <= place[keep].min() <= place[keep].max() < flat.size:
            raise ValueError(f"{st} shows what lies outside of {flat.size} elements")
        out = np.full(place.shape, fill, flat.dtype)
        out[keep] = flat[place[keep]]
        return out
    value = flat
    for number, view in enumerate(st.views):
        value = _through(value if number == 0 else np.ascontiguousarray(value).reshape(-1), view, env, fill)
    return value


def _axes(shape: tuple[int, ...]) -> list[Array]:
    """The index along each axis of ``shape``, to be broadcast to it."""
    return [np.arange(dim).reshape((-1,) + (1,) * (len(shape) - 1 - axis)) for axis, dim in enumerate(shape)]


def _places(st: ShapeTracker, env: Env, along: Array | None = None) -> tuple[Array, Array]:
    """The flat index, int64, that each index of ``st.shape`` maps to, and where it does: elsewhere it is masked.

    Args:
      st: the tracker.
      env: the values of the variables.
      along: the index along the last axis, of the shape that the others have; None for all of them.
    """
    shape = _ints(st.shape, env)
    if along is not None:
        shape = shape[:-1]
    keep = np.ones(shape, np.bool_)
    axes = _axes(shape) + ([] if along is None else [along])
    place = np.zeros(shape, np.int64)
    for number, view in enumerate(reversed(st.views)):
        if number:  # an element of the view above is an index into this one
            rest, axes = np.where(keep, place, 0), []
            for dim in reversed(_ints(view.shape, env)):
                rest, axis = np.divmod(rest, max(dim, 1))
                axes.insert(0, axis)
        offset, strides = _ints((view.offset,), env)[0], _ints(view.strides, env)
        place = sum((x * stride for x, stride in zip(axes, strides, strict=True)), np.full(shape, offset, np.int64))
        for x, (first, last) in zip(axes, view.mask or (), strict=False):
            low, high = _ints((first, last), env)
            keep = keep & (low <= x) & (x < high)
    return place, keep


def indices_through(st: ShapeTracker, env: Env, fill: int) -> Array:
    """The flat index that each index of ``st.shape`` maps to, int64; ``fill`` where masked."""
    place, keep = _places(st, env)
    return np.where(keep, place, fill)


def turns(places: Array) -> Iterator[Array]:
    """Which of some places come first, second, … where they are the same: in each turn none is there twice.

    >>> [turn.tolist() for turn in turns(np.array([3, 1, 3, 3, 1]))]
    [[1, 0], [4, 2], [3]]
    """
    order = np.argsort(places, kind="stable")
    while len(order):
        ordered = places[order]
        first = np.r_[True, ordered[1:] != ordered[:-1]]
        yield order[first]
        order = order[~first]


def store_through(flat: Array, st: ShapeTracker, env: Env, value: Array) -> None:
    """Writes ``value`` (shape ``st.shape``) to a flat array through a ShapeTracker; nothing where masked."""
    if len(st.views) == 1 and st.views[0].mask is None:
        _through(flat, st.views[0], env, 0)[...] = value
        return
    place, keep = _places(st, env)
    flat[place[keep]] = value[keep]


class Executor:
    """A kernel AST, ready to be executed on flat arrays of bytes."""

    def __init__(self, ast: LazyOp, functions: Mapping[Ops, Callable[..., Any]] = fxn_for_op) -> None:
        self.ast, self.functions = ast, functions
        self.order = ast.toposort()[:-1]
        self.uses: dict[LazyOp, int] = {}
        for node in self.order:
            for child in node.src:
                self.uses[child] = self.uses.get(child, 0) + 1

    def __call__(self, buffers: Sequence[Array], var_vals: Env) -> None:
        """Executes the kernel.

        Args:
          buffers: one flat array of uint8 per slot.
          var_vals: the values of the variables.
        """
        slots = [
            raw[: arg.size * arg.dtype.itemsize].view(storage_dtype(arg.dtype))
            for raw, arg in zip(buffers, self.ast.arg, strict=True)
        ]
        values: dict[LazyOp, Array] = {}
        left = dict(self.uses)
        stores = []
        with np.errstate(all="ignore"):
            for node in self.order:
                operands = [values[child] for child in node.src]
                if node.op is Ops.UPDATE:
                    self._update(node, operands[0], operands[1], slots, var_vals)
                elif node.op is Ops.STORE:
                    value = operands[0]
                    if len(self.ast.src) > 1 and any(np.may_share_memory(value, slots[s.arg[0]]) for s in self.ast.src):
                        value = value.copy()  # another store is about to change what was loaded
                    stores.append((node, value))
                else:
                    values[node] = self._value(node, operands, slots, var_vals)
                for child in node.src:
                    left[child] -= 1
                    if left[child] == 0:
                        del values[child]
        for node, value in stores:
            slot, st = node.arg
            store_through(slots[slot], st, var_vals, np.asarray(encode(value, node.src[0].dtype)))

    def _update(self, node: LazyOp, value: Array, index: Array, slots: list[Array], env: Env) -> None:
        """An UPDATE, which is the only output of its kernel: as many values at once as meet no other one."""
        slot, where, op, found, _ = node.arg
        flat, dtype = slots[slot], node.src[0].dtype
        inside = (index >= 0) & (index < _ints(where.shape[-1:], env)[0])
        place, keep = _places(where, env, np.where(inside, index, 0).astype(np.int64))
        keep = keep & inside
        there, new = place[keep], value[keep]
        before = np.zeros(there.shape, value.dtype)
        for turn in turns(there):
            before[turn] = decode(flat[there[turn]], dtype)
            step = new[turn] if op is None else round_to(np.asarray(self.functions[op](before[turn], new[turn])), dtype)
            flat[there[turn]] = encode(step, dtype)
        if found is not None:
            kept = np.zeros(value.shape, value.dtype)
            kept[keep] = before
            store_through(flat, found, env, np.asarray(encode(kept, dtype)))

    def _value(self, node: LazyOp, operands: list[Array], slots: list[Array], env: Env) -> Array:
        op, dtype = node.op, node.dtype
        if op is Ops.LOAD:
            return decode(load_through(slots[node.arg[0]], node.arg[1], env), dtype)
        if op is Ops.VIEW:
            return load_through(np.ascontiguousarray(operands[0]).reshape(-1), node.arg, env)
        if op is Ops.CONST:
            return np.broadcast_to(np.array(node.arg, compute_dtype(dtype)), _ints(node.shape, env))
        if op is Ops.SYM:
            number = np.array(_ints((node.arg,), env)[0])
            return np.broadcast_to(cast(number, dtypes.int64, dtype), _ints(node.shape, env))
        if op is Ops.IOTA:
            return cast(indices_through(node.arg, env, 0), dtypes.int64, dtype)
        if op is Ops.GATHER:
            table = decode(load_through(slots[node.arg[0]], node.arg[1], env), dtype)
            index = operands[0]
            inside = (index >= 0) & (index < len(table))
            if not len(table):
                return np.zeros(index.shape, table.dtype)
            return np.where(inside, table[np.where(inside, index, 0).astype(np.int64)], table.dtype.type(0))
        function = self.functions[op]
        if op is Ops.REDUCE:
            reduce_op, axes = node.arg
            start = identity(reduce_op, dtype)
            return round_to(np.asarray(function(operands[0], reduce_op, axes, start)), dtype)
        if op in (Ops.CAST, Ops.BITCAST):
            return np.asarray(function(operands[0], node.src[0].dtype, dtype))
        return round_to(np.asarray(function(*operands)), dtype)
