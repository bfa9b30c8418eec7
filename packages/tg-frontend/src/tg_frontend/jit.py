"""TinyJit: a function's kernels recorded once and replayed without Python.

The first call runs the function as it is, the second records what it executes, later ones replay the record on the
inputs of the call. What a replay changes is plain data: the memory of inputs and outputs, the values of variables,
and the streams of random numbers. Python code of the function is not run again: a value that it computed in Python
is what it was when the record was made.
"""

from __future__ import annotations

from threading import RLock
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar
from weakref import ref

from tg_lazy import DEBUG, ContextVar, LazyBuffer, Storage
from tg_lazy.lazybuffer import LEAVES
from tg_runtime import (
    Buffer,
    CompiledRunner,
    Device,
    DeviceError,
    EmptyOp,
    ExecItem,
    Usage,
    ViewOp,
    arrange,
    buffer_of,
    capture,
    capturing,
)
from tg_runtime.counters import human
from tg_shape import Bind, Variable, sint

from .autograd import MODE
from .random import RECORDING, renew
from .realization import live, realize_all, unfinished_assigns
from .tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

P = ParamSpec("P")
R = TypeVar("R")

JIT: ContextVar[int] = ContextVar("JIT", 1)
"""0: TinyJit only calls. 1: records, and condenses the record for devices that can. 2: records only."""


class JitError(ValueError):
    """A function that is recorded was called in a way that the record does not fit, or cannot be recorded."""


class _Input:
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


class _Call:
    """The arguments of a call: what must not change, and what may.

    Attributes:
      facts: for each argument its name and what must be the same in every call.
      tensors: the tensors, realised.
      values: the values of bound variables.
    """

    def __init__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.facts: dict[str, object] = {"Tensor.training": Tensor.training, "recording of gradients": MODE.recording}
        self.tensors: list[_Input] = []
        self.values: dict[Variable, int] = {}
        waiting = []
        for name, value in _walk(args, kwargs):
            if isinstance(value, Tensor):
                waiting.append((name, value))
            elif isinstance(value, Bind):
                self.facts[name] = ("a value of", value.var)
                self._bind(value.var, value.value)
            else:
                self.facts[name] = _fact(value)
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
        self.tensors.append(_Input(name, tensor))

    def buffers(self) -> list[Buffer]:
        """The memory of the tensors."""
        out = []
        for one in self.tensors:
            assert one.lazy.storage is not None
            out.append(buffer_of(one.lazy.storage).ensure_allocated())
        return out

    def check(self, other: _Call) -> None:
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


def _fact(value: Any) -> object:
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


def _told(memory: Usage) -> str:
    if not memory.buffers:
        return "no buffers between them"
    shared, alone = (human(nbytes, "B", 1024) for nbytes in (memory.arena_nbytes, memory.nbytes))
    return f"{memory.buffers} buffers between them in {shared} instead of {alone}, {memory.in_place} in place"


def _outputs(value: Any) -> list[Tensor]:
    """The tensors in nested lists, tuples and dicts."""
    found, stack = [], [value]
    while stack:
        item = stack.pop()
        if isinstance(item, Tensor):
            found.append(item)
        elif isinstance(item, dict):
            stack.extend(reversed(list(item.values())))
        elif isinstance(item, (list, tuple)):
            stack.extend(reversed(item))
    return found


def _rebuilt(value: Any, replace: Callable[[Tensor], Tensor]) -> Any:
    if isinstance(value, Tensor):
        return replace(value)
    if isinstance(value, dict):
        return {key: _rebuilt(item, replace) for key, item in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_rebuilt(item, replace) for item in value))
    if isinstance(value, (list, tuple)):
        return type(value)(_rebuilt(item, replace) for item in value)
    return value


