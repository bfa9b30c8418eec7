"""The text of one kernel while it is being written: its lines, its names and its helper functions."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Set
from contextlib import contextmanager

from ..ir.uop import UOp

_LONGEST = 88  # characters of an expression that may still stand inside another
_ATOM = re.compile(r"[A-Za-z0-9_.]+")


class Text:
    """What has been written of a kernel.

    Args:
      reserved: identifiers that mean something in the language.
      inlined: the values that may stand inside the expression that uses them.

    Attributes:
      values: what stands for each node as an operand.
      helpers: definitions of helper functions by their names, in the order in which they must stand.
      body: the kernel's lines.
    """

    def __init__(self, reserved: Set[str], inlined: Set[UOp]) -> None:
        self.values: dict[UOp, str] = {}
        self.helpers: dict[str, str] = {}
        self.body: list[str] = []
        self._names: set[str] = set(reserved)
        self._inlined = inlined
        self._depth = 1

    def line(self, text: str) -> None:
        """Writes a line of the body."""
        self.body.append("  " * self._depth + text)

    def open(self, head: str) -> None:
        """Begins a region."""
        self.line(f"{head} {{")
        self._depth += 1

    def close(self) -> None:
        """Ends the innermost region."""
        self._depth -= 1
        self.line("}")

    @contextmanager
    def only_if(self, condition: str) -> Iterator[None]:
        """Lines that a condition guards; an empty one guards nothing."""
        if condition:
            self.open(f"if ({condition})")
        yield
        if condition:
            self.close()

    def claim(self, name: str) -> str:
        """An unused identifier like ``name``."""
        stem = re.sub(r"[^A-Za-z0-9_]", "_", name)
        if not stem or stem[0].isdigit():
            stem = f"x{stem}"
        found, n = stem, 0
        while found in self._names:
            n += 1
            found = f"{stem}_{n}"
        self._names.add(found)
        return found

    def numbered(self, stem: str) -> str:
        """An unused identifier that begins with ``stem`` and tells how many values there were before it."""
        n = len(self.values)
        while f"{stem}{n}" in self._names:
            n += 1
        return self.claim(f"{stem}{n}")

    def helper(self, name: str, define: Callable[[], str]) -> str:
        """The name of a helper function, which ``define`` writes on first use."""
        name = f"tg_{name}"
        if name not in self.helpers:
            text = define()  # may define helpers of its own, which must stand before
            self.helpers[name] = text
        return name

    def stands_inside(self, u: UOp, expression: str) -> bool:
        """Whether a node's expression is written where it is used."""
        return u in self._inlined and len(expression) <= _LONGEST


def is_atom(text: str) -> bool:
    """Whether repeating an expression costs nothing: it is a name, a member or a number."""
    return _ATOM.fullmatch(text) is not None
