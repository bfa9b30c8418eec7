"""Docstrings of what is public: one form, and an example that uses what it is of. The examples run as doctests."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tg_frontend
from tg_frontend import Tensor, language, linalg, nn, signal, special, text
from tg_frontend.keywords import other_names

SECTIONS = {"Args", "Attributes", "Example", "Raises", "Returns", "Yields"}
_OPENING = re.compile(r"^([A-Z][a-z]+):$", re.MULTILINE)
_EXAMPLE = re.compile(r"^Example:\n((?:  .*\n?|\n)+)", re.MULTILINE)
_ATTRIBUTES = ("grad", "training")  # whose text stands in that of the class


def names_of(module: Any) -> list[str]:
    """The public names of a module, each thing once: ``BatchNorm2d`` is another name of ``BatchNorm``."""
    names = getattr(module, "__all__", None) or [
        name for name, thing in vars(module).items()
        if not name.startswith("_") and str(getattr(thing, "__module__", "")).startswith("tg_frontend.")
        and (getattr(thing, "__module__", "") == module.__name__ or name.startswith("safe_"))
    ]  # fmt: skip
    first = {id(getattr(module, name)): name for name in reversed(names)}
    return [name for name in names if first[id(getattr(module, name))] == name]


def public() -> Iterator[tuple[str, Any]]:
    """Every public name with what it stands for: functions, classes, and the methods that a class defines itself."""
    inner = (
        nn.functional, nn.optim, nn.lr_scheduler, nn.optim.swa_utils, nn.state, nn.init, nn.utils, nn.utils.rnn,
        nn.data, nn.datasets, nn.amp, signal.windows,
    )  # fmt: skip
    for module in (tg_frontend, language, linalg, nn, special, text, *inner):
        for name in names_of(module):
            thing = getattr(module, name)
            if inspect.ismodule(thing) or name in ("JIT", "JitError", "Tensor"):
                continue
            yield f"{module.__name__}.{name}", thing
            for key, value in vars(thing).items() if inspect.isclass(thing) else ():
                known = any(key in vars(kind) for kind in thing.__mro__[1:])  # as LambdaLR.factor
                if not key.startswith("_") and not known and (callable(value) or isinstance(value, property)):
                    yield f"{module.__name__}.{name}.{key}", value
    for name in dir(Tensor):
        if not name.startswith("_") and name not in _ATTRIBUTES and name not in other_names(Tensor):
            yield f"Tensor.{name}", inspect.getattr_static(Tensor, name)


def problems(name: str, text: str | None) -> list[str]:
    """What is amiss with the docstring of a name."""
    text = inspect.cleandoc(text or "")
    found = [f"{name}: the section {section}" for section in _OPENING.findall(text) if section not in SECTIONS]
    example = _EXAMPLE.search(text)
    if example is None or ">>>" not in example[1]:
        found.append(f"{name}: no example")
    elif not re.search(rf"\b{name.rpartition('.')[2]}\b", example[1]):
        found.append(f"{name}: an example that does not use it")
    if ">>>" in _EXAMPLE.sub("", text):
        found.append(f"{name}: an example outside of the section")
    return found


def test_everything_public_has_an_example_that_uses_it() -> None:
    seen = list(public())
    assert len(seen) > 250
    assert [problem for name, thing in seen for problem in problems(name, thing.__doc__)] == []


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("One.", "no example"),
        ("One.\n\nExample:\n  >>> two()\n", "an example that does not use it"),
        ("One.\n\n>>> one()\n\nExample:\n  >>> one()\n", "an example outside of the section"),
        ("One.\n\nParameters:\n  x: it.\n\nExample:\n  >>> one()\n", "the section Parameters"),
    ],
)
def test_what_is_amiss_is_seen(text: str, problem: str) -> None:
    assert problems("one", text) == [f"one: {problem}"]
    assert problems("one", "One.\n\nArgs:\n  x: it.\n\nExample:\n  >>> one()\n") == []


def test_every_docstring_has_one_form(source: Path) -> None:
    found = []
    for path in sorted(source.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                text = ast.get_docstring(node) or ""
                wrong = set(_OPENING.findall(text)) - SECTIONS
                stray = ">>>" in _EXAMPLE.sub("", text)
                if wrong or stray:
                    found.append(f"{path.name}: {node.name}: {wrong or 'an example outside of the section'}")
    assert found == []


@pytest.mark.parametrize("room", ["array", "interchange", "ops", "special"])
def test_functions_that_other_modules_may_use_say_what_they_do(source: Path, room: str) -> None:
    silent = [
        f"{path.name}: {node.name}"
        for path in sorted((source / room).glob("*.py")) for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_") and not ast.get_docstring(node)
        and "overload" not in map(ast.unparse, node.decorator_list)
    ]  # fmt: skip
    assert silent == []
