"""Docstrings have one form: sections of Google's style, and each error as a condition."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from .test_references import docstrings

PACKAGES = ("tg_dtype", "tg_shape", "tg_lazy", "tg_codegen", "tg_runtime", "tg_hcq", "tg_frontend", "tinytg")
_SECTION = re.compile(r"^( *)(Args|Attributes|Returns|Yields|Raises|Example):$")
_CONDITION = re.compile(r"\w+(\.\w+)*(, \w+)*: (if|where|when|unless|on|as|after|whatever|for)\b")


def faults(text: str) -> Iterator[str]:
    """What is wrong with the sections of a docstring."""
    inside, indent, first = "", -1, False
    for line in text.splitlines():
        start = len(line) - len(line.lstrip())
        if found := _SECTION.match(line):
            inside, indent, first = found[2], len(found[1]), True
        elif line.strip() and start <= indent:
            inside, indent = "", -1
        elif line.strip() and inside:
            if first and start != indent + 2:
                yield f"indented by {start - indent}: {line.strip()}"
            if inside == "Raises" and start == indent + 2 and not _CONDITION.match(line.strip()):
                yield f"no condition: {line.strip()}"
            first = False


@pytest.mark.parametrize("package", PACKAGES)
def test_sections_have_one_form(package: str) -> None:
    root = Path(importlib.import_module(package).__file__ or "").parent
    found = {
        str(path.relative_to(root)): wrong
        for path in sorted(root.rglob("*.py"))
        if (wrong := [fault for _, text in docstrings(path) for fault in faults(text)])
    }
    assert found == {}


@pytest.mark.parametrize(
    "wrong",
    ["One.\n\nArgs:\n    x: it.", "One.\n\nRaises:\n  ValueError: the shapes differ.", "One.\n\nArgs:\n x: it."],
)
def test_another_form_is_noticed(wrong: str) -> None:
    assert list(faults(wrong)) and not list(faults("One.\n\nArgs:\n  x: it.\n\nRaises:\n  ValueError: if it is none."))
