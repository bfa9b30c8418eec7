"""The rewrite engine: rules as data, and a bottom-up rewrite to a fixpoint.

A :class:`Rule` is an equation: a left side (a :class:`tg_codegen.rewrite.pattern.Pattern`), a right side (a pattern
again, or a function of what the left side captured that may decline), and the
:class:`tg_codegen.rewrite.pattern.Domain` of dtypes on which both sides are equal, bit for bit but for the payload of a
NaN.

>>> from tg_codegen.rewrite.pattern import INT, var
>>> x, y = var("x"), var("y")
>>> print(Rule("add_zero", x + 0, x, INT))
add_zero: (x + 0) -> x  [int]
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from tg_lazy import ALU, COMMUTATIVE, SPEC, DTypeRule

from ..ir.uop import UOp, UOps
from .pattern import VALUE, Domain, Pattern, instantiate, match

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
        for captures in match(self.left, u):
            x = captures.get("x", u)
            if x.dtype.kind not in self.domain.kinds:
                continue
            if isinstance(self.right, Pattern):
                return instantiate(self.right, captures, u.dtype)
            captures = {"root": u, **captures}
            found = self.right(**{w: ctx if w == "ctx" else captures[w] for w in self._wants})
            if found is not None:
                return found
        return None


class PatternMatcher:
    """A set of rules, tried in order, indexed by the ops of a node and of its operands. Sets compose with ``+``.

    Attributes:
      rules: in the order in which they are tried.
      ops: those of nodes to which a rule may apply.
    """

    def __init__(self, rules: Iterable[Rule]) -> None:
        self.rules = tuple(rules)
        anywhere = any(not rule.left.ops for rule in self.rules)
        self.ops = frozenset([*ALU, *UOps] if anywhere else [op for rule in self.rules for op in rule.left.ops])
        self._candidates: dict[tuple[object, ...], tuple[Rule, ...]] = {}

    def __add__(self, other: PatternMatcher) -> PatternMatcher:
        return PatternMatcher(self.rules + other.rules)

    def candidates(self, u: UOp) -> tuple[Rule, ...]:
        """The rules that the ops of the node and of its operands do not rule out."""
        src = u.src
        key: tuple[object, ...]
        if len(src) == 2:
            a, b = src
            number = b.arg if b.op is UOps.CONST and b.arg in _TOLD else None
            key = (u.op, a.op, b.op, b.dtype.kind, a is b, number)
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
    told = u.src[1] if len(u.src) == 2 else None
    orders = [u.src, u.src[::-1]] if told is not None and u.op in COMMUTATIVE else [u.src]
    return any(all(_may_match(q, s, s is told) for q, s in zip(p.src, nodes, strict=True)) for nodes in orders)


_TOLD = frozenset({0, 1, -1})
"""Constants that a key tells where they are the second of two operands: those of most rules that ask for one."""


def _may_match(p: Pattern, u: UOp, told: bool) -> bool:
    """Whether an operand may match a pattern, by its op, and by its number where a key tells it.

    What -1 becomes in an unsigned integer depends on how many bits that has, which no key tells.
    """
    if p.ops and u.op not in p.ops:
        return False
    if not told or u.op is not UOps.CONST or p.value not in _TOLD:
        return True
    return bool(u.arg == p.value or (p.value < 0 and u.dtype.kind not in ("int", "float")))


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
      RewriteLoop: if one node was rewritten 1000 times in a row.
    """
    done: dict[UOp, UOp] = {}
    ops, rewrite = matcher.ops, matcher.rewrite
    for node in root.toposort():
        current = node.replace(tuple([done[s] for s in node.src])) if node.src else node
        if current is not node and current in done:
            done[node] = done[current]
            continue
        new = rewrite(current, ctx) if current.op in ops else None
        if new is None:
            done[node] = done[current] = current
        else:
            _settle(new, done, matcher, ctx)
            done[node] = done[current] = done[new]
    return done[root]


def _settle(made: UOp, done: dict[UOp, UOp], matcher: PatternMatcher, ctx: Any) -> None:
    """Adds to ``done`` what a node that a rule made becomes, with all that is new under it."""
    stack: list[tuple[UOp, UOp | None, int]] = [(made, None, 1)]
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
