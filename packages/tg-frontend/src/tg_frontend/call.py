"""The arguments of a recorded function: what must be the same in every call, and what may change.

A call is compared with the recorded one by facts, one for each argument; that names what is wrong. Arguments that are
plainly like the recorded ones, which is nearly every call, are recognised by :class:`Expected` without any of that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tg_lazy import LazyBuffer
from tg_lazy.lazybuffer import LEAVES
from tg_runtime import Buffer, buffer_of
from tg_shape import Bind, ShapeTracker, Variable

from .autograd import MODE
from .realization import realize_all
from .tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tg_dtype import DType


class JitError(ValueError):
    """A function that is recorded was called in a way that the record does not fit, or cannot be recorded."""


class Input:
    """A tensor among the arguments."""

    __slots__ = ("lazy", "name", "tensor")

    def __init__(self, name: str, tensor: Tensor) -> None:
        self.name, self.tensor, self.lazy = name, tensor, tensor.lazydata


def _walk(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Every argument, and every element of arguments that are lists, tuples or dicts, with a name for messages."""
    named = [(f"argument {i}", value) for i, value in enumerate(args)]
    named += [(f"argument {key!r}", kwargs[key]) for key in sorted(kwargs)]
    for name, value in named:
        if isinstance(value, (list, tuple)):
            yield name, (type(value).__name__, len(value))
            yield from ((f"{name}[{i}]", item) for i, item in enumerate(value))
        elif isinstance(value, dict):
            yield name, ("dict", tuple(value))
            yield from ((f"{name}[{key!r}]", item) for key, item in value.items())
        else:
            yield name, value


class Call:
    """The arguments of a call: what must not change, and what may.

    Attributes:
      facts: for each argument its name and what must be the same in every call.
      tensors: the tensors, realised.
      values: the values of bound variables.
    """

    def __init__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.facts: dict[str, object] = {"Tensor.training": Tensor.training, "recording of gradients": MODE.recording}
        self.tensors: list[Input] = []
        self.values: dict[Variable, int] = {}
        waiting = []
        for name, value in _walk(args, kwargs):
            if isinstance(value, Tensor):
                waiting.append((name, value))
            elif isinstance(value, Bind):
                self.facts[name] = ("a value of", value.var)
                self._bind(value.var, value.value)
            else:
                self.facts[name] = fact(value)
        for _, tensor in waiting:
            if not tensor.lazydata.is_whole or tensor.lazydata.base.op in LEAVES:
                tensor.lazydata = tensor.lazydata.contiguous()
        unready = [tensor.lazydata for _, tensor in waiting if not tensor.lazydata.is_realized]
        if unready:
            realize_all(unready)
        for name, tensor in waiting:
            self._add(name, tensor)

    def _bind(self, var: Variable, value: int) -> None:
        if self.values.setdefault(var, value) != value:
            raise JitError(f"TinyJit: one call binds the variable {var.name} to {self.values[var]} and to {value}")

    def _add(self, name: str, tensor: Tensor) -> None:
        lazy = tensor.lazydata
        for other in self.tensors:
            if other.lazy.storage is lazy.storage and other.tensor is not tensor:
                raise JitError(f"TinyJit: {other.name} and {name} are the same memory; pass it once, or a copy of it")
            if other.tensor is tensor:
                raise JitError(f"TinyJit: {other.name} and {name} are the same tensor; pass it once")
        st, found = lazy.st.unbind()
        for var, value in found.items():
            self._bind(var, value)
        self.facts[name] = ("a tensor of shape", st.shape, lazy.dtype.name, lazy.device)
        self.tensors.append(Input(name, tensor))

    def buffers(self) -> list[Buffer]:
        """The memory of the tensors."""
        out = []
        for one in self.tensors:
            assert one.lazy.storage is not None
            out.append(buffer_of(one.lazy.storage).ensure_allocated())
        return out

    def check(self, other: Call) -> None:
        """Compares with the call that was recorded.

        Raises:
          JitError: something changed; the message names it.
        """
        if self.facts == other.facts:
            return
        for name in {**other.facts, **self.facts}:
            before, now = other.facts.get(name, ("missing",)), self.facts.get(name, ("missing",))
            if before != now:
                raise JitError(f"TinyJit: {name} was {_words(before)} when it was recorded, now it is {_words(now)}")


def fact(value: Any) -> object:
    """What must not change of an argument that is no tensor: its value, or which object it is."""
    if value is None or isinstance(value, (bool, int, float, str, bytes, tuple)):
        return ("the value", type(value), value)
    return ("the object", type(value), id(value))


def _words(fact: object) -> str:
    if not isinstance(fact, tuple):
        return str(fact)
    if fact[0] == "a tensor of shape":
        return f"a tensor of shape {fact[1]}, {fact[2]}, on {fact[3]}"
    if fact[0] == "the value":
        return repr(fact[2])
    if fact[0] == "the object":
        return f"the {fact[1].__name__} at {fact[2]:#x}"
    return " ".join(str(part) for part in fact)


class Expected:
    """Positional arguments as a call had them: tensors in memory, seen whole and of sizes that are numbers; variables;
    and what is no container.

    Attributes:
      tensors: for each tensor its position, how it is seen, its dtype and device.
      variables: for each bound variable its position, and itself.
      others: for each other argument its position, and the fact that it is.
    """

    __slots__ = ("count", "others", "tensors", "variables")

    def __init__(self, count: int) -> None:
        self.count = count
        self.tensors: list[tuple[int, ShapeTracker, DType, str]] = []
        self.variables: list[tuple[int, Variable]] = []
        self.others: list[tuple[int, object]] = []

    @classmethod
    def of(cls, args: tuple[Any, ...]) -> Expected | None:
        """What to expect when a call had these arguments; None where it takes a closer look each time."""
        self = cls(len(args))
        for n, arg in enumerate(args):
            if type(arg) is Tensor:
                lazy = arg.lazydata
                if not lazy.st.numeric or not lazy.is_whole:
                    return None
                self.tensors.append((n, lazy.st, lazy.dtype, lazy.device))
            elif isinstance(arg, Bind):
                if any(arg.var == var for _, var in self.variables):
                    return None
                self.variables.append((n, arg.var))
            elif isinstance(arg, (Tensor, list, tuple, dict)):
                return None
            else:
                self.others.append((n, fact(arg)))
        return self

    def found(self, args: tuple[Any, ...]) -> tuple[list[Buffer], dict[Variable, int]] | None:
        """The tensors' memory and the variables' values, if the arguments are as expected; else None."""
        if len(args) != self.count:
            return None
        buffers: list[Any] = []
        for n, st, dtype, device in self.tensors:
            arg = args[n]
            if type(arg) is not Tensor:
                return None
            lazy: LazyBuffer = arg._lazy
            base = lazy if lazy._storage is not None else lazy.base
            storage = base._storage
            if lazy.st is not st or storage is None or base.successor is not None:
                return None
            if lazy.dtype is not dtype or lazy.device != device or (base is not lazy and not lazy.is_whole):
                return None
            buffers.append(storage.payload or buffer_of(storage))
        if len(buffers) > 1 and len(set(buffers)) != len(buffers):
            return None
        values: dict[Variable, int] = {}
        for n, var in self.variables:
            arg = args[n]
            if not isinstance(arg, Bind) or arg.var != var:
                return None
            values[var] = arg.value
        for n, known in self.others:
            if isinstance(args[n], (Tensor, Bind)) or fact(args[n]) != known:
                return None
        return buffers, values
