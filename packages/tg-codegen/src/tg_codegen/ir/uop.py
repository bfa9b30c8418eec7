"""UOps: the code generator's one IR, in a structured and a linear form.

A UOp is immutable and interned: equal nodes are one object, so common subexpressions are shared by construction.
Elementwise work uses :class:`tg_lazy.Ops`; structure and memory use :class:`UOps`, each of which has a row in the table
of :mod:`tg_codegen.ir.spec`: its operands, its argument, its dtype and its meaning.

The structured form is a DAG with one SINK; :func:`tg_codegen.linear.linearize.linearize` turns it into the linear form,
a list in execution order.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import lru_cache
from operator import attrgetter
from typing import Any
from weakref import ref

from tg_dtype import ConstType, DType, dtypes
from tg_lazy import ALU, Ops, result_dtype
from tg_shape import Interned, toposort

from .spec import STREAM, UNPACKED, UOps

KOp = Ops | UOps


def _arg_key(arg: object) -> object:
    if isinstance(arg, float):
        return ("f", struct.pack("<d", arg))
    if isinstance(arg, bool):
        return ("b", arg)
    return arg


class UOp:
    """A node of kernel IR.

    Attributes:
      op: an elementwise :class:`tg_lazy.Ops` or a :class:`UOps`.
      dtype: dtype of the value, a vector dtype for several lanes; ``dtypes.void`` for effects.
      src: operands.
      arg: what the table of UOps says; None for an elementwise op.
    """

    __slots__ = ("__weakref__", "arg", "dtype", "op", "src")
    _interned: Interned[UOp] = Interned()
    _sorted: tuple[ref[UOp], tuple[UOp, ...]] | None = None

    op: KOp
    dtype: DType
    src: tuple[UOp, ...]
    arg: Any

    def __new__(cls, op: KOp, dtype: DType = dtypes.void, src: tuple[UOp, ...] = (), arg: Any = None) -> UOp:
        # A node holds its operands: while it is alive, their numbers mean nothing else.
        key: tuple[object, ...]
        own = arg if arg is None or type(arg) is int else _arg_key(arg)
        if len(src) == 2:
            key = (op, dtype, own, id(src[0]), id(src[1]))
        else:
            key = (op, dtype, own, *map(id, src))
        weak = _find(key)
        if weak is not None:
            found = weak()
            if found is not None:
                return found
        self = object.__new__(cls)
        self.op, self.dtype, self.src, self.arg = op, dtype, src, arg
        _table[key] = ref(self)
        if len(_table) > _INTERNED.limit:
            _INTERNED.sweep()
        return self

    def __reduce__(self) -> tuple[object, ...]:
        return UOp, (self.op, self.dtype, self.src, self.arg)

    def __repr__(self) -> str:
        detail = "" if self.arg is None else f" {self.arg!r}"
        return f"<UOp {self.op.name} {self.dtype.name}{detail} ({len(self.src)})>"

    @classmethod
    def sweep(cls) -> None:
        """Forgets what is left of nodes that are gone, which may be more than those that are there."""
        cls._interned.sweep()

    @property
    def is_const(self) -> bool:
        """Whether this is a CONST."""
        return self.op is UOps.CONST

    def toposort(self) -> list[UOp]:
        """Every node that this one depends on, operands first, itself last.

        That of the last kernel is kept while its SINK is there: one pass after the other asks for it.
        """
        kept = UOp._sorted
        if kept is not None and kept[0]() is self:
            return [*kept[1], self]
        found = toposort((self,), _SRC)
        if self.op is UOps.SINK:
            UOp._sorted = ref(self, _forget_order), tuple(found[:-1])
        return found

    def replace(self, src: tuple[UOp, ...]) -> UOp:
        """This node with other operands."""
        return self if src == self.src else UOp(self.op, self.dtype, src, self.arg)

    def alu(self, op: Ops, *others: UOp) -> UOp:
        """An elementwise op with this node as its first operand; dtype by the op table's rule."""
        return UOp(op, _result_dtype(op, self.dtype, *[o.dtype for o in others]), (self, *others))

    def cast(self, dtype: DType) -> UOp:
        """The value converted to the scalar dtype ``dtype``, lane by lane."""
        wide = dtype.scalar().vec(self.dtype.count) if self.dtype.count > 1 else dtype
        return self if wide is self.dtype else UOp(Ops.CAST, wide, (self,))

    def bitcast(self, dtype: DType) -> UOp:
        """The bits taken as the scalar dtype ``dtype``, lane by lane."""
        wide = dtype.scalar().vec(self.dtype.count) if self.dtype.count > 1 else dtype
        return self if wide is self.dtype else UOp(Ops.BITCAST, wide, (self,))

    def broadcast(self, count: int) -> UOp:
        """A scalar repeated over ``count`` lanes; a constant stays a constant."""
        if count == 1 or self.dtype.count == count:
            return self
        if self.is_const:
            return UOp(UOps.CONST, self.dtype.vec(count), (), self.arg)
        return UOp(UOps.BROADCAST, self.dtype.vec(count), (self,))

    def gep(self, *lanes: int) -> UOp:
        """The given lanes of a vector."""
        scalar = self.dtype.scalar()
        dtype = scalar if len(lanes) == 1 else scalar.vec(len(lanes))
        if self.is_const:
            return UOp(UOps.CONST, dtype, (), self.arg)
        if self.op is UOps.BROADCAST:
            return self.src[0].broadcast(len(lanes))
        if self.op is UOps.VECTORIZE:
            return vectorize(*(self.src[lane] for lane in lanes))
        return UOp(UOps.GEP, dtype, (self,), lanes)


