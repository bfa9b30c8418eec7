"""UOps: the code generator's one IR, in a structured and a linear form.

A UOp is immutable and interned: equal nodes are one object, so common subexpressions are shared by construction.
Elementwise work uses :class:`tg_lazy.Ops`; structure and memory use :class:`UOps`:

===========  =============================  ===========================================================================
op           operands                       arg, meaning
===========  =============================  ===========================================================================
CONST        none                           the Python value; ``dtype`` may be a vector (a splat)
PARAM        none                           slot: the kernel's buffer argument (a pointer)
VAR          none                           a ``tg_shape.Variable``: a scalar argument
SCRATCH      none                           ``(name, size)``: an array private to a thread (REG) or a work-group (LOCAL)
SPECIAL      none                           ``(name, size)``: ``gidx0-2``, ``lidx0-2`` or ``core_id``; 0 <= it < size
RANGE        (start, end[, step])           axis name, unique in the kernel: a loop counter
LOOP         (range, \\*effects)             structured form: run the effects for every value of the range, in order
IF           (condition, \\*effects)         structured form: run the effects if the condition holds
ACC          (init, \\*outer ranges)         number: a mutable register, set to ``init`` where the outer ranges are
                                            open; as an operand it is its present value
ASSIGN       (acc, value)                   effect: sets the register
READ         (acc, effect)                  the register's value once ``effect`` has run
AFTER        (pointer, \\*effects)           the pointer, usable once the effects have run
LOAD         (pointer, index[, gate, alt])  ``dtype.count`` consecutive elements; ``alt`` where the gate is false
STORE        (pointer, index, value[, gate])  effect: writes consecutive elements where the gate is true; with
                                            the arg ``STREAM`` past the caches, if the target can
PREFETCH     (pointer, index)               effect: the element's cache line will be read soon; it need not exist
VECTORIZE    scalars                        a vector of these lanes
BROADCAST    (scalar,)                      a vector of equal lanes
GEP          (vector[, vector])             tuple of lanes: those lanes, a scalar if there is one; the second vector, of
                                            the first's dtype, counts its lanes after the first's
SCALE        (x, n)                         x * 2**n, rounded once; n is a float with the value of an integer
MATRIX       (acc, a, b)                    a :class:`tg_codegen.ir.matrix.MatrixInstruction`: the sum with the products
                                            added; each operand is a thread's fragment
BARRIER      none or effects                effect: work-group barrier
SINK         effects                        structured form: the whole kernel
ENDRANGE     (range,)                       linear form: closes a RANGE
ENDIF        (if,)                          linear form: closes an IF, which has then only its condition
===========  =============================  ===========================================================================

The ASSIGNs of a LOOP are the last effects of its body and happen together: every value that they need is computed
before the first of them. A value that uses an ACC directly belongs to the body of the LOOP that assigns it (or, where
it initialises another ACC, to that ACC's place) and is never moved out of it.

A gate is a bool, scalar or with one lane per element; where it is false nothing is read or written. An index counts
elements of the pointer's base dtype and is an int32 or int64 scalar. The structured form is a DAG with one SINK;
:func:`tg_codegen.linear.linearize.linearize` turns it into the linear form, a list in execution order.
"""

from __future__ import annotations

import struct
from enum import Enum, auto
from typing import Any
from weakref import ref

from tg_dtype import ConstType, DType, dtypes
from tg_lazy import ALU, Ops, result_dtype
from tg_shape import Interned


class UOps(Enum):
    """Structure and memory operations of kernels; see the module's table."""

    __hash__ = object.__hash__  # members are unique; Enum's own hash is a Python function, and slow

    CONST = auto()
    PARAM = auto()
    VAR = auto()
    SCRATCH = auto()
    SPECIAL = auto()
    RANGE = auto()
    LOOP = auto()
    IF = auto()
    ACC = auto()
    ASSIGN = auto()
    READ = auto()
    AFTER = auto()
    LOAD = auto()
    STORE = auto()
    PREFETCH = auto()
    VECTORIZE = auto()
    BROADCAST = auto()
    GEP = auto()
    SCALE = auto()
    MATRIX = auto()
    BARRIER = auto()
    SINK = auto()
    ENDRANGE = auto()
    ENDIF = auto()


KOp = Ops | UOps

STREAM = "stream"

EFFECTS = frozenset({
    UOps.LOOP, UOps.IF, UOps.ASSIGN, UOps.STORE, UOps.PREFETCH, UOps.BARRIER, UOps.ENDRANGE, UOps.ENDIF, UOps.SINK,
})  # fmt: skip


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
      arg: see the module's table.
    """

    __slots__ = ("__weakref__", "arg", "dtype", "op", "src")
    _interned: Interned[UOp] = Interned()

    op: KOp
    dtype: DType
    src: tuple[UOp, ...]
    arg: Any

    def __new__(cls, op: KOp, dtype: DType = dtypes.void, src: tuple[UOp, ...] = (), arg: Any = None) -> UOp:
        # A node holds its operands: while it is alive, their numbers mean nothing else.
        key: tuple[object, ...]
        if len(src) == 2:
            key = (op, dtype, None if arg is None else _arg_key(arg), id(src[0]), id(src[1]))
        else:
            key = (op, dtype, None if arg is None else _arg_key(arg), *[id(s) for s in src])
        weak = UOp._interned.find(key)
        if weak is not None:
            found = weak()
            if found is not None:
                return found
        self = object.__new__(cls)
        self.op, self.dtype, self.src, self.arg = op, dtype, src, arg
        UOp._interned.add(key, ref(self))
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
        """Every node that this one depends on, operands first, itself last."""
        order: dict[UOp, None] = {}
        stack: list[UOp | None] = [self]
        while stack:
            node = stack.pop()
            if node is None:  # the operands of the node below are in
                node = stack.pop()
                assert node is not None
                order[node] = None
            elif node not in order:
                if node.src:
                    stack += (node, None)
                    stack += node.src[::-1]
                else:
                    order[node] = None
        return list(order)

    def replace(self, src: tuple[UOp, ...]) -> UOp:
        """This node with other operands."""
        return self if src == self.src else UOp(self.op, self.dtype, src, self.arg)

    def alu(self, op: Ops, *others: UOp) -> UOp:
        """An elementwise op with this node as its first operand; dtype by the op table's rule."""
        return UOp(op, result_dtype(op, self.dtype, *(o.dtype for o in others)), (self, *others))

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


def const(value: ConstType, dtype: DType) -> UOp:
    """A constant, converted to ``dtype`` (a splat, where that is a vector)."""
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
    if all(v.op in _SCALARS for v in (a, b)):
        return vectorize(*(a.gep(lane) if lane < count else b.gep(lane - count) for lane in lanes))
    scalar = a.dtype.scalar()
    return UOp(UOps.GEP, scalar if len(lanes) == 1 else scalar.vec(len(lanes)), (a, b), lanes)


_SCALARS = frozenset({UOps.CONST, UOps.BROADCAST, UOps.VECTORIZE})  # whose lanes are there as scalars


def is_alu(u: UOp) -> bool:
    """Whether the node is elementwise work."""
    return u.op in ALU
