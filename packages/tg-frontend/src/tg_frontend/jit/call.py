"""The arguments of a recorded function: what must be the same in every call, and what may change.

A call is compared with the recorded one by facts, one for each argument; that names what is wrong. Arguments that are
plainly like the recorded ones, which is nearly every call, are recognised by :class:`Expected` without any of that.
"""

from __future__ import annotations

from collections.abc import Sequence as AnySequence
from typing import TYPE_CHECKING, Any
from weakref import ref

from tg_lazy import LazyBuffer, Storage
from tg_lazy.ops import LEAVES, MEMORY
from tg_runtime import Buffer, buffer_of
from tg_shape import Bind, ShapeTracker, Variable

from ..autograd.differentiation import MODE
from ..memory.realization import realize_all
from ..tensor import Tensor
from .results import rebuilt

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator, Mapping

    from tg_dtype import DType


class JitError(ValueError):
    """A function that is recorded was called in a way that the record does not fit, or cannot be recorded."""


class OtherMemory(Exception):
    """The record does not fit the memory of this call, though the function does: it must be recorded anew."""


class Same:
    """Stands for an object among the arguments: equal to what stands for the same one, as long as that exists."""

    __slots__ = ("_find", "kind", "number")

    def __init__(self, value: object) -> None:
        self.kind, self.number = type(value), id(value)
        try:
            self._find: Any = ref(value)
        except TypeError:  # of a kind without weak references
            self._find = lambda: value

    def is_(self, value: object) -> bool:
        """Whether it is this one."""
        return self._find() is value

    def __eq__(self, other: object) -> bool:
        mine = self._find()
        return isinstance(other, Same) and mine is not None and other.is_(mine)

    __hash__ = None  # type: ignore[assignment]


class Input:
    """A tensor among the arguments.

    Attributes:
      name: what messages call it.
      tensor: the argument.
      lazy: the memory that the record works on: the tensor's, or a copy of the part of memory that the tensor shows.
      copied: whether it is a copy.
      handed: the tensor that a function which is recorded gets.
    """

    __slots__ = ("copied", "handed", "lazy", "name", "tensor")

    def __init__(self, name: str, tensor: Tensor, lazy: LazyBuffer, copied: bool) -> None:
        self.name, self.tensor, self.lazy, self.copied, self.handed = name, tensor, lazy, copied, tensor

    @property
    def root(self) -> Storage | None:
        """The memory that the argument shows."""
        storage = self.tensor.lazydata.storage
        return None if storage is None else storage.root


class Pin:
    """A tensor among the arguments that a record has to find in the same memory, as the function knows that, too.

    Args:
      tensor: the argument.
      itself: whether it has to be the same tensor.
    """

    __slots__ = ("_itself", "_root", "_st")

    def __init__(self, tensor: Tensor, itself: bool = False) -> None:
        storage = tensor.lazydata.storage
        assert storage is not None
        self._root, self._st = storage.root, tensor.lazydata.st
        self._itself = Same(tensor) if itself else None

    def fits(self, tensor: Tensor) -> bool:
        """Whether it is in that memory."""
        lazy = tensor.lazydata
        if self._itself is not None and not self._itself.is_(tensor):
            return False
        return lazy.storage is not None and lazy.storage.root is self._root and lazy.st is self._st


