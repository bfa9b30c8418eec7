"""Workgroups of waves, run to their end: order, barriers, budgets and faults."""

from __future__ import annotations

import ctypes
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from . import state
from .code import Code, CodeFault, Decoder, Instruction
from .fault import EngineFault, Fault, HungWave
from .handlers import MemoryHandler
from .memory import AddressSpace
from .native import Engine
from .state import Access, FaultKind, Status
from .trace import Step, Trace, changes
from .wave import Wave

SLICE = 1 << 20  # instructions that a wave runs before others do, and signals are seen: some 20 ms

MOST_RESIDENT = 32  # workgroups that run at the same time, about


@dataclass(frozen=True)
class Launch:
    """Waves to be run.

    Attributes:
      entry: the address of the first instruction.
      groups: how many workgroups.
      waves: how many waves each has.
      setup: gives a wave its first registers; called with the wave, which knows its workgroup and number.
      shared_bytes: shared memory of a workgroup.
      scratch_bytes: scratch memory of a lane.
      name: of the kernel, for messages.
      budget: most instructions of a wave.
    """

    entry: int
    groups: int = 1
    waves: int = 1
    setup: Callable[[Wave], None] = lambda wave: None
    shared_bytes: int = 0
    scratch_bytes: int = 0
    name: str = "kernel"
    budget: int = 1 << 40


@dataclass
class _Group:
    number: int
    waves: list[Wave]
    shared: ctypes.Array[ctypes.c_char]
    scratch: list[ctypes.Array[ctypes.c_char]]
    waiting: set[int] = field(default_factory=set)  # waves at the barrier
    ended: set[int] = field(default_factory=set)


Host: TypeAlias = Callable[["Machine", Wave, Instruction], None]
"""What the host does for an instruction that stops native code with ``Status.HOST``."""


