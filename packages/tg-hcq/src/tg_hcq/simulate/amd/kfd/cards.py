"""The cards that can be played, by the name of their instruction set."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

PAGE: Final = 4096


def _align(value: int, unit: int) -> int:
    return -(-value // unit) * unit


@dataclass(frozen=True)
class Card:
    """What the kernel's topology says of a card, and what follows from it.

    Attributes:
      arch: the instruction set, as LLVM names it.
      version: ``gfx_target_version``: 10000 x major + 100 x minor + stepping.
      device_id: of PCI.
      units: compute units of one XCC.
      engines: shader engines of one XCC.
      arrays: shader arrays of an engine.
      unit_simds: SIMDs of a compute unit.
      simd_waves: most waves of a SIMD.
      wave: lanes that the kernel reports.
      xccs: how many dies execute.
      sdma_engines: of which user queues may use all.
      sdma_queues: user queues of an engine.
      mes: whether the firmware scheduler is MES, which has rules of its own.
      vram: bytes of memory.
      lds_kib: local memory of a workgroup processor or compute unit.
    """

    arch: str
    version: int
    device_id: int
    units: int
    engines: int
    arrays: int
    unit_simds: int
    simd_waves: int
    wave: int
    xccs: int
    sdma_engines: int
    sdma_queues: int
    mes: bool
    vram: int
    lds_kib: int = 64

    @property
    def major(self) -> int:
        """The generation."""
        return self.version // 10000

    # kfd_queue.c: kfd_queue_ctx_save_restore_size and what it calls

    @property
    def _waves(self) -> int:
        if self.version < 100100:
            return min(40 * self.units, self.engines * 512)
        return 32 * self.units

    @property
    def ctl_stack_size(self) -> int:
        """Bytes of the control stack in a queue's save area."""
        header = 40  # SIZEOF_HSA_USER_CONTEXT_SAVE_AREA_HEADER
        nbytes = _align(header + self._waves * (12 if self.version >= 100100 else 8) + 8, PAGE)
        return min(nbytes, 0x7000) if self.major == 10 else nbytes

    @property
    def cwsr_size(self) -> int:
        """Bytes of a queue's save area in one XCC, without the debugger's."""
        registers = 0x40000
        if self.version // 100 * 100 == 90400 or self.version in (90010, 90008):
            registers = 0x80000
        elif self.version in (110000, 110001, 110501, 120000, 120001):
            registers = 0x60000
        return self.ctl_stack_size + _align(self.units * (registers + 0x4000 + 0x10000 + 0x1000), PAGE)

    @property
    def debug_size(self) -> int:
        """Bytes of a save area that are the debugger's."""
        return _align(32 * self._waves, 64)

    @property
    def save_area(self) -> int:
        """Bytes of the mapping that a queue's save area must be."""
        return _align((self.cwsr_size + self.debug_size) * self.xccs, PAGE)


_GIB = 1 << 30
CARDS: Final = {
    card.arch: card
    for card in (
        Card("gfx1030", 100300, 0x73BF, 80, 4, 2, 2, 16, 32, 1, 4, 8, False, 16 * _GIB),
        Card("gfx1100", 110000, 0x744C, 96, 6, 2, 2, 16, 32, 1, 2, 6, True, 24 * _GIB),
        Card("gfx1201", 120001, 0x7550, 64, 4, 2, 2, 16, 32, 1, 2, 8, True, 16 * _GIB),
        Card("gfx942", 90402, 0x74A1, 38, 4, 1, 4, 8, 64, 8, 16, 8, False, 32 * _GIB),
        Card("gfx950", 90500, 0x75A0, 32, 4, 1, 4, 8, 64, 8, 16, 8, False, 32 * _GIB, 160),
    )
}
"""Navi 21, Navi 31, Navi 48, MI300X and MI350X. Memory is only taken where it is touched."""
