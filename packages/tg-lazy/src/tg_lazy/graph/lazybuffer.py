"""The lazy graph: nodes that say what to compute, and views of them.

A :class:`LazyBuffer` is a *base*, whose value is computed into a contiguous buffer, or a *view*: one base seen through
a ShapeTracker. Equal graphs are one object. What owns memory that can be assigned to (EMPTY, CONTIGUOUS, COPY, ASSIGN,
CUSTOM, BUFFER_VIEW and realised nodes) is an identity of its own and never shared.

A node changes once in its life: when its value is in memory it becomes a BUFFER and lets go of its operands.
"""

from __future__ import annotations

import math
import os
import struct
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import count
from threading import RLock
from typing import Any
from weakref import ref

from tg_dtype import ConstType, DType, dtypes
from tg_shape import Expr, Interned, ShapeTracker, Variable, View, prod, resolve, sint

from ..ops import ALU, LEAVES, MEMORY, REDUCIBLE, Ops, identity, result_dtype
from ..trackers import Shape, contiguous, masked, max_size, repeated, repeats, row_major_offset, writes_once
from .label import Label, find_label, label_of
from .operands import check_alike, check_assigned, check_inside, check_updated, reduced_shape, shapes_and_dtypes
from .origin import caller, detailed
from .storage import Readers, Storage

# By the ids of label and operands, which a node keeps alive, so that no other object can get these ids meanwhile.
_nodes: Interned[LazyBuffer] = Interned()
_node_table, _find_node = _nodes.table, _nodes.find
graph_lock = RLock()
"""Held while nodes are made or realised."""
if hasattr(os, "register_at_fork"):  # so that a child finds the table consistent and the lock free
    _release = graph_lock.release
    os.register_at_fork(before=graph_lock.acquire, after_in_parent=_release, after_in_child=_release)

_serials = count()
# looked up once: attributes of an Enum are slow
_ASSIGN, _BUFFER, _REDUCE, _VIEW = Ops.ASSIGN, Ops.BUFFER, Ops.REDUCE, Ops.VIEW
_dtype_of = lru_cache(maxsize=4096)(result_dtype)


def tell_methods() -> None:
    """From now on nodes also record which method made them, and for which gradient: see :class:`~.origin.Told`."""
    global caller
    caller = detailed


