"""What sysfs says of the machine: the files of ``kfd_topology.c``, with the properties in the kernel's order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from .cards import Card

ROOT: Final = "/sys/class/kfd/kfd/topology"

MEC_FIRMWARE: Final = {9: 190, 10: 144, 11: 2300, 12: 2600}
"""Versions of the compute firmware that are said, by generation; those of 2025 in linux-firmware are about there."""

_CAPABILITY: Final = 0x28 | 2 << 12
"""Ring sizes are powers of two, idle queues make events, doorbells have 64 bits (HSA_CAP_* of ``kfd_topology.h``)."""


def _lines(properties: dict[str, int]) -> str:
    return "".join(f"{name} {value}\n" for name, value in properties.items())


def node_properties(card: Card | None, minor: int, index: int, sizes: bool, links: int) -> dict[str, int]:
    """The properties of a node (``node_show``).

    Args:
      card: of the node; None for the CPU's.
      minor: of its render node.
      index: of the node among GPUs.
      sizes: whether this kernel says how large save areas are.
      links: to other nodes.
    """
    simds = card.units * card.unit_simds * card.xccs if card else 0
    properties = {
        "cpu_cores_count": 0 if card else 8, "simd_count": simds, "mem_banks_count": 1,
        "caches_count": len(_CACHES[card.arch]) if card else 0, "io_links_count": links, "p2p_links_count": 0,
        "cpu_core_id_base": 0, "simd_id_base": 0x80001000 + 0x100 * index if card else 0,
        "max_waves_per_simd": card.simd_waves if card else 0, "lds_size_in_kb": card.lds_kib if card else 0,
        "gds_size_in_kb": 0, "num_gws": 64 if card else 0, "wave_front_size": card.wave if card else 0,
        "array_count": card.engines * card.arrays * card.xccs if card else 0,
        "simd_arrays_per_engine": card.arrays if card else 0,
        "cu_per_simd_array": -(-card.units // (card.engines * card.arrays)) if card else 0,
        "simd_per_cu": card.unit_simds if card else 0, "max_slots_scratch_cu": 32 if card else 0,
        "gfx_target_version": card.version if card else 0, "vendor_id": 0x1002 if card else 0,
        "device_id": card.device_id if card else 0, "location_id": 0x300 + 0x100 * index if card else 0,
        "domain": 0, "drm_render_minor": minor, "hive_id": 0,
        "num_sdma_engines": min(card.sdma_engines, 2 * card.xccs) if card else 0,
        "num_sdma_xgmi_engines": max(card.sdma_engines - 2 * card.xccs, 0) if card else 0,
        "num_sdma_queues_per_engine": card.sdma_queues if card else 0, "num_cp_queues": 24 if card else 0,
    }  # fmt: skip
    if sizes:
        properties["cwsr_size"] = card.cwsr_size if card else 0
        properties["ctl_stack_size"] = card.ctl_stack_size if card else 0
    if card is not None:
        properties |= {
            "max_engine_clk_fcompute": 2500, "local_mem_size": 0, "fw_version": MEC_FIRMWARE[card.major],
            "capability": _CAPABILITY, "debug_prop": 0, "sdma_fw_version": 24,
            "unique_id": 0x5EED0000 + index, "num_xcc": card.xccs,
        }  # fmt: skip
    properties["max_engine_clk_ccompute"] = 3000
    return properties


def files(cards: list[tuple[Card, int, int]], large_bar: bool, sizes: bool) -> Iterator[tuple[str, str]]:
    """Paths and texts.

    Args:
      cards: each with its gpu_id and the minor of its render node.
      large_bar: whether the host can map all of VRAM.
      sizes: whether this kernel says how large save areas are.
    """
    yield f"{ROOT}/generation_id", "2\n"
    yield (
        f"{ROOT}/system_properties",
        "platform_oem 0\nplatform_id 0\nplatform_rev 0\n",
    )
    yield f"{ROOT}/nodes/0/gpu_id", "0\n"
    yield f"{ROOT}/nodes/0/name", "\n"
    yield f"{ROOT}/nodes/0/properties", _lines(node_properties(None, 0, 0, sizes, len(cards)))
    yield f"{ROOT}/nodes/0/mem_banks/0/properties", _lines(
        {"heap_type": 0, "size_in_bytes": 16 << 30, "flags": 0, "width": 64, "mem_clk_max": 0}
    )
    for index, (card, gpu_id, minor) in enumerate(cards):
        node = f"{ROOT}/nodes/{index + 1}"
        yield f"{node}/gpu_id", f"{gpu_id}\n"
        yield f"{node}/name", f"{_NAMES[card.arch]}\n"
        yield f"{node}/properties", _lines(node_properties(card, minor, index, sizes, 1))
        heap = 1 if large_bar else 2  # HSA_MEM_HEAP_TYPE_FB_PUBLIC, _FB_PRIVATE (kfd_topology.h)
        yield f"{node}/mem_banks/0/properties", _lines(
            {"heap_type": heap, "size_in_bytes": card.vram, "flags": 0, "width": 256, "mem_clk_max": 1000}
        )
        for number, (level, kib, kind) in enumerate(_CACHES[card.arch]):
            yield f"{node}/caches/{number}/properties", _lines({
                "processor_id_low": 0x80001000 + 0x100 * index, "level": level, "size": kib, "cache_line_size": 128,
                "cache_lines_per_tag": 1, "association": 16, "latency": 1, "type": kind,
            }) + "sibling_map " + ",".join("1" * card.units) + "\n"  # fmt: skip
        there, back = f"{ROOT}/nodes/0/io_links/{index}", f"{node}/io_links/0"
        for start, end, path in ((0, index + 1, there), (index + 1, 0, back)):
            yield f"{path}/properties", _lines({
                "type": 2, "version_major": 0, "version_minor": 0, "node_from": start, "node_to": end, "weight": 20,
                "min_latency": 0, "max_latency": 0, "min_bandwidth": 312, "max_bandwidth": 31250,
                "recommended_transfer_size": 0, "recommended_sdma_engine_id_mask": 0, "flags": 1,
            })  # fmt: skip


_DATA, _CODE, _GPU = 1, 2, 8  # HSA_CACHE_TYPE_DATA, _INSTRUCTION, _HSACU (kfd_topology.h)
_CACHES = {
    arch: [
        (level, kib, kind | _GPU) for level, kib, kind in (
            (1, vector, _DATA), (1, code, _CODE), (1, 16, _DATA), (1, array, _DATA), (2, second, _DATA),
            (3, last, _DATA),
        ) if kib
    ] for arch, vector, code, array, second, last in (
        ("gfx1030", 16, 32, 128, 4096, 128 << 10), ("gfx1100", 32, 32, 256, 6144, 96 << 10),
        ("gfx1201", 32, 32, 0, 8192, 64 << 10), ("gfx942", 32, 64, 0, 4096, 256 << 10),
        ("gfx950", 32, 64, 0, 4096, 256 << 10),
    )
}  # fmt: skip
"""Level, KiB and type of each kind of cache, of which one stands for all: of vectors, code, scalars, an array, L2, L3
(``kfd_crat.c``: ``sienna_cichlid_cache_info``; of the others the manuals of their instruction sets)."""

_NAMES = {
    "gfx1030": "sienna_cichlid", "gfx1100": "ip discovery", "gfx1201": "ip discovery",
    "gfx942": "aqua_vanjaram", "gfx950": "ip discovery",
}  # fmt: skip
