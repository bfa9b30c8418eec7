"""Show the examples of a docstring as code, wherever in it they stand: an extension of Griffe, for the documentation.

Griffe renders ``>>>`` lines as code in a section called ``Examples:`` only. Elsewhere Markdown would take them for
quotations of quotations.
"""

from __future__ import annotations

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


class Examples(griffe.Extension):
    """Fences the examples of every docstring that is loaded."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)
