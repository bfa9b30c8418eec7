"""Docstrings as Markdown: an extension of Griffe, for the documentation.

Griffe renders ``>>>`` lines as code in a section called ``Examples:`` only; elsewhere Markdown would take them for
quotations of quotations. And the roles of reStructuredText, which editors show as links, are words to Markdown.
"""

from __future__ import annotations

import re
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


class Docstrings(griffe.Extension):
    """Makes Markdown of every docstring that is loaded."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = named(fenced(obj.docstring.value))
