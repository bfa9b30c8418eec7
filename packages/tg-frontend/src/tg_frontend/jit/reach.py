"""What a function can reach without its arguments: closures, globals that its code names, attributes, containers.

A recorded function is not run again, so what it would read from there must be known: which tensors there are, and on
which way the function finds them. Where another object stands on that way later, the record is of something else.
"""

from __future__ import annotations

import os
import sys
from collections import deque
from functools import partial
from operator import call, getitem, is_
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from ..tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator

_MOST = 100_000
"""Objects that are looked at. Whoever has more does not have them in the way of tensors."""
_LARGE = 1000
"""Elements of a container that is worth a look at what it holds."""
_OURS = ("tg_", "tinytg")
_LIBRARY = os.path.dirname(os.__file__) + os.sep
_INSTALLED = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")
_PLAIN = (bool, int, float, complex, str, bytes, bytearray, memoryview, range, type(None), BuiltinFunctionType)
"""Types whose objects lead to no tensor."""


class Step(NamedTuple):
    """One step on the way to a tensor: ``read(holder, key)`` was ``value``. Without ``read`` it always is."""

    read: Callable[[Any, Any], Any] | None
    holder: Any
    key: Any
    value: Any


class Reached:
    """The tensors that can be reached from some objects, and every step on the ways to them.

    Args:
      roots: functions and other objects.

    Attributes:
      tensors: the tensors, each once, by their ``id``.
      gradients: those that are only reached as the ``grad`` of another.
      wishes: what ``requires_grad`` of each of the tensors was.
      roots: where the walk began.
    """

    def __init__(self, roots: Iterable[Any]) -> None:
        self.tensors: dict[int, Tensor] = {}
        self.gradients: dict[int, Tensor] = {}
        self.wishes: dict[int, bool | None] = {}
        self._into: dict[int, list[tuple[int, Step]]] = {}  # by the object that a step leads to: from where, and how
        self._settings: dict[int, list[Step]] = {}
        self.roots = list(roots)
        stack = deque(self.roots)
        seen = {id(root) for root in self.roots}
        kept = list(self.roots)  # what is made by the walk alone must not be gone while its number is in use
        while stack and len(seen) < _MOST:
            value = stack.popleft()
            kept.append(value)
            if isinstance(value, Tensor) and value.dtype.kind != "complex":
                self.tensors[id(value)], self.wishes[id(value)] = value, value._wants_grad
                if value.grad is not None:
                    step = Step(getattr, value, "grad", value.grad)
                    self._into.setdefault(id(value.grad), []).append((id(value), step))
                    self.gradients[id(value.grad)] = value.grad
                continue
            for step in _steps(value):
                child = step.value
                if isinstance(child, _PLAIN):
                    if step.read is getitem and step.key in getattr(type(value), "settings", ()):
                        self._settings.setdefault(id(value), []).append(step)
                    continue
                self._into.setdefault(id(child), []).append((id(value), step))
                if id(child) not in seen:
                    seen.add(id(child))
                    stack.append(child)

    def __contains__(self, tensor: Tensor) -> bool:
        return id(tensor) in self.tensors or id(tensor) in self.gradients

    def steps_to(self, tensors: Collection[Tensor]) -> list[Step]:
        """The steps on every way to some of the tensors."""
        steps: list[Step] = []
        stack = [id(tensor) for tensor in tensors]
        seen = {id(root) for root in self.roots}
        while stack:
            number = stack.pop()
            if number in seen:
                continue
            seen.add(number)
            steps += self._settings.get(number, ())
            for parent, step in self._into.get(number, ()):
                steps.append(step)
                stack.append(parent)
        return steps


def _place(step: Step) -> tuple[object, ...]:
    """What is read, and where; keys that are no numbers or names are known by which object they are."""
    return step.read, id(step.holder), step.key if type(step.key) in (int, str) else id(step.key)


class Ways:
    """Steps that must lead where they led: as columns, so that all are looked at without a step of Python for each.

    Args:
      before: the steps to what the function used.
      after: the steps to what it left. Where one of these leads elsewhere than one of those, the function would find
        something else in each call, and the ways are never the same.
    """

    __slots__ = ("_holders", "_keys", "_lengths", "_lists", "_reads", "_rebound", "_values")

    def __init__(self, before: Iterable[Step], after: Iterable[Step]) -> None:
        found, left = ({_place(step): step for step in steps if step.read is not None} for steps in (before, after))
        self._rebound = any(left[place].value is not found[place].value for place in found.keys() & left.keys())
        different = (found | left).values()
        self._reads: list[Any] = [one.read for one in different]
        self._holders = [one.holder for one in different]
        self._keys = [one.key for one in different]
        self._values = [one.value for one in different]
        lists = {id(holder): holder for holder in self._holders if isinstance(holder, (list, deque))}
        self._lists = list(lists.values())
        self._lengths = [len(one) for one in self._lists]

    def __len__(self) -> int:
        return len(self._values)

    def same(self) -> bool:
        """Whether each still leads where it led."""
        if self._rebound:
            return False
        try:
            if not all(map(is_, map(call, self._reads, self._holders, self._keys), self._values)):
                return False
        except (LookupError, AttributeError, ValueError, TypeError):
            return False
        return not self._lists or list(map(len, self._lists)) == self._lengths


