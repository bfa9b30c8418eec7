"""Docstrings as Markdown, and bound functions as methods: an extension of Griffe, for the documentation.

A line ``relu = ops.activation.relu`` in a class is an attribute to Griffe, which runs nothing; here it becomes the
method that it is.

Griffe renders ``>>>`` lines as code in a section called ``Examples:`` only; elsewhere Markdown would take them for
quotations of quotations. And the roles of reStructuredText, which editors show as links, are words to Markdown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import griffe


def fenced(text: str) -> str:
    """The text with a code fence around each block of doctest lines outside of a section ``Examples:``.

    >>> fenced("One.\\n\\n>>> 1\\n1\\n\\nTwo.").splitlines()
    ['One.', '', '```pycon', '>>> 1', '1', '```', '', 'Two.']
    """
    lines: list[str] = []
    section, fence = "", None
    for line in [*text.splitlines(), ""]:
        indent = line[: len(line) - len(line.lstrip())]
        if line and not indent:
            section = line
        if not line.strip() and fence is not None:
            lines.append(f"{fence}```")
            fence = None
        if line.lstrip().startswith(">>>") and fence is None and section != "Examples:":
            fence = indent
            lines.append(f"{fence}```pycon")
        lines.append(line)
    return "\n".join(lines[:-1])


_ROLE = re.compile(r":(?:attr|class|const|data|exc|func|meth|mod|obj):`([^`]+)`")


def named(text: str) -> str:
    """The text with what roles name as code; a name after ``~`` is shown without where it is from.

    >>> named("As :meth:`sort`, or :func:`~tg_frontend.nn.state.safe_load`.")
    'As `sort`, or `safe_load`.'
    """
    return _ROLE.sub(lambda role: f"`{role[1].rpartition('.')[2] if role[1].startswith('~') else role[1]}`", text)


_BINDERS = {"constructor": "classmethod", "classmethod": "classmethod", "staticmethod": "staticmethod"}
_CLASS = re.compile(r"\b[AB]\b")  # the type variables of functions that are bound: the class of the object


def _as_self(annotation: str | griffe.Expr | None) -> str | None:
    return None if annotation is None else _CLASS.sub("Self", str(annotation))


def bound(member: griffe.Object | griffe.Alias, functions: griffe.ModulesCollection) -> griffe.Function | None:
    """The method that an attribute of a class is, if it is a function of a module, or ``constructor`` of one.

    Args:
      member: of a class.
      functions: what is loaded.
    """
    value = member.value if isinstance(member, griffe.Attribute) else None
    kind = ""
    if isinstance(value, griffe.ExprCall) and (len(value.arguments) == 1 or str(value.function) == "property"):
        kind, value = _BINDERS.get(str(value.function), ""), value.arguments[0]
    if not isinstance(value, griffe.ExprAttribute):
        return None
    try:
        function = functions[value.canonical_path]
    except KeyError:
        return None
    if not isinstance(function, griffe.Function):
        return None
    first, *others = function.parameters if kind != "staticmethod" else (None, *function.parameters)
    parameters = [griffe.Parameter("cls" if kind else "self", kind=first.kind)] if first is not None else []
    parameters += [griffe.Parameter(p.name, annotation=_as_self(p.annotation), kind=p.kind, default=p.default)
                   for p in others]  # fmt: skip
    method = griffe.Function(
        member.name,
        parameters=griffe.Parameters(*parameters),
        returns=_as_self(function.returns),
        lineno=member.lineno,
        endlineno=member.endlineno,
        docstring=function.docstring,
    )
    method.labels |= {kind} - {""}
    return method


def _classes(home: griffe.Object) -> Iterator[griffe.Class]:
    for member in home.members.values():
        if isinstance(member, griffe.Class):
            yield member
        if isinstance(member, griffe.Module | griffe.Class):
            yield from _classes(member)


class Docstrings(griffe.Extension):
    """Makes Markdown of every docstring that is loaded, and methods of bound functions."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = named(fenced(obj.docstring.value))

    def on_package(self, *, pkg: griffe.Module, loader: griffe.GriffeLoader, **_: Any) -> None:
        for home in _classes(pkg):
            for name, member in list(home.members.items()):
                method = bound(member, loader.modules_collection)
                if method is not None:
                    home.set_member(name, method)
