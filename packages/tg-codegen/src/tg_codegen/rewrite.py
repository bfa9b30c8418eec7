"""The rewrite engine: patterns and rules as data, and a bottom-up rewrite to a fixpoint.

A :class:`Rule` is an equation: a left side (a :class:`Pattern`), a right side (a pattern again, or a function of what
the left side captured that may decline), and the :class:`Domain` of dtypes on which both sides are equal, bit for bit
but for the payload of a NaN. Patterns are written with Python's operators:

>>> x, y = var("x"), var("y")
>>> print(Rule("add_zero", x + 0, x, INT))
add_zero: (x + 0) -> x  [int]
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tg_dtype import ConstType, DType, dtypes
from tg_lazy import COMMUTATIVE, SPEC, DTypeRule, Ops, result_dtype

from .uop import KOp, UOp, UOps, const

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

Right = Pattern | Callable[..., UOp | None]


class Rule:
    """An equation, used from left to right.

    Attributes:
      name: names the rule in messages and tests.
      left: what it matches.
      right: what takes its place: a pattern over the captures, or a function of the captures by name (and of ``root``
        and ``ctx``, if it has parameters of these names) that returns None to decline.
      domain: dtypes on which it is sound: of the node captured as ``x``, or of the root if there is none.
      law: the equation as text; made from the patterns where ``right`` is one.
    """

    __slots__ = ("_wants", "domain", "law", "left", "name", "right")

    def __init__(self, name: str, left: Pattern, right: Right, domain: Domain = VALUE, law: str = "") -> None:
        self.name, self.left, self.right, self.domain = name, left, right, domain
        if not law and not isinstance(right, Pattern):
            raise ValueError(f"rule {name}: a function as the right side needs its law as text")
        self.law = law or f"{left} -> {right}"
        wants: tuple[str, ...] = ()
        if not isinstance(right, Pattern):
            code = right.__code__
            wants = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        self._wants = wants

    def __str__(self) -> str:
        return f"{self.name}: {self.law}  [{self.domain.name}]"

    def apply(self, u: UOp, ctx: object = None) -> UOp | None:
        """The right side, or None if the rule does not apply to ``u``."""
        for captures in _match(self.left, u, {}):
            x = captures.get("x", u)
            if x.dtype.kind not in self.domain.kinds:
                continue
            if isinstance(self.right, Pattern):
                return instantiate(self.right, captures, u.dtype)
            captures.setdefault("root", u)
            found = self.right(**{w: ctx if w == "ctx" else captures[w] for w in self._wants})
            if found is not None:
                return found
        return None


def _same_constant(u: UOp, value: ConstType) -> bool:
    wanted = dtypes.as_const(value, u.dtype.scalar())
    return bool(u.arg == wanted) and (wanted != 0 or str(u.arg) == str(wanted))


def _match(p: Pattern, u: UOp, captures: Captures) -> Iterator[Captures]:
    """Every way in which ``u`` matches, as captures."""
    if p.ops and u.op not in p.ops:
        return
    if p.dtype is not None and u.dtype.scalar() is not p.dtype:
        return
    if p.value is not None and not _same_constant(u, p.value):
        return
    if p.name is not None:
        known = captures.get(p.name)
        if known is None:
            captures = {**captures, p.name: u}
        elif known is not u:
            return
    if p.each and not all(s.op in p.each for s in u.src):
        return
    if p.src is None:
        yield captures
        return
    if len(p.src) != len(u.src):
        return
    yield from _match_all(p.src, u.src, captures)
    if len(u.src) == 2 and u.op in COMMUTATIVE and u.src[0] is not u.src[1]:
        yield from _match_all(p.src, u.src[::-1], captures)


def _match_all(patterns: tuple[Pattern, ...], nodes: tuple[UOp, ...], captures: Captures) -> Iterator[Captures]:
    if not patterns:
        yield captures
        return
    for found in _match(patterns[0], nodes[0], captures):
        yield from _match_all(patterns[1:], nodes[1:], found)


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
    if kind in (Ops.CAST, Ops.BITCAST):
        wide = (p.dtype or dtype.scalar()).vec(src[0].dtype.count)
        return src[0] if wide is src[0].dtype else UOp(kind, wide, src)
    if isinstance(kind, Ops):
        return UOp(kind, result_dtype(kind, *(s.dtype for s in src)), src)
    return UOp(kind, dtype, src)


class PatternMatcher:
    """A set of rules, tried in order, indexed by the ops of a node and of its operands. Sets compose with ``+``."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self.rules = tuple(rules)
        self._candidates: dict[tuple[object, ...], tuple[Rule, ...]] = {}

    def __add__(self, other: PatternMatcher) -> PatternMatcher:
        return PatternMatcher(self.rules + other.rules)

    def candidates(self, u: UOp) -> tuple[Rule, ...]:
        """The rules that the ops of the node and of its operands do not rule out."""
        src = u.src
        key: tuple[object, ...]
        if len(src) == 2:
            a, b = src
            key = (u.op, a.op, b.op, b.dtype.kind, a is b)
        elif src:
            key = (u.op, src[-1].dtype.kind, *[s.op for s in src])
        else:
            key = (u.op, u.dtype.kind)
        found = self._candidates.get(key)
        if found is None:
            found = self._candidates[key] = tuple(rule for rule in self.rules if _may_apply(rule, u))
        return found

    def rewrite(self, u: UOp, ctx: object = None) -> UOp | None:
        """The result of the first rule that applies and changes the node, or None."""
        for rule in self.candidates(u):
            new = rule.apply(u, ctx)
            if new is not None and new is not u:
                return new
        return None


