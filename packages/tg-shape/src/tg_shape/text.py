"""Symbolic integers as text that can be read back, with the bounds of their variables.

One node after another, separated by semicolons: an op and its arguments, a number for an integer, ``#`` and a number
for an earlier node. ``var n 1 10`` is a variable with its bounds.

Example:
  >>> from tg_shape import Variable
  >>> n = Variable("n", 1, 10)
  >>> dumps(n * 4 + 1)
  'var n 1 10;mul #0 4;add #1 1'
  >>> loads(dumps(n * 4 + 1)) is n * 4 + 1
  True
"""

from __future__ import annotations

from .expr import ENGINE, Expr, Variable, sint, topological


def dumps(e: sint) -> str:
    """The text of an integer or an expression.

    Raises:
      ValueError: if a variable has a symbolic bound, or a name that is no identifier.
    """
    if isinstance(e, int):
        return str(e)
    number: dict[Expr, int] = {}
    lines: list[str] = []
    for node in topological(e):
        number[node] = len(lines)
        if isinstance(node, Variable):
            if not isinstance(node.upper, int) or not node.name.isidentifier():
                raise ValueError(f"{node!r} has no text: its bounds are not numbers, or its name is no identifier")
            lines.append(f"var {node.name} {node.vmin} {node.upper}")
        else:
            arguments = [str(a) if isinstance(a, int) else f"#{number[a]}" for a in node.args]
            lines.append(" ".join([node.op, *arguments]))
    return ";".join(lines)


def loads(text: str) -> sint:
    """The integer or expression whose text :func:`dumps` made.

    Raises:
      ValueError: if the text is in another form.
    """
    built: list[sint] = []
    try:
        for line in text.split(";"):
            op, *words = line.split(" ")
            if op == "var":
                name, low, high = words
                built.append(Variable(name, int(low), int(high)))
                continue
            arguments = [built[int(word[1:])] if word.startswith("#") else int(word) for word in words]
            if op == "bind":
                var, value = arguments
                if not isinstance(var, Variable) or not isinstance(value, int):
                    raise ValueError("a bind without variable")
                built.append(var.bind(value))
            else:
                built.append(ENGINE.rebuild[op](arguments) if words else int(op))
    except (ValueError, KeyError, IndexError, TypeError) as error:
        raise ValueError(f"no text of a symbolic integer: {text[:80]!r}") from error
    return built[-1]
