"""What a call of a recorded function executed: made ready to be replayed on other memory."""

from __future__ import annotations

from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any
from weakref import ref

from tg_lazy import ANOMALY, DEBUG, LazyBuffer, Ops, Storage
from tg_lazy.ast.reach import check_reach
from tg_runtime import PROFILE, Buffer, Device, buffer_of
from tg_runtime.host.interrupts import Uninterrupted
from tg_shape import Variable

from ..array.writing import store
from ..autograd.differentiation import MODE
from ..memory.home import Clock
from ..memory.realization import finish_assigns, live, overwrite
from ..ops.streams import renew
from ..tensor import Tensor
from .call import Call, Expected, JitError, OtherMemory
from .grads import Grads
from .made import Made, all_written
from .outcome import Outcome
from .outside import Outside
from .results import tensors_in
from .steps import Steps

if TYPE_CHECKING:
    from tg_runtime import ExecItem

    from .steps import Source

_holders_of = attrgetter("holders")


class Record:
    """What a call executed, ready to be replayed on other memory.

    Args:
      made: what it was.
      result: what it returned.

    Attributes:
      unsettled: why the next call has to be recorded again, in words; nothing if there is no reason.
      memory: what the memory between the steps takes.
    """

    def __init__(self, made: Made, result: Any) -> None:
        call = self.call = made.call
        written = all_written(made.items)
        self.inputs = call.buffers()
        self.written = [n for n, buffer in enumerate(self.inputs) if id(buffer.base) in written]
        nodes = made.seen.used()
        self.unsettled = self._unsettled(made, nodes)
        self._overlap(call)
        self.outcome = Outcome(result, call, made.seen)
        outputs = self.outcome.outputs
        inputs = {one.lazy.storage for one in call.tensors}
        roots = [root for root in dict.fromkeys([*made.seen.storages, *made.shown(result)]) if root not in inputs]
        self.outside = self._outside(made, result, roots, nodes, written)
        self.grads = Grads(made.seen.gradients())
        self.leftovers, self.since = made.leftovers(result), Clock.now
        kept = {s.root for tensor in live() if (s := tensor.lazydata.storage) is not None}
        kept.difference_update(inputs, outputs)
        self.overwritten = [root for root in kept if root.payload is not None and id(buffer_of(root).base) in written]
        self.readers = [root.readers for root in self.overwritten]
        # what the function keeps elsewhere, of sizes that depend on variables
        self.sized = [
            (ref(tensor), tensor.lazydata) for tensor in live()
            if isinstance(tensor, Tensor) and not tensor.lazydata.st.numeric and tensor.lazydata.storage in kept
            and not made.seen.knew(tensor) and id(tensor) not in self.outcome.tensors
        ]  # fmt: skip
        self.own = frozenset([*roots, *self.overwritten] if self.written or self.overwritten else [])
        self.foreign = frozenset(buffer_of(root) for root in self.own)
        self.streams, self.origin = made.streams, made.origin
        self.fresh = [(Device[s.device].allocator, s.device, s.size, s.dtype) for s in outputs]
        self.executed = Steps(made.items, made.ended, [*self.inputs, *map(buffer_of, outputs)], call.values)
        self.memory, self.alone = self.executed.memory, self.executed.alone
        self.only, self.pair = self.outcome.only, self.outcome.pair
        # what few records have to do in each replay: that nothing of it is to be done is seen at one glance
        # what the function would find changed outside, in words; nothing if it would use what the record uses
        self.changed = self._changed if self.grads.fixed else self.outside.changed
        self.looks = self.outside.ways is not None or self.grads.fixed
        self.prepares = bool(self.executed.doubts or self.leftovers or self.overwritten)
        self.leaves = self.grads.left
        self.training, self.recording, self.precision = Tensor.training, MODE.recording, MODE.precision
        plain = made.args is not None and self.outcome.simple and not call.pins
        self.expected = Expected.of(made.args) if plain and made.args is not None else None

    def _outside(
        self, made: Made, result: Any, roots: list[Storage], nodes: list[LazyBuffer], written: set[int]
    ) -> Outside:
        left = self._left(made, result, written)
        for tensor in left:
            if tensor._home is not None and not tensor._home.direct and tensor.lazydata.is_whole:
                tensor._home = tensor._place = None  # it is in memory that is the record's, and follows what is there
        constants = [tensor for tensor in live() if isinstance(tensor, Tensor)
                     and tensor.lazydata.base.op is Ops.CONST and made.seen.knew(tensor)]  # fmt: skip
        return Outside(roots, nodes, made.reached, constants, left, made.after)

    @property
    def steps(self) -> list[tuple[ExecItem, list[Source]]]:
        """What a replay executes, each with the buffers of it that are replaced."""
        return self.executed.steps

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
            if storage is None or id(tensor) in mine or storage in inputs or storage in self.outcome.outputs:
                continue
            new = not made.seen.knew(tensor) and not made.seen.was_there(storage.root)
            if new and id(buffer_of(storage).base) in written:
                found.append(tensor)
        return found

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
          OtherMemory: if an argument is memory that the function knows from elsewhere, too, and something is written.
          JitError: if two arguments are parts of the same memory, and something is written.
        """
        if self.own:
            for one in call.tensors:
                if one.root in self.own:
                    raise OtherMemory(f"{one.name} is memory that the function uses from elsewhere, too")
        self._overlap(call)

    def _changed(self) -> str:
        return self.outside.changed() or self.grads.changed()

    def replay(self, call: Call) -> Any:
        """Executes the record on the memory of another call's arguments.

        Raises:
          JitError: if they do not fit it.
          OtherMemory: if the function must be recorded anew for them.
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
        """The result of the call that was recorded."""
        self.write_back(call)
        return self.outcome.first(call)

    def write_back(self, call: Call) -> None:
        """Puts what was written to copies of parts of memory into these."""
        copied = [one for one in (call.tensors[position] for position in self.written) if one.copied]
        for one in copied:
            store(one.tensor, Tensor._wrap(one.lazy))
        if copied:
            finish_assigns()

    def again(self, args: tuple[Any, ...]) -> Any:
        """Executes the record on plain arguments like those of its making; ``NotImplemented`` if they are others."""
        expected = self.expected
        if expected is None or Tensor.training is not self.training or MODE.recording is not self.recording:
            return NotImplemented
        if MODE.precision != self.precision:
            return NotImplemented
        found = expected.found(args)
        if found is None or (self.foreign and not self.foreign.isdisjoint(found[0])):
            return NotImplemented
        if self.written and not self._may_write(args, expected):
            return NotImplemented
        return self._run(None, *found)

    def _may_write(self, args: tuple[Any, ...], expected: Expected) -> bool:
        """Whether arguments may be written as they are: nobody has yet to read them, and their memory is theirs."""
        for position in self.written:
            arg = expected.tensor(args, position)
            storage = arg._lazy.storage
            assert storage is not None
            if storage.readers or storage.holders or not arg._owns():
                return False
        return True

    def _run(self, call: Call | None, buffers: list[Buffer], values: dict[Variable, int]) -> Any:
        if self.prepares:
            self._prepare(values)
        storages = []
        for allocator, device, size, dtype in self.fresh:
            buffer = Buffer.allocated(allocator, device, size, dtype)
            buffers.append(buffer)
            storages.append(Storage(device, size, dtype, buffer))
        for stream in self.streams:
            renew(stream)
        alone = self.alone
        if alone is None or DEBUG.value or PROFILE.value or ANOMALY.value:
            with Uninterrupted(partial(self.executed.abandoned, buffers)):
                self.executed.run(buffers, values)
        else:
            alone(buffers, values)
            alone.count(values)
        if self.sized:
            self._resize(values)
        if self.leaves:
            self.grads.leave()
        if self.only is not None:
            place, st, origin = self.only
            return Tensor._wrap(LazyBuffer.in_storage(storages[place], st, origin))
        if self.pair is not None:
            kind, parts = self.pair
            re, im = [Tensor._wrap(lazy.in_new_storage(storages[place], st)) for place, st, lazy in parts]
            return kind._composed(re, im)
        return self.outcome.renewed(call, storages, values)

    def _prepare(self, values: dict[Variable, int]) -> None:
        """Looks whether the values of variables lead out of memory, and prepares memory to be overwritten."""
        if self.executed.doubts:
            check_reach("a replay", self.executed.doubts, values)
        if self.leftovers:
            self._outdate()
        if any(self.readers) or any(map(_holders_of, self.overwritten)):
            for storage in self.overwritten:
                overwrite(storage, self.origin)

    def _resize(self, values: dict[Variable, int]) -> None:
        """Gives tensors that the function keeps elsewhere the sizes of this call."""
        for one, lazy in self.sized:
            tensor = one()
            if tensor is not None:
                tensor._lazy = lazy.bind(values)

    def _computed(self, tensor: Tensor) -> bool:
        """Whether what the recorded call left is in memory of its own since, and nobody wrote to that."""
        home = tensor._home
        if not tensor.lazydata.is_realized or home is None:
            return tensor.lazydata.is_realized
        return home.written <= self.since and home.owner is not None and home.owner() is tensor

    def _outdate(self) -> None:
        """Makes what the recorded call left uncomputed impossible to compute: the function would have left another."""
        for one, lazy in self.leftovers:
            tensor = one()
            if tensor is not None and (tensor.lazydata.base is lazy.base or self._computed(tensor)):
                gone = LazyBuffer.empty(lazy.shape, lazy.dtype, lazy.device)  # that reads nothing, and cannot be read
                gone.origin, gone.stale = lazy.base.origin, self.origin
                tensor.lazydata = gone
        self.leftovers = []
