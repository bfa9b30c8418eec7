"""TinyJit: a function's kernels recorded once and replayed without Python.

The first call runs the function as it is, the second records what it executes, later ones replay the record on the
inputs of the call. What a replay changes is plain data: the memory of inputs and outputs, the values of variables,
and the streams of random numbers. Python code of the function is not run again: a value that it computed in Python
is what it was when the record was made.
"""

from __future__ import annotations

from threading import RLock
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar
from weakref import WeakSet

from tg_lazy import DEBUG, ContextVar, LazyBuffer, Storage
from tg_runtime import (
    PROFILE,
    Buffer,
    CompiledRunner,
    Device,
    DeviceError,
    EmptyOp,
    ExecItem,
    InterpretedRunner,
    Usage,
    ViewOp,
    arrange,
    buffer_of,
    capture,
    capturing,
)
from tg_runtime.buffer import spoiled
from tg_runtime.counters import human
from tg_runtime.interrupts import Uninterrupted
from tg_shape import ShapeTracker, Variable

from .autograd import MODE
from .call import Call, Expected, JitError
from .random import RECORDING, renew
from .realization import live, realize_all, unfinished_assigns
from .tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

P = ParamSpec("P")
R = TypeVar("R")

JIT: ContextVar[int] = ContextVar("JIT", 1)
"""0: TinyJit only calls. 1: records, and condenses the record for devices that can. 2: records only."""


_functions: WeakSet[TinyJit[Any, Any]] = WeakSet()


@spoiled.append
def _forget() -> None:
    """A record holds addresses: where some of that memory was left half written, the functions are recorded anew."""
    for function in list(_functions):
        function.reset()


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


def _written(item: ExecItem) -> Iterable[int]:
    """Which buffers a step writes, by position."""
    if isinstance(item.prg, CompiledRunner):
        return item.prg.spec.outs
    if isinstance(item.prg, InterpretedRunner):
        return {store.arg[0] for store in item.prg.ast.src}
    return (0,)


class _Record:
    """What a call executed, ready to be replayed on other memory.

    Args:
      call: the arguments of the call that was recorded.
      items: what it executed.
      result: what it returned.
      newest: number of the last Storage that was there before the call.
      streams: memory of the random streams that it drew.
      ended: memory between its kernels.
      args: the positional arguments as they were given; None if there were others.
    """

    def __init__(
        self, call: Call, items: list[ExecItem], result: Any, newest: int, streams: list[Storage],
        ended: list[Buffer], args: tuple[Any, ...] | None,
    ) -> None:  # fmt: skip
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
        self.training, self.recording = Tensor.training, MODE.recording
        self.fresh = [(Device[s.device].allocator, s.device, s.size, s.dtype) for s in self.outputs]
        one, sources = self.steps[0]
        everything = [(i, i, -1) for i in range(len(self.replaced))]
        bare = len(self.steps) == 1 and sources == everything and len(one.bufs) == len(everything)
        self.alone = one.prg if bare else None
        # a result that each call makes anew, seen as it lies in memory: which output it is, and how
        self.whole: dict[int, tuple[int, ShapeTracker, tuple[str, int]]] = {}
        for tensor in _outputs(result):
            place, lazy = self.results[id(tensor)] - len(call.tensors), tensor.lazydata
            if place >= 0 and lazy.st.numeric and lazy.st.contiguous and lazy.st.size == lazy.base.st.size:
                self.whole[id(tensor)] = place, lazy.st, lazy.origin
        self.only = self.whole.get(id(result))
        self.expected = None if args is None or len(self.whole) < len(self.results) else Expected.of(args)

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
            if graph is not None and len(batch) >= Device[batch[0].prg.device].graph_from:
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

    def replay(self, call: Call) -> Any:
        """Executes the record on the memory of another call's arguments."""
        call.check(self.call)
        return self._run(call, call.buffers(), call.values)

    def again(self, args: tuple[Any, ...]) -> Any:
        """Executes the record on plain arguments like those of its making; ``NotImplemented`` if they are others."""
        expected = self.expected
        if expected is None or Tensor.training is not self.training or MODE.recording is not self.recording:
            return NotImplemented
        found = expected.found(args)
        return NotImplemented if found is None else self._run(None, *found)

    def _run(self, call: Call | None, buffers: list[Buffer], values: dict[Variable, int]) -> Any:
        storages = []
        for allocator, device, size, dtype in self.fresh:
            buffer = Buffer.allocated(allocator, device, size, dtype)
            buffers.append(buffer)
            storages.append(Storage(device, size, dtype, buffer))
        for stream in self.streams:
            renew(stream)
        alone = self.alone
        if alone is None or DEBUG.value or PROFILE.value:
            with Uninterrupted(lambda: self._abandoned(buffers)):
                self._step_by_step(buffers, values)
        else:
            alone(buffers, values)
            alone.count(values)
        return self._results(call, storages)

    def _results(self, call: Call | None, storages: list[Storage]) -> Any:
        if self.only is None:
            return _rebuilt(self.result, lambda tensor: self._renewed(tensor, call, storages))
        place, st, origin = self.only
        return Tensor._wrap(LazyBuffer.in_storage(storages[place], st, origin))

    def _step_by_step(self, buffers: list[Buffer], values: dict[Variable, int]) -> None:
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

    def _abandoned(self, buffers: list[Buffer]) -> None:
        """Marks everything that a replay writes: a second Ctrl-C ended it in the middle."""
        for item in self.items:
            for position in _written(item):
                buffer = item.bufs[position]
                assert buffer is not None
                place = self.places.get(id(buffer.base))
                (buffer if place is None else buffers[place]).spoil("a replay of TinyJit was interrupted twice")

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

    def _renewed(self, tensor: Tensor, call: Call | None, storages: list[Storage]) -> Tensor:
        whole = self.whole.get(id(tensor))
        if whole is not None:
            place, st, origin = whole
            return Tensor._wrap(LazyBuffer.in_storage(storages[place], st, origin))
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
        _functions.add(self)

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
            if record is not None:
                out: R = NotImplemented if kwargs else record.again(args)
                return record.replay(Call(args, kwargs)) if out is NotImplemented else out
            call = Call(args, kwargs)
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

    def _record(self, call: Call, args: tuple[Any, ...], kwargs: dict[str, Any]) -> R:
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
        self.captured = _Record(call, items, result, newest, streams, ended, None if kwargs else args)
        return result