class _Foreign:
    """Which modules hold no tensors: Python's own, and installed packages that do not use ours.

    What is passed through them, in closures, defaults and attributes, is looked at all the same.
    """

    def __init__(self) -> None:
        self._known: dict[str, bool] = {}
        self._modules = 0

    def __contains__(self, module: str | None) -> bool:
        if len(sys.modules) != self._modules:  # a package may have imported ours since
            self._known.clear()
            self._modules = len(sys.modules)
        package = (module or "").partition(".")[0]
        found = self._known.get(package)
        if found is None:
            found = self._known[package] = self._is_foreign(package)
        return found

    @staticmethod
    def _is_foreign(package: str) -> bool:
        if package in sys.builtin_module_names:
            return True
        file = getattr(sys.modules.get(package), "__file__", None) or ""
        if not any(folder in file for folder in _INSTALLED):
            return file.startswith(_LIBRARY)
        parts = [one for name, one in list(sys.modules.items()) if name.partition(".")[0] == package]
        return not any(_is_ours(value) for one in parts for value in list(getattr(one, "__dict__", {}).values()))


def _is_ours(value: Any) -> bool:
    name = value.__name__ if isinstance(value, ModuleType) else getattr(type(value), "__module__", "")
    if isinstance(value, (type, FunctionType)):
        name = value.__module__
    return isinstance(name, str) and name.startswith(_OURS)


_FOREIGN = _Foreign()


def _steps(value: Any) -> Iterator[Step]:
    if isinstance(value, _PLAIN):
        return
    if isinstance(value, FunctionType):
        yield from _of_function(value)
    elif isinstance(value, MethodType):
        yield Step(getattr, value, "__self__", value.__self__)
        yield Step(getattr, value, "__func__", value.__func__)
    elif isinstance(value, partial):
        for name in ("func", "args", "keywords"):
            yield Step(getattr, value, name, getattr(value, name))
    elif isinstance(value, Tensor):
        yield Step(getattr, value, "_parts", value._parts)
    elif isinstance(value, dict):
        if not _is_data(value.values()):
            yield from (Step(getitem, value, key, item) for key, item in list(value.items()))
    elif isinstance(value, (list, tuple, deque)):
        if not _is_data(value):
            yield from (Step(getitem, value, n, item) for n, item in enumerate(value))
    elif isinstance(value, type):
        if not value.__module__.startswith(_OURS) and value.__module__ not in _FOREIGN:
            members = vars(value)
            for name, item in list(members.items()):
                if isinstance(item, (staticmethod, classmethod)):
                    item = item.__func__
                    yield Step(_unwrapped, members, name, item)
                elif isinstance(item, property):
                    yield from (Step(getattr, item, "fget", item.fget) for _ in (0,) if item.fget is not None)
                else:
                    yield Step(getitem, members, name, item)
            yield from (Step(getitem, value.__mro__, n, base) for n, base in enumerate(value.__mro__[1:], 1))
    elif not isinstance(value, (ModuleType, CodeType)):
        yield from _of_object(value)


def _unwrapped(members: Any, name: str) -> Any:
    return members[name].__func__


def _is_data(values: Collection[Any]) -> bool:
    """Whether a large container begins with a number or a text: a data set, not a model."""
    return len(values) > _LARGE and isinstance(next(iter(values)), _PLAIN)


def _of_object(value: Any) -> Iterator[Step]:
    kind = type(value)
    leads_to = getattr(kind, "leads_to", None)
    if leads_to is not None:
        yield from (Step(getattr, value, name, getattr(value, name)) for name in leads_to)
        return
    if kind.__module__.startswith(_OURS) and not kind.__module__.startswith("tg_frontend.nn"):
        return
    attributes = getattr(value, "__dict__", None)
    if isinstance(attributes, dict):
        yield from (Step(getitem, attributes, name, item) for name, item in list(attributes.items()))
    for owner in kind.__mro__:
        names = vars(owner).get("__slots__", ())
        for name in (names,) if isinstance(names, str) else tuple(names):
            name = f"_{owner.__name__.lstrip('_')}{name}" if name[:2] == "__" != name[-2:] else name
            if name not in ("__dict__", "__weakref__") and hasattr(value, name):
                yield Step(getattr, value, name, getattr(value, name))
    yield Step(None, None, None, kind)  # no step that can lead elsewhere, and nothing that would keep the object alive


def _of_function(function: FunctionType) -> Iterator[Step]:
    if function.__module__ is not None and function.__module__.startswith(_OURS):
        return
    for cell in function.__closure__ or ():
        try:
            yield Step(getattr, cell, "cell_contents", cell.cell_contents)
        except ValueError:  # not filled yet
            continue
    for name in ("__defaults__", "__kwdefaults__"):
        found = getattr(function, name)
        if found is not None:
            yield Step(getattr, function, name, found)
    if vars(function):
        yield from (Step(getitem, vars(function), key, item) for key, item in list(vars(function).items()))
    if function.__module__ in _FOREIGN:
        return
    space, names = function.__globals__, _names(function.__code__)
    for name in names:
        if name not in space:
            continue
        value = space[name]
        yield Step(getitem, space, name, value)
        if isinstance(value, ModuleType) and not (value.__name__.startswith(_OURS) or value.__name__ in _FOREIGN):
            inner = vars(value)
            yield from (
                Step(getitem, inner, other, inner[other])
                for other in names if other in inner and not isinstance(inner[other], (ModuleType, type))
            )  # fmt: skip


def _names(code: CodeType) -> list[str]:
    """The names that code, and functions defined in it, look up."""
    found, stack = dict.fromkeys(code.co_names), [code]
    while stack:
        for part in stack.pop().co_consts:
            if isinstance(part, CodeType):
                found.update(dict.fromkeys(part.co_names))
                stack.append(part)
    return list(found)