class _Record:
    """What a call executed, ready to be replayed on other memory.

    Args:
      call: the arguments of the call that was recorded.
      items: what it executed.
      result: what it returned.
      newest: number of the last Storage that was there before the call.
      streams: memory of the random streams that it drew.
      ended: memory between its kernels.
    """

    def __init__(
        self, call: _Call, items: list[ExecItem], result: Any, newest: int, streams: list[Storage], ended: list[Buffer]
    ) -> None:
        self.call, self.result, self.streams = call, result, streams
        self.inputs = call.buffers()
        self.outputs = self._fresh(result, newest)
        self.replaced = [*self.inputs, *(buffer_of(storage) for storage in self.outputs)]
        self.results = {id(tensor): self._place(tensor) for tensor in _outputs(result)}
        self.places = {id(buffer): i for i, buffer in enumerate(self.replaced)}
        # views follow what they are views of; memory is there already
        items = [item for item in items if not isinstance(item.prg, (ViewOp, EmptyOp))]
        self.items, self.memory = arrange(items, ended)
        if DEBUG.value:
            print(f"recorded {len(self.items)} steps, {_told(self.memory)}")
        self.steps = self._condensed() if JIT.value == 1 else [(item, self._sources(item)) for item in self.items]
        self.modes = (Tensor.training, MODE.recording)
        self.known: tuple[ref[LazyBuffer], ...] | None = None
        # a result that each call makes anew, seen as it lies in memory: which output it is, and its shape
        self.whole: dict[int, tuple[int, tuple[sint, ...]]] = {}
        for tensor in _outputs(result):
            place, lazy = self.results[id(tensor)] - len(call.tensors), tensor.lazydata
            if place >= 0 and lazy.st.numeric and lazy.st.contiguous and lazy.st.size == lazy.base.st.size:
                self.whole[id(tensor)] = place, lazy.shape

    def _fresh(self, result: Any, newest: int) -> list[Storage]:
        """The memory of results that each call makes anew: made by the call, and held by nobody else."""
        tensors = _outputs(result)
        mine = {id(tensor) for tensor in tensors}
        held = {tensor.lazydata.storage for tensor in live() if id(tensor) not in mine}
        found: dict[Storage, None] = {}
        for tensor in tensors:
            storage = tensor.lazydata.storage
            if storage is not None and storage.uid > newest and storage not in held and storage.root is storage:
                found[storage] = None
        return list(found)

    def _sources(self, item: ExecItem) -> list[tuple[int, int, int]]:
        """Which buffers of an item each replay replaces: (position, which one, offset in bytes of a view of it)."""
        out = []
        for position, buffer in enumerate(item.bufs):
            assert buffer is not None
            place = self.places.get(id(buffer))
            if place is not None:
                out.append((position, place, -1))
            elif id(buffer.base) in self.places:
                place = self.places[id(buffer.base)]
                out.append((position, place, buffer.offset - self.replaced[place].offset))
        return out

    def _condensed(self) -> list[tuple[ExecItem, list[tuple[int, int, int]]]]:
        """The items, runs of kernels of one device condensed into one where the device can do that."""
        steps: list[tuple[ExecItem, list[tuple[int, int, int]]]] = []
        batch: list[ExecItem] = []

        def close() -> None:
            if not batch:
                return
            graph = Device[batch[0].prg.device].graph
            if graph is not None and len(batch) > 1:
                try:
                    condensed = ExecItem(graph(batch, self.replaced, self.call.values), self.replaced)
                except DeviceError:
                    condensed = None
                if condensed is not None:
                    steps.append((condensed, [(i, i, -1) for i in range(len(self.replaced))]))
                    batch.clear()
                    return
            steps.extend((item, self._sources(item)) for item in batch)
            batch.clear()

        for item in self.items:
            simple = isinstance(item.prg, CompiledRunner) and not item.prg.symbolic
            if batch and (not simple or item.prg.device != batch[0].prg.device):
                close()
            if simple:
                batch.append(item)
            else:
                steps.append((item, self._sources(item)))
        close()
        return steps

    def replay(self, call: _Call) -> Any:
        """Executes the record on the memory of another call's arguments."""
        call.check(self.call)
        return self._run(call, call.buffers())

    def again(self, args: tuple[Any, ...]) -> Any:
        """Executes the record once more on the tensors of the last call; ``NotImplemented`` if these are others."""
        known = self.known
        if known is None or len(args) != len(known) or (Tensor.training, MODE.recording) != self.modes:
            return NotImplemented
        buffers = []
        for arg, weak in zip(args, known, strict=True):
            if type(arg) is not Tensor:
                return NotImplemented
            lazy = arg._lazy
            if weak() is not lazy or lazy.base.successor is not None:
                return NotImplemented
            storage = lazy.storage
            assert storage is not None
            buffers.append(buffer_of(storage).ensure_allocated())
        return self._run(None, buffers)

    def remember(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Keeps what :meth:`again` recognises: arguments that are tensors, none with variables in its shape."""
        self.known = None
        lazies = [arg._lazy for arg in args if type(arg) is Tensor]
        inside = len(self.whole) == len(self.results) and not self.call.values
        if inside and not kwargs and len(lazies) == len(args) and all(lazy.st.numeric for lazy in lazies):
            self.known = tuple(ref(lazy) for lazy in lazies)

    def _run(self, call: _Call | None, inputs: list[Buffer]) -> Any:
        values = self.call.values if call is None else call.values
        storages = [Storage(s.device, s.size, s.dtype) for s in self.outputs]
        buffers = [*inputs, *(buffer_of(storage).ensure_allocated() for storage in storages)]
        for stream in self.streams:
            renew(stream)
        for item, sources in self.steps:
            for position, place, offset in sources:
                buffer = buffers[place]
                if offset >= 0:
                    part = item.bufs[position]
                    assert part is not None
                    buffer = buffer.view(part.size, part.dtype, offset)
                item.bufs[position] = buffer
            item.run(values, jit=True)
        self._let_go()
        return _rebuilt(self.result, lambda tensor: self._renewed(tensor, call, storages))

    def _let_go(self) -> None:
        """Drops the memory of this call, so that its owners alone decide when it is freed."""
        for item, sources in self.steps:
            for position, place, offset in sources:
                if offset < 0:
                    item.bufs[position] = self.replaced[place]

    def _place(self, tensor: Tensor) -> int:
        """Which of the replaced buffers a result is in, by number; -1 if none."""
        storage = tensor.lazydata.storage
        inputs = [one.lazy.storage for one in self.call.tensors]
        return next((n for n, mine in enumerate([*inputs, *self.outputs]) if mine is storage is not None), -1)

    def _renewed(self, tensor: Tensor, call: _Call | None, storages: list[Storage]) -> Tensor:
        whole = self.whole.get(id(tensor))
        if whole is not None:
            return Tensor._wrap(LazyBuffer.from_storage(storages[whole[0]], whole[1]))
        assert call is not None
        place, lazy = self.results[id(tensor)], tensor.lazydata
        if place < 0:
            return tensor
        if place < len(call.tensors):
            return Tensor._wrap(lazy.bind(call.values).rebase(call.tensors[place].lazy.base))
        base = LazyBuffer.from_storage(storages[place - len(call.tensors)], lazy.base.shape)
        return Tensor._wrap(lazy.rebase(base).bind(call.values))


class TinyJit(Generic[P, R]):
    """Records the kernels that a function executes in its second call, and replays them from the third on.

    Tensors are recognised as arguments, and in lists, tuples and dicts that are arguments; so are bound variables,
    whose values may change between calls. Shapes, dtypes, devices and other arguments must stay the same. Results may
    be nested lists, tuples and dicts; their tensors are realised and, unless the function keeps them elsewhere, have
    memory of their own for every call. Objects that the function reads from outside (a model, an optimiser) are used
    in place: what is to change in them must be changed by ``assign``.

    Args:
      fxn: the function. It is called twice in all.

    Raises:
      JitError: the arguments do not fit the record, or the function cannot be recorded.

    Example:
        >>> from tg_frontend import Tensor, TinyJit
        >>> double = TinyJit(lambda x: x * 2)
        >>> [double(Tensor([i], device="NUMPY")).item() for i in range(4)]
        [0, 2, 4, 6]
    """

    def __init__(self, fxn: Callable[P, R]) -> None:
        self.fxn = fxn
        self._lock = RLock()
        self.reset()

    def reset(self) -> None:
        """Forgets the record: the next two calls run the function again."""
        self.cnt = 0
        self.captured: _Record | None = None

    @property
    def memory(self) -> Usage | None:
        """What the memory between the kernels of the record takes; None while nothing is recorded."""
        return None if self.captured is None else self.captured.memory

    def __get__(self, obj: Any, owner: type | None = None) -> Any:
        from functools import partial

        return self if obj is None else partial(self.__call__, obj)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Calls the function, records it, or replays the record.

        Raises:
          JitError: the arguments do not fit the record, or the function cannot be recorded.
        """
        if JIT.value == 0 or capturing():
            # inside of another recording, this one is a plain function
            return self._finished(self.fxn(*args, **kwargs))
        with self._lock:
            record = self.captured
            if record is not None and not kwargs:
                out: R = record.again(args)
                if out is not NotImplemented:
                    return out
            call = _Call(args, kwargs)
            if record is not None:
                out = record.replay(call)
                record.remember(args, kwargs)
                return out
            if self.cnt == 0:
                result = self._finished(self.fxn(*args, **kwargs))
            else:
                result = self._record(call, args, kwargs)
            self.cnt += 1
            return result

    @staticmethod
    def _finished(result: R) -> R:
        """The result, realised together with every assignment that is still to be made, cut off from the graph."""
        tensors = _outputs(result)
        for tensor in tensors:
            tensor._let_go()
        realize_all([*(tensor.lazydata for tensor in tensors), *unfinished_assigns()])
        cut = {id(tensor): tensor.detach() for tensor in tensors if tensor._ctx is not None}
        if not cut:
            return result
        rebuilt: R = _rebuilt(result, lambda tensor: cut.get(id(tensor), tensor))
        return rebuilt

    def _record(self, call: _Call, args: tuple[Any, ...], kwargs: dict[str, Any]) -> R:
        realize_all(unfinished_assigns())  # what was assigned before the call is no part of the record
        items: list[ExecItem] = []
        ended: list[Buffer] = []
        streams: list[Storage] = []
        newest = Storage("CPU", 0, Tensor.arange(0).dtype).uid
        RECORDING.into = streams
        try:
            with capture(items, ended):
                result = self._finished(self.fxn(*args, **kwargs))
        finally:
            RECORDING.into = None
        if not items:
            raise JitError("TinyJit: the function executed nothing, so there is nothing to record")
        self.captured = _Record(call, items, result, newest, streams, ended)
        return result
