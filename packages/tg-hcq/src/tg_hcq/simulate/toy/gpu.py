"""A whole software GPU of the toy's instruction set: memory, mappings and a machine."""

from __future__ import annotations

from collections.abc import Callable

from ..engine import Access, AddressSpace, Launch, Machine, Memory, Trace, Wave, engine
from .assembler import assemble
from .encoding import decoder
from .instructions import TOY

CODE, DATA = 0x10000, 0x7F00_0000_0000
CODE_BYTES = DATA_BYTES = 1 << 16


class ToyGpu:
    """Runs programs of the toy.

    Args:
      lanes: 32 or 64.
      seed: the order of workgroups and waves.
      trace: which waves are traced.

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

    def __init__(self, lanes: int = 64, seed: int = 0, trace: Trace | None = None) -> None:
        self.lanes, self.space, self.memory = lanes, AddressSpace(), Memory(CODE_BYTES + DATA_BYTES)
        self.space.map(CODE, self.memory, 0, CODE_BYTES, Access.READ | Access.EXECUTE)
        self.space.map(DATA, self.memory, CODE_BYTES, DATA_BYTES, Access.READ | Access.WRITE)
        self.data = self.memory.view[CODE_BYTES:]
        self.machine = Machine(engine(TOY, lanes), self.space, decoder(lanes), seed=seed, trace=trace)

    def load(self, text: str, address: int = CODE, offset: int = 0) -> None:
        """Assembles a program for an address, and puts it so many bytes after the beginning of memory."""
        code = assemble(text, address)
        self.memory.view[offset : offset + len(code)] = code

    def run(
        self, text: str, groups: int = 1, waves: int = 1, shared_bytes: int = 0, scratch_bytes: int = 0,
        budget: int = 1 << 40, setup: Callable[[Wave], None] = lambda wave: None,
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
        return self.launch(groups, waves, shared_bytes, scratch_bytes, budget, setup)

    def launch(
        self, groups: int = 1, waves: int = 1, shared_bytes: int = 0, scratch_bytes: int = 0,
        budget: int = 1 << 40, setup: Callable[[Wave], None] = lambda wave: None,
    ) -> int:  # fmt: skip
        """Runs what was loaded; as :meth:`run`."""

        def begin(wave: Wave) -> None:
            wave.set_row(0, list(range(self.lanes)))
            wave.set_row(1, [DATA & 0xFFFFFFFF] * self.lanes)
            wave.set_row(2, [DATA >> 32] * self.lanes)
            wave.set_scalar("s", wave.group, 0)
            wave.set_scalar("s", wave.index, 1)
            wave.set_scalar("s", DATA, 2, words=2)
            setup(wave)

        return self.machine.run(Launch(
            CODE, groups, waves, begin, shared_bytes, scratch_bytes, name="toy", budget=budget))  # fmt: skip

    def words(self, count: int, offset: int = 0) -> list[int]:
        """32-bit words of data."""
        return list(self.data[offset : offset + 4 * count].cast("I"))
