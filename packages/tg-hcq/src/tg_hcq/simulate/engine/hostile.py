"""A machine that does whatever hardware is allowed to do: a program that is right on it forgot no wait and no flush.

* Registers, shared memory and scratch hold garbage when a wave begins.
* A load's registers hold garbage until it returns, which may be at any time and out of order; reading one before it was
  waited for is a fault, even if the value is there.
* Stores reach others late, and out of order unless they overlap.
* Each compute unit has a cache that keeps what it has, behind them stands one that keeps stores; what the program or
  the command processor does not drop or flush is never seen.
* Waves run in random slices, several workgroups at a time, and are moved to other memory in between, as a queue is that
  is unmapped and resumed.

Everything is drawn from the seed.
"""

from __future__ import annotations

import ctypes
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeAlias

from . import state
from .caches import Cache
from .code import Decoder, Instruction
from .fault import EngineFault
from .machine import Host, Launch, Machine
from .memory import AddressSpace
from .native import Engine
from .state import Operation, Space, Status
from .trace import Trace
from .wave import Wave

Waits: TypeAlias = Callable[[Instruction], dict[int, int]]
"""What an instruction that stops with ``Status.WAIT`` waits for: of each counter, how many accesses may be left."""

UNITS = 2  # compute units, over which workgroups are spread: two that share a cache, and two that do not
EARLY = 0.3  # how often something returns before it is waited for
MOVED = 0.1  # how often a wave is moved
LONGEST_SLICE = 24


@dataclass(frozen=True, slots=True)
class Request:
    """The access that a wave asks for."""

    operation: Operation
    space: Space
    nbytes: int
    signed: bool
    register: int
    counter: int
    policy: int
    rows: int


