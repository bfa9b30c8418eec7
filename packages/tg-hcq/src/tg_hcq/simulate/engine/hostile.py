"""A machine that does whatever hardware is allowed to do: a program that is right on it forgot no wait and no flush.

* Registers, shared memory and scratch hold garbage when a wave begins.
* A load's registers hold garbage until it returns, which may be at any time and out of order; reading one before it was
  waited for is a fault, even if the value is there.
* A load reads when it is issued, or when it returns. Stores reach others late; all of it out of order, but for accesses
  of one wave to the same bytes.
* Each compute unit has a cache that keeps what it has, behind them stands one that keeps stores and does atomics; what
  the program or the command processor does not drop or flush is never seen.
* Where the manual gives no more than a bound, or leaves an order open, results are any of those that are allowed.
* Waves run in random slices, several workgroups at a time. Between any two the queue may be unmapped and resumed: its
  workgroups go on in other memory. Caches keep what they have meanwhile, for that is worse.

Everything is drawn from the seed.
"""

from __future__ import annotations

import ctypes
import random
import weakref
from array import array
from collections.abc import Callable, Collection
from typing import TypeAlias

from . import state
from .access import ALL_BITS, Pending, Request, Span, Words
from .caches import Caches, lines_of
from .code import Decoder, Instruction
from .fault import EngineFault, Fault
from .launch import Group, Launch
from .machine import Host, Machine
from .memory import LINE, AddressSpace
from .native import Engine
from .state import Access, FaultKind, Half, Operation, Scope, Space, Status
from .trace import Trace
from .wave import Wave

Waits: TypeAlias = Callable[[Instruction], dict[int, int]]
"""What an instruction that stops with ``Status.WAIT`` waits for: of each counter, how many accesses may be left."""

UNITS = 2  # compute units, over which workgroups are spread: two that share a cache, and two that do not
EARLY = 0.2  # how often something returns before it is waited for, whenever the wave is looked at
LATE = 0.5  # how often a load reads when it returns
MOVED = 0.1  # how often the queue is unmapped between two slices
LONGEST_SLICE = 24

_BASES = {Space.SHARED: state.SHARED, Space.SCRATCH: state.SCRATCH}  # where a wave's state says where they are


