"""Walks over whole expressions: substitution, evaluation, variables, keys. None of them recurses."""

from __future__ import annotations

# not from hashlib, which loads OpenSSL
from _blake2 import blake2b
from collections.abc import Mapping
from math import prod
from typing import Any

from .expr import ENGINE, Bind, Expr, Node, Variable, as_sint, sint, topological
from .rules.sums import combine

_LEAVES = ("var", "bind")


def substitute(e: sint, mapping: Mapping[Node, sint]) -> sint:
    """See `Expr.substitute`."""
    if isinstance(e, int):
        return e
    simple = _in_sum(e, mapping)
    if simple is not None:
        return simple
    done: dict[Expr, sint] = {k: v if type(v) is int else as_sint(v) for k, v in mapping.items()}
    touched = frozenset().union(*[k.variables() for k in mapping])
    # Sums are added up term by term, unless a key could be one of their scaled terms.
    linear = all(k.lin is None for k in mapping)
    stack = [e]
    while stack:
        node = stack[-1]
        if node in done:
            stack.pop()
            continue
        if node.op in _LEAVES or touched.isdisjoint(node._vars or variables(node)):
            done[node] = node
            stack.pop()
            continue
        parts = node.lin if linear else None
        waiting = []
        for a in node.args if parts is None else [atom for atom, _ in parts[0]]:
            if isinstance(a, Expr) and a not in done:
                if a.op in _LEAVES:
                    done[a] = a
                else:
                    waiting.append(a)
        if waiting:
            stack.extend(waiting)
            continue
        stack.pop()
        if parts is not None:
            done[node] = combine([(done[atom], c) for atom, c in parts[0]], parts[1])
            continue
        new = [done[a] if isinstance(a, Expr) else a for a in node.args]
        done[node] = node if all(x is y for x, y in zip(new, node.args, strict=True)) else ENGINE.rebuild[node.op](new)
    return done[e]


def _in_sum(e: Expr, mapping: Mapping[Any, sint]) -> sint | None:
    """The same for a sum of multiples of variables, which is most of what is asked for; None for anything else."""
    if e.lin is None or e in mapping:
        return None
    for k in mapping:
        if k.lin is not None:
            return None
    pairs, const = e.lin
    parts: list[tuple[sint, int]] = []
    for atom, c in pairs:
        if atom.op != "var":
            return None
        new = mapping.get(atom, atom)
        if type(new) is int:
            const += c * new
        else:
            parts.append((as_sint(new), c))
    return combine(parts, const)


def variables(e: Expr) -> frozenset[Variable]:
    """See `Expr.variables`."""
    stack = [] if e._vars is not None else [e]
    while stack:
        node = stack[-1]
        below = [a for a in node.args if isinstance(a, Expr)]
        waiting = [a for a in below if a._vars is None]
        if waiting:
            stack += waiting
            continue
        stack.pop()
        if isinstance(node, Variable):
            node._vars = frozenset((node,))
        else:
            sets = {a._vars for a in below}
            node._vars = sets.pop() if len(sets) == 1 else frozenset().union(*filter(None, sets))
    assert e._vars is not None
    return e._vars


def evaluate(e: sint, values: Mapping[Any, int]) -> int:
    """See `Expr.evaluate`."""
    if isinstance(e, int):
        return e
    linear = _linear(e, values)
    if linear is not None:
        return linear
    done: dict[Expr, int] = {}
    for node in topological(e):
        if isinstance(node, Variable):
            value = values.get(node, values.get(node.name))
            if value is None:
                continue
            done[node] = value
            continue
        if isinstance(node, Bind):
            done[node] = node.value
            continue
        try:
            args = [a if isinstance(a, int) else done[a] for a in node.args]
        except KeyError as missing:
            raise KeyError(f"no value for variable {missing.args[0]!r} of {e.render()}") from None
        done[node] = _apply(node.op, args)
    if e not in done:
        raise KeyError(f"no value for variable {e!r}")
    return done[e]


def _linear(e: Expr, values: Mapping[Any, int]) -> int | None:
    """The value of a sum of multiples of variables, which is most of what is asked for; None for anything else."""
    if e.lin is None:
        return None
    pairs, total = e.lin
    for atom, c in pairs:
        value = values.get(atom) if isinstance(atom, Variable) else None
        if value is None:
            return None
        total += c * value
    return total


def _apply(op: str, args: list[int]) -> int:
    if op == "add":
        return sum(args)
    if op == "mul":
        return prod(args)
    if op == "and":
        return int(all(args))
    if op == "or":
        return int(any(args))
    if op == "max":
        return max(args)
    if op == "min":
        return min(args)
    a, b = args
    if op == "floordiv":
        return a // b
    if op == "mod":
        return a % b
    if op == "lt":
        return int(a < b)
    return int(a == b) if op == "eq" else int(a != b)


def key(e: Expr) -> str:
    """See `Expr.key`."""
    if e._key is None:
        for node in topological(e, lambda n: n._key is not None):
            if isinstance(node, Variable):
                text = f"var {node.name} {node.vmin} {node.upper if isinstance(node.upper, int) else node.upper.key}"
            else:
                text = " ".join([node.op, *(str(a) if isinstance(a, int) else str(a._key) for a in node.args)])
            node._key = blake2b(text.encode(), digest_size=16).hexdigest()
    assert e._key is not None
    return e._key


def unbind(x: sint) -> tuple[sint, dict[Variable, int]]:
    """``x`` with bound variables replaced by the variables, and their values.

    Raises:
      ValueError: if one variable is bound to two values.

    Example:
      >>> from tg_shape import Variable
      >>> n = Variable("n", 1, 10)
      >>> unbind(n.bind(3) * 4 + 1)
      (n*4 + 1, {n: 3})
    """
    if isinstance(x, int):
        return x, {}
    binds = [node for node in topological(x) if isinstance(node, Bind)]
    values: dict[Variable, int] = {}
    for bind in binds:
        if values.setdefault(bind.var, bind.value) != bind.value:
            raise ValueError(f"unbind: variable {bind.var.name!r} is bound to {values[bind.var]} and to {bind.value}")
    return x.substitute({bind: bind.var for bind in binds}), values


ENGINE.substitute = substitute
ENGINE.variables = variables
ENGINE.evaluate = evaluate
ENGINE.key = key
