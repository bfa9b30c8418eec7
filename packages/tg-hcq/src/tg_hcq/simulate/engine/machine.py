"""Workgroups of waves, run to their end: order, barriers, budgets and faults."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import NoReturn, TypeAlias

from . import state
from .code import Code, CodeFault, Decoder, Instruction
from .fault import EngineFault, Fault, HungWave
from .launch import Group, Launch, block
from .memory import AddressSpace
from .native import Engine
from .state import Access, FaultKind, Status
from .trace import Step, Trace, changes
from .transfers import MemoryHandler
from .wave import Wave

SLICE = 1 << 20  # instructions that a wave runs before others do, and signals are seen: some 20 ms

MOST_RESIDENT = 32  # workgroups that run at the same time, about


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
        """Runs all workgroups to their end; :class:`Dispatch` does it step by step.

        Returns:
          how many instructions were executed.

        Raises:
          EngineFault: if a wave cannot go on.
          HungWave: if one uses up its budget.
        """
        dispatch = Dispatch(self, launch)
        while dispatch.advance():
            pass
        return dispatch.executed

    def pc(self, wave: Wave, offset: int = state.RESUME) -> int:
        """The address of the instruction that comes next, or that stopped native code (``STOPPED``)."""
        record = wave.get(offset, 2)
        if not record:
            return wave.get(state.PC, 2)
        return self.code.pc(record, wave.get(state.RECORDS, 2), wave.get(state.CODE_BASE, 2))

    def resident(self) -> int:
        """How many workgroups run at the same time."""
        return 1

    def slice(self) -> int:
        """How many instructions a wave runs before another does."""
        return SLICE

    def garbage(self) -> random.Random | None:
        """What new registers and memories hold; zeros if None."""
        return None

    def resume(self, groups: list[Group]) -> None:
        """Called before a wave of one of the workgroups goes on."""

    def begin(self, launch: Launch, number: int, slot: int = 0) -> Group:
        """A new workgroup.

        Args:
          launch: which it is of.
          number: which of them.
          slot: a number that no other workgroup has that runs at the same time, the lowest one.
        """
        layout = self.engine.layout
        rng = self.garbage()
        count = launch.waves if launch.waves_of is None else launch.waves_of(number)
        sizes = [launch.shared_bytes] + [launch.scratch_bytes * layout.lanes] * count
        shared, *scratch = (block(nbytes, rng) for nbytes in sizes)
        waves = []
        for index in range(count):
            wave = Wave(layout, number, index, rng)
            wave.slot = slot * launch.waves + index
            launch.setup(wave)
            for offset, value in (
                (state.SHARED_BYTES, launch.shared_bytes), (state.SCRATCH_BYTES, launch.scratch_bytes),
                (state.PC, launch.entry), (state.CODE_SHIFT, self.granule.bit_length() - 1),
            ):  # fmt: skip
                wave.put(offset, value, 2)
            wave.status = Status.FETCH
            waves.append(wave)
        group = Group(number, waves, shared, scratch, slot=slot)
        group.place()
        return group

    def give(self, wave: Wave, counter: int, words: dict[int, int]) -> None:
        """Writes words into scalar registers, as the host's answer to an instruction.

        Args:
          wave: whose they are.
          counter: which counter the wave waits on until they are there.
          words: by the registers' offsets.
        """
        for offset, word in words.items():
            wave.put(offset, word)

    def run_wave(self, launch: Launch, wave: Wave) -> Status:
        """Runs a wave until it comes to a barrier, ends, or its slice is over; why it stopped."""
        end = min(wave.executed + self.slice(), launch.budget)
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
            return self._call(wave, budget)
        pc, mask, before = self.pc(wave), wave.exec, bytes(wave.view)
        status = self._call(wave, 1)
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

    def _call(self, wave: Wave, budget: int) -> Status:
        with self.space.lock:
            if wave.mappings != self.space.version:
                wave.map(self.space.table, self.space.count)
                wave.mappings = self.space.version
            return Status(self.engine.run(wave.address, budget))

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

    def refetch(self, wave: Wave) -> None:
        """Has a wave that is stopped find its next instruction anew: the decoded code is forgotten."""
        if wave.status is not Status.FETCH:
            wave.put(state.PC, self.pc(wave), 2)
            wave.put(state.RESUME, 0, 2)
            wave.status = Status.FETCH

    def _fault(self, launch: Launch, wave: Wave) -> Fault:
        kind, pc = FaultKind(wave.get(state.KIND)), self.pc(wave, state.STOPPED)
        common = (kind, launch.name, wave.group, wave.index, pc, self.code.text(pc))
        if kind is FaultKind.PENDING:
            return Fault(*common, detail=self.engine.layout.name(wave.get(state.ADDRESS)))
        if kind in (FaultKind.TRAP, FaultKind.UNDECODABLE, FaultKind.BUFFER):
            return Fault(*common)
        lane = None if wave.get(state.LANE, 2) >= self.engine.lanes else wave.get(state.LANE, 2)
        address, access = wave.get(state.ADDRESS, 2), Access(wave.get(state.ACCESS))
        return Fault(*common, lane, address, access, wave.get(state.NBYTES))


class Dispatch:
    """A launch that is being executed. Whoever has several may advance one or another, or let go of one at any time.

    Args:
      machine: what executes it.
      launch: the waves.

    Attributes:
      executed: how many instructions the workgroups that ended have executed.
    """

    def __init__(self, machine: Machine, launch: Launch) -> None:
        self.machine, self.launch, self.executed = machine, launch, 0
        self._order = list(range(launch.groups))
        machine.rng.shuffle(self._order)
        self._resident: list[Group] = []
        self._waited = 0

    def advance(self) -> bool:
        """Runs a wave for a while.

        Returns:
          whether there is more to do.

        Raises:
          EngineFault: if a wave cannot go on.
          HungWave: if one uses up its budget.
        """
        machine, resident = self.machine, self._resident
        while self._order and len(resident) < min(machine.resident() + self._waited, self.launch.resident):
            used = {group.slot for group in resident}
            slot = next(n for n in range(len(resident) + 1) if n not in used)
            resident.append(machine.begin(self.launch, self._order.pop(), slot))
        if not resident:
            return False
        machine.resume(resident)
        group = machine.rng.choice(resident)
        # a workgroup that takes long may wait for one that did not begin yet
        self._waited = min(self._waited + (self._step(group) is Status.BUDGET), MOST_RESIDENT)
        if len(group.ended) == len(group.waves):
            resident.remove(group)
            self.executed += sum(wave.executed for wave in group.waves)
        return bool(resident or self._order)

    def refetch(self) -> None:
        """Has all waves find their next instructions anew, before or after the machine's decoded code is forgotten."""
        for group in self._resident:
            for wave in group.waves:
                if wave.index not in group.ended:
                    self.machine.refetch(wave)

    def _step(self, group: Group) -> Status:
        """Runs one wave of a workgroup, and releases the barrier if all have come to it; why the wave stopped."""
        machine, launch = self.machine, self.launch
        ready = [w for w in group.waves if w.index not in group.waiting and w.index not in group.ended]
        wave = machine.rng.choice(ready)
        status = machine.run_wave(launch, wave)
        if status is Status.ENDED:
            group.ended.add(wave.index)
        elif status is Status.BARRIER:
            group.waiting.add(wave.index)
            if wave.get(state.SIGNALS) < wave.get(state.WAITS):
                self._refuse(wave, "it waits for others without having said that it came")
        elif status is Status.BUDGET and wave.executed >= launch.budget:
            pc = machine.pc(wave)
            raise HungWave(launch.name, wave.group, wave.index, pc, machine.code.text(pc), launch.budget)
        if launch.whole_barriers and group.waiting and group.ended:
            who = f"ended: {sorted(group.ended)}, waiting: {sorted(group.waiting)}"
            self._refuse(wave, f"not all waves of the workgroup come to it: {who}")
        came = min((w.get(state.SIGNALS) for w in group.waves if w.index not in group.ended), default=0)
        group.waiting = {index for index in group.waiting if group.waves[index].get(state.WAITS) > came}
        if group.waiting and len(group.waiting) + len(group.ended) == len(group.waves):
            self._refuse(wave, "waves wait at different barriers")
        return status

    def _refuse(self, wave: Wave, detail: str) -> NoReturn:
        pc = self.machine.pc(wave, state.STOPPED)
        raise EngineFault(Fault(FaultKind.BARRIER, self.launch.name, wave.group, wave.index, pc,
                                self.machine.code.text(pc), detail=detail))  # fmt: skip