_SRC: Callable[[UOp], tuple[UOp, ...]] = attrgetter("src")
_INTERNED = UOp._interned
_find, _table = _INTERNED.find, _INTERNED.table
_result_dtype = lru_cache(maxsize=4096)(result_dtype)


def _forget_order(gone: ref[UOp]) -> None:
    kept = UOp._sorted
    if kept is not None and kept[0] is gone:
        UOp._sorted = None


def const(value: ConstType, dtype: DType) -> UOp:
    """A constant, converted to ``dtype`` (a splat, where that is a vector)."""
    if type(value) is int and -(2**31) <= value < 2**31 and dtype.kind == "int" and dtype.bits >= 32:
        return UOp(UOps.CONST, dtype, (), value)  # as most are
    return UOp(UOps.CONST, dtype, (), dtypes.as_const(value, dtype.scalar()))


def vectorize(*lanes: UOp) -> UOp:
    """A vector of these scalars; a single one stays a scalar, equal ones are a broadcast."""
    first = lanes[0]
    if len(lanes) == 1:
        return first
    if all(lane is first for lane in lanes):
        return first.broadcast(len(lanes))
    return UOp(UOps.VECTORIZE, first.dtype.vec(len(lanes)), lanes)


def shuffle(a: UOp, b: UOp, *lanes: int) -> UOp:
    """The given lanes of two vectors of one dtype; ``b``'s are counted after ``a``'s.

    >>> a, b = (vectorize(*(const(n, dtypes.int32) for n in row)) for row in ((0, 1), (2, 3)))
    >>> [lane.arg for lane in shuffle(a, b, 1, 3).src]
    [1, 3]
    """
    count = a.dtype.count
    if a is b:
        return a.gep(*(lane % count for lane in lanes))
    if all(lane < count for lane in lanes):
        return a.gep(*lanes)
    if all(lane >= count for lane in lanes):
        return b.gep(*(lane - count for lane in lanes))
    if all(v.op in UNPACKED for v in (a, b)):
        return vectorize(*(a.gep(lane) if lane < count else b.gep(lane - count) for lane in lanes))
    scalar = a.dtype.scalar()
    return UOp(UOps.GEP, scalar if len(lanes) == 1 else scalar.vec(len(lanes)), (a, b), lanes)


def is_alu(u: UOp) -> bool:
    """Whether the node is elementwise work."""
    return u.op in ALU


__all__ = ["STREAM", "KOp", "UOp", "UOps", "const", "is_alu", "shuffle", "vectorize"]