class Machine:
    """Executes launches, one after another.

    Args:
      engine: native code of the instruction set.
      space: what addresses mean.
      decode: of the instruction set.
      granule: instructions begin at multiples of it.
      seed: the order of workgroups and waves.
      hosts: what is done by the host, by the handler's name.
      trace: which waves are traced.

    Attributes:
      code: the decoded instructions.
      rng: what everything that the hardware leaves open is drawn from.
    """

    def __init__(
        self, engine: Engine, space: AddressSpace, decode: Decoder, granule: int = 4, seed: int = 0,
        hosts: dict[str, Host] | None = None, trace: Trace | None = None,
    ) -> None:  # fmt: skip
        self.engine, self.space, self.granule = engine, space, granule
        self.code = Code(engine, space, decode, granule)
        self.rng = random.Random(seed)
        self.hosts, self.trace = hosts or {}, trace

    def run(self, launch: Launch) -> int:
        """Runs all workgroups to their end.

        Returns:
          how many instructions were executed.

        Raises:
          EngineFault: if a wave cannot go on.
          HungWave: if one uses up its budget.
        """
        order, total = list(range(launch.groups)), 0
        self.rng.shuffle(order)
        resident: list[_Group] = []
        waited = 0
        while order or resident:
            while order and len(resident) < self._resident() + waited:
                resident.append(self._begin(launch, order.pop()))
            group = self.rng.choice(resident)
            # a workgroup that takes long may wait for one that did not begin yet
            waited = min(waited + (self._advance(launch, group) is Status.BUDGET), MOST_RESIDENT)
            if len(group.ended) == len(group.waves):
                resident.remove(group)
                total += sum(wave.executed for wave in group.waves)
        return total

    def pc(self, wave: Wave, offset: int = state.RESUME) -> int:
        """The address of the instruction that comes next, or that stopped native code (``STOPPED``)."""
        record = wave.get(offset, 2)
        if not record:
            return wave.get(state.PC, 2)
        return self.code.pc(record, wave.get(state.RECORDS, 2), wave.get(state.CODE_BASE, 2))

    def _resident(self) -> int:
        """How many workgroups run at the same time."""
        return 1

    def _slice(self) -> int:
        """How many instructions a wave runs before another does."""
        return SLICE

    def _registers(self) -> random.Random | None:
        """What new registers hold; zeros if None."""
        return None

    def _begin(self, launch: Launch, number: int) -> _Group:
        layout = self.engine.layout
        rng = self._registers()
        sizes = [launch.shared_bytes] + [launch.scratch_bytes * layout.lanes] * launch.waves
        shared, *scratch = (_block(nbytes, rng) for nbytes in sizes)
        waves = []
        for index in range(launch.waves):
            wave = Wave(layout, number, index, rng)
            launch.setup(wave)
            for offset, value in (
                (state.SHARED, ctypes.addressof(shared)), (state.SHARED_BYTES, launch.shared_bytes),
                (state.SCRATCH, ctypes.addressof(scratch[index])), (state.SCRATCH_BYTES, launch.scratch_bytes),
                (state.PC, launch.entry), (state.CODE_SHIFT, self.granule.bit_length() - 1),
            ):  # fmt: skip
                wave.put(offset, value, 2)
            wave.status = Status.FETCH
            waves.append(wave)
        return _Group(number, waves, shared, scratch)

    def _advance(self, launch: Launch, group: _Group) -> Status:
        """Runs one wave of a workgroup for a while, and releases the barrier if all have come to it; why it stopped."""
        ready = [w for w in group.waves if w.index not in group.waiting and w.index not in group.ended]
        wave = self.rng.choice(ready)
        status = self._run(launch, wave)
        if status is Status.ENDED:
            group.ended.add(wave.index)
        elif status is Status.BARRIER:
            group.waiting.add(wave.index)
        elif wave.executed >= launch.budget:
            pc = self.pc(wave)
            raise HungWave(launch.name, wave.group, wave.index, pc, self.code.text(pc), launch.budget)
        if len(group.waiting) + len(group.ended) == len(group.waves):
            group.waiting.clear()
        return status

    def _run(self, launch: Launch, wave: Wave) -> Status:
        """Runs a wave until it waits, ends, or its slice is over."""
        self._map(wave)
        end = min(wave.executed + self._slice(), launch.budget)
        while True:
            if wave.status is Status.FETCH:
                self._enter(launch, wave)
            left = end - wave.executed
            if left <= 0:  # a traced wave, which runs an instruction at a time, comes here as well
                wave.status = Status.BUDGET
                return Status.BUDGET
            wave.status = self._native(launch, wave, left)
            if wave.status is Status.FETCH:
                if wave.get(state.KIND):
                    wave.put(state.EXECUTED, wave.executed - 1, 2)
            elif wave.status in (Status.ENDED, Status.BARRIER):
                return wave.status
            elif wave.status is Status.FAULT:
                raise EngineFault(self._fault(launch, wave))
            elif wave.status is not Status.BUDGET:
                self._serve(launch, wave)

    def _native(self, launch: Launch, wave: Wave, budget: int) -> Status:
        if self.trace is None or not self.trace.wants(launch.name, wave):
            return Status(self.engine.run(wave.address, budget))
        pc, mask, before = self.pc(wave), wave.exec, bytes(wave.view)
        status = Status(self.engine.run(wave.address, 1))
        if status is not Status.FETCH or not wave.get(state.KIND):
            instruction = self.code.instruction(pc)
            handler = self.engine.instructions.handlers[instruction.handler]
            self.trace.tell(Step(
                launch.name, wave.group, wave.index, pc, instruction.text or instruction.handler, mask,
                changes(wave, before), wave.addresses() if isinstance(handler, MemoryHandler) else {},
            ))  # fmt: skip
        return status

    def _serve(self, launch: Launch, wave: Wave) -> None:
        """Does what native code asked for."""
        pc = self.pc(wave, state.STOPPED)
        instruction = self.code.instruction(pc)
        self.hosts[instruction.handler](self, wave, instruction)

    def _map(self, wave: Wave) -> None:
        wave.put(state.RANGES, self.space.table.buffer_info()[0], 2)
        wave.put(state.RANGE_COUNT, self.space.count, 2)
        wave.view[state.RANGE : state.RANGE + 32] = bytes(32)

    def _enter(self, launch: Launch, wave: Wave) -> None:
        pc = wave.get(state.PC, 2)
        try:
            record, records, start, slots = self.code.enter(pc)
        except CodeFault as error:
            raise EngineFault(Fault(
                error.kind, launch.name, wave.group, wave.index, pc, address=pc, access=Access.EXECUTE,
                nbytes=self.granule, detail=str(error) if error.kind is FaultKind.UNDECODABLE else "",
            )) from None  # fmt: skip
        for offset, value in (
            (state.RESUME, record), (state.RECORDS, records), (state.CODE_BASE, start), (state.CODE_SLOTS, slots)
        ):  # fmt: skip
            wave.put(offset, value, 2)

    def _fault(self, launch: Launch, wave: Wave) -> Fault:
        kind, pc = FaultKind(wave.get(state.KIND)), self.pc(wave, state.STOPPED)
        common = (kind, launch.name, wave.group, wave.index, pc, self.code.text(pc))
        if kind is FaultKind.PENDING:
            return Fault(*common, detail=self.engine.layout.name(wave.get(state.ADDRESS)))
        if kind is FaultKind.TRAP:
            return Fault(*common)
        lane = None if wave.get(state.LANE, 2) >= self.engine.lanes else wave.get(state.LANE, 2)
        address, access = wave.get(state.ADDRESS, 2), Access(wave.get(state.ACCESS))
        return Fault(*common, lane, address, access, wave.get(state.NBYTES))


def _block(nbytes: int, rng: random.Random | None) -> ctypes.Array[ctypes.c_char]:
    """Memory with garbage in it, or zeros."""
    block = ctypes.create_string_buffer(max(nbytes, 1))
    if rng is not None:
        block.raw = rng.randbytes(len(block))
    return block