def _may_apply(rule: Rule, u: UOp) -> bool:
    """What of a match follows from the key of :meth:`PatternMatcher.candidates`."""
    p = rule.left
    if p.ops and u.op not in p.ops:
        return False
    if p.each and not all(s.op in p.each for s in u.src):
        return False
    if p.src is None:
        return bool(u.src) or u.dtype.kind in rule.domain.kinds or p.name == "x"
    if len(p.src) != len(u.src):
        return False
    if p.src[-1].name == "x" and len(p.src) != 2 and u.src[-1].dtype.kind not in rule.domain.kinds:
        return False
    if len(p.src) == 2:
        first, second = p.src
        alike = u.op in COMMUTATIVE or u.op in _ALIKE
        if (second.name == "x" or (first.name == "x" and alike)) and u.src[1].dtype.kind not in rule.domain.kinds:
            return False
        if first is second and u.src[0] is not u.src[1]:
            return False
    orders = [u.src, u.src[::-1]] if len(u.src) == 2 and u.op in COMMUTATIVE else [u.src]
    return any(all(not q.ops or s.op in q.ops for q, s in zip(p.src, nodes, strict=True)) for nodes in orders)


# Ops whose operands have one dtype.
_SAME = (DTypeRule.SAME, DTypeRule.SAME_INT, DTypeRule.SAME_FLOAT, DTypeRule.BOOL)
_ALIKE = frozenset(op for op, row in SPEC.items() if row.rule in _SAME)


class RewriteLoop(RuntimeError):
    """Rules undo one another; the message names the node."""


_LIMIT = 1000


def graph_rewrite(root: UOp, matcher: PatternMatcher, ctx: Any = None) -> UOp:
    """``root`` with the rules applied bottom-up until none applies.

    Operands are rewritten before the node; what a rule makes is rewritten again. Shared nodes are rewritten once.

    Args:
      ctx: handed to right sides that ask for it.

    Raises:
      RewriteLoop: one node was rewritten 1000 times in a row.
    """
    done: dict[UOp, UOp] = {}
    stack: list[tuple[UOp, UOp | None, int]] = [(root, None, 0)]
    rewrite = matcher.rewrite
    while stack:
        node, result, turns = stack.pop()
        if result is not None:  # the node became `result`, which by now has been rewritten itself
            done[node] = done[result]
            continue
        if node in done:
            continue
        missing = [s for s in node.src if s not in done]
        if missing:
            stack.append((node, None, turns))
            stack.extend((s, None, 0) for s in reversed(missing))
            continue
        current = node.replace(tuple([done[s] for s in node.src]))
        if current is not node and current in done:
            done[node] = done[current]
            continue
        new = rewrite(current, ctx)
        if new is None:
            done[node] = done[current] = current
        elif new in done:
            done[node] = done[current] = done[new]
        elif turns > _LIMIT:
            raise RewriteLoop(f"{current!r} is rewritten without end")
        else:
            stack.append((node, new, 0))
            if current is not node:
                stack.append((current, new, 0))
            stack.append((new, None, turns + 1))
    return done[root]
