"""What a recorded function returned, and how each replay makes it anew."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any
from weakref import ref

from tg_lazy import LazyBuffer, Storage
from tg_runtime import buffer_of

from ..memory.home import Bits, Lineage, Memory
from ..tensor import Tensor
from .results import rebuilt, tensors_in

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from tg_dtype import DType
    from tg_shape import ShapeTracker, Variable

    from .call import Call
    from .outside import Observer

    _Pair = tuple[type[Tensor], list[tuple[int, ShapeTracker, LazyBuffer]]]


def whole_of(home: Memory) -> Memory:
    """The memory that one is a part of, taken in another dtype; itself if it is none."""
    while isinstance(home, Bits):
        home = home.whole
    return home


def copied_together(tensors: Collection[Tensor]) -> dict[int, Tensor]:
    """A copy of each tensor, by number. Those that share memory have copies that share memory."""
    homes: dict[int, Memory] = {}
    lines: dict[int, Lineage] = {}
    alike = Counter(id(whole_of(tensor._home)) for tensor in tensors if tensor._home is not None)

    def copied(home: Memory) -> Memory:
        if id(home) not in homes:
            other = Bits(copied(home.whole), home.st, home.dtype) if isinstance(home, Bits) else None
            homes[id(home)] = Memory.of(home._copied()) if other is None else other
        return homes[id(home)]

    out = {}
    for tensor in tensors:
        lazy, home = tensor.lazydata, tensor._home
        if home is None or alike[id(whole_of(home))] == 1:
            out[id(tensor)] = Tensor._wrap(lazy.clone())
        else:
            out[id(tensor)] = _seen(copied(home), (tensor._place or lazy).st, tensor._cut, lines)
    return out


def _part(lazy: LazyBuffer) -> tuple[int, DType, int] | None:
    """Which part of other memory a value is: its elements, their dtype, and at which byte it begins; None if it is
    none."""
    storage = lazy.storage
    if storage is None or storage.root is storage:
        return None
    buffer = buffer_of(storage)
    return buffer.size, buffer.dtype, buffer.offset - buffer_of(storage.root).offset


def _seen(home: Memory, st: ShapeTracker, cut: Lineage | None, lines: dict[int, Lineage]) -> Tensor:
    """A tensor that sees memory.

    Args:
      home: the memory.
      st: which part.
      cut: where the elements come from, of what was detached when it was recorded.
      lines: the lineages that stand for those of the record, by number: tensors that had one together have one here.
    """
    out = Tensor._wrap(home.base.seen(st))
    out._home = home
    if cut is not None:
        out._cut = lines.setdefault(id(cut), Lineage(ref(out)))
    return out


class _Plan:
    """How to make the memory anew that results share: it is that of an argument, a new one, or from outside.

    Args:
      home: the memory as it was recorded.
      given: the argument that it is, by number; -1 if none.
      output: the new memory that it is, by number; -1 if none.
      outside: whether a tensor from before the call has it.
      of: the plan for the memory that this is a part of, in another dtype.
    """

    __slots__ = ("base", "given", "home", "of", "output", "outside", "st")

    def __init__(self, home: Memory, given: int, output: int, outside: bool, of: _Plan | None) -> None:
        self.home, self.given, self.output, self.outside, self.of = home, given, output, outside, of
        self.base = home.base
        self.st = home.st if isinstance(home, Bits) else None


class Outcome:
    """The results of a record.

    Args:
      result: what the function returned.
      call: the call that was recorded.
      seen: what was there before it.

    Attributes:
      outputs: the memory of results that each call makes anew: made by the call, and nobody else holds it.
      tensors: the tensors in the result, by number.
      only: of a result that is one tensor, and new: which output it is, and how it is seen.
      pair: of a result that is one complex tensor, and new: its class, and of each part which output it is in, how that
        is shaped, and how the part was seen.
      simple: whether results are made without a look at the arguments of a call.
    """

    def __init__(self, result: Any, call: Call, seen: Observer) -> None:
        self._result = result
        found = tensors_in(result)
        # of the results as they are now, whatever their owner does to them later
        self.tensors = {id(tensor): tensor.lazydata for tensor in found}
        homes = [whole_of(tensor._home) for tensor in found if tensor._home is not None]
        alike = Counter(map(id, homes))
        bases = [*self.tensors.values(), *(home.base for home in homes)]
        self.outputs = list(dict.fromkeys(
            storage.root for lazy in bases if (storage := lazy.storage) is not None and not seen.was_there(storage)
        ))  # fmt: skip
        self._known = {id(tensor) for tensor in found if seen.knew(tensor)}
        self._given = {id(one.handed): n for n, one in enumerate(call.tensors)}
        self._inputs = [one.lazy.storage for one in call.tensors]
        self._places = {number: self._place(lazy) for number, lazy in self.tensors.items()}
        self._parts = {number: part for number, lazy in self.tensors.items() if (part := _part(lazy)) is not None}
        self._shared = self._sharing(found, call, seen, alike)
        # a result that is one tensor of its own, seen as it lies in memory: which output it is, and how
        self._whole: dict[int, tuple[int, ShapeTracker, tuple[str, int]]] = {}
        # one that is a view of such memory: which output it is, how that is shaped, and the view
        self._views: dict[int, tuple[int, ShapeTracker, LazyBuffer]] = {}
        for number, lazy in self.tensors.items():
            place = self._places[number] - len(self._inputs)
            if place < 0 or number in self._shared or number in self._given:
                continue
            if lazy.st.numeric and lazy.st.contiguous and lazy.st.size == lazy.base.st.size:
                self._whole[number] = place, lazy.st, lazy.origin
            elif lazy.st.numeric and lazy.base.st.numeric:
                self._views[number] = place, lazy.base.st, lazy
        self.only = None if id(result) in self._parts else self._whole.get(id(result))
        self.pair = self._pair(result)
        self.simple = len(self._whole) + len(self._views) == len(self.tensors)

    def _pair(self, result: Any) -> _Pair | None:
        """How to make a result that is one complex tensor of new memory; None if it is another."""
        numbers = [id(part) for part in result._floats()] if isinstance(result, Tensor) else []
        if len(numbers) != 2 or any(n in self._parts for n in numbers):
            return None
        made = []
        for n in numbers:
            if n in self._whole:
                place, st, _ = self._whole[n]
                made.append((place, st, self.tensors[n]))
            elif n in self._views:
                made.append(self._views[n])
            else:
                return None
        return type(result), made

    def _place(self, lazy: LazyBuffer) -> int:
        """Which of the replaced buffers a result is in, by number; -1 if none."""
        storage = lazy.storage
        if storage is None:
            return -1
        if storage in self._inputs:
            return self._inputs.index(storage)
        return len(self._inputs) + self.outputs.index(storage.root) if storage.root in self.outputs else -1

    def _sharing(
        self, found: list[Tensor], call: Call, seen: Observer, alike: Counter[int]
    ) -> dict[int, tuple[_Plan | None, ShapeTracker, Lineage | None]]:
        """The results that share memory with another, an argument or what is outside; or are there twice."""
        plans: dict[int, _Plan] = {}
        homes = {id(one.handed._home): n for n, one in enumerate(call.tensors) if one.handed._home is not None}
        outside = seen.homes()

        def plan(home: Memory) -> _Plan:
            if id(home) not in plans:
                of = plan(home.whole) if isinstance(home, Bits) else None
                storage = home.base.storage
                output = self.outputs.index(storage) if storage in self.outputs and of is None else -1
                plans[id(home)] = _Plan(home, homes.get(id(home), -1), output, id(home) in outside, of)
            return plans[id(home)]

        twice = Counter(map(id, found))
        shared: dict[int, tuple[_Plan | None, ShapeTracker, Lineage | None]] = {}
        for tensor in found:
            home, lazy = tensor._home, self.tensors[id(tensor)]
            if home is not None and home.direct:
                whole = whole_of(home)
                if id(whole) in homes or id(whole) in outside or alike[id(whole)] > 1:
                    shared[id(tensor)] = plan(home), (tensor._place or lazy).st, tensor._cut
                    continue
            if twice[id(tensor)] > 1:
                shared[id(tensor)] = None, lazy.st, None
        return shared

    def first(self, call: Call) -> Any:
        """The result of the call that was recorded. Where that was given copies of parts, the parts stand in it."""
        copied = {n for n, one in enumerate(call.tensors) if one.copied}
        if not copied:
            return self._result
        renew = _Renewal(self, call, [], call.values)

        def stands_in(tensor: Tensor) -> bool:
            plan, *_ = self._shared.get(id(tensor), (None, None, None))
            while plan is not None and plan.of is not None:
                plan = plan.of
            return self._places[id(tensor)] in copied or (plan is not None and plan.given in copied)

        def original(tensor: Tensor) -> Tensor:
            return renew(tensor) if stands_in(tensor) else tensor

        return rebuilt(self._result, original)

    def renewed(self, call: Call | None, storages: list[Storage], values: Mapping[Variable, int]) -> Any:
        """The result of a replay.

        Args:
          call: its arguments; None only where these make no difference.
          storages: the memory of its outputs.
          values: the variables' values.
        """
        return rebuilt(self._result, _Renewal(self, call, storages, values))


class _Renewal:
    """Makes the results of one replay."""

    __slots__ = ("_call", "_homes", "_lines", "_made", "_of", "_storages", "_values")

    def __init__(
        self, of: Outcome, call: Call | None, storages: list[Storage], values: Mapping[Variable, int]
    ) -> None:
        self._of, self._call, self._storages, self._values = of, call, storages, values
        self._made: dict[int, Tensor] = {}
        self._lines: dict[int, Lineage] = {}
        self._homes: dict[int, tuple[Memory, ShapeTracker | None]] = {}

    def __call__(self, tensor: Tensor) -> Tensor:
        number = id(tensor)
        whole = self._of._whole.get(number)
        if whole is not None:
            place, st, origin = whole
            return Tensor._wrap(LazyBuffer.in_storage(self._storage(place, number), st, origin))
        view = self._of._views.get(number)
        if view is not None:
            place, base, lazy = view
            return Tensor._wrap(lazy.in_new_storage(self._storage(place, number), base))
        made = self._made.get(number)
        if made is None:
            made = self._made[number] = self._renewed(tensor)
        return made

    def _renewed(self, tensor: Tensor) -> Tensor:
        of, call, number = self._of, self._call, id(tensor)
        place, lazy = of._places[number], of.tensors[number]
        if place < 0 and number in of._known:
            return tensor
        if number in of._given:
            assert call is not None
            return call.tensors[of._given[number]].tensor
        plan, st, cut = of._shared.get(number, (None, None, None))
        if plan is not None and st is not None:
            home, outer = self._memory(plan)
            seen = st.bind(self._values)
            return _seen(home, seen if outer is None else outer + seen, cut, self._lines)
        if place < 0:  # a constant, which a caller may assign to
            return Tensor._wrap(lazy if lazy.st.numeric else lazy.base.seen(lazy.st.bind(self._values)))
        shape = lazy.base.st.bind(self._values).shape
        if place < len(of._inputs):
            assert call is not None
            base = call.tensors[place].tensor.lazydata.reshape(shape)
            return Tensor._wrap(base.seen(base.st + lazy.st.bind(self._values)))
        fresh = LazyBuffer.from_storage(self._storage(place - len(of._inputs), number), shape)
        return Tensor._wrap(fresh.seen(lazy.st.bind(self._values)))

    def _storage(self, place: int, number: int) -> Storage:
        """The memory of a result in this replay: an output, or the part of it that the result is."""
        whole, part = self._storages[place], self._of._parts.get(number)
        if part is None:
            return whole
        size, dtype, offset = part
        return Storage(whole.device, size, dtype, buffer_of(whole).view(size, dtype, offset), whole)

    def _memory(self, plan: _Plan) -> tuple[Memory, ShapeTracker | None]:
        """The memory of this replay, and which part of it is what was the memory when it was recorded."""
        found = self._homes.get(id(plan))
        if found is None:
            found = self._homes[id(plan)] = self._found(plan)
        return found

    def _found(self, plan: _Plan) -> tuple[Memory, ShapeTracker | None]:
        base = plan.base.st.bind(self._values)
        if plan.given >= 0:
            assert self._call is not None
            given = self._call.tensors[plan.given].tensor
            home = given._memory()
            return home, given.lazydata.reshape(base.shape).st
        if plan.of is not None:
            assert plan.st is not None and isinstance(plan.home, Bits)
            home, outer = self._memory(plan.of)
            st = plan.st.bind(self._values)
            return Bits(home, st if outer is None else outer + st, plan.home.dtype), None
        if plan.output >= 0:
            return Memory.of(LazyBuffer.from_storage(self._storages[plan.output], base.shape)), None
        return (plan.home if plan.outside else Memory.of(plan.base.seen(base))), None
