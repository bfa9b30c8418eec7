"""What a call of a recorded function executed: made ready to be replayed on other memory."""

from __future__ import annotations

from typing import Any
from weakref import ref

from tg_lazy import ANOMALY, DEBUG, ContextVar, LazyBuffer, Storage
from tg_lazy.reach import check_reach
from tg_runtime import (
    PROFILE,
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
    watched,
)
from tg_runtime.counters import human
from tg_runtime.interrupts import Uninterrupted
from tg_shape import ShapeTracker, Variable

from .autograd import MODE
from .call import Call, Expected, JitError, OtherMemory
from .grads import Grads
from .made import Made, all_written, written_by
from .memory import Memory
from .outside import Observer, Outside
from .random import renew
from .realization import finish_assigns, live, overwrite
from .results import rebuilt, tensors_in
from .tensor import Tensor

JIT: ContextVar[int] = ContextVar("JIT", 1)
"""0: TinyJit only calls. 1: records, and condenses the record for devices that can. 2: records only."""


Steps = list[tuple[ExecItem, list[tuple[int, int, int]]]]
"""Steps of a replay, each with what it is given of the call: (position, which buffer, offset in bytes or -1)."""


def _told(memory: Usage) -> str:
    if not memory.buffers:
        return "no buffers between them"
    shared, alone = (human(nbytes, "B", 1024) for nbytes in (memory.arena_nbytes, memory.nbytes))
    return f"{memory.buffers} buffers between them in {shared} instead of {alone}, {memory.in_place} in place"


