"""Kernel ASTs: what one kernel computes, as an immutable, interned DAG of shaped nodes.

A node is a value for every index of its shape. The forms, with what ``arg`` holds:

==========  ===============  ==========================================================================================
op          operands         arg
==========  ===============  ==========================================================================================
CONST       none             the Python value (splat over ``shape``)
IOTA        none             a ShapeTracker: the value at an index is the flat index it maps to (0 where masked)
SYM         none             a symbolic integer (splat over ``shape``)
LOAD        none             ``(slot, ShapeTracker)``: reads buffer ``slot``; 0 where masked
GATHER      (index,)         ``(slot, ShapeTracker of shape (n,))``: reads at ``index``; 0 unless ``0 <= index < n``
VIEW        (x,)             a ShapeTracker over ``x`` taken row-major; 0 where masked
elementwise (a[, b[, c]])    None; all operands have the node's shape. CAST and BITCAST convert to ``dtype``
REDUCE      (x,)             ``(op, axes)``; reduced axes stay with size 1; accumulates in ``dtype``
STORE       (value,)         ``(slot, ShapeTracker)`` of the value's shape
UPDATE      (value, index)   ``(slot, where, op, found, distinct)``: see below
SINK        stores, updates  one :class:`BufferArg` per slot
==========  ===============  ==========================================================================================

A buffer may be *internal*: no argument of the kernel, but an intermediate that one store fills and later stores read,
row by row. Its outer dimensions, those of all its accesses, are the outer dimensions of the outputs as well, so that a
kernel can work on blocks of rows and never hold more of it than a block.

An UPDATE goes through its value's shape in row-major order. ``where`` is a ShapeTracker of that shape with one more
dimension, of n places, the last. At each index ``i`` with ``0 <= index[i] < n``, the element ``where(i, index[i])`` of
the slot is combined with ``value[i]`` by the op, or replaced by it where that is None; elsewhere nothing is written.
``found``, a tracker of the value's shape or None, is where in the same slot the element's content before that is kept;
0 for an index out of range. ``distinct`` promises that no two values are for one element, so that any order will do.
It is the kernel's only output, and nothing else in the kernel reads the slot.

Slots number the kernel's buffers: outputs first, internal ones last. A kernel may read a slot that it also stores to
only at the index it is storing (the scheduler sees to it).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from functools import lru_cache
from operator import attrgetter
from typing import Any, NamedTuple
from weakref import ref

from tg_dtype import ConstType, DType, dtypes
from tg_shape import Expr, Interned, ShapeTracker, Variable, sint, toposort

from ..ops import ALU, CONVERSIONS, REDUCIBLE, SPEC, Ops, result_dtype

_dtype_of = lru_cache(maxsize=4096)(result_dtype)


class BufferArg(NamedTuple):
    """A kernel's view of one of its buffers: dtype (of its elements, or an image's), size in elements, internal or not.

    An image is read and written as float32, whatever its channels are stored as.
    """

    dtype: DType
    size: int
    internal: bool = False


def _arg_key(arg: object) -> object:
    """A hashable stand-in for ``arg`` under which equal bits, and only those, are equal."""
    if isinstance(arg, float):
        return ("f", struct.pack("<d", arg))
    if isinstance(arg, bool):
        return ("b", arg)
    return arg


class LazyOp:
    """A node of a kernel AST. Build them with the constructors of this module; equal nodes are one object.

    Attributes:
      op: what is computed.
      dtype: dtype of the value (``dtypes.void`` for STORE and SINK).
      shape: the shape over which the value is defined.
      src: operands.
      arg: see the module's table.
    """

    __slots__ = ("__weakref__", "_key", "arg", "dtype", "op", "shape", "src")
    _interned: Interned[LazyOp] = Interned()

    op: Ops
    dtype: DType
    shape: tuple[sint, ...]
    src: tuple[LazyOp, ...]
    arg: Any
    _key: bytes | None

    def __new__(
        cls, op: Ops, dtype: DType, shape: tuple[sint, ...], src: tuple[LazyOp, ...] = (), arg: Any = None
    ) -> LazyOp:
        # A node keeps its operands alive, so no other object can get their ids meanwhile.
        intern_key = (op, dtype, shape, _arg_key(arg), *[id(s) for s in src])
        weak = LazyOp._interned.find(intern_key)
        if weak is not None:
            found = weak()
            if found is not None:
                return found
        self = object.__new__(cls)
        self.op, self.dtype, self.shape, self.src, self.arg = op, dtype, shape, src, arg
        self._key = None
        if op is Ops.CUSTOM:  # what runs it is a part of the key, and may hold memory
            LazyOp._interned.add_fleeting(intern_key, self)
        else:
            LazyOp._interned.add(intern_key, ref(self))
        return self

    def __reduce__(self) -> tuple[object, ...]:
        return LazyOp, (self.op, self.dtype, self.shape, self.src, self.arg)

    @property
    def key(self) -> bytes:
        """A digest of the structure, equal in every process for equal ASTs."""
        if self._key is None:
            from hashlib import sha256  # loads OpenSSL, which a short program never needs

            lines: list[str] = []
            numbers: dict[LazyOp, int] = {}
            for node in self.toposort():
                arg = _arg_key(node.arg)
                bounds = " ".join(sorted(v.key for v in node.own_variables()))  # the text has only their names
                operands = [numbers[child] for child in node.src]
                numbers[node] = len(numbers)
                line = f"{node.op.name}|{node.dtype.name}|{node.shape!r}|{arg!r}|{bounds}|{operands}"
                lines.append(f"{len(line)}:{line}")
            self._key = sha256("".join(lines).encode()).digest()
        return self._key

    def toposort(self) -> list[LazyOp]:
        """Every node that this one depends on, operands first, itself last."""
        return toposort((self,), _SRC)

    def variables(self) -> frozenset[Variable]:
        """The symbolic variables on which the kernel depends."""
        return frozenset().union(*[node.own_variables() for node in self.toposort()])

    def own_variables(self) -> set[Variable]:
        """The symbolic variables in the node itself: in its shape and its argument."""
        found: set[Variable] = set()
        for dim in self.shape:
            if isinstance(dim, Expr):
                found.update(dim.variables())
        for part in self.arg if isinstance(self.arg, tuple) else (self.arg,):
            if isinstance(part, ShapeTracker):
                found.update(part.vars())
            elif isinstance(part, Expr):
                found.update(part.variables())
        return found

    def render(self) -> str:
        """The AST as text, one node a line, shared nodes once."""
        names: dict[LazyOp, str] = {}
        lines = []
        for node in self.toposort():
            names[node] = f"%{len(names)}"
            operands = ", ".join(names[child] for child in node.src)
            detail = "" if node.arg is None else f" [{node.arg!r}]"
            lines.append(f"{names[node]} = {node.op.name.lower()}({operands}){detail} : {node.dtype.name}{node.shape}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<LazyOp {self.op.name} {self.dtype.name} {self.shape}>"


def const(value: ConstType, dtype: DType, shape: tuple[sint, ...] = ()) -> LazyOp:
    """``value`` everywhere in ``shape``, converted to ``dtype``."""
    return LazyOp(Ops.CONST, dtype, shape, (), dtypes.as_const(value, dtype))


def iota(st: ShapeTracker, dtype: DType = dtypes.int32) -> LazyOp:
    """The flat index that ``st`` maps each index to; 0 where masked."""
    return LazyOp(Ops.IOTA, dtype, st.shape, (), st)


def symbol(expr: sint, dtype: DType, shape: tuple[sint, ...] = ()) -> LazyOp:
    """The value of a symbolic integer, everywhere in ``shape``."""
    return const(expr, dtype, shape) if isinstance(expr, int) else LazyOp(Ops.SYM, dtype, shape, (), expr)


def load(slot: int, dtype: DType, st: ShapeTracker) -> LazyOp:
    """Reads buffer ``slot`` through ``st``."""
    return LazyOp(Ops.LOAD, dtype, st.shape, (), (slot, st))


def gather(slot: int, dtype: DType, st: ShapeTracker, index: LazyOp) -> LazyOp:
    """Reads buffer ``slot``, seen as ``st`` of shape (n,), at ``index``.

    Raises:
      TypeError: if the index is not an integer.
      ValueError: if ``st`` is not one-dimensional.
    """
    if not dtypes.is_int(index.dtype):
        raise TypeError(f"gather takes an integer index, got {index.dtype.name}")
    if len(st.shape) != 1:
        raise ValueError(f"gather reads a one-dimensional view, got shape {st.shape}")
    return LazyOp(Ops.GATHER, dtype, index.shape, (index,), (slot, st))


def view(x: LazyOp, st: ShapeTracker) -> LazyOp:
    """``x`` seen through ``st``; ``x`` itself where that changes nothing. :func:`tg_lazy.ast.fold.view` folds views."""
    if st.contiguous and st.shape == x.shape:
        return x
    return LazyOp(Ops.VIEW, x.dtype, st.shape, (x,), st)


def alu(op: Ops, *src: LazyOp) -> LazyOp:
    """An elementwise op.

    Raises:
      ValueError: if the shapes differ, or the number of operands is wrong.
      TypeError: if the dtypes do not fit.
    """
    dtype = _dtype_of(op, *[s.dtype for s in src])
    shape = src[0].shape
    for s in src:
        if s.shape != shape:
            raise ValueError(f"{op.name} takes operands of one shape, got {', '.join(str(s.shape) for s in src)}")
    return LazyOp(op, dtype, shape, src)


def cast(x: LazyOp, dtype: DType) -> LazyOp:
    """``x`` converted to ``dtype``."""
    return x if x.dtype is dtype else LazyOp(Ops.CAST, dtype, x.shape, (x,))


def bitcast(x: LazyOp, dtype: DType) -> LazyOp:
    """The bits of ``x`` taken as ``dtype``.

    Raises:
      TypeError: if the item sizes differ.
    """
    if x.dtype.itemsize != dtype.itemsize:
        raise TypeError(f"bitcast needs equal item sizes, got {x.dtype.name} -> {dtype.name}")
    return x if x.dtype is dtype else LazyOp(Ops.BITCAST, dtype, x.shape, (x,))


def reduce(x: LazyOp, op: Ops, axes: tuple[int, ...]) -> LazyOp:
    """``x`` combined by ``op`` along ``axes``, which stay with size 1.

    Raises:
      ValueError: if ``op`` cannot reduce, or an axis is out of range.
    """
    if op not in REDUCIBLE:
        raise ValueError(f"{op.name} cannot reduce")
    if any(not 0 <= axis < len(x.shape) for axis in axes):
        raise ValueError(f"REDUCE {op.name}: axes {axes} do not fit the shape {x.shape}")
    if not axes:
        return x
    shape = tuple(1 if i in axes else dim for i, dim in enumerate(x.shape))
    return LazyOp(Ops.REDUCE, x.dtype, shape, (x,), (op, tuple(sorted(set(axes)))))


def store(slot: int, st: ShapeTracker, value: LazyOp) -> LazyOp:
    """Writes ``value`` to buffer ``slot`` through ``st``.

    Raises:
      ValueError: if the shapes differ.
    """
    if st.shape != value.shape:
        raise ValueError(f"STORE of shape {value.shape} through a view of shape {st.shape}")
    return LazyOp(Ops.STORE, dtypes.void, value.shape, (value,), (slot, st))


def update(
    slot: int, where: ShapeTracker, value: LazyOp, index: LazyOp, op: Ops | None = None,
    found: ShapeTracker | None = None, distinct: bool = False,
) -> LazyOp:  # fmt: skip
    """Combines buffer ``slot`` with ``value`` at the places that ``index`` names, one after the other.

    Raises:
      TypeError: if the index is not an integer.
      ValueError: if the shapes do not fit together, or ``op`` cannot combine.
    """
    if not dtypes.is_int(index.dtype):
        raise TypeError(f"update takes an integer index, got {index.dtype.name}")
    if op is not None and op not in REDUCIBLE:
        raise ValueError(f"{op.name} cannot combine")
    if index.shape != value.shape or where.shape[:-1] != value.shape or len(where.shape) != len(value.shape) + 1:
        raise ValueError(f"UPDATE of shape {value.shape} at indices of {index.shape}, through a view of {where.shape}")
    if found is not None and found.shape != value.shape:
        raise ValueError(f"UPDATE of shape {value.shape} keeps what it finds through a view of shape {found.shape}")
    return LazyOp(Ops.UPDATE, dtypes.void, value.shape, (value, index), (slot, where, op, found, distinct))


def sink(stores: tuple[LazyOp, ...], buffers: tuple[BufferArg, ...]) -> LazyOp:
    """A whole kernel: its stores, and one :class:`BufferArg` per slot."""
    return LazyOp(Ops.SINK, dtypes.void, (), stores, buffers)


WRITES = frozenset({Ops.STORE, Ops.UPDATE})
"""What a SINK takes."""
_SRC: Callable[[LazyOp], tuple[LazyOp, ...]] = attrgetter("src")


class InvalidAST(ValueError):
    """A kernel AST breaks a rule; the message names the node and the rule."""


def verify(ast: LazyOp) -> None:
    """Checks a kernel AST against the op table and the module's table of forms.

    Raises:
      InvalidAST: on the first node that breaks a rule.
    """
    if ast.op is not Ops.SINK:
        raise InvalidAST(f"a kernel AST ends in SINK, got {ast.op.name}")
    for node in ast.toposort():
        for problem in _problems(node, ast.arg):
            raise InvalidAST(f"{node!r}: {problem}")


def _problems(node: LazyOp, buffers: tuple[BufferArg, ...]) -> Iterator[str]:
    row = SPEC[node.op]
    if row.arity >= 0 and len(node.src) != row.arity:
        yield f"takes {row.arity} operands, got {len(node.src)}"
    if node.op in ALU:
        if any(s.shape != node.shape for s in node.src):
            yield f"operands of shapes {[s.shape for s in node.src]}"
        given = node.op in CONVERSIONS
        if not given and result_dtype(node.op, *(s.dtype for s in node.src)) is not node.dtype:
            yield f"dtype {node.dtype.name} from {[s.dtype.name for s in node.src]}"
    elif node.op in (Ops.LOAD, Ops.GATHER):
        slot, _ = node.arg
        if not 0 <= slot < len(buffers):
            yield f"slot {slot} of {len(buffers)}"
        elif buffers[slot].dtype.element is not node.dtype:
            yield f"reads {node.dtype.name} from a buffer of {buffers[slot].dtype.name}"
        else:
            yield from _outside(node.arg[1], buffers[slot].size)
    elif node.op is Ops.STORE:
        slot, st = node.arg
        if not 0 <= slot < len(buffers):
            yield f"slot {slot} of {len(buffers)}"
        elif buffers[slot].dtype.element is not node.src[0].dtype:
            yield f"writes {node.src[0].dtype.name} to a buffer of {buffers[slot].dtype.name}"
        else:
            yield from _outside(st, buffers[slot].size)
        if st.shape != node.src[0].shape:
            yield f"view {st.shape} for a value of {node.src[0].shape}"
    elif node.op is Ops.UPDATE:
        slot, where, op, found, _ = node.arg
        value, index = node.src
        if not 0 <= slot < len(buffers):
            yield f"slot {slot} of {len(buffers)}"
        elif buffers[slot].dtype.element is not value.dtype:
            yield f"writes {value.dtype.name} to a buffer of {buffers[slot].dtype.name}"
        else:
            yield from _outside(where, buffers[slot].size)
            if found is not None:
                yield from _outside(found, buffers[slot].size)
        if not dtypes.is_int(index.dtype):
            yield f"an index of {index.dtype.name}"
        if op is not None and op not in REDUCIBLE:
            yield f"{op.name} cannot combine"
        if index.shape != node.shape or value.shape != node.shape or where.shape[:-1] != node.shape:
            yield f"a view {where.shape} for a value of {value.shape} at an index of {index.shape}"
        if found is not None and found.shape != node.shape:
            yield f"a view {found.shape} for what is found at an index of {index.shape}"
    elif node.op is Ops.SINK:
        if any(s.op not in WRITES for s in node.src):
            yield "SINK takes stores and updates only"
        kinds = [buffer.internal for buffer in buffers]
        if kinds != sorted(kinds):
            yield "internal buffers come last"
        made: set[int] = set()
        for store in node.src:
            made.update(() if store.op not in WRITES else (store.arg[0],))
        if any(s.op is Ops.UPDATE for s in node.src):
            if len(node.src) > 1 or any(kinds):
                yield "an UPDATE is the only output of its kernel, which has no internal buffers"
            if any(n.op in (Ops.LOAD, Ops.GATHER) and n.arg[0] == node.src[0].arg[0] for n in node.toposort()):
                yield "what an UPDATE writes is read besides"
        if any(buffer.internal and slot not in made for slot, buffer in enumerate(buffers)):
            yield "an internal buffer that nothing is stored to"


def _outside(st: ShapeTracker, size: int) -> Iterator[str]:
    """What a view reaches beyond its buffer, whatever the variables are: see :mod:`.reach`."""
    view = st.views[0]  # of a stack of views the one that leads to the buffer
    if 0 in st.shape:
        return
    variables = view.variables()
    found = [view.reach({v: v.vmin for v in variables}), view.reach({v: v.vmax for v in variables})]
    outside = [reach for reach in found if reach is not None and not 0 <= reach[0] <= reach[1] < size]
    if len(outside) == len(found):
        low, high = outside[-1]
        yield f"a view that reaches from {low} to {high} in a buffer of {size} elements"
