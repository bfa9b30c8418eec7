"""What a driver must know of each architecture: registers, packets, the units that sizes are counted in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Final

from tg_runtime import DeviceError

from ..headers.amd import (
    code_object,
    gc_9_4_3,
    gc_10_3_0,
    gc_11_0_0,
    gc_12_0_0,
    pm4,
    pm4_gfx9,
    sdma_v4,
    sdma_v5,
    sdma_v6,
)


@dataclass(frozen=True)
class Architecture:
    """An architecture.

    Attributes:
      name: as LLVM calls it: ``gfx1100``.
      version: as KFD's topology does: 110000.
      machine: what the ELF header's flags hold for it.
      registers: the module of its registers.
      pm4: the module of its compute packets.
      sdma: the module of its copy packets.
      lds_unit: bytes that RSRC2.LDS_SIZE counts in.
      scratch_unit: bytes that TMPRING_SIZE.WAVESIZE counts in.
      scratch_per_engine: whether TMPRING_SIZE.WAVES counts the waves of one shader engine.
      flat_scratch: whether the address of scratch is a register of the dispatch, and not in a kernel's arguments.
    """

    name: str
    version: int
    machine: int
    registers: ModuleType
    pm4: ModuleType
    sdma: ModuleType
    lds_unit: int
    scratch_unit: int
    scratch_per_engine: bool
    flat_scratch: bool


def _family(
    names: str, registers: ModuleType, packets: ModuleType, sdma: ModuleType, scratch_unit: int, *, per_engine: bool,
    flat: bool = True, lds_unit: int = 512,
) -> dict[int, Architecture]:  # fmt: skip
    """Architectures of one kind.

    The LDS' unit is of llvm/lib/Target/AMDGPU/Utils/AMDGPUBaseInfo.cpp, getLdsDwGranularity: 128 words, 320 on gfx950.
    """
    found = {}
    for name in names.split():
        # gfx1030 is 10.3.0; the last two digits are hexadecimal
        major, minor, step = int(name[3:-2]), int(name[-2], 16), int(name[-1], 16)
        version = 10000 * major + 100 * minor + step
        machine: int = getattr(code_object, f"EF_AMDGPU_MACH_AMDGCN_{name.upper()}")
        found[version] = Architecture(
            name, version, machine, registers, packets, sdma, lds_unit, scratch_unit, per_engine, flat
        )
    return found


_RDNA2: Final = "gfx1030 gfx1031 gfx1032 gfx1033 gfx1034 gfx1035 gfx1036"
_RDNA3: Final = "gfx1100 gfx1101 gfx1102 gfx1103 gfx1150 gfx1151 gfx1152 gfx1153"

ARCHITECTURES: Final[Mapping[int, Architecture]] = {
    **_family("gfx942", gc_9_4_3, pm4_gfx9, sdma_v4, 1024, per_engine=False),
    **_family("gfx950", gc_9_4_3, pm4_gfx9, sdma_v4, 1024, per_engine=False, lds_unit=1280),
    **_family(_RDNA2, gc_10_3_0, pm4, sdma_v5, 1024, per_engine=False, flat=False),
    **_family(_RDNA3, gc_11_0_0, pm4, sdma_v6, 256, per_engine=True),
    **_family("gfx1200 gfx1201", gc_12_0_0, pm4, sdma_v6, 256, per_engine=True),
}
"""By KFD's number."""

NAMES: Final[Mapping[str, Architecture]] = {found.name: found for found in ARCHITECTURES.values()}


def name_of(version: int) -> str:
    """What LLVM calls the architecture that KFD numbers so; the step is a hexadecimal digit.

    Example:
      >>> name_of(110000), name_of(90010)
      ('gfx1100', 'gfx90a')
    """
    return f"gfx{version // 10000}{version // 100 % 100:x}{version % 100:x}"


def architecture(version: int) -> Architecture:
    """The architecture that KFD numbers so.

    Raises:
      DeviceError: if this driver does not know it.
    """
    found = ARCHITECTURES.get(version)
    if found is None:
        known = ", ".join(sorted(NAMES))
        raise DeviceError(f"the card is a {name_of(version)}, which this driver does not know; it knows {known}")
    return found
