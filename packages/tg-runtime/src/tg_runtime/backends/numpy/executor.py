"""Kernel ASTs executed op by op: a function for each node, made once, of the values of the nodes before it.

A value is an array of the node's shape. What a kernel says in numbers, with no variable in it, is worked out when its
functions are made: a kernel is executed far more often than it is made, in loops thousands of times.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from tg_dtype import DType, dtypes
from tg_lazy import LazyOp, Ops, identity

from .ops import cast, compute_dtype, decode, encode, fxn_for_op, held_as_is, round_to, storage_dtype
from .views import Env, ints, layouts, load, places, store

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

    Functions = Mapping[Ops, Callable[..., Any]]
    Compute = Callable[[list[Any], list[Array], Env], Any]
    """Of the values of all nodes so far, the memory of each slot and the values of the variables."""


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


def _rounded(compute: Compute, dtype: DType) -> Compute:
    """Of a value, the value rounded to its own precision, where numpy has not that type."""
    if held_as_is(dtype):
        return compute
    return lambda values, slots, env: round_to(compute(values, slots, env), dtype)


def _read(node: LazyOp) -> Compute:
    """The values of a slot, through the tracker of the node."""
    (slot, st), dtype = node.arg, node.dtype
    views = layouts(st)
    if held_as_is(dtype) and dtype is not dtypes.bool:
        return lambda values, slots, env: load(slots[slot], views(env))
    return lambda values, slots, env: decode(load(slots[slot], views(env)), dtype)


def _view(node: LazyOp, at: Sequence[int]) -> Compute:
    (of,), views = at, layouts(node.arg)
    return lambda values, slots, env: load(np.ascontiguousarray(values[of]).reshape(-1), views(env))


def _const(node: LazyOp) -> Compute:
    number, shape = np.array(node.arg, compute_dtype(node.dtype)), node.shape
    if not all(isinstance(dim, int) for dim in shape):
        return lambda values, slots, env: np.broadcast_to(number, ints(shape, env))
    known = np.broadcast_to(number, ints(shape, {}))
    return lambda values, slots, env: known


def _sym(node: LazyOp) -> Compute:
    number, dtype, shape = node.arg, node.dtype, node.shape
    return lambda values, slots, env: np.broadcast_to(
        cast(np.array(ints((number,), env)[0]), dtypes.int64, dtype), ints(shape, env))


def _iota(node: LazyOp) -> Compute:
    views, dtype = layouts(node.arg), node.dtype

    def compute(values: list[Any], slots: list[Array], env: Env) -> Array:
        place, keep = places(views(env))
        return cast(np.where(keep, place, 0), dtypes.int64, dtype)

    return compute


def _gather(node: LazyOp, at: Sequence[int]) -> Compute:
    read, (of,) = _read(node), at

    def compute(values: list[Any], slots: list[Array], env: Env) -> Array:
        table, index = read(values, slots, env), values[of]
        if not len(table):
            return np.zeros(index.shape, table.dtype)
        inside = (index >= 0) & (index < len(table))
        found: Array = np.where(inside, table[np.where(inside, index, 0).astype(np.int64)], table.dtype.type(0))
        return found

    return compute


def _reduce(node: LazyOp, at: Sequence[int], functions: Functions) -> Compute:
    (of,), (op, axes) = at, node.arg
    start = identity(op, node.dtype)
    return _rounded(
        lambda values, slots, env: np.asarray(functions[Ops.REDUCE](values[of], op, axes, start)), node.dtype)


def _convert(node: LazyOp, at: Sequence[int], functions: Functions) -> Compute:
    (of,), op, src, dst = at, node.op, node.src[0].dtype, node.dtype
    return lambda values, slots, env: np.asarray(functions[op](values[of], src, dst))


def _elementwise(node: LazyOp, at: Sequence[int], functions: Functions) -> Compute:
    op, operands = node.op, itemgetter(*at)
    if len(at) == 1:
        return _rounded(lambda values, slots, env: np.asarray(functions[op](operands(values))), node.dtype)
    return _rounded(lambda values, slots, env: np.asarray(functions[op](*operands(values))), node.dtype)


def _update(node: LazyOp, at: Sequence[int], functions: Functions) -> Compute:
    """An UPDATE, which is the only output of its kernel: as many values at once as meet no other one."""
    (of, by), dtype = at, node.src[0].dtype
    slot, st, op, found, _ = node.arg
    where, kept_in = layouts(st), None if found is None else layouts(found)

    def compute(values: list[Any], slots: list[Array], env: Env) -> None:
        flat, value, index, views = slots[slot], values[of], values[by], where(env)
        inside = (index >= 0) & (index < views[-1].shape[-1])
        place, keep = places(views, np.where(inside, index, 0).astype(np.int64))
        keep = keep & inside
        there, new = place[keep], value[keep]
        before = np.zeros(there.shape, value.dtype)
        for turn in turns(there):
            before[turn] = decode(flat[there[turn]], dtype)
            step = new[turn] if op is None else round_to(np.asarray(functions[op](before[turn], new[turn])), dtype)
            flat[there[turn]] = encode(step, dtype)
        if kept_in is not None:
            kept = np.zeros(value.shape, value.dtype)
            kept[keep] = before
            store(flat, kept_in(env), np.asarray(encode(kept, dtype)))

    return compute


def _stored(at: Sequence[int], outputs: Sequence[LazyOp]) -> Compute:
    """What a STORE writes once all nodes are computed: a copy of what another store is about to change."""
    (of,), changed = at, [output.arg[0] for output in outputs]
    if len(outputs) == 1:
        return lambda values, slots, env: values[of]

    def compute(values: list[Any], slots: list[Array], env: Env) -> Array:
        value: Array = values[of]
        if value.flags.owndata or not any(np.may_share_memory(value, slots[slot]) for slot in changed):
            return value
        return value.copy()

    return compute


class Executor:
    """A kernel AST, ready to be executed on flat arrays of bytes.

    Args:
      ast: the kernel.
      functions: the function of each op, asked for each time that one is computed.
    """

    def __init__(self, ast: LazyOp, functions: Functions = fxn_for_op) -> None:
        self.ast, self.functions = ast, functions
        order = ast.toposort()[:-1]
        places = {node: place for place, node in enumerate(order)}
        last = {places[child]: place for place, node in enumerate(order) for child in node.src}
        ends: list[list[int]] = [[] for _ in order]
        for child, place in last.items():
            ends[place].append(child)
        # what computes each node, and the values that nothing asks for after it
        self._steps = [(self._step(node, [places[child] for child in node.src]), ends[places[node]]) for node in order]
        self._stores = [(places[node], node.arg[0], layouts(node.arg[1]), node.src[0].dtype)
                        for node in order if node.op is Ops.STORE]  # fmt: skip
        self._memory = [(arg.size * arg.dtype.itemsize, storage_dtype(arg.dtype)) for arg in ast.arg]

    def _step(self, node: LazyOp, at: Sequence[int]) -> Compute:
        """What computes a node of the values at some places."""
        match node.op:
            case Ops.LOAD:
                return _read(node)
            case Ops.VIEW:
                return _view(node, at)
            case Ops.CONST:
                return _const(node)
            case Ops.SYM:
                return _sym(node)
            case Ops.IOTA:
                return _iota(node)
            case Ops.GATHER:
                return _gather(node, at)
            case Ops.REDUCE:
                return _reduce(node, at, self.functions)
            case Ops.CAST | Ops.BITCAST:
                return _convert(node, at, self.functions)
            case Ops.STORE:
                return _stored(at, self.ast.src)
            case Ops.UPDATE:
                return _update(node, at, self.functions)
        return _elementwise(node, at, self.functions)

    def __call__(self, buffers: Sequence[Array], var_vals: Env) -> None:
        """Executes the kernel.

        Args:
          buffers: one flat array of uint8 per slot.
          var_vals: the values of the variables.
        """
        slots = [raw[:nbytes].view(dtype) for raw, (nbytes, dtype) in zip(buffers, self._memory, strict=True)]
        values: list[Any] = []
        with np.errstate(all="ignore"):
            for compute, ended in self._steps:
                values.append(compute(values, slots, var_vals))
                for place in ended:
                    values[place] = None
        for place, slot, views, dtype in self._stores:
            store(slots[slot], views(var_vals), np.asarray(encode(values[place], dtype)))