class Record:
    """What a call executed, ready to be replayed on other memory.

    Args:
      made: what it was.
      result: what it returned.
    """

    def __init__(self, made: Made, result: Any) -> None:
        call = made.call
        self.call, self.result, self.streams, self.origin = call, result, made.streams, made.origin
        written = all_written(made.items)
        self.inputs = call.buffers()
        self.written = [n for n, buffer in enumerate(self.inputs) if id(buffer.base) in written]
        inputs = {one.lazy.storage for one in call.tensors}
        roots = [root for root in made.seen.storages if root not in inputs]
        nodes = made.seen.used()
        self.unsettled = self._unsettled(made, nodes)
        self._overlap(call)
        self.outputs = self._fresh(result, made.seen)
        left = self._left(made, result, written)
        for tensor in left:
            if tensor._home is not None and not tensor._home.direct and tensor.lazydata.is_whole:
                tensor._home = tensor._place = None  # it is in memory that is the record's, and follows what is there
        self.outside = Outside(roots, nodes, made.reached, left, made.after)
        self.grads = Grads(made.seen.gradients())
        self.replaced = [*self.inputs, *(buffer_of(storage) for storage in self.outputs)]
        # of the results as they are now, whatever their owner does to them later
        self.results = {id(tensor): self._place(tensor) for tensor in tensors_in(result)}
        self.shown = {id(tensor): tensor.lazydata for tensor in tensors_in(result)}
        self.homes = {id(tensor): tensor._home for tensor in tensors_in(result)}
        self.known = {id(tensor) for tensor in tensors_in(result) if made.seen.knew(tensor)}
        self.given = {id(one.handed): n for n, one in enumerate(call.tensors)}
        self.places = {id(buffer): i for i, buffer in enumerate(self.replaced)}
        self.leftovers = made.leftovers(result, written)
        kept = {s.root for tensor in live() if (s := tensor.lazydata.storage) is not None}
        kept.difference_update(inputs, self.outputs)
        self.overwritten = [root for root in kept if root.payload is not None and id(buffer_of(root).base) in written]
        # what the function keeps elsewhere, of sizes that depend on variables
        self.sized = [
            (ref(tensor), tensor.lazydata) for tensor in live()
            if isinstance(tensor, Tensor) and not tensor.lazydata.st.numeric and tensor.lazydata.storage in kept
            and not made.seen.knew(tensor) and id(tensor) not in self.results
        ]  # fmt: skip
        self.readers = [root.readers for root in self.overwritten]
        self.own = frozenset([*roots, *self.overwritten] if self.written or self.overwritten else [])
        self.foreign = frozenset(buffer_of(root) for root in self.own)
        # views follow what they are views of; memory is there already
        items = [item for item in made.items if not isinstance(item.prg, (ViewOp, EmptyOp))]
        # where memory is shared kernels are made anew, of which nobody knows what their parts are
        self.items, self.memory = arrange(items, [] if ANOMALY.value else made.ended)
        self.doubts = tuple({doubt for item in self.items for doubt in item.prg.doubts})
        if DEBUG.value:
            print(f"recorded {len(self.items)} steps, {_told(self.memory)}")
        self.steps = self._condensed() if JIT.value == 1 else self._apart()
        self.single: Steps = []  # the items one by one, once anomaly mode wants them so
        self.training, self.recording = Tensor.training, MODE.recording
        self.fresh = [(Device[s.device].allocator, s.device, s.size, s.dtype) for s in self.outputs]
        self.alone = None
        if len(self.steps) == 1:
            one, sources = self.steps[0]
            everything = [(i, i, -1) for i in range(len(self.replaced))]
            if sources == everything and len(one.bufs) == len(everything):
                self.alone = one.prg
        # a result that each call makes anew, seen as it lies in memory: which output it is, and how
        self.whole: dict[int, tuple[int, ShapeTracker, tuple[str, int]]] = {}
        for tensor in tensors_in(result):
            place, lazy = self.results[id(tensor)] - len(call.tensors), tensor.lazydata
            if place >= 0 and lazy.st.numeric and lazy.st.contiguous and lazy.st.size == lazy.base.st.size:
                self.whole[id(tensor)] = place, lazy.st, lazy.origin
        self.only = self.whole.get(id(result))
        plain = made.args is not None and len(self.whole) == len(self.results) and not call.pins
        self.expected = Expected.of(made.args) if plain and made.args is not None else None

    @staticmethod
    def _unsettled(made: Made, fused: list[LazyBuffer]) -> str:
        """Why the next call has to be recorded again, in words; nothing if there is no reason."""
        if any(node.is_realized for node in fused):
            return "a tensor that it used was not computed before"
        for tensor in live():
            assert isinstance(tensor, Tensor)
            if made.seen.moved(tensor):
                return f"a tensor of shape {tensor.shape} from outside got other memory"
        return ""

    def _left(self, made: Made, result: Any, written: set[int]) -> list[Tensor]:
        """The tensors that the function made and left somewhere, in memory that the record writes."""
        mine, inputs = {id(tensor) for tensor in tensors_in(result)}, {one.lazy.storage for one in made.call.tensors}
        found = []
        for tensor in live():
            assert isinstance(tensor, Tensor)
            storage = tensor.lazydata.storage
            if storage is None or id(tensor) in mine or storage in inputs or storage in self.outputs:
                continue
            new = not made.seen.knew(tensor) and not made.seen.was_there(storage.root)
            if new and id(buffer_of(storage).base) in written:
                found.append(tensor)
        return found

    @staticmethod
    def _fresh(result: Any, seen: Observer) -> list[Storage]:
        """The memory of results that each call makes anew: made by the call; nobody else holds it."""
        found: dict[Storage, None] = {}
        for tensor in tensors_in(result):
            storage = tensor.lazydata.storage
            if storage is not None and not seen.was_there(storage):
                found[storage] = None
        return list(found)

    def _overlap(self, call: Call) -> None:
        """Looks whether inputs are parts of one memory that the record writes."""
        roots = [one.root for one in call.tensors]
        if self.written and len(set(roots)) < len(roots):
            names = [one.name for one in call.tensors if roots.count(one.root) > 1]
            raise JitError(f"TinyJit: {' and '.join(names)} are parts of the same memory, and the function writes to "
                           "an argument; pass copies, or the whole once")

    def accepts(self, call: Call) -> None:
        """Looks whether the record can work on the memory of a call.

        Raises:
          OtherMemory: an argument is memory that the function knows from elsewhere, too, and something is written.
          JitError: two arguments are parts of the same memory, and something is written.
        """
        if self.own:
            for one in call.tensors:
                if one.root in self.own:
                    raise OtherMemory(f"{one.name} is memory that the function uses from elsewhere, too")
        self._overlap(call)

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

    def _apart(self) -> Steps:
        """The items one by one."""
        return [(item, self._sources(item)) for item in self.items]

    def _condensed(self) -> Steps:
        """The items, runs of kernels of one device condensed into one where the device can do that."""
        steps: Steps = []
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
        """Executes the record on the memory of another call's arguments.

        Raises:
          JitError: they do not fit it.
          OtherMemory: the function must be recorded anew for them.
        """
        call.check(self.call)
        self.accepts(call)
        if self.written:
            self._outdate()
            call.own(self.written)
            for position in self.written:
                storage = call.tensors[position].lazy.storage
                assert storage is not None
                overwrite(storage, self.origin)
        result = self._run(call, call.buffers(), call.values)
        self.write_back(call)
        return result

    def first(self, call: Call) -> Any:
        """The result of the call that was recorded. Where that was given copies of parts, the parts stand in it."""
        self.write_back(call)

        def original(tensor: Tensor) -> Tensor:
            place = self.results[id(tensor)]
            copied = 0 <= place < len(call.tensors) and call.tensors[place].copied
            return self._renewed(tensor, call, []) if copied else tensor

        return rebuilt(self.result, original) if any(one.copied for one in call.tensors) else self.result

    def write_back(self, call: Call) -> None:
        """Puts what was written to copies of parts of memory into these."""
        copied = [one for one in (call.tensors[position] for position in self.written) if one.copied]
        for one in copied:
            one.tensor._store(Tensor._wrap(one.lazy))
        if copied:
            finish_assigns()

    def again(self, args: tuple[Any, ...]) -> Any:
        """Executes the record on plain arguments like those of its making; ``NotImplemented`` if they are others."""
        expected = self.expected
        if expected is None or Tensor.training is not self.training or MODE.recording is not self.recording:
            return NotImplemented
        found = expected.found(args)
        if found is None or not self.foreign.isdisjoint(found[0]):
            return NotImplemented
        for position in self.written:
            lazy = args[expected.tensors[position][0]]._lazy
            if lazy.storage.readers or lazy.storage.holders or not args[expected.tensors[position][0]]._owns():
                return NotImplemented
        return self._run(None, *found)

    def _run(self, call: Call | None, buffers: list[Buffer], values: dict[Variable, int]) -> Any:
        if self.doubts:
            check_reach("a replay", self.doubts, values)
        if self.leftovers:
            self._outdate()
        if any(self.readers) or any(storage.holders for storage in self.overwritten):
            for storage in self.overwritten:
                overwrite(storage, self.origin)
        storages = []
        for allocator, device, size, dtype in self.fresh:
            buffer = Buffer.allocated(allocator, device, size, dtype)
            buffers.append(buffer)
            storages.append(Storage(device, size, dtype, buffer))
        for stream in self.streams:
            renew(stream)
        alone = self.alone
        if alone is None or DEBUG.value or PROFILE.value or ANOMALY.value:
            with Uninterrupted(lambda: self._abandoned(buffers)):
                self._step_by_step(buffers, values)
        else:
            alone(buffers, values)
            alone.count(values)
        for one, lazy in self.sized:
            tensor = one()
            if tensor is not None:
                tensor._lazy = lazy.bind(values)
        self.grads.leave()
        return self._results(call, storages)

    def _outdate(self) -> None:
        """Makes what the recorded call left uncomputed impossible to compute: the function would have left another."""
        for one, lazy in self.leftovers:
            tensor = one()
            if tensor is not None and tensor.lazydata.base is lazy.base:  # computed since or not
                gone = LazyBuffer.empty(lazy.shape, lazy.dtype, lazy.device)  # that reads nothing, and cannot be read
                gone.origin, gone.stale = lazy.base.origin, self.origin
                tensor.lazydata = gone
        self.leftovers = []

    def _results(self, call: Call | None, storages: list[Storage]) -> Any:
        if self.only is None:
            return rebuilt(self.result, lambda tensor: self._renewed(tensor, call, storages))
        place, st, origin = self.only
        return Tensor._wrap(LazyBuffer.in_storage(storages[place], st, origin))

    def _step_by_step(self, buffers: list[Buffer], values: dict[Variable, int]) -> None:
        looks, steps = ANOMALY.value, self.steps
        if looks:
            steps = self.single = self.single or self._apart()
        try:
            for item, sources in steps:
                for position, place, offset in sources:
                    buffer = buffers[place]
                    if offset >= 0:
                        part = item.bufs[position]
                        assert part is not None
                        buffer = buffer.view(part.size, part.dtype, offset)
                    item.bufs[position] = buffer
                watch = watched(item.prg, item.bufs, values, item.told_origin) if looks else None
                item.run(values, jit=True)
                if watch is not None:
                    watch.check()
        finally:
            self._let_go(steps)

    def _abandoned(self, buffers: list[Buffer]) -> None:
        """Marks everything that a replay writes: a second Ctrl-C ended it in the middle."""
        for item in self.items:
            for position in written_by(item):
                buffer = item.bufs[position]
                assert buffer is not None
                place = self.places.get(id(buffer.base))
                (buffer if place is None else buffers[place]).spoil("a replay of TinyJit was interrupted twice")

    def _let_go(self, steps: Steps) -> None:
        """Drops the memory of this call, so that its owners alone decide when it is freed."""
        for item, sources in steps:
            for position, place, offset in sources:
                if offset < 0:
                    item.bufs[position] = self.replaced[place]

    @staticmethod
    def _sharing(out: Tensor, home: Memory | None) -> Tensor:
        """A result that shares memory with others."""
        if home is not None and home.direct and home.base is out.lazydata.base:
            out._home = home
        return out

    def _place(self, tensor: Tensor) -> int:
        """Which of the replaced buffers a result is in, by number; -1 if none."""
        storage = tensor.lazydata.storage
        inputs = [one.lazy.storage for one in self.call.tensors]
        if storage is None:
            return -1
        return next((n for n, mine in enumerate([*inputs, *self.outputs]) if mine is storage), -1)

    def _renewed(self, tensor: Tensor, call: Call | None, storages: list[Storage]) -> Tensor:
        whole = self.whole.get(id(tensor))
        if whole is not None:
            place, st, origin = whole
            return Tensor._wrap(LazyBuffer.in_storage(storages[place], st, origin))
        assert call is not None
        place, lazy = self.results[id(tensor)], self.shown[id(tensor)]
        if place < 0:  # a constant, which a caller may assign to, or from outside
            if id(tensor) in self.known:
                return tensor
            lazy = lazy if lazy.st.numeric else lazy.base._seen(lazy.st.bind(call.values))
            return self._sharing(Tensor._wrap(lazy), self.homes[id(tensor)])
        if id(tensor) in self.given:
            return call.tensors[self.given[id(tensor)]].tensor
        st, base_shape = lazy.st.bind(call.values), lazy.base.st.bind(call.values).shape
        if place < len(call.tensors):
            given = call.tensors[place].tensor
            seen = given.lazydata.reshape(base_shape)
            return self._sharing(Tensor._wrap(seen.base._seen(seen.st + st)), given._memory())
        else:
            seen = LazyBuffer.from_storage(storages[place - len(call.tensors)], base_shape)
        return Tensor._wrap(seen.base._seen(seen.st + st))
