"""Expressions as text, in Python's syntax."""

from __future__ import annotations

from .expr import ENGINE, Bind, Expr, Variable, sint, topological

_LEVEL = {"or": 1, "and": 2, "lt": 3, "eq": 3, "ne": 3, "add": 4, "mul": 5, "floordiv": 5, "mod": 5}
_SIGN = {"lt": " < ", "eq": " == ", "ne": " != ", "floordiv": "//", "mod": "%", "and": " and ", "or": " or "}


def render(e: sint) -> str:
    """See `Expr.render`."""
    if isinstance(e, int):
        return str(e)
    text: dict[Expr, str] = {}
    for node in topological(e):
        text[node] = _one(node, text)
    return text[e]


def _one(node: Expr, text: dict[Expr, str]) -> str:
    if isinstance(node, Variable):
        return node.name
    if isinstance(node, Bind):
        return node.var.name
    if node.op in ("max", "min"):
        return f"{node.op}({', '.join(_arg(a, 0, text) for a in node.args)})"
    level = _LEVEL[node.op]
    if node.op == "add":
        out = _arg(node.args[0], level, text)
        for a in node.args[1:]:
            part = _arg(a, level, text)
            out += f" - {part[1:]}" if part.startswith("-") else f" + {part}"
        return out
    if node.op == "mul":
        *factors, last = node.args
        if last == -1:
            body = "*".join(_arg(a, level if i == 0 else level + 1, text) for i, a in enumerate(factors))
            first = factors[0]  # a unary minus binds tighter than the division that a factor may begin with
            return f"-({body})" if isinstance(first, Expr) and first.op in ("floordiv", "mod") else f"-{body}"
        return "*".join(_arg(a, level if i == 0 else level + 1, text) for i, a in enumerate(node.args))
    left, *rest = node.args
    out = _arg(left, level if node.op in ("floordiv", "mod") else level + 1, text)
    return out + "".join(_SIGN[node.op] + _arg(a, level + 1, text) for a in rest)


def _arg(a: sint, level: int, text: dict[Expr, str]) -> str:
    if isinstance(a, int):
        return str(a) if a >= 0 or level <= 4 else f"({a})"
    return f"({text[a]})" if _LEVEL.get(a.op, 9) < level else text[a]


ENGINE.render = render
