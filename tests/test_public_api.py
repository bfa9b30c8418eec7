"""The names and signatures that people use: a change of them is seen, and meant.

``python tests/test_public_api.py`` writes the file anew.
"""

from __future__ import annotations

import difflib
import importlib
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

MODULES = (
    "tinytg", "tinytg.nn", "tinytg.nn.functional", "tinytg.nn.optim", "tinytg.nn.optim.swa_utils",
    "tinytg.nn.init", "tinytg.nn.utils", "tinytg.nn.utils.rnn", "tinytg.nn.data", "tinytg.nn.datasets", "tinytg.nn.amp",
    "tinytg.nn.lr_scheduler", "tinytg.nn.state", "tinytg.autograd", "tinytg.autograd.functional",
    "tinytg.autograd.graph", "tinytg.linalg", "tinytg.fft", "tinytg.special", "tinytg.signal.windows", "tinytg.text",
    "tinytg.language", "tinytg.functions",
)  # fmt: skip
FILE = Path(__file__).parent / "data" / "public_api.txt"


def _signature(function: Any) -> str:
    try:
        return str(inspect.signature(function)).replace("'", "")
    except (TypeError, ValueError):
        return "(...)"


def _members(name: str, kind: type) -> Iterator[str]:
    found = {key: inspect.getattr_static(kind, key) for key in dir(kind)}
    for key, value in sorted(found.items()):
        inherited = key.startswith("_") and key not in ("__init__", "__call__")
        if inherited or value is getattr(object, key, None):
            continue
        if isinstance(value, property):
            yield f"{name}.{key}: property"
        elif isinstance(value, (staticmethod, classmethod)) or callable(value):
            how = type(value).__name__ + " " if isinstance(value, (staticmethod, classmethod)) else ""
            yield f"{name}.{key}: {how}{_signature(getattr(kind, key))}"
        else:
            yield f"{name}.{key}"


def lines() -> Iterator[str]:
    """One line a name, in order."""
    for module in MODULES:
        home = importlib.import_module(module)
        for name in sorted(home.__all__):
            value = getattr(home, name)
            if inspect.isclass(value):
                yield f"{module}.{name}: class"
                yield from _members(f"{module}.{name}", value)
            elif inspect.isfunction(value):
                yield f"{module}.{name}: {_signature(value)}"
            elif inspect.ismodule(value):
                yield f"{module}.{name}: module"
            else:
                yield f"{module}.{name}: {type(value).__name__}"


def test_the_public_names_and_signatures_are_those_that_are_written_down() -> None:
    had, have = FILE.read_text(encoding="utf-8").splitlines(), list(lines())
    if had != have:
        shown = "\n".join(difflib.unified_diff(had, have, "written down", "now", lineterm="", n=0))
        pytest.fail(f"the public API has changed; if that is meant: python tests/test_public_api.py\n{shown}")


def test_a_change_of_a_signature_is_seen() -> None:
    class Changed:
        def sum(self, axes: int = 0) -> None: ...

    assert list(_members("Changed", Changed)) == ["Changed.sum: (self, axes: int = 0) -> None"]
    assert any(line.startswith("tinytg.Tensor.sum: (x: B, axis: Axes = None") for line in lines())


if __name__ == "__main__":
    FILE.write_text("\n".join(lines()) + "\n", encoding="utf-8")
