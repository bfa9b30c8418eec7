"""A whole software GPU of the toy's instruction set: memory, mappings and a machine."""

from __future__ import annotations

from collections.abc import Callable

from ..engine import (
    Access,
    AddressSpace,
    HostileMachine,
    Instruction,
    Launch,
    Machine,
    Memory,
    Scope,
    Trace,
    Wave,
    engine,
)
from .assembler import assemble
from .encoding import decoder
from .instructions import LOADED, SCALAR_LOADED, SHARED_LOADED, TOY

CODE, DATA = 0x10000, 0x7F00_0000_0000
CODE_BYTES = DATA_BYTES = 1 << 16


def _waits(instruction: Instruction) -> dict[int, int]:
    """The immediate of ``s_wait``: a byte for each counter, of how many accesses may be left."""
    return {counter: instruction.immediate >> 8 * counter & 0xFF for counter in (LOADED, SHARED_LOADED, SCALAR_LOADED)}


def _drop(machine: Machine, wave: Wave, instruction: Instruction) -> None:
    assert isinstance(machine, HostileMachine)
    machine.caches.drop_unit(wave.unit)


class ToyGpu:
    """Runs programs of the toy.

    Args:
      lanes: 32 or 64.
      seed: the order of workgroups and waves.
      trace: which waves are traced.
      hostile: whether programs meet everything that hardware may do.

    Attributes:
      data: ``DATA_BYTES`` that programs find at ``DATA``.

    Example:
      >>> gpu = ToyGpu()
      >>> gpu.run('''
      ...   v_mul_i32 v4, v0, v0
      ...   v_shl_i32 v5, v0, 2
      ...   v_add_i32 v5, v5, v1
      ...   v_mov_i32 v6, v2
      ...   global_store_4 v4, v5
      ...   s_end''')
      6
      >>> gpu.words(5)
      [0, 1, 4, 9, 16]
    """

    def __init__(self, lanes: int = 64, seed: int = 0, trace: Trace | None = None, hostile: bool = False) -> None:
        self.lanes, self.space = lanes, AddressSpace()
        self.memory = Memory(CODE_BYTES + DATA_BYTES, seed if hostile else None)
        self.space.map(CODE, self.memory, 0, CODE_BYTES, Access.READ | Access.EXECUTE)
        self.space.map(DATA, self.memory, CODE_BYTES, DATA_BYTES, Access.READ | Access.WRITE)
        self.data = self.memory.view[CODE_BYTES:]
        native, decode = engine(TOY, lanes, hostile), decoder(lanes)
        self.machine: Machine
        if hostile:
            self.machine = HostileMachine(
                native, self.space, decode, seed=seed, trace=trace, hosts={"s_drop_cache": _drop}, waits=_waits,
                ordered=frozenset({LOADED, SHARED_LOADED}),
            )  # fmt: skip
        else:
            self.machine = Machine(native, self.space, decode, seed=seed, trace=trace)

    def load(self, text: str, address: int = CODE, offset: int = 0) -> None:
        """Assembles a program for an address, and puts it so many bytes after the beginning of memory."""
        code = assemble(text, address)
        self.memory.view[offset : offset + len(code)] = code

    def run(
        self, text: str, groups: int = 1, waves: int = 1, shared_bytes: int = 0, scratch_bytes: int = 0,
        budget: int = 1 << 40, setup: Callable[[Wave], None] = lambda wave: None, whole_barriers: bool = False,
    ) -> int:  # fmt: skip
        """Runs a program.

        It finds its lane in ``v0``, the address of data in ``v1`` and ``v2`` and in ``s2`` and ``s3``, its workgroup in
        ``s0`` and its wave in ``s1``.

        Returns:
          how many instructions were executed.

        Raises:
          EngineFault: if an instruction cannot be executed.
          HungWave: if a wave uses up its budget.
        """
        self.load(text)
        self.machine.code.invalidate()
        return self.launch(groups, waves, shared_bytes, scratch_bytes, budget, setup, whole_barriers)

    def launch(
        self, groups: int = 1, waves: int = 1, shared_bytes: int = 0, scratch_bytes: int = 0,
        budget: int = 1 << 40, setup: Callable[[Wave], None] = lambda wave: None, whole_barriers: bool = False,
    ) -> int:  # fmt: skip
        """Runs what was loaded; as :meth:`run`. Caches are dropped before, and flushed after."""

        def begin(wave: Wave) -> None:
            wave.set_row(0, list(range(self.lanes)))
            wave.set_row(1, [DATA & 0xFFFFFFFF] * self.lanes)
            wave.set_row(2, [DATA >> 32] * self.lanes)
            wave.set_scalar("s", wave.group, 0)
            wave.set_scalar("s", wave.index, 1)
            wave.set_scalar("s", DATA, 2, words=2)
            setup(wave)

        if isinstance(self.machine, HostileMachine):
            self.machine.caches.drop(Scope.SYSTEM)
        executed = self.machine.run(Launch(
            CODE, groups, waves, begin, shared_bytes, scratch_bytes, "toy", budget, whole_barriers))  # fmt: skip
        if isinstance(self.machine, HostileMachine):
            self.machine.caches.flush()
        return executed

    def words(self, count: int, offset: int = 0) -> list[int]:
        """32-bit words of data."""
        return list(self.data[offset : offset + 4 * count].cast("I"))