def _walk(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Every argument, and what is in arguments that are lists, tuples or dicts, with a name for messages."""
    for i, value in enumerate(args):
        yield from _inside(f"argument {i}", value, ())
    for key in sorted(kwargs):
        yield from _inside(f"argument {key!r}", kwargs[key], ())


def _inside(name: str, value: Any, around: tuple[int, ...]) -> Iterator[tuple[str, Any]]:
    if not isinstance(value, (list, tuple, dict)):
        yield name, value
        return
    if id(value) in around:
        raise JitError(f"TinyJit: {name} contains itself")
    around = (*around, id(value))
    if isinstance(value, dict):
        yield name, ("dict", tuple(value))
        for key, item in value.items():
            yield from _inside(f"{name}[{key!r}]", item, around)
    else:
        yield name, (type(value).__name__, len(value))
        for i, item in enumerate(value):
            yield from _inside(f"{name}[{i}]", item, around)


class Call:
    """The arguments of a call: what must not change, and what may.

    Args:
      args: the positional ones.
      kwargs: the others.
      pins: by name, what the record has to find in the same memory.
      find_known: finds the memory that the function knows from elsewhere, once the arguments are in memory, for a call
        that is going to be recorded: arguments in it are pinned, all others made ready to be written.

    Attributes:
      facts: for each argument its name and what must be the same in every call.
      tensors: the tensors, realised.
      values: the values of bound variables.
      pins: of these tensors, those that a record has to find in the same memory.

    Raises:
      JitError: if two arguments are the same memory, a variable has two values, or an argument is no constant.
      OtherMemory: if a pinned argument is elsewhere.
    """

    def __init__(
        self,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        pins: Mapping[str, Pin] | None = None,
        find_known: Callable[[], Container[Storage]] | None = None,
    ) -> None:
        self.facts: dict[str, object] = {"Tensor.training": Tensor.training, "recording of gradients": MODE.recording}
        if MODE.precision is not None:
            kind, where = MODE.precision
            self.facts["precision"] = ("that of autocast to", kind.name, "on", where or "every device")
        self.tensors: list[Input] = []
        self.values: dict[Variable, int] = {}
        self.pins: dict[str, Pin] = {}
        waiting: list[tuple[str, Tensor]] = []
        for name, value in _walk(args, kwargs):
            if isinstance(value, Tensor) and value.dtype.kind == "complex":
                self.facts[name] = "complex"
                waiting.extend(zip((f"{name}.real", f"{name}.imag"), value._floats(), strict=True))
            elif isinstance(value, Tensor):
                for other, tensor in waiting:
                    if tensor is value:
                        raise JitError(f"TinyJit: {other} and {name} are the same tensor; pass it once")
                waiting.append((name, value))
            elif isinstance(value, Bind):
                self.facts[name] = ("a value of", value.var)
                self._bind(value.var, value.value)
            else:
                self.facts[name] = fact(value, name)
        copies: dict[int, LazyBuffer] = {}
        for name, tensor in waiting:
            lazy = tensor.lazydata
            if pins and name in pins:
                if not pins[name].fits(tensor):
                    raise OtherMemory(f"{name}, which the function knows from elsewhere, too, is in other memory")
            elif lazy.base.op in LEAVES or (not lazy.is_whole and lazy.base.op not in MEMORY):
                tensor._memory().settle()  # it is no view of memory: nobody sees that it is one now
        unready = [tensor.lazydata for _, tensor in waiting if not tensor.lazydata.is_realized]
        if unready:
            realize_all(unready)
        known = None if find_known is None else find_known()
        for name, tensor in waiting:
            lazy = tensor.lazydata
            assert lazy.storage is not None
            if pins and name in pins:
                self.pins[name] = pins[name]
            elif known is not None and lazy.storage.root in known:
                self.pins[name] = Pin(tensor)
            elif not lazy.is_whole:
                copies[id(tensor)] = lazy.clone()
            elif known is not None and not tensor._owns():
                tensor._memory().settle()
        unready = [*copies.values(), *(t.lazydata for _, t in waiting if not t.lazydata.is_realized)]
        if unready:
            realize_all(unready)
        for name, tensor in waiting:
            self._add(name, tensor, copies.get(id(tensor)))

    def _bind(self, var: Variable, value: int) -> None:
        if self.values.setdefault(var, value) != value:
            raise JitError(f"TinyJit: one call binds the variable {var.name} to {self.values[var]} and to {value}")

    def _add(self, name: str, tensor: Tensor, copied: LazyBuffer | None) -> None:
        lazy = tensor.lazydata if copied is None else copied
        for other in self.tensors:
            if other.lazy.storage is lazy.storage:
                raise JitError(f"TinyJit: {other.name} and {name} are the same memory; pass it once, or a copy of it")
        st, found = lazy.st.unbind()
        for var, value in found.items():
            self._bind(var, value)
        self.facts[name] = ("a tensor of shape", st.shape, lazy.dtype.name, lazy.device)
        if name not in self.pins:
            self.tensors.append(Input(name, tensor, lazy, copied is not None))

    def buffers(self) -> list[Buffer]:
        """The memory of the tensors."""
        out = []
        for one in self.tensors:
            assert one.lazy.storage is not None
            out.append(buffer_of(one.lazy.storage).ensure_allocated())
        return out

    def handed_on(self, arguments: Any) -> Any:
        """The arguments, with a tensor of its own for each copy."""
        copies = {id(one.tensor): one for one in self.tensors if one.copied}
        if not copies:
            return arguments

        def copy(tensor: Tensor) -> Tensor:
            one = copies.get(id(tensor))
            if one is None:
                return tensor
            one.handed = Tensor._wrap(one.lazy, tensor._wish)
            one.handed.grad = tensor.grad
            return one.handed

        return rebuilt(arguments, copy)

    def own(self, positions: AnySequence[int]) -> None:
        """Gives inputs that are to be written, and whose memory is not theirs alone to write, memory of their own."""
        for position in positions:
            one = self.tensors[position]
            if not one.copied and not one.tensor._owns():
                one.tensor._memory().settle()
                one.lazy = one.tensor.lazydata
                realize_all([one.lazy])

    def check(self, other: Call) -> None:
        """Compares with the call that was recorded.

        Raises:
          JitError: if something changed; the message names it.
        """
        if self.facts == other.facts:
            return
        for name in {**other.facts, **self.facts}:
            before, now = other.facts.get(name, ("missing",)), self.facts.get(name, ("missing",))
            if before != now:
                raise JitError(f"TinyJit: {name} was {_words(before)} when it was recorded, now it is {_words(now)}")


def fact(value: Any, name: str = "an argument") -> object:
    """What must not change of an argument that is no tensor: its value, or which object it is.

    Raises:
      JitError: if it is data that may change, of which a record would have what it was.
    """
    if isinstance(value, float):
        return ("the value", type(value), value.hex())
    if value is None or isinstance(value, (bool, int, str, bytes, tuple)):
        return ("the value", type(value), value)
    if hasattr(value, "__array_interface__") or isinstance(value, (bytearray, memoryview)):
        raise JitError(f"TinyJit: {name} is a {type(value).__name__}, of which a record would keep what is in it now; "
                       "pass a Tensor, or a number")
    return ("the object", type(value), Same(value))


def _words(fact: object) -> str:
    if not isinstance(fact, tuple):
        return str(fact)
    if fact[0] == "a tensor of shape":
        return f"a tensor of shape {fact[1]}, {fact[2]}, on {fact[3]}"
    if fact[0] == "the value":
        return repr(float.fromhex(fact[2])) if issubclass(fact[1], float) else repr(fact[2])
    if fact[0] == "the object":
        return f"the {fact[1].__name__} at {fact[2].number:#x}"
    return " ".join(str(part) for part in fact)


class Expected:
    """Positional arguments as a call had them: tensors in memory, seen whole and of sizes that are numbers; variables;
    and what is no container.

    Attributes:
      tensors: for each tensor its class and position, which part of a complex one it is (-1: of none), how it is seen,
        its dtype and device.
      variables: for each bound variable its position, and itself.
      others: for each other argument its position, and the fact that it is.
    """

    __slots__ = ("count", "others", "tensors", "variables")

    def __init__(self, count: int) -> None:
        self.count = count
        self.tensors: list[tuple[type[Any], int, int, ShapeTracker, DType, str]] = []
        self.variables: list[tuple[int, Variable]] = []
        self.others: list[tuple[int, object]] = []

    @classmethod
    def of(cls, args: tuple[Any, ...]) -> Expected | None:
        """What to expect when a call had these arguments; None where it takes a closer look each time."""
        self = cls(len(args))
        for n, arg in enumerate(args):
            if type(arg) is Tensor or (isinstance(arg, Tensor) and arg.dtype.kind == "complex"):
                parts = arg._floats()
                for part, one in enumerate(parts):
                    lazy = one.lazydata
                    if not lazy.st.numeric or not lazy.is_whole:
                        return None
                    which = part if len(parts) > 1 else -1
                    self.tensors.append((type(arg), n, which, lazy.st, lazy.dtype, lazy.device))
            elif isinstance(arg, Bind):
                if any(arg.var == var for _, var in self.variables):
                    return None
                self.variables.append((n, arg.var))
            elif isinstance(arg, (Tensor, list, tuple, dict)):
                return None
            else:
                known: Any = fact(arg)
                self.others.append((n, known[2] if known[0] == "the object" else known))
        return self

    def found(self, args: tuple[Any, ...]) -> tuple[list[Buffer], dict[Variable, int]] | None:
        """The tensors' memory and the variables' values, if the arguments are as expected; else None."""
        if len(args) != self.count:
            return None
        buffers: list[Any] = []
        for kind, n, part, st, dtype, device in self.tensors:
            arg = args[n]
            if type(arg) is not kind:
                return None
            if part >= 0:
                arg = arg._parts[part]
            lazy: LazyBuffer = arg._lazy
            base = lazy if lazy._storage is not None else lazy.base
            storage = base._storage
            home = arg._home
            if lazy.st is not st or storage is None or (home is not None and home.base is not base):
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
            arg = args[n]
            if isinstance(known, Same):
                if not known.is_(arg):
                    return None
            elif isinstance(arg, (Tensor, Bind)) or fact(arg) != known:
                return None
        return buffers, values

    def tensor(self, args: tuple[Any, ...], number: int) -> Tensor:
        """A tensor of the arguments, or the part of a complex one, by its place in :attr:`tensors`."""
        _, position, part, *_ = self.tensors[number]
        found: Tensor = args[position] if part < 0 else args[position]._parts[part]
        return found