class _Pending:
    """An access that did not return yet, or was not waited for."""

    def __init__(self, request: Request, words: dict[int, int], stores: list[tuple[int, bytes]]) -> None:
        self.request = request
        self.words = words  # by offset in the wave's state, what the load brings
        self.stores = stores  # by address, or by the host's for a workgroup's memory
        self.returned = False

    def overlaps(self, request: Request, addresses: Iterable[int]) -> bool:
        """Whether it stores where another access goes."""
        if request.space is not self.request.space:
            return False
        spans = [(at, at + len(data)) for at, data in self.stores]
        return any(at < end and start < at + request.nbytes for at in addresses for start, end in spans)


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

    Attributes:
      second: the cache that all compute units share; it keeps stores until it is flushed.
      units: the caches of vector loads and stores, one a compute unit.
      scalars: the caches of scalar loads, one a compute unit.
    """

    def __init__(
        self, engine: Engine, space: AddressSpace, decode: Decoder, granule: int = 4, seed: int = 0,
        hosts: dict[str, Host] | None = None, trace: Trace | None = None,
        waits: Waits = lambda instruction: {}, ordered: frozenset[int] = frozenset(),
    ) -> None:  # fmt: skip
        super().__init__(engine, space, decode, granule, seed, hosts, trace)
        self.waits, self.ordered = waits, ordered
        self.second = Cache(space, write_back=True)
        self.units = [Cache(self.second) for _ in range(UNITS)]
        self.scalars = [Cache(self.second) for _ in range(UNITS)]
        self._pending: dict[Wave, list[_Pending]] = {}

    def drop(self, wave: Wave) -> None:
        """Drops the caches of a wave's compute unit."""
        self.units[wave.group % UNITS].drop()
        self.scalars[wave.group % UNITS].drop()

    def drop_all(self) -> None:
        """Drops every cache, so that what the host stored is seen: what a packet at the start of a kernel does."""
        for cache in (*self.units, *self.scalars, self.second):
            cache.drop()

    def flush(self) -> None:
        """Sends all stores to memory, where the host sees them: what a packet at the end of a kernel does."""
        self.second.flush()

    def run(self, launch: Launch) -> int:
        """Runs all workgroups to their end; as :meth:`Machine.run`."""
        try:
            return super().run(launch)
        finally:
            self._pending.clear()

    def _resident(self) -> int:
        return self.rng.randint(1, 3)

    def _slice(self) -> int:
        return self.rng.randint(1, LONGEST_SLICE)

    def _registers(self) -> random.Random:
        return self.rng

    def _run(self, launch: Launch, wave: Wave) -> Status:
        if self.rng.random() < MOVED:
            self._return(wave, lambda pending: True)  # a wave is saved when its accesses are done
            wave.move(self.rng)
        self._return(wave, lambda pending: self.rng.random() < EARLY)
        status = super()._run(launch, wave)
        if status is Status.ENDED:
            # others may run before all of its stores are seen: until then it ends again and again
            self._return(wave, lambda pending: self.rng.random() < EARLY)
            if any(not pending.returned for pending in self._pending.get(wave, ())):
                wave.put(state.RESUME, wave.get(state.STOPPED, 2), 2)
                wave.put(state.EXECUTED, wave.executed - 1, 2)
                wave.status = status = Status.BUDGET
        return status

    def _serve(self, launch: Launch, wave: Wave) -> None:
        if wave.status is Status.ACCESS:
            self._access(launch, wave)
        elif wave.status is Status.WAIT:
            self._wait(wave, self.waits(self.code.instruction(self.pc(wave, state.STOPPED))))
        else:
            super()._serve(launch, wave)

    def _access(self, launch: Launch, wave: Wave) -> None:
        fields = [wave.get(state.REQUEST + 4 * i) for i in range(len(state.REQUEST_FIELDS))]
        request = Request(Operation(fields[0]), Space(fields[1]), fields[2], bool(fields[3]), *fields[4:])
        single = request.operation is Operation.SCALAR_LOAD
        lanes = {0: wave.get(state.LANE_ADDRESSES, 2)} if single else wave.addresses()
        in_memory = request.space is Space.GLOBAL and request.operation is not Operation.ATOMIC
        if request.operation is Operation.ATOMIC and request.space is Space.GLOBAL:
            # atomics are done in memory here, where the second cache may hold older and newer bytes
            self.second.flush()
        self._grant(launch, wave, state.CHECK_ONLY)
        places = dict(lanes) if request.space is Space.GLOBAL else {
            lane: wave.get(state.HOSTS + 8 * lane, 2) for lane in lanes}  # fmt: skip
        # a wave sees its own stores, and never the later before the earlier where they overlap
        self._return(wave, lambda pending: pending.overlaps(request, places.values()))
        words: dict[int, int] = {}
        stores: list[tuple[int, bytes]] = []
        if request.operation is Operation.STORE:
            stores = [(places[lane], self._data(wave, request, lane)) for lane in lanes]
        elif request.operation is Operation.ATOMIC:
            self._again(wave)
            self._grant(launch, wave, state.EVERYTHING)
            self.second.drop()
            words = self._words(wave, request, {lane: self._data(wave, request, lane) for lane in lanes})
        else:
            cache = (self.scalars if single else self.units)[wave.group % UNITS]
            found = {
                lane: cache.read(at, request.nbytes) if in_memory else ctypes.string_at(at, request.nbytes)
                for lane, at in places.items()
            }
            words = self._words(wave, request, found)
        if request.counter in self.ordered:
            self._return(wave, lambda pending: not words.keys().isdisjoint(pending.words))
        for offset in words:
            wave.put(offset, self.rng.getrandbits(32))
        self._pending.setdefault(wave, []).append(_Pending(request, words, stores))
        self._mark(wave)

    def _grant(self, launch: Launch, wave: Wave, grant: int) -> None:
        """Lets the wave do its access, or no more than check it; raises if it is refused."""
        wave.put(state.GRANT, grant, 2)
        self._record = wave.get(state.RESUME, 2)
        wave.status = Status(self.engine.run(wave.address, 1))
        wave.put(state.EXECUTED, wave.executed - 1, 2)
        if wave.status is Status.FAULT:
            raise EngineFault(self._fault(launch, wave))

    def _again(self, wave: Wave) -> None:
        wave.put(state.RESUME, self._record, 2)

    def _offsets(self, request: Request, lane: int) -> list[int]:
        """Where the registers of a lane lie."""
        if request.operation is Operation.SCALAR_LOAD:
            return [request.register + 4 * word for word in range(request.rows)]
        row = self.engine.layout.row_bytes
        return [request.register + row * word + 4 * lane for word in range(request.rows)]

    def _data(self, wave: Wave, request: Request, lane: int) -> bytes:
        """The bytes of a lane's registers."""
        whole = b"".join(wave.get(offset).to_bytes(4, "little") for offset in self._offsets(request, lane))
        return whole[: request.nbytes]

    def _words(self, wave: Wave, request: Request, found: dict[int, bytes]) -> dict[int, int]:
        """What registers will hold, by their offset."""
        words = {}
        for lane, data in found.items():
            if request.nbytes < 4:
                value = int.from_bytes(data, "little", signed=request.signed)
                words[self._offsets(request, lane)[0]] = value % (1 << 32)
                continue
            for i, offset in enumerate(self._offsets(request, lane)):
                words[offset] = int.from_bytes(data[4 * i : 4 * i + 4], "little")
        return words

    def _return(self, wave: Wave, chosen: Callable[[_Pending], bool]) -> None:
        """Lets chosen accesses return, in random order."""
        waiting = [pending for pending in self._pending.get(wave, ()) if not pending.returned and chosen(pending)]
        self.rng.shuffle(waiting)
        for pending in waiting:
            pending.returned = True
            for offset, word in pending.words.items():
                wave.put(offset, word)
            for address, data in pending.stores:
                if pending.request.space is Space.GLOBAL:
                    self.units[wave.group % UNITS].write(address, data)
                else:
                    ctypes.memmove(address, data, len(data))

    def _wait(self, wave: Wave, most: dict[int, int]) -> None:
        """Lets accesses return until no more than so many of each counter are left."""
        queue = self._pending.get(wave, [])
        for counter, left in most.items():
            mine = [pending for pending in queue if pending.request.counter == counter]
            if counter not in self.ordered and left:
                continue  # any of them may be the one that is left
            done = mine[: len(mine) - left] if left else mine
            self._return(wave, lambda pending, done=done: pending in done)  # type: ignore[misc]
            queue = [pending for pending in queue if pending not in done]
        self._pending[wave] = queue
        self._mark(wave)

    def _mark(self, wave: Wave) -> None:
        """Notes in the wave's state which registers were not waited for."""
        layout = self.engine.layout
        wave.view[state.PENDING : state.PENDING + state.PENDING_BYTES] = bytes(state.PENDING_BYTES)
        for pending in self._pending.get(wave, ()):
            for offset in pending.words:
                row = (offset - layout.rows) // layout.row_bytes
                place = offset // 4 if offset < layout.rows else state.PENDING_ROWS + row
                wave.view[state.PENDING + place] = 1
