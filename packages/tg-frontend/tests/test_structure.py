"""How Tensor is put together: a short line of classes, and tables of functions that stand in modules by subject."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tg_frontend import Tensor, ops
from tg_frontend.array import Array, array, base
from tg_frontend.array.base import Base

TABLES = (Path(inspect.getfile(Tensor)), Path(array.__file__), Path(base.__file__))
MECHANISMS = {  # what operations are made of
    "counting", "above", "absent", "contraction_order", "found", "in_place", "nth_element", "order_keys", "row_order",
    "streams", "taps", "updating", "window_reductions",
}  # fmt: skip
SUBJECTS = [module for module in vars(ops).values() if isinstance(module, ModuleType)]


def entries(path: Path) -> Iterator[tuple[str, ast.expr | None]]:
    """The names that the first class of a module defines, each with what it is bound to: None for a ``def``."""
    body = next(node for node in ast.parse(path.read_text()).body if isinstance(node, ast.ClassDef)).body
    for node in body:
        if isinstance(node, ast.FunctionDef):
            yield node.name, None
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            yield node.targets[0].id, node.value
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id, None


def bound() -> Iterator[tuple[str, str]]:
    """Names of the tables, each with the dotted name of its function."""
    for path in TABLES[:2]:
        for name, value in entries(path):
            function = value.args[0] if isinstance(value, ast.Call) else value
            if isinstance(function, ast.Attribute):
                yield name, ast.unparse(function)


def problems(names: list[tuple[str, str]], functions: dict[str, Any]) -> list[str]:
    """What is amiss with functions that are bound: another name, no annotations, no docstring."""
    found = []
    own = {dotted for name, dotted in names if dotted.rpartition(".")[2] == name}
    for name, dotted in names:
        function = functions[name]
        if dotted not in own:  # an operator may be a method once more
            found.append(f"{name} is bound to {dotted}: messages would name that")
        if inspect.signature(function).return_annotation is inspect.Signature.empty:
            found.append(f"{name}: {dotted} has no annotations")
        if not name.startswith("__") and not function.__doc__:
            found.append(f"{name}: {dotted} has no docstring")
    return found


def test_the_line_of_classes_is_short() -> None:
    assert Tensor.__mro__ == (Tensor, Array, Base, object)


def test_every_public_name_stands_in_a_table() -> None:
    listed = {name for path in TABLES for name, _ in entries(path)}
    assert {name for name in dir(Tensor) if not name.startswith("_")} <= listed


def test_what_is_bound_has_its_own_name_annotations_and_a_docstring() -> None:
    names = list(bound())
    assert len(names) > 200
    found: dict[str, Any] = {name: getattr(Tensor, name) for name, _ in names}
    plain = {name: inspect.unwrap(getattr(f, "fget", f)) for name, f in found.items()}
    assert problems(names, plain) == []


def test_what_is_amiss_is_seen() -> None:
    def other(x):  # type: ignore[no-untyped-def]
        return x

    assert problems([("one", "ops.subject.other")], {"one": other}) == [
        "one is bound to ops.subject.other: messages would name that",
        "one: ops.subject.other has no annotations",
        "one: ops.subject.other has no docstring",
    ]


@pytest.mark.parametrize("module", SUBJECTS, ids=lambda module: module.__name__.rpartition(".")[2])
def test_every_subject_is_in_the_table(module: ModuleType) -> None:
    subject = module.__name__.rpartition(".")[2]
    assert any(dotted.startswith(f"ops.{subject}.") for _, dotted in bound()) or subject in MECHANISMS


def test_every_module_of_ops_is_a_subject() -> None:
    folder = Path(ops.__file__).parent
    assert {path.stem for path in folder.glob("*.py")} - {"__init__"} - MECHANISMS == set(ops.__all__) - MECHANISMS


class Named(Tensor):
    """A tensor of a person's own, with a method of theirs."""

    __slots__ = ()

    def where(self, x: Any, y: Any) -> Named:
        return super().where(x, y) * 2

    def doubled(self) -> Named:
        return self + self


def test_methods_of_a_subclass_give_the_subclass() -> None:
    x = Named([[1.0, 2.0], [3.0, 4.0]])
    made = (Named.zeros(2), Named.rand(2), Named.einsum("ij->ji", x))
    computed = (x.softmax(), x + 1, 1 - x, x @ x, x.doubled(), x.sort()[1], x > 2, -x, x.max(0), x.cast("int32"))
    moved = (x[0], x.cat(x), x.split(1)[0], x.detach(), x.T)
    assert {type(result) for result in (*made, *computed, *moved)} == {Named}


def test_a_method_that_a_subclass_overrides_is_used_by_operations() -> None:
    assert Named([1.0, -1.0]).leaky_relu(0.5).tolist() == [2.0, -1.0]
    assert Tensor([1.0, -1.0]).leaky_relu(0.5).tolist() == [1.0, -0.5]
