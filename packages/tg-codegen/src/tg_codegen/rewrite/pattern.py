"""Patterns: the shape of a node as data, and the kinds of dtype on which an equation holds.

Patterns are written with Python's operators, so that a rule reads as its equation:

>>> x, c = var("x"), constant("c")
>>> print((x + c) * 2)
((x + c) * 2)
>>> i = UOp(UOps.SPECIAL, dtypes.int32, (), ("gidx0", 8))
>>> [found["c"].arg for found in match(x + c, const(3, dtypes.int32).alu(Ops.ADD, i))]
[3]
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from tg_dtype import ConstType, DType, dtypes
from tg_lazy import COMMUTATIVE, CONVERSIONS, Ops, result_dtype

from ..ir.uop import KOp, UOp, UOps, const

Captures = dict[str, UOp]

_SYMBOLS = {
    Ops.ADD: "+", Ops.SUB: "-", Ops.MUL: "*", Ops.FDIV: "/", Ops.IDIV: "//", Ops.MOD: "%", Ops.AND: "&", Ops.OR: "|",
    Ops.XOR: "^", Ops.SHL: "<<", Ops.SHR: ">>", Ops.CMPLT: "<", Ops.CMPEQ: "==", Ops.CMPNE: "!=",
}  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class Pattern:
    """The shape of a node.

    Attributes:
      ops: ops that match; empty for any.
      src: patterns of the operands, tried in both orders for a commutative op; None for any operands.
      name: captures the node; a name that occurs twice must be one node.
      value: for CONST, the number that it must be (converted to the node's dtype, zeros told apart by sign).
      dtype: the scalar dtype that the node must have (and gets, on a right side).
      each: ops of which every operand must have one; empty for any.
    """

    ops: tuple[KOp, ...] = ()
    src: tuple[Pattern, ...] | None = None
    name: str | None = None
    value: ConstType | None = None
    dtype: DType | None = None
    each: tuple[KOp, ...] = ()

    def alu(self, op: Ops, *others: Pattern | ConstType) -> Pattern:
        """An elementwise op with this as its first operand."""
        return Pattern((op,), (self, *(_pattern(o) for o in others)))

    def named(self, name: str) -> Pattern:
        """The same pattern, captured under ``name``."""
        return Pattern(self.ops, self.src, name, self.value, self.dtype, self.each)

    def cast(self, dtype: DType | None = None) -> Pattern:
        """A CAST of this, to any dtype or to a given one."""
        return Pattern((Ops.CAST,), (self,), None, None, dtype)

    def __add__(self, other: Pattern | ConstType) -> Pattern:
        return self.alu(Ops.ADD, other)

    def __sub__(self, other: Pattern | ConstType) -> Pattern:
        return self.alu(Ops.SUB, other)

    def __mul__(self, other: Pattern | ConstType) -> Pattern:
        return self.alu(Ops.MUL, other)

    def __truediv__(self, other: Pattern | ConstType) -> Pattern:
        return self.alu(Ops.FDIV, other)

    def __and__(self, other: Pattern | ConstType) -> Pattern:
        return self.alu(Ops.AND, other)

    def __or__(self, other: Pattern | ConstType) -> Pattern:
        return self.alu(Ops.OR, other)

    def __xor__(self, other: Pattern | ConstType) -> Pattern:
        return self.alu(Ops.XOR, other)

    def __lshift__(self, other: Pattern | ConstType) -> Pattern:
        return self.alu(Ops.SHL, other)

    def __rshift__(self, other: Pattern | ConstType) -> Pattern:
        return self.alu(Ops.SHR, other)

    def __neg__(self) -> Pattern:
        return self.alu(Ops.NEG)

    def __invert__(self) -> Pattern:
        return self.alu(Ops.NOT)

    def idiv(self, other: Pattern | ConstType) -> Pattern:
        """IDIV."""
        return self.alu(Ops.IDIV, other)

    def mod(self, other: Pattern | ConstType) -> Pattern:
        """MOD."""
        return self.alu(Ops.MOD, other)

    def lt(self, other: Pattern | ConstType) -> Pattern:
        """CMPLT."""
        return self.alu(Ops.CMPLT, other)

    def eq(self, other: Pattern | ConstType) -> Pattern:
        """CMPEQ."""
        return self.alu(Ops.CMPEQ, other)

    def ne(self, other: Pattern | ConstType) -> Pattern:
        """CMPNE."""
        return self.alu(Ops.CMPNE, other)

    def maximum(self, other: Pattern | ConstType) -> Pattern:
        """MAX."""
        return self.alu(Ops.MAX, other)

    def where(self, yes: Pattern | ConstType, no: Pattern | ConstType) -> Pattern:
        """WHERE with this as the condition."""
        return self.alu(Ops.WHERE, yes, no)

    def __str__(self) -> str:
        if self.value is not None:
            return str(self.value)
        if self.src is None:
            kind = "" if not self.ops else ":" + "|".join(op.name for op in self.ops)
            return f"{self.name or '_'}{'' if kind == ':CONST' else kind}"
        symbol = _SYMBOLS.get(self.ops[0]) if isinstance(self.ops[0], Ops) else None
        if symbol is not None and len(self.src) == 2:
            return f"({self.src[0]} {symbol} {self.src[1]})"
        to = f".{self.dtype.name}" if self.dtype is not None else ""
        return f"{'|'.join(op.name.lower() for op in self.ops)}{to}({', '.join(str(s) for s in self.src)})"


def var(name: str) -> Pattern:
    """Any node, captured."""
    return Pattern(name=name)


def constant(name: str) -> Pattern:
    """Any constant, captured."""
    return Pattern((UOps.CONST,), None, name)


def literal(value: ConstType, dtype: DType | None = None) -> Pattern:
    """The constant ``value``."""
    return Pattern((UOps.CONST,), None, None, value, dtype)


def op(kind: KOp | tuple[KOp, ...], *src: Pattern, name: str | None = None, each: tuple[KOp, ...] = ()) -> Pattern:
    """A node of one of these ops; without ``src``, whatever its operands, or with each of the ops ``each``."""
    return Pattern(kind if isinstance(kind, tuple) else (kind,), src or None, name, None, None, each)


def _pattern(x: Pattern | ConstType) -> Pattern:
    return x if isinstance(x, Pattern) else literal(x)


@dataclass(frozen=True, slots=True)
class Domain:
    """Kinds of dtype (see :class:`tg_dtype.DType`) on which a rule is sound."""

    name: str
    kinds: frozenset[str]

    def __contains__(self, dtype: DType) -> bool:
        return dtype.kind in self.kinds

    def __or__(self, other: Domain) -> Domain:
        return Domain(f"{self.name} or {other.name}", self.kinds | other.kinds)


SIGNED = Domain("signed int", frozenset({"int"}))
UNSIGNED = Domain("unsigned int", frozenset({"uint"}))
INT = Domain("int", frozenset({"int", "uint"}))
BOOL = Domain("bool", frozenset({"bool"}))
FLOAT = Domain("float", frozenset({"float"}))
NUMBER = Domain("number", frozenset({"int", "uint", "float"}))
VALUE = Domain("any", frozenset({"int", "uint", "float", "bool"}))
ANY = Domain("any", frozenset({"int", "uint", "float", "bool", "void"}))


def _same_constant(u: UOp, value: ConstType) -> bool:
    if isinstance(value, bool) and not dtypes.is_bool(u.dtype):
        return False
    wanted = dtypes.as_const(value, u.dtype.scalar())
    return bool(u.arg == wanted) and (wanted != 0 or str(u.arg) == str(wanted))


def match(p: Pattern, u: UOp) -> Sequence[Captures]:
    """Every way in which ``u`` matches, as captures; the first one is that in which operands are in their order."""
    return _matcher(p)(u, _NOTHING)


Matcher = Callable[[UOp, Captures], Sequence[Captures]]
"""Every way in which a node matches a pattern, as captures, given those made so far, which stay as they are."""
_NOTHING: Captures = {}


@cache
def _matcher(p: Pattern) -> Matcher:
    """What looks for a pattern, made once for each: what the pattern does not ask for is not asked of any node."""
    inside = _operands(p) if p.src is not None or p.each else None
    if p.dtype is None and p.value is None:
        return _plain(p.ops, p.name, inside)
    plain = _plain(p.ops, p.name, inside)

    def special(u: UOp, captures: Captures) -> Sequence[Captures]:
        if p.ops and u.op not in p.ops:
            return ()
        if p.dtype is not None and u.dtype.scalar() is not p.dtype:
            return ()
        if p.value is not None and not _same_constant(u, p.value):
            return ()
        return plain(u, captures)

    return special


def _plain(ops: tuple[KOp, ...], name: str | None, inside: Matcher | None) -> Matcher:
    """A matcher of ops, of a name that captures, and of operands."""

    def plain(u: UOp, captures: Captures) -> Sequence[Captures]:
        if ops and u.op not in ops:
            return ()
        if name is not None:
            known = captures.get(name)
            if known is None:
                captures = {**captures, name: u}
            elif known is not u:
                return ()
        return (captures,) if inside is None else inside(u, captures)

    return plain


def _operands(p: Pattern) -> Matcher:
    """A matcher of the operands of a pattern alone."""
    each = p.each
    if p.src is None:
        return lambda u, captures: (captures,) if all(s.op in each for s in u.src) else ()
    patterns = tuple(map(_matcher, p.src))

    def operands(u: UOp, captures: Captures) -> Sequence[Captures]:
        nodes = u.src
        if len(nodes) != len(patterns) or (each and not all(s.op in each for s in nodes)):
            return ()
        found = _in_turn(patterns, nodes, captures)
        if len(nodes) == 2 and u.op in COMMUTATIVE and nodes[0] is not nodes[1]:
            found = [*found, *_in_turn(patterns, nodes[::-1], captures)]
        return found

    return operands


def _in_turn(patterns: tuple[Matcher, ...], nodes: tuple[UOp, ...], captures: Captures) -> Sequence[Captures]:
    found: Sequence[Captures] = (captures,)
    for pattern, node in zip(patterns, nodes, strict=True):
        found = pattern(node, found[0]) if len(found) == 1 else [way for one in found for way in pattern(node, one)]
        if not found:
            return ()
    return found


def instantiate(p: Pattern, captures: Mapping[str, UOp], dtype: DType) -> UOp:
    """The node that a pattern over ``captures`` describes.

    Args:
      dtype: dtype of a constant that has no other operand beside it.
    """
    if p.name is not None and p.name in captures:
        return captures[p.name]
    if p.value is not None:
        return const(p.value, p.dtype.vec(dtype.count) if p.dtype is not None else dtype)
    if p.src is None or len(p.ops) != 1:
        raise ValueError(f"{p} does not describe one node")
    operands: list[UOp | None] = [
        None if s.value is not None and s.dtype is None else instantiate(s, captures, dtype) for s in p.src
    ]
    known = [o.dtype for o in (operands[1:] if p.ops[0] is Ops.WHERE else operands) if o is not None]
    src = tuple(instantiate(s, captures, known[0] if known else dtype) if o is None else o
                for s, o in zip(p.src, operands, strict=True))
    kind = p.ops[0]
    if kind in CONVERSIONS:
        wide = (p.dtype or dtype.scalar()).vec(src[0].dtype.count)
        return src[0] if wide is src[0].dtype else UOp(kind, wide, src)
    if isinstance(kind, Ops):
        return UOp(kind, result_dtype(kind, *(s.dtype for s in src)), src)
    return UOp(kind, dtype, src)