class HostileMachine(Machine):
    """A machine for an engine that was made hostile.

    Args:
      engine: native code that asks for accesses.
      space: what addresses mean.
      decode: of the instruction set.
      granule: instructions begin at multiples of it.
      seed: of everything that is drawn.
      hosts: what is done by the host, by the handler's name.
      trace: which waves are traced.
      waits: of the instruction set.
      ordered: the counters whose accesses return in order: such a wait for all but some is one for the oldest.
      caches: what stands between waves and memory, if other machines have it, too.

    Attributes:
      caches: what stands between waves and memory.
    """

    def __init__(
        self, engine: Engine, space: AddressSpace, decode: Decoder, granule: int = 4, seed: int = 0,
        hosts: dict[str, Host] | None = None, trace: Trace | None = None,
        waits: Waits = lambda instruction: {}, ordered: frozenset[int] = frozenset(), caches: Caches | None = None,
    ) -> None:  # fmt: skip
        super().__init__(engine, space, decode, granule, seed, hosts, trace)
        self.waits, self.ordered = waits, ordered
        self.caches = caches or Caches(space, UNITS)
        self._draws = random.Random(f"draws of {seed}")  # of instructions, apart from what waves and memories do
        self._pending: weakref.WeakKeyDictionary[Wave, list[Pending]] = weakref.WeakKeyDictionary()
        self._ended: weakref.WeakSet[Wave] = weakref.WeakSet()  # whose accesses did not all return

    def resident(self) -> int:
        """How many workgroups run at the same time."""
        return self.rng.randint(1, 3)

    def slice(self) -> int:
        """How many instructions a wave runs before another does."""
        return self.rng.randint(1, self.rng.choice((2, LONGEST_SLICE)))

    def garbage(self) -> random.Random:
        """What new registers and memories hold."""
        return self.rng

    def begin(self, launch: Launch, number: int, slot: int = 0) -> Group:
        """A new workgroup, on one of the compute units."""
        group = super().begin(launch, number, slot)
        for wave in group.waves:
            wave.unit = number % self.caches.units
            wave.put(state.DRAWN, self._draws.getrandbits(64), 2)
        return group

    def resume(self, groups: list[Group]) -> None:
        """Moves the workgroups at times, as if their queue had been unmapped."""
        if self.rng.random() < MOVED:
            for group in groups:
                group.move(self.rng)

    def run_wave(self, launch: Launch, wave: Wave) -> Status:
        """As of a machine; a wave that ended has not until its accesses are done, and others run meanwhile."""
        self._return_early(wave)
        status = Status.ENDED if wave in self._ended else super().run_wave(launch, wave)
        if status is not Status.ENDED:
            return status
        if any(not pending.returned for pending in self._pending.get(wave, ())):
            self._ended.add(wave)
            return Status.WAIT
        return Status.ENDED

    def later(self, wave: Wave, counter: int, action: Callable[[], None]) -> None:
        """Does something after all accesses that a wave has issued, and at the latest when a counter is waited for."""
        request = Request(Operation.STORE, Space.GLOBAL, 0, False, 0, counter, Scope.SYSTEM, 0, -1, Half.NEITHER,
                          False, False, 0, 0)  # fmt: skip
        earlier = list(self._pending.get(wave, ()))

        def finish(wave: Wave) -> Words:
            self._return(wave, lambda pending: pending in earlier)
            action()
            return {}

        self._pending.setdefault(wave, []).append(Pending(request, [], [], finish))

    def give(self, wave: Wave, counter: int, words: dict[int, int]) -> None:
        """As of a machine; they come late, and may not be read before they are waited for."""
        request = Request(Operation.SCALAR_LOAD, Space.GLOBAL, 0, False, 0, counter, Scope.SYSTEM, 0, -1, Half.NEITHER,
                          False, False, 0, 0)  # fmt: skip
        found = {offset: (word, ALL_BITS) for offset, word in words.items()}
        for offset in words:
            wave.put(offset, self.rng.getrandbits(32))
        self._pending.setdefault(wave, []).append(Pending(request, [], words, lambda wave: found))
        self._mark(wave)

    def _serve(self, launch: Launch, wave: Wave) -> None:
        self._return_early(wave)
        if wave.status is Status.ACCESS:
            self._access(launch, wave)
        elif wave.status is Status.WAIT:
            self._wait(wave, self.waits(self.code.instruction(self.pc(wave, state.STOPPED))))
        else:
            super()._serve(launch, wave)

    def _access(self, launch: Launch, wave: Wave) -> None:
        request, asked, pc = Request.of(wave), wave.get(state.RESUME, 2), self.pc(wave, state.STOPPED)
        if request.operation is Operation.EXCHANGE:
            self._exchanged(wave, request)
            return
        self._grant(launch, wave, state.CHECK_ONLY, self._call)
        outside = wave.get(state.OUTSIDE, 2)
        wave.put(state.OUTSIDE, 0, 2)
        every = self._places(wave, request)
        places = {lane: span for lane, span in every.items() if not outside >> lane & 1}
        held = request.operation is not Operation.STORE
        registers = [offset for lane in every for offset in request.registers(wave, lane)] if request.loads else []
        zeros = {offset: (0, request.mask()) for lane in every.keys() - places.keys() if request.loads
                 for offset in request.registers(wave, lane)}  # fmt: skip
        pending = Pending(request, places.values(), registers, lambda wave: {}, request.slots(every))
        self._return(wave, lambda earlier: earlier.precedes(pending, self.ordered))
        data = {} if held else {lane: request.data(wave, lane) for lane in places}
        if request.operation is Operation.ATOMIC:
            wave.put(state.RESUME, asked, 2)
            self._atomic(launch, wave, request, places)
            found = {offset: (wave.get(offset), ALL_BITS) for offset in registers}
            pending.finish = lambda wave: found
        elif request.operation is Operation.TO_SHARED:
            pending.finish = self._to_shared(launch, wave, pc, request, places, every)
        elif not held or self.rng.random() < LATE:
            pending.finish = lambda wave: zeros | self._transfer(launch, wave, pc, request, places, data)
        else:
            found = zeros | self._transfer(launch, wave, pc, request, places, data)
            pending.finish = lambda wave: found
        for offset in registers:
            kept = wave.get(offset) & ~request.mask()
            wave.put(offset, kept | self.rng.getrandbits(32) & request.mask())
        self._pending.setdefault(wave, []).append(pending)
        self._mark(wave)

    def _to_shared(
        self, launch: Launch, wave: Wave, pc: int, request: Request, places: dict[int, Span], lanes: Collection[int],
    ) -> Callable[[Wave], Words]:  # fmt: skip
        """Stores to shared memory what lanes load, and zeros of those outside; memory is read now, or then."""
        early = None if self.rng.random() < LATE else self._loaded(launch, wave, pc, request, places)
        slots = dict(zip(lanes, request.slots(lanes), strict=True))

        def finish(wave: Wave) -> Words:
            found = self._loaded(launch, wave, pc, request, places) if early is None else early
            for lane, slot in slots.items():
                self._store(wave, request, slot, request.word(found.get(lane, bytes(request.nbytes))))
            return {}

        return finish

    def _exchanged(self, wave: Wave, request: Request) -> None:
        """What lanes got from one another is in the registers already: it comes late all the same."""
        lanes = [lane for lane in range(wave.layout.lanes) if wave.exec >> lane & 1]
        registers = [offset for lane in lanes for offset in request.registers(wave, lane)]
        found = {offset: (wave.get(offset), ALL_BITS) for offset in registers}
        pending = Pending(request, [], registers, lambda wave: found)
        self._return(wave, lambda earlier: earlier.precedes(pending, self.ordered))
        for offset in registers:
            wave.put(offset, self.rng.getrandbits(32))
        self._pending.setdefault(wave, []).append(pending)
        self._mark(wave)

    def _places(self, wave: Wave, request: Request) -> dict[int, Span]:
        """Where each active lane's bytes begin: the address, or an offset, since workgroups may be moved."""
        if request.operation is Operation.SCALAR_LOAD:
            return {0: (Space.GLOBAL, wave.get(state.LANE_ADDRESSES, 2))}
        places, shared, private = dict[int, Span](), *self.engine.instructions.apertures
        for lane, address in wave.addresses().items():
            space = request.space
            if space is Space.GENERIC:
                upper = {shared: Space.SHARED, private: Space.SCRATCH}
                space = upper.get(address >> 32, Space.GLOBAL)
            if space is not Space.GLOBAL:
                address = wave.get(state.HOSTS + 8 * lane, 2) - wave.get(_BASES[space], 2)
            places[lane] = space, address
        return places

    def _grant(self, launch: Launch, wave: Wave, grant: int, call: Callable[[Wave, int], Status]) -> None:
        """Lets the wave do its access, or no more than check it; raises if it is refused."""
        wave.put(state.GRANT, grant, 2)
        wave.status = call(wave, 1)
        wave.put(state.EXECUTED, wave.executed - 1, 2)
        if wave.status is Status.FAULT:
            raise EngineFault(self._fault(launch, wave))

    def _scope(self, request: Request, address: int) -> Scope:
        """How far an access goes: past all caches where the mapping says so, of loads or of all."""
        access = self.space.access(address)
        past = access & Access.UNCACHED or (access & Access.COHERENT and request.operation is not Operation.STORE)
        return Scope.SYSTEM if past else request.scope

    def _transfer(
        self, launch: Launch, wave: Wave, pc: int, request: Request, places: dict[int, Span],
        data: dict[int, list[bytes]],
    ) -> Words:  # fmt: skip
        """Stores the lanes' data, or loads if there is none; what registers hold then."""
        if request.operation is not Operation.STORE:
            words: Words = {}
            for lane, loaded in self._loaded(launch, wave, pc, request, places).items():
                words |= request.words(wave, lane, loaded)
            return words
        lane = 0
        try:
            for lane, place in places.items():
                for span, part in zip(request.spans(place), data[lane], strict=True):
                    self._store(wave, request, span, part)
        except KeyError:
            raise self._unmapped(launch, wave, pc, request, lane, places[lane][1]) from None
        return {}

    def _loaded(
        self, launch: Launch, wave: Wave, pc: int, request: Request, places: dict[int, Span]
    ) -> dict[int, bytes]:
        """What lanes load."""
        found, lane = dict[int, bytes](), 0
        try:
            for lane, place in places.items():
                found[lane] = b"".join(self._load(wave, request, span) for span in request.spans(place))
        except KeyError:
            raise self._unmapped(launch, wave, pc, request, lane, places[lane][1]) from None
        return found

    def _unmapped(self, launch: Launch, wave: Wave, pc: int, request: Request, lane: int, at: int) -> EngineFault:
        """What went wrong where memory was unmapped since the access was issued."""
        access = Access.WRITE if request.operation is Operation.STORE else Access.READ
        single = request.operation is Operation.SCALAR_LOAD
        return EngineFault(Fault(
            FaultKind.UNMAPPED, launch.name, wave.group, wave.index, pc, self.code.text(pc), None if single else lane,
            at, access, request.nbytes,
        ))  # fmt: skip

    def _load(self, wave: Wave, request: Request, span: Span) -> bytes:
        space, at = span
        if space is not Space.GLOBAL:
            return ctypes.string_at(wave.get(_BASES[space], 2) + at, request.nbytes)
        scalar = request.operation is Operation.SCALAR_LOAD
        return self.caches.load(wave.unit, at, request.nbytes, self._scope(request, at), scalar)

    def _store(self, wave: Wave, request: Request, span: Span, data: bytes) -> None:
        space, at = span
        if space is Space.GLOBAL:
            self.caches.store(wave.unit, at, data, self._scope(request, at))
        else:
            ctypes.memmove(wave.get(_BASES[space], 2) + at, data, len(data))

    def _atomic(self, launch: Launch, wave: Wave, request: Request, places: dict[int, Span]) -> None:
        """Does it in the workgroup's memory, in the shared cache, or in memory where the host may take part."""
        addresses = [at for space, at in places.values() if space is Space.GLOBAL]
        if not addresses:
            self._grant(launch, wave, state.EVERYTHING, self._call)
            return
        lines = sorted({line for at in addresses for line in lines_of(at, request.nbytes)})
        caches, shared = self.caches, self.caches.die(wave.unit)
        several = len(caches.dies) > 1  # then atomics are done where all dies see them
        if several or any(self._scope(request, at) is Scope.SYSTEM for at in addresses):
            for die in caches.dies:
                die.flush(lines)
            self._grant(launch, wave, state.EVERYTHING, self._call)
            for cache in (*caches.dies, *caches.near(wave.unit)):
                cache.drop(lines)
            return
        # native code is given a copy of the lines, in place of memory
        copy = array("Q", b"".join(shared.read(line * LINE, LINE) for line in lines))
        host, access, table = copy.buffer_info()[0], int(Access.READ | Access.WRITE), array("Q")
        for number, line in enumerate(lines):
            at = line * LINE
            table.extend((at, at + LINE, (host + number * LINE - at) % (1 << 64), access))
        wave.map(table, len(lines))
        wave.mappings = 0
        self._grant(launch, wave, state.EVERYTHING, lambda _, budget: Status(self.engine.run(wave.address, budget)))
        data = copy.tobytes()
        for at in addresses:
            offset = lines.index(at // LINE) * LINE + at % LINE
            self.caches.store(wave.unit, at, data[offset : offset + request.nbytes], request.scope)

    def _return_early(self, wave: Wave) -> None:
        self._return(wave, lambda pending: self.rng.random() < EARLY)

    def _return(self, wave: Wave, chosen: Callable[[Pending], bool]) -> None:
        """Lets chosen accesses return, in random order, but for those that must be done before another."""
        waiting = [pending for pending in self._pending.get(wave, ()) if not pending.returned and chosen(pending)]
        self.rng.shuffle(waiting)
        for pending in waiting:
            if pending.returned:  # another one that returned had to come after it
                continue
            pending.returned = True
            for offset, (word, bits) in pending.finish(wave).items():
                wave.put(offset, wave.get(offset) & ~bits | word & bits)

    def _wait(self, wave: Wave, most: dict[int, int]) -> None:
        """Lets accesses return until no more than so many of each counter are left."""
        queue = self._pending.get(wave, [])
        for counter, left in most.items():
            done = []
            for counters in {frozenset(pending.request.counters) for pending in queue if counter in pending.counters}:
                alike = [pending for pending in queue if pending.request.counters == counters]
                if left and (len(counters) > 1 or counter not in self.ordered):
                    continue  # any of them may be the one that is left
                done += alike[: max(len(alike) - left, 0)]
            for pending in done:
                pending.counters.discard(counter)
            over = [pending for pending in done if not pending.counters]
            self._return(wave, lambda pending, over=over: pending in over)  # type: ignore[misc]
            queue = [pending for pending in queue if pending not in over]
        self._pending[wave] = queue
        self._mark(wave)

    def _mark(self, wave: Wave) -> None:
        """Notes in the wave's state which registers were not waited for."""
        layout = self.engine.layout
        wave.view[state.PENDING : state.PENDING + state.PENDING_BYTES] = bytes(state.PENDING_BYTES)
        for pending in self._pending.get(wave, ()):
            for offset in pending.registers:
                row = (offset - layout.rows) // layout.row_bytes
                place = offset // 4 if offset < layout.rows else state.PENDING_ROWS + row
                wave.view[state.PENDING + place] = 1
