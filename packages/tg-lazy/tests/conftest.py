"""A small interpreter of schedules over numpy, and graphs whose values are computed by numpy at once."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from tg_dtype import dtypes, interop
from tg_lazy import LazyBuffer, LazyOp, Ops, ScheduleItem, Storage, ast, schedule
from tg_lazy.cost import LIMITS, Limits
from tg_shape import ShapeTracker, Variable, sym_eval

Array = np.ndarray[Any, np.dtype[Any]]


def np_dtype(dtype: Any) -> np.dtype[Any]:
    """bfloat16 and fp8 are held as float32."""
    return np.dtype(interop.to_numpy_name(dtype) or "float32")


def _idiv(a: Array, b: Array) -> Array:
    assert (b != 0).all(), "a kernel divides by 0"
    return (np.sign(a) * np.sign(b) * (abs(a) // abs(b))).astype(a.dtype)


UNARY: dict[Ops, Callable[..., Any]] = {
    Ops.NEG: operator.neg, Ops.NOT: np.invert, Ops.RECIP: np.reciprocal, Ops.SQRT: np.sqrt, Ops.EXP2: np.exp2,
    Ops.LOG2: np.log2, Ops.SIN: np.sin, Ops.TRUNC: np.trunc,
}  # fmt: skip
BINARY: dict[Ops, Callable[..., Any]] = {
    Ops.ADD: operator.add, Ops.SUB: operator.sub, Ops.MUL: operator.mul, Ops.FDIV: operator.truediv, Ops.IDIV: _idiv,
    Ops.MOD: lambda a, b: (a - b * _idiv(a, b)).astype(a.dtype), Ops.MAX: np.maximum, Ops.CMPLT: operator.lt,
    Ops.CMPEQ: operator.eq, Ops.CMPNE: operator.ne, Ops.AND: operator.and_, Ops.OR: operator.or_, Ops.XOR: operator.xor,
    Ops.SHL: operator.lshift, Ops.SHR: operator.rshift, Ops.WHERE: np.where, Ops.MULACC: lambda a, b, c: a * b + c,
}  # fmt: skip
FUNCTION = {**UNARY, **BINARY}
REDUCER: dict[Ops, Any] = {Ops.ADD: np.add, Ops.MUL: np.multiply, Ops.MAX: np.maximum}


class Machine:
    """Executes schedules: memory is a dictionary of numpy arrays."""

    def __init__(self) -> None:
        self.memory: dict[Storage, Array] = {}
        self.env: Mapping[Variable, int] = {}
        self.kernels = 0

    def buffer(self, array: Array, device: str = "CPU") -> LazyBuffer:
        """A realised node that holds ``array``."""
        array = np.array(array, order="C")
        dtype = dtypes.from_name(array.dtype.name)
        storage = Storage(device, array.size, dtype)
        self.memory[storage] = array.reshape(-1).copy()
        return LazyBuffer.from_storage(storage, array.shape)

    def positions(self, st: ShapeTracker) -> tuple[Array, Array]:
        """Position and validity of every index of ``st``, in its shape; view by view, from the top."""
        shape = tuple(sym_eval(d, self.env) for d in st.shape)
        index: list[Array] = list(np.indices(shape))
        flat = np.zeros(shape, np.int64)
        valid = np.ones(shape, bool)
        for number, view in enumerate(reversed(st.views)):
            dims = [sym_eval(d, self.env) for d in view.shape]
            if number:
                rest, index = flat, []
                for dim in reversed(dims):
                    index.append(rest % max(dim, 1))
                    rest = rest // max(dim, 1)
                index.reverse()
            flat = np.full(shape, sym_eval(view.offset, self.env), np.int64)
            for axis, stride in enumerate(view.strides):
                flat = flat + index[axis] * sym_eval(stride, self.env)
                if view.mask is not None:
                    low, high = (sym_eval(x, self.env) for x in view.mask[axis])
                    valid = valid & (index[axis] >= low) & (index[axis] < high)
        return flat, valid

    def seen(self, data: Array, st: ShapeTracker) -> Array:
        """``data``, flat, through ``st``."""
        flat, valid = self.positions(st)
        assert not valid.any() or ((0 <= flat[valid]).all() and (flat[valid] < data.size).all()), "read out of bounds"
        if data.size == 0:
            return np.zeros(flat.shape, data.dtype)
        return np.where(valid, data[np.where(valid, flat, 0)], np.zeros((), data.dtype))

    def node(self, node: LazyOp, src: list[Array], data: Sequence[Array]) -> Array:
        """The value of one AST node."""
        shape = tuple(sym_eval(d, self.env) for d in node.shape)
        dtype = np_dtype(node.dtype)
        if node.op is Ops.CONST:
            return np.full(shape, node.arg, dtype)
        if node.op is Ops.SYM:
            return np.full(shape, sym_eval(node.arg, self.env), dtype)
        if node.op is Ops.IOTA:
            flat, valid = self.positions(node.arg)
            return np.where(valid, flat, 0).astype(dtype)
        if node.op is Ops.LOAD:
            return self.seen(data[node.arg[0]], node.arg[1])
        if node.op is Ops.GATHER:
            source = self.seen(data[node.arg[0]], node.arg[1])
            ok = (src[0] >= 0) & (src[0] < source.size)
            return np.where(ok, source[np.where(ok, src[0], 0)], np.zeros((), dtype))
        if node.op is Ops.VIEW:
            return self.seen(src[0].reshape(-1), node.arg)
        if node.op is Ops.REDUCE:
            return REDUCER[node.arg[0]].reduce(src[0], axis=node.arg[1], keepdims=True, dtype=dtype)  # type: ignore[no-any-return]
        if node.op is Ops.CAST:
            return src[0].astype(dtype)
        if node.op is Ops.BITCAST:
            return src[0].copy().reshape(-1).view(dtype).reshape(shape)
        return np.asarray(FUNCTION[node.op](*src), dtype)

    def update(self, node: LazyOp, target: Array, value: Array, index: Array) -> None:
        """An UPDATE, one value after the other."""
        _, where, op, found, _ = node.arg
        kept = None if found is None else self.positions(found)[0]
        for i in np.ndindex(*value.shape):
            old = np.zeros((), target.dtype)
            if 0 <= index[i] < sym_eval(where.shape[-1], self.env):
                at, valid = where.index((*i, int(index[i])))
                if valid:
                    old = target[at].copy()
                    target[at] = value[i] if op is None else FUNCTION[op](old, value[i])
            if kept is not None:
                target[kept[i]] = old

    def kernel(self, sink: LazyOp, bufs: Sequence[Storage]) -> None:
        """Executes a kernel; what it stores to is garbage for anything but a read of the element being stored."""
        ast.verify(sink)
        check_in_place(sink)
        outside = [arg for arg in sink.arg if not arg.internal]
        assert len(set(bufs)) == len(bufs) == len(outside)
        for storage, arg in zip(bufs, outside, strict=True):
            assert (storage.dtype, storage.size) == (arg.dtype, arg.size)
        data = [self.memory.setdefault(b, np.full(b.size, 77, np_dtype(b.dtype))) for b in bufs]
        data += [np.full(arg.size, 77, np_dtype(arg.dtype)) for arg in sink.arg if arg.internal]
        values: dict[LazyOp, Array] = {}
        stores: list[tuple[Array, Array, Array]] = []
        for node in sink.toposort():
            if node.op is Ops.STORE:
                flat, valid = self.positions(node.arg[1])
                assert valid.all() and distinct(flat), "a store that writes an element twice"
                if sink.arg[node.arg[0]].internal:
                    data[node.arg[0]][flat] = values[node.src[0]]
                else:
                    stores.append((data[node.arg[0]], flat, values[node.src[0]]))
            elif node.op is Ops.UPDATE:
                self.update(node, data[node.arg[0]], *(values[s] for s in node.src))
            elif node.op is not Ops.SINK:
                values[node] = self.node(node, [values[s] for s in node.src], data)
                assert values[node].shape == tuple(sym_eval(d, self.env) for d in node.shape), node
        for target, flat, value in stores:
            target[flat] = value
        self.kernels += 1

    def execute(self, item: ScheduleItem) -> None:
        """Executes one step."""
        op, bufs = item.ast.op, item.bufs
        if op is Ops.SINK:
            self.kernel(item.ast, bufs)
        elif op is Ops.COPY:
            assert bufs[0].nbytes == bufs[1].nbytes
            self.memory[bufs[0]] = self.memory[bufs[1]].copy()
        elif op is Ops.BUFFER_VIEW:
            raw = self.memory[bufs[1]].view(np.uint8)[item.ast.arg : item.ast.arg + bufs[0].nbytes]
            self.memory[bufs[0]] = raw.view(np_dtype(bufs[0].dtype))
        elif op is Ops.EMPTY:
            self.memory.setdefault(bufs[0], np.full(bufs[0].size, 77, np_dtype(bufs[0].dtype)))
        else:
            assert op is Ops.CUSTOM
            out = self.memory.setdefault(bufs[0], np.zeros(bufs[0].size, np_dtype(bufs[0].dtype)))
            item.ast.arg(out, *[self.memory[b] for b in bufs[1:]])

    def run(self, *outputs: LazyBuffer, private: bool = False) -> list[ScheduleItem]:
        """Schedules, executes and commits."""
        items, env = schedule(outputs, private)
        self.env = env
        for item in items:
            self.execute(item)
            item.commit()
        return items

    def value(self, node: LazyBuffer) -> Array:
        """The values of a node, realised on the way."""
        self.run(node)
        if not node.is_realized:
            copy = node.clone()
            self.run(copy)
            node = copy
        assert node.storage is not None
        return self.seen(self.memory[node.storage], node.st)


def distinct(positions: Array) -> bool:
    """Whether no position is there twice; a mark for each costs less than to sort them, or to keep them in a set."""
    marks = np.zeros(int(positions.max(initial=-1)) + 1, bool)
    marks[positions] = True
    return int(np.count_nonzero(marks)) == positions.size


def check_in_place(sink: LazyOp) -> None:
    """A slot that is stored to is read at the stored index only, and outside of reductions."""
    stored = {store.arg[0]: store.arg[1] for store in sink.src}
    assert len(stored) == len(sink.src), "one slot is stored to twice"
    stored = {slot: st for slot, st in stored.items() if not sink.arg[slot].internal}
    under: set[LazyOp] = set()
    for node in reversed(sink.toposort()):
        if node.op in (Ops.REDUCE, Ops.VIEW) or node in under:
            under.update(node.src)
        if node.op in (Ops.LOAD, Ops.GATHER) and node.arg[0] in stored:
            assert node.op is Ops.LOAD and node not in under and node.arg[1] is stored[node.arg[0]], sink.render()


@pytest.fixture
def machine() -> Machine:
    return Machine()


@pytest.fixture(scope="session")
def make_machine() -> type[Machine]:
    return Machine


@pytest.fixture
def row_kernels() -> Iterator[None]:
    """A device whose kernels keep rows for one another where an intermediate has 8 KiB."""
    LIMITS["CPU"] = Limits(row_bytes=8192)
    yield
    del LIMITS["CPU"]