class LazyBuffer:
    """A node of the lazy graph, or a view of one. Made by the class methods and by operations on other nodes.

    Attributes:
      op: what a base computes; ``VIEW`` for a view.
      device: canonical name of the device.
      dtype: element dtype.
      shape: sizes, symbolic ones included.
      st: how the shape's indices map to the base's buffer.
      srcs: operands.
      arg: what the op needs besides operands.
      origin: file and line of the user's program that made the node.
      shared: whether equal graphs were built more than once, so that several owners may hold this node.
      stale: where the memory that this unrealised node reads was overwritten, if it was.
      ended: whether a later version of this memory exists. It is kept for owners; the graph does not use it.
      holders: owners that hold this node for its value, not for its memory; None if there are none. They get to copy
        the value before the memory is overwritten in place.
      label: what it computes, apart from its operands; of memory that is there, see :meth:`memory_label`.

    Example:
      >>> from tg_dtype import dtypes
      >>> a = LazyBuffer.empty((2, 3), dtypes.float32, "CPU")
      >>> b = a.alu(Ops.ADD, a.const_like(1)).permute((1, 0))
      >>> b.shape, b.base.op.name, b is a.alu(Ops.ADD, a.const_like(1)).permute((1, 0))
      ((3, 2), 'ADD', True)
    """

    __slots__ = (
        "__weakref__", "_key", "_storage", "arg", "device", "dtype", "ended", "holders", "op", "origin", "readers",
        "label", "shape", "shared", "srcs", "st", "stale",
    )  # fmt: skip

    op: Ops
    device: str
    dtype: DType
    shape: Shape
    st: ShapeTracker
    srcs: tuple[LazyBuffer, ...]
    arg: Any
    origin: tuple[str, int]
    shared: bool
    stale: tuple[str, int] | None
    label: Label | None
    ended: bool
    holders: Readers[Any] | None
    readers: Readers[LazyBuffer]
    _storage: Storage | None
    _key: tuple[object, ...] | None

    # -- construction ------------------------------------------------------------------------------------------------

    @staticmethod
    def _new(
        op: Ops,
        device: str,
        dtype: DType,
        st: ShapeTracker,
        srcs: tuple[LazyBuffer, ...] = (),
        arg: Any = None,
    ) -> LazyBuffer:
        # The hottest function of the package: common numbers of operands come first, and short helpers are inlined.
        count = len(srcs)
        content: tuple[object, ...]
        if arg is None or op is _ASSIGN:  # whose argument is a serial number, the same in no two graphs
            if count == 1:
                content = (op, device, dtype, st, srcs[0].st)
            elif count == 2:
                content = (op, device, dtype, st, srcs[0].st, srcs[1].st)
            else:
                content = (op, device, dtype, st, *[s.st for s in srcs])
        elif type(arg) is float:
            content = (op, device, dtype, st, "f", struct.pack("<d", arg), *[s.st for s in srcs])
        else:
            content = (op, device, dtype, st, type(arg), arg, *[s.st for s in srcs])
        with graph_lock:
            weak_label = find_label(content)
            label = None if weak_label is None else weak_label()
            if label is None:
                if dtype.kind == "complex":
                    raise TypeError(f"a node of {dtype.name}: a node holds one part, real or imaginary, as floats")
                label = label_of(content)
            key: tuple[object, ...] | None = None
            if op not in MEMORY:
                # integers alone, so that the garbage collector does not track the tuple
                if count == 1:
                    key = (id(label), id(srcs[0]))
                elif count == 2:
                    key = (id(label), id(srcs[0]), id(srcs[1]))
                else:
                    key = (id(label), *[id(s) for s in srcs])
                known = _find_node(key)
                if known is not None:
                    found = known()
                    if found is not None:
                        found.shared = True
                        return found
            return LazyBuffer._node(op, device, dtype, st, srcs, arg, caller(2), label, key)

    @staticmethod
    def _node(
        op: Ops,
        device: str,
        dtype: DType,
        st: ShapeTracker,
        srcs: tuple[LazyBuffer, ...],
        arg: Any,
        origin: tuple[str, int],
        label: Label | None,
        key: tuple[object, ...] | None,
        storage: Storage | None = None,
    ) -> LazyBuffer:
        """A new node. Where it has a key, it gets its place in the table, and the caller holds the lock."""
        self = object.__new__(LazyBuffer)
        self.op = op
        self.device = device
        self.dtype = dtype
        self.st = st
        self.srcs = srcs
        self.arg = arg
        self.shape = st.shape
        self.origin = origin
        self.shared = self.ended = False
        self.stale = self.holders = None
        self._storage = storage
        self._key = key
        self.label = label
        weak = ref(self)
        if storage is not None:
            self.readers = storage.readers
        elif op is not _VIEW:
            self.readers = Readers()
            for src in srcs:
                readers = src.srcs[0].readers if src.op is _VIEW else src.readers
                readers[weak] = None
                if len(readers) > readers.limit:
                    readers.sweep()
        if key is not None:
            _node_table[key] = weak
            if len(_node_table) > _nodes.limit:
                _nodes.sweep()
        return self

    @staticmethod
    def const(value: ConstType | sint, dtype: DType, shape: Sequence[sint], device: str) -> LazyBuffer:
        """``value``, converted to ``dtype``, everywhere in ``shape``; a symbolic integer is taken as it is."""
        if isinstance(value, Expr):
            return LazyBuffer.symbolic(value, dtype, device)._seen(repeated(tuple(shape)))
        sign = math.copysign(1.0, value) if value == 0 else 0.0
        return _constant(type(value).__name__, value, sign, dtype, tuple(shape), device)

    @staticmethod
    def symbolic(expr: sint, dtype: DType, device: str) -> LazyBuffer:
        """The value of a symbolic integer, shape ()."""
        if isinstance(expr, int):
            return LazyBuffer.const(expr, dtype, (), device)
        return LazyBuffer._new(Ops.SYM, device, dtype, contiguous(()), (), expr)

    @staticmethod
    def iota(n: sint, dtype: DType, device: str) -> LazyBuffer:
        """The integers 0 to n-1 (shape (n,)).

        Raises:
          TypeError: if ``dtype`` is not an integer dtype.
        """
        if not dtypes.is_int(dtype):
            raise TypeError(f"IOTA counts in integers, not in {dtype.name}")
        return LazyBuffer._new(Ops.IOTA, device, dtype, contiguous((n,)))

    @staticmethod
    def empty(shape: Sequence[sint], dtype: DType, device: str) -> LazyBuffer:
        """New memory with undefined content."""
        return LazyBuffer._new(Ops.EMPTY, device, dtype, contiguous(tuple(shape)))

    @staticmethod
    def from_storage(storage: Storage, shape: Sequence[sint] | None = None) -> LazyBuffer:
        """Memory that exists, seen as ``shape`` (flat if it is not given).

        Raises:
          ValueError: if ``shape`` needs more elements than the storage has.
        """
        shape = (storage.size,) if shape is None else tuple(shape)
        if max_size(shape) > storage.size:
            raise ValueError(f"BUFFER: shape {shape} needs {max_size(shape)} elements; {storage!r} has fewer")
        return LazyBuffer.in_storage(storage, contiguous(shape), caller(1))

    @staticmethod
    def in_storage(storage: Storage, st: ShapeTracker, origin: tuple[str, int]) -> LazyBuffer:
        """Memory that exists, seen through ``st``, which is row-major and shows no more than there is."""
        # unique, so it is not interned
        dtype = storage.dtype.element
        return LazyBuffer._node(_BUFFER, storage.device, dtype, st, (), None, origin, None, None, storage)

    def in_new_storage(self, storage: Storage, st: ShapeTracker) -> LazyBuffer:
        """This view of other memory, which no node shows yet: a quick way to what :meth:`seen` makes of it.

        Args:
          storage: the memory, of the same dtype and on the same device.
          st: how the base of this view is shaped, of numbers and row-major.
        """
        base = LazyBuffer.in_storage(storage, st, self.origin)
        if self.op is not _VIEW:
            return base
        with graph_lock:
            key = id(self.label), id(base)
            return LazyBuffer._node(
                _VIEW, self.device, self.dtype, self.st, (base,), None, self.origin, self.label, key
            )

    @staticmethod
    def custom(
        fxn: Callable[..., object], srcs: Sequence[LazyBuffer], shape: Sequence[sint], dtype: DType, device: str
    ) -> LazyBuffer:
        """The output of a host function on whole buffers: ``fxn(out, *srcs)``, each source contiguous in memory."""
        inputs = tuple(src.in_memory() for src in srcs)
        return LazyBuffer._new(Ops.CUSTOM, device, dtype, contiguous(tuple(shape)), inputs, fxn)

    def on(self, srcs: Sequence[LazyBuffer]) -> LazyBuffer:
        """What this base computes, of other operands of the same shapes and dtypes."""
        out = LazyBuffer._new(self.op, self.device, self.dtype, self.st, tuple(srcs), self.arg)
        out.origin = self.origin
        return out

    # -- properties --------------------------------------------------------------------------------------------------

    @property
    def base(self) -> LazyBuffer:
        """The node whose buffer is seen; itself for a base."""
        return self.srcs[0] if self.op is _VIEW else self

    def memory_label(self) -> Label:
        """The label of a node whose value is in memory: its type and size, and whether it is a part of other memory."""
        label = self.label
        if label is None:
            storage = self.storage
            assert storage is not None, f"{self!r} is not realised"
            content = (_BUFFER, self.device, self.dtype, self.st, storage.size, storage.root is not storage)
            with graph_lock:
                label = self.label = label_of(content)
        return label

    @property
    def size(self) -> sint:
        """Number of elements."""
        return prod(self.shape)

    @property
    def storage(self) -> Storage | None:
        """The base's memory; None until it is realised."""
        return self.base._storage

    @property
    def is_realized(self) -> bool:
        """Whether the base's value is in memory."""
        return self.base._storage is not None

    @property
    def is_whole(self) -> bool:
        """Whether the base's buffer is seen whole and row-major."""
        return self.base is self or (self.st.contiguous and not resolve(self.size != self.base.size, True))

    def __repr__(self) -> str:
        what = self.op.name if self.base is self else f"VIEW of {self.base.op.name}"
        return f"<LazyBuffer {what} {self.device} {self.dtype.name} {self.shape}>"

    # -- elementwise -------------------------------------------------------------------------------------------------

    def alu(self, op: Ops, *others: LazyBuffer) -> LazyBuffer:
        """An elementwise op with this node as first operand.

        Raises:
          ValueError: if the operands' shapes or devices differ, or their number is wrong.
          TypeError: if the dtypes do not fit the op.
        """
        if op not in ALU:
            raise ValueError(f"{op.name} is not an elementwise op")
        srcs: tuple[LazyBuffer, ...]
        shape, device = self.shape, self.device
        try:
            if len(others) == 1:  # nearly always
                other = others[0]
                srcs = (self, other)
                dtype = _dtype_of(op, self.dtype, other.dtype)
                if other.shape == shape and other.device == device:
                    others = ()
            else:
                srcs = (self, *others)
                dtype = _dtype_of(op, *[s.dtype for s in srcs])
        except (TypeError, ValueError) as error:
            raise type(error)(f"{error}; operands: {shapes_and_dtypes(srcs)}") from None
        if others:
            check_alike(op, srcs)
        # a base is row-major
        st = self.st if self.op is not _VIEW else contiguous(shape)
        return LazyBuffer._new(op, device, dtype, st, srcs)

    def const_like(self, value: ConstType) -> LazyBuffer:
        """``value`` everywhere in this node's shape, with its dtype and device."""
        return LazyBuffer.const(value, self.dtype, self.shape, self.device)

    def cast(self, dtype: DType) -> LazyBuffer:
        """The values converted to ``dtype`` by the rules of :mod:`tg_dtype.cast`."""
        if dtype is self.dtype:
            return self
        base = self.base
        if base.op is Ops.CONST:
            return LazyBuffer.const(base.arg, dtype, (), self.device)._seen(self.st)
        # Convert before repeating: there are fewer elements.
        if base is not self and repeats(self.st, base.size):
            return base.cast(dtype)._seen(self.st)
        return LazyBuffer._new(Ops.CAST, self.device, dtype, contiguous(self.shape), (self,))

    def bitcast(self, dtype: DType) -> LazyBuffer:
        """The bits of the elements taken as ``dtype``. With another item size the last dimension changes accordingly.

        Raises:
          ValueError: if the last dimension does not divide.
        """
        if dtype is self.dtype:
            return self
        if dtype.itemsize == self.dtype.itemsize:
            return LazyBuffer._new(Ops.BITCAST, self.device, dtype, contiguous(self.shape), (self,))
        if not self.shape or not isinstance(row := self.shape[-1] * self.dtype.itemsize, int) or row % dtype.itemsize:
            raise ValueError(
                f"BITCAST: {self.dtype.name} of shape {self.shape} to {dtype.name}: the last dimension must divide"
            )
        src = self.in_memory()
        shape = (*self.shape[:-1], row // dtype.itemsize)
        return LazyBuffer._new(Ops.BUFFER_VIEW, self.device, dtype, contiguous(shape), (src,))

    # -- reduction ---------------------------------------------------------------------------------------------------

    def reduce(self, op: Ops, axes: Sequence[int]) -> LazyBuffer:
        """The values combined along ``axes``, which stay with size 1. Sums and products of narrow floats use float32.

        Raises:
          ValueError: if ``op`` cannot reduce, or an axis is out of range or given twice.
        """
        if op not in REDUCIBLE:
            raise ValueError(f"{op.name} cannot reduce; shape {self.shape}, dtype {self.dtype.name}")
        shape, wanted, empty = reduced_shape(op, self.shape, tuple(axes))
        if empty:
            return LazyBuffer.const(identity(op, self.dtype), self.dtype, shape, self.device)
        if not wanted:
            return self
        if op is not Ops.MAX and self.dtype.itemsize < 4 and dtypes.is_float(self.dtype):
            return self.cast(dtypes.float32).reduce(op, wanted).cast(self.dtype)
        return LazyBuffer._new(_REDUCE, self.device, self.dtype, contiguous(shape), (self,), (op, wanted))

    def gather(self, index: LazyBuffer) -> LazyBuffer:
        """``out[i] = self.flat[index[i]]``, 0 where the index is not in ``0 <= index < size``; shape of ``index``.

        Raises:
          TypeError: if the index is not an integer.
          ValueError: if the devices differ.
        """
        if not dtypes.is_int(index.dtype):
            raise TypeError(f"GATHER takes an integer index, got {index.dtype.name} of shape {index.shape}")
        if index.device != self.device:
            raise ValueError(f"GATHER: data on {self.device}, index on {index.device}")
        if isinstance(self.size, int) and self.size == 0:
            return LazyBuffer.const(0, self.dtype, index.shape, self.device)
        source = self.contiguous() if self.base.op in LEAVES or masked(self.st) else self
        source = source.reshape((self.size,))
        return LazyBuffer._new(Ops.GATHER, self.device, self.dtype, contiguous(index.shape), (source, index))

    # -- memory ------------------------------------------------------------------------------------------------------

    def contiguous(self) -> LazyBuffer:
        """The value in memory of its own, row-major; itself where it is that already."""
        return self if self.base.op in MEMORY and self.is_whole else self.clone()

    def clone(self) -> LazyBuffer:
        """The value in new memory."""
        return LazyBuffer._new(
            Ops.CONTIGUOUS, self.device, self.dtype, contiguous(self.shape), (self,)
        )

    def intermediate(self) -> LazyBuffer:
        """The value, computed once: in memory, or row by row in the kernel that makes something of it.

        It is for values of which nobody keeps hold: who asks for one later has it computed again.
        """
        return LazyBuffer._new(Ops.CONTIGUOUS, self.device, self.dtype, contiguous(self.shape), (self,), True)

    def in_memory(self) -> LazyBuffer:
        """A node with this value that is, or will be, a contiguous range of memory."""
        node = self.base
        while node._storage is None and node.op is _ASSIGN:
            srcs = node.srcs
            if not srcs:  # another thread has executed it meanwhile
                break
            node = srcs[0].base
        if node.op in LEAVES or (node._storage is not None and node._storage.dtype is not node.dtype):
            return self.clone()  # a constant; or an image, whose bytes are not those of its elements
        return self if self.is_whole or byte_range(self) is not None else self.contiguous()

    def copy_to(self, device: str) -> LazyBuffer:
        """The value on another device."""
        if device == self.device:
            return self
        base = self.base
        if base.op in LEAVES:
            return LazyBuffer._new(base.op, device, base.dtype, base.st, (), base.arg)._seen(self.st)
        if base.op is Ops.BITCAST and base.srcs[0].base.op in MEMORY:
            return base.srcs[0].copy_to(device).bitcast(base.dtype)._seen(self.st)
        if resolve(self.size >= base.size, False) and base is not self:
            return base.copy_to(device)._seen(self.st)
        src = self.in_memory()
        return LazyBuffer._new(Ops.COPY, device, self.dtype, contiguous(self.shape), (src,))

    def assign(self, value: LazyBuffer) -> LazyBuffer:
        """This (view of) memory with new content: the next version of the memory, seen as this node sees it.

        Nodes built on the old version keep its values. Where the target is no memory yet, or memory that equal graphs
        share, new memory takes its place.

        Returns:
          A node of this shape; its ``base`` is the new version of the whole memory.

        Raises:
          ValueError: if shapes or devices differ, or the target shows an element twice or shows padding.
          TypeError: if the dtypes differ.
        """
        check_assigned(self, value)
        if self.base.op in LEAVES:
            return value.clone()
        if not writes_once(self.st):
            raise ValueError(f"ASSIGN: the target of shape {self.shape} shows an element twice or shows padding")
        base = self.base
        if base.op not in MEMORY or base.shared:
            if self.is_whole:
                return value.clone()
            base = base.clone()
        elif value is self:
            return self
        if isinstance(self.size, int) and self.size == 0:
            return self
        target = base if self.base is self else base._seen(self.st)
        new = LazyBuffer._new(_ASSIGN, self.device, self.dtype, base.st, (target, value), next(_serials))
        return new if self.base is self else new._seen(self.st)

    def update(
        self, value: LazyBuffer, index: LazyBuffer, where: ShapeTracker, op: Ops | None = None,
        found: ShapeTracker | None = None, distinct: bool = False,
    ) -> LazyBuffer:  # fmt: skip
        """This memory after ``memory[p] = op(memory[p], value[i])`` with ``p = where(i, index[i])``, for i in order.

        It is the next version of the memory, as for :meth:`assign`. Nothing is written for an index that is not in
        ``0 <= index < n``, ``n`` being the size of the last dimension of ``where``.

        Args:
          value: what is combined with the elements.
          index: which of the ``n`` places, an integer for each value.
          where: the flat index of each value's place, over the values' shape and ``n``.
          op: ADD, MUL or MAX; None to replace elements.
          found: where in the memory the element's content before each step is kept, over the values' shape.
          distinct: no two values are for one element, which is not checked: they may be written in any order.

        Raises:
          ValueError: if shapes or devices do not fit together, ``op`` cannot combine, or a part of memory is seen.
          TypeError: if the dtypes differ, or the index is no integer.
        """
        check_updated(self, value, index, where, op, found)
        if not self.is_whole:
            raise ValueError(f"UPDATE: a part of memory, or another view of it, of shape {self.shape}")
        if isinstance(value.size, int) and value.size == 0:
            return self
        fresh = self.base.op not in MEMORY or self.base.shared
        base = self.clone().base if fresh else self.base
        if not _unread(base):  # what the operands are computed from may be what is overwritten
            value, index = value.clone(), index.clone()
        update = LazyBuffer._new(
            Ops.UPDATE, self.device, self.dtype, base.st, (value, index), (op, where, found, distinct))
        new = LazyBuffer._new(_ASSIGN, self.device, self.dtype, base.st, (base, update), next(_serials))
        return new._seen(self.st) if self.shape != base.shape else new

    def rebase(self, base: LazyBuffer) -> LazyBuffer:
        """``base`` seen as this node sees its own base.

        Raises:
          ValueError: if the two bases differ in shape.
        """
        if base.base.shape != self.base.shape:
            raise ValueError(f"rebase: from a base of shape {self.base.shape} to one of shape {base.base.shape}")
        return base.base._seen(self.st)

    def bind(self, values: Mapping[Variable, int]) -> LazyBuffer:
        """This view of memory with the variables of its shape bound to other values.

        Raises:
          ValueError: if the node is not realised.
        """
        st, whole = self.st.bind(values), self.base.st.bind(values)
        if st is self.st and whole is self.base.st:
            return self
        if self.storage is None:
            raise ValueError(f"bind: a node of shape {self.shape} that is not realised")
        return LazyBuffer.from_storage(self.storage, whole.shape)._seen(st)

    def seen(self, st: ShapeTracker) -> LazyBuffer:
        """The base of this node seen through ``st``, a tracker of a row-major buffer of the base's size."""
        return self._seen(st)

    def seen_through(self, view: View) -> LazyBuffer:
        """The base of this node seen through a view with strides of any kind, all of it numbers.

        Raises:
          ValueError: if the view has a mask or symbols, or leaves the base.
        """
        check_inside(view, self.base.size, self.base)
        return self._seen(ShapeTracker((view,)))

    # -- movement ----------------------------------------------------------------------------------------------------

    def _seen(self, st: ShapeTracker) -> LazyBuffer:
        """The base of this node seen through ``st``."""
        base = self.srcs[0] if self.op is _VIEW else self
        if st is base.st:
            return base
        return LazyBuffer._new(_VIEW, base.device, base.dtype, st, (base,))

    def reshape(self, shape: Sequence[sint]) -> LazyBuffer:
        """The same elements in another shape.

        Raises:
          ValueError: if the numbers of elements differ.
        """
        return self._seen(self.st.reshape(shape))

    def permute(self, order: Sequence[int]) -> LazyBuffer:
        """Dimension ``i`` of the result is dimension ``order[i]``.

        Raises:
          ValueError: if ``order`` is no permutation of the dimensions.
        """
        return self._seen(self.st.permute(order))

    def expand(self, shape: Sequence[sint]) -> LazyBuffer:
        """Dimensions of size 1 repeated.

        Raises:
          ValueError: if another dimension would change.
        """
        return self._seen(self.st.expand(shape))

    def pad(self, widths: Sequence[tuple[sint, sint]]) -> LazyBuffer:
        """Zeros before and after each dimension.

        Raises:
          ValueError: if a width is negative or their number is wrong.
        """
        return self._seen(self.st.pad(widths))

    def shrink(self, bounds: Sequence[tuple[sint, sint]]) -> LazyBuffer:
        """A range of each dimension.

        Raises:
          ValueError: if a range lies outside.
        """
        return self._seen(self.st.shrink(bounds))

    def flip(self, axes: Sequence[int]) -> LazyBuffer:
        """The given dimensions reversed.

        Raises:
          ValueError: if an axis is out of range.
        """
        return self._seen(self.st.flip(axes))

    def stride(self, steps: Sequence[int]) -> LazyBuffer:
        """Every n-th element of each dimension; from the end for a negative step.

        Raises:
          ValueError: if a step is 0 or their number is wrong.
        """
        return self._seen(self.st.stride(steps))

    # -- realisation -------------------------------------------------------------------------------------------------

    def unshare(self) -> None:
        """Makes equal graphs a new node from now on, because this one's operands are about to be overwritten."""
        with graph_lock:
            key, self._key = self._key, None
            if key is not None:
                _nodes.drop(key, self)

    def realised_in(self, storage: Storage) -> None:
        """The one transition of a node: its value is in ``storage`` now, and it drops its operands."""
        with graph_lock:
            if self._key is not None:
                _nodes.drop(self._key, self)
            if self.readers:
                storage.readers.update(self.readers)
            # no calls from here on, so that no signal handler can raise in between
            self.op, self.srcs, self.arg, self._key, self.stale, self.label = _BUFFER, (), None, None, None, None
            self._storage = storage
            self.readers = storage.readers
            if self.holders is not None:
                known = storage.root.holders
                storage.root.holders = self.holders if known is None else Readers({**known, **self.holders})
                self.holders = None


def _unread(base: LazyBuffer) -> bool:
    """Whether memory is new, and no node reads any version of it: only assignments made of it what it is."""
    later: LazyBuffer | None = None
    while base._storage is None and all(reader is later for reader in base.readers.alive()):
        if base.op is not _ASSIGN:
            return base.op in (Ops.EMPTY, Ops.CONTIGUOUS)
        base, later = base.srcs[0].base, base
    return False


@lru_cache(maxsize=1024)
def _constant(
    kind: str, value: ConstType, sign: float, dtype: DType, shape: Shape, device: str
) -> LazyBuffer:
    """A constant. ``kind`` and ``sign`` (of a zero) tell apart what Python says is equal."""
    base = LazyBuffer._new(Ops.CONST, device, dtype, contiguous(()), (), dtypes.as_const(value, dtype))
    return base._seen(repeated(shape))


def byte_range(node: LazyBuffer) -> int | None:
    """The offset in bytes of a node that is a row-major range of memory; None if it is none."""
    if node.base.op not in MEMORY:
        return None
    return row_major_offset(node.st, node.dtype)
