"""Topology: the cards of the machine, as KFD lists them in sysfs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from ...core.system import System
from ...headers.amd import kfd_sysfs
from ..architecture import name_of

NODES: Final = "/sys/class/kfd/kfd/topology/nodes"
_PAGE: Final = 4096


@dataclass(frozen=True)
class SaveArea:
    """Where the state of a compute queue's waves goes while it does not run.

    Attributes:
      control_stack: ``ctl_stack_size`` of CREATE_QUEUE, which must be exact.
      save: ``ctx_save_restore_size`` of CREATE_QUEUE.
      nbytes: of the memory, which must be exact, too.
      debug_offset: where a debugger's part begins.
      debug: its size.
    """

    control_stack: int
    save: int
    nbytes: int
    debug_offset: int
    debug: int


@dataclass(frozen=True)
class Node:
    """A card.

    Attributes:
      number: of its folder.
      gpu_id: how ioctls name it.
      name: the kernel's name of the chip.
      properties: its numbers.
      banks: heap type and size of each of its memories.
      links: nodes that it reaches, with their ``io_links`` properties.
    """

    number: int
    gpu_id: int
    name: str
    properties: Mapping[str, int]
    banks: tuple[tuple[int, int], ...]
    links: Mapping[int, Mapping[str, int]]

    def __getitem__(self, name: str) -> int:
        """A property; 0 where this kernel does not tell it."""
        return self.properties.get(name, 0)

    @property
    def version(self) -> int:
        """The architecture: 110000 for gfx1100."""
        return self["gfx_target_version"]

    @property
    def architecture(self) -> str:
        """The architecture as LLVM calls it."""
        return name_of(self.version)

    @property
    def xccs(self) -> int:
        """Number of compute dies that are one card."""
        return max(1, self["num_xcc"])

    @property
    def compute_units(self) -> int:
        """Number of compute units, of all dies."""
        return self["simd_count"] // max(1, self["simd_per_cu"])

    @property
    def engines(self) -> int:
        """Number of shader engines."""
        return max(1, self["array_count"] // max(1, self["simd_arrays_per_engine"]))

    @property
    def sramecc(self) -> bool:
        """Whether registers and caches correct errors."""
        return bool(self["capability"] & kfd_sysfs.HSA_CAP_SRAM_EDCSUPPORTED)

    @property
    def lds(self) -> int:
        """Bytes of local memory of a compute unit, and so the most that a work-group may have; 0 if it is not told."""
        return self["lds_size_in_kb"] << 10

    @property
    def memory(self) -> int:
        """Bytes of the card's memory."""
        heaps = (kfd_sysfs.HSA_MEM_HEAP_TYPE_FB_PUBLIC, kfd_sysfs.HSA_MEM_HEAP_TYPE_FB_PRIVATE)
        return sum(size for heap, size in self.banks if heap in heaps)

    @property
    def large_bar(self) -> bool:
        """Whether the host sees all of the card's memory."""
        return any(heap == kfd_sysfs.HSA_MEM_HEAP_TYPE_FB_PUBLIC for heap, _ in self.banks)

    @property
    def save_area(self) -> SaveArea:
        """As kfd_queue.c counts it; sysfs has the two sizes that CREATE_QUEUE is given since Linux 6.12."""
        version, units = self.version, self.compute_units // self.xccs
        if version >= 100100:
            waves = 32 * units
        else:
            waves = min(40 * units, self["array_count"] // max(1, self["simd_arrays_per_engine"]) * 512)
        stack = _up(40 + waves * (12 if version >= 100100 else 8) + 8, _PAGE)
        if version // 10000 == 10:
            stack = min(stack, 0x7000)
        group = 0x80000 if version // 100 == 904 else 0x60000 if version in _LARGE_FILES else 0x40000
        save = stack + _up(units * (group + 0x4000 + 0x10000 + 0x1000), _PAGE)
        stack, save = self["ctl_stack_size"] or stack, self["cwsr_size"] or save
        debug = _up(32 * waves, 64)
        return SaveArea(stack, save, _up((save + debug) * self.xccs, _PAGE), save * self.xccs, debug * self.xccs)


_LARGE_FILES: Final = (110000, 110001, 110501, 120000, 120001)
"""Architectures with half as many vector registers again; kfd_get_vgpr_size_per_cu."""


def nodes(system: System) -> list[Node]:
    """The cards, in the kernel's order. Those that the process may not use (cgroups) are left out."""
    if not system.exists(NODES):
        return []
    found = []
    for number in sorted(int(name) for name in system.listdir(NODES) if name.isdigit()):
        try:
            node = _read(system, number)
        except PermissionError:
            continue
        if node.gpu_id and node["simd_count"]:
            found.append(node)
    return found


def properties(text: str) -> dict[str, int]:
    """The numbers in a file of properties: a name and a number to the line.

    Example:
      >>> properties("simd_count 192\\nhive_id 0\\n")
      {'simd_count': 192, 'hive_id': 0}
    """
    rows = (line.split() for line in text.splitlines())
    return {row[0]: int(row[1]) for row in rows if len(row) == 2 and row[1].isdigit()}


def _read(system: System, number: int) -> Node:
    folder = f"{NODES}/{number}"
    gpu_id = int(system.read_text(f"{folder}/gpu_id") or 0)
    if not gpu_id:
        return Node(number, 0, "", {}, (), {})
    name = system.read_text(f"{folder}/name") if system.exists(f"{folder}/name") else ""
    banks = [properties(text) for text in _texts(system, f"{folder}/mem_banks")]
    links = [properties(text) for text in _texts(system, f"{folder}/io_links")]
    return Node(
        number, gpu_id, name, properties(system.read_text(f"{folder}/properties")),
        tuple((bank.get("heap_type", 0), bank.get("size_in_bytes", 0)) for bank in banks),
        {link["node_to"]: link for link in links if "node_to" in link},
    )  # fmt: skip


def _texts(system: System, folder: str) -> list[str]:
    if not system.exists(folder):
        return []
    paths = (f"{folder}/{name}/properties" for name in system.listdir(folder) if name.isdigit())
    return [system.read_text(path) for path in paths if system.exists(path)]


def _up(n: int, unit: int) -> int:
    return -(-n // unit) * unit
