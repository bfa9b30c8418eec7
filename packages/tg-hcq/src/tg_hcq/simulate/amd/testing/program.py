"""Programs as text on a machine of their own: memory, mappings, first registers."""

from __future__ import annotations

from collections.abc import Callable

from ...engine import Access, AddressSpace, HostileMachine, Launch, Machine, Memory, Scope, Trace, Wave
from ..machine import machine
from ..registers import FLOATS
from .assembler import assemble

CODE, DATA = 0x10000, 0x7EFF_FFFF_E000
CODE_BYTES, DATA_BYTES = 1 << 14, 1 << 14


class Bed:
    """Runs programs: ``s[0:1]`` is the address of data, ``s2`` the workgroup, ``s3`` the wave, ``v0`` the lane.

    Args:
      arch: the processor.
      lanes: of a wave.
      seed: what is drawn.
      hostile: whether programs meet everything that hardware may do.
      trace: which waves are traced.

    Attributes:
      data: ``DATA_BYTES`` that programs find at ``DATA``.
      waves: those of the last launch.
    """

    def __init__(
        self, arch: str, lanes: int = 32, seed: int = 0, hostile: bool = False, trace: Trace | None = None
    ) -> None:
        self.arch, self.lanes, self.space = arch, lanes, AddressSpace()
        memory = Memory(CODE_BYTES + DATA_BYTES)
        self.space.map(CODE, memory, 0, CODE_BYTES, Access.READ | Access.EXECUTE)
        self.space.map(DATA, memory, CODE_BYTES, DATA_BYTES, Access.READ | Access.WRITE)
        self._code, self.data = memory.view[:CODE_BYTES], memory.view[CODE_BYTES:]
        self.machine: Machine = machine(arch, lanes, self.space, seed=seed, hostile=hostile, trace=trace)
        self.waves: list[Wave] = []

    def run(
        self, text: str, groups: int = 1, waves: int = 1, shared_bytes: int = 0, scratch_bytes: int = 0,
        setup: Callable[[Wave], None] = lambda wave: None, budget: int = 1 << 16,
    ) -> int:  # fmt: skip
        """Runs a program; how many instructions were executed.

        Raises:
          EngineFault: if a wave cannot go on.
          HungWave: if one uses up its budget.
        """
        code = assemble(self.arch, text, self.lanes)
        self._code[:] = code.ljust(CODE_BYTES, b"\xff")
        self.machine.code.invalidate()
        self.waves = []

        def begin(wave: Wave) -> None:
            wave.set_scalar("s", DATA, 0, words=2)
            wave.set_scalar("s", wave.group, 2)
            wave.set_scalar("s", wave.index, 3)
            wave.set_scalar("mode", FLOATS)
            wave.set_row(0, list(range(self.lanes)))
            setup(wave)
            self.waves.append(wave)

        caches = self.machine.caches if isinstance(self.machine, HostileMachine) else None
        if caches is not None:
            caches.drop(Scope.SYSTEM)
        executed = self.machine.run(Launch(
            CODE, groups, waves, begin, shared_bytes, scratch_bytes, "test", budget))  # fmt: skip
        if caches is not None:
            caches.flush()
        return executed

    def words(self, count: int, offset: int = 0) -> list[int]:
        """32-bit words of data."""
        return list(self.data[offset : offset + 4 * count].cast("I"))
