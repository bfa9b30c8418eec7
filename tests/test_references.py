"""What docstrings refer to is there: every role of reStructuredText names a module, or something in one."""

from __future__ import annotations

import ast
import builtins
import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

PACKAGES = ("tg_dtype", "tg_shape", "tg_lazy", "tg_codegen", "tg_runtime", "tg_hcq", "tg_frontend", "tinytg")
_ROLE = re.compile(r":(attr|class|const|data|exc|func|meth|mod|obj):`~?([^`]+)`")


def docstrings(path: Path) -> Iterator[tuple[list[str], str]]:
    """The docstrings of a module, of classes and functions, and those under names; each with the classes around it."""
    pending: list[tuple[ast.AST, list[str]]] = [(ast.parse(path.read_text(encoding="utf-8")), [])]
    while pending:
        node, classes = pending.pop()
        inside = [*classes, node.name] if isinstance(node, ast.ClassDef) else classes
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant):
                if isinstance(child.value.value, str):
                    yield inside, child.value.value
            pending.append((child, inside))


def members(owner: object, name: str) -> bool:
    """Whether an object has a member; of a class also one that is annotated, or that its docstring lists."""
    if hasattr(owner, name):
        return True
    line = owner.__mro__ if isinstance(owner, type) else ()
    return any(name in inspect.get_annotations(cls) or f"  {name}:" in (cls.__doc__ or "") for cls in line)


def resolves(target: str, module: ModuleType, classes: list[str]) -> bool:
    """Whether a role's target is found from a module, or from one of the classes around the docstring."""
    target = target.removesuffix("()")
    package = module.__name__ if hasattr(module, "__path__") else module.__name__.rpartition(".")[0]
    owners: list[object] = []
    if target.startswith("."):
        dots = len(target) - len(target.lstrip("."))
        target = ".".join([*package.split(".")[: len(package.split(".")) - dots + 1], target.lstrip(".")])
    else:
        here: object = module
        for name in classes:
            here = getattr(here, name, None)
            owners.append(here)
        owners = [*reversed(owners), module, builtins]
        if module.__name__.startswith("tg_frontend."):  # whose functions become methods
            owners.append(importlib.import_module("tg_frontend").Tensor)
    for owner in owners:
        found: object = owner
        for name in target.split("."):
            if not members(found, name):
                break
            found = getattr(found, name, found)
        else:
            return True
    parts = target.split(".")
    for length in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        for name in parts[length:]:
            if not members(found, name):
                return False
            found = getattr(found, name, found)
        return True
    return False


def unresolved(path: Path, name: str) -> list[str]:
    """The targets in a module's docstrings that are not there."""
    roles = [(target, classes) for classes, text in docstrings(path) for _, target in _ROLE.findall(text)]
    if not roles:
        return []
    module = importlib.import_module(name)
    return sorted({target for target, classes in roles if not resolves(target, module, classes)})


@pytest.mark.parametrize("package", PACKAGES)
def test_what_docstrings_refer_to_is_there(package: str) -> None:
    root = Path(importlib.import_module(package).__file__ or "").parent
    missing = {}
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root.parent).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        if parts[-1] != "__main__" and (found := unresolved(path, name)):
            missing[name] = found
    assert missing == {}


def test_a_reference_that_leads_nowhere_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "planted.py"
    path.write_text('"""See :mod:`tg_lazy.fusions`, :class:`~.view.View` and :func:`prod`."""\n', encoding="utf-8")
    assert unresolved(path, "tg_shape.helpers") == ["tg_lazy.fusions"]
