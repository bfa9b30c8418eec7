"""What a person with an AMD card runs first: each mechanism of the driver alone, up to the first that differs.

    python -m tools.amd_probe                              # the first card that the kernel lists
    python -m tools.amd_probe KFD:1+AMD probe.json         # the second one; what was found goes to this file
    python -m tools.amd_probe MOCKKFD+AMD::gfx1100         # the software card

It prints a line a step, and writes one file to send: versions, the topology, and what each step saw.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
import traceback
from array import array
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tg_hcq.amd import AMDDevice
from tg_hcq.amd.kfd.topology import nodes
from tg_hcq.amd.process import process_of
from tg_hcq.core.allocator import HOST_OPTIONS
from tg_hcq.core.system import system_for
from tg_runtime import BufferOptions, DevEntry, DevSyntaxError
from tg_runtime.compilers import llvm
from tg_runtime.compilers.amdgpu import AMDGPUCompiler
from tg_runtime.device.dev import parse_dev

_OFF: Final = 0.02
"""How far the card's clock may be from the host's over a tenth of a second, as a part of it."""
TIMEOUT_MS = 5000
"""How long a step waits for the card."""


class Difference(Exception):
    """What was found is not what was expected."""


@dataclass
class Probe:
    """What the steps share.

    Attributes:
      entry: which card.
      facts: what each step saw.
    """

    entry: DevEntry
    facts: dict[str, object] = field(default_factory=dict)
    _device: AMDDevice | None = None

    @property
    def device(self) -> AMDDevice:
        """The card, opened by the first step that asks."""
        if self._device is None:
            self._device = AMDDevice("AMD", self.entry)
            self._device.timeout_ms = TIMEOUT_MS
        return self._device

    def expect(self, what: str, found: object, wanted: object) -> None:
        """Raises :class:`Difference` if the two are not equal."""
        if found != wanted:
            raise Difference(f"{what} is {found!r}, and {wanted!r} was expected")


def version(probe: Probe) -> object:
    """The kfd file opens, and says its version."""
    return process_of(system_for(probe.entry), "AMD").driver.version


def topology(probe: Probe) -> object:
    """The kernel lists cards."""
    found = nodes(system_for(probe.entry))
    if not found:
        raise Difference("the kernel lists no card in /sys/class/kfd")
    return [
        {"arch": node.architecture, "properties": dict(node.properties), "banks": node.banks, "save": node.save_area}
        for node in found
    ]


def queues(probe: Probe) -> object:
    """The card hands out an address space, events and queues."""
    return {"clock_khz": probe.device.ticks_per_us * 1000, "queues": [ring.name for ring in probe.device.rings()]}


def memory(probe: Probe) -> object:
    """Memory of each kind is mapped where it was asked for, and what the host writes is there."""
    kinds = [HOST_OPTIONS, BufferOptions(device_visible=True, nolru=True), BufferOptions(executable=True, nolru=True)]
    for options in kinds:
        block = probe.device.allocator.alloc(1 << 16, options)
        if block.view is not None:
            words = block.host_view("I")
            words[5] = 0xC0FFEE
            probe.expect("a word of memory", words[5], 0xC0FFEE)
        probe.device.allocator.free(block, 1 << 16, options)
    return len(kinds)


def signal(probe: Probe) -> object:
    """A compute queue runs its first packet: it sets a signal."""
    seen = probe.device.new_signal()
    start = time.perf_counter()
    probe.device.compute_queue().signal(seen, 7).submit(probe.device)
    seen.wait(7)
    return {"microseconds": (time.perf_counter() - start) * 1e6}


def write(probe: Probe) -> object:
    """It stores words in memory of the host, and in the card's own where the host sees that."""
    device = probe.device
    for options in (HOST_OPTIONS, BufferOptions(device_visible=True, nolru=True)):
        block, seen = device.allocator.alloc(4096, options), device.new_signal()
        device.compute_queue().write(block.address, [1, 2, 3]).signal(seen, 1).submit(device)
        seen.wait(1)
        probe.expect("what the card stored", block.host_view("I").read(0, 3), [1, 2, 3])
    return None


def timestamp(probe: Probe) -> object:
    """Its clock runs as fast as the kernel says."""
    device, stamps, begun, ended = probe.device, list[float](), list[float](), list[float]()
    for _ in range(2):
        seen = device.new_signal()
        begun.append(time.perf_counter() * 1e6)
        device.compute_queue().timestamp(seen).signal(seen, 1).submit(device)
        seen.wait(1)
        ended.append(time.perf_counter() * 1e6)
        stamps.append(seen.timestamp)
        time.sleep(0.1)
    card, least, most = stamps[1] - stamps[0], begun[1] - ended[0], ended[1] - begun[0]
    if not (1 - _OFF) * least <= card <= (1 + _OFF) * most:
        raise Difference(
            f"between two timestamps {card:.0f} us passed on the card, and {least:.0f} to {most:.0f} us on the host"
        )
    return {"card": card, "host": [least, most]}


def copy(probe: Probe) -> object:
    """Bytes go to the card's memory and come back."""
    data = bytes(range(256)) * 4097
    allocator, out = probe.device.allocator, bytearray(len(data))
    block = allocator.alloc(len(data))
    allocator.copyin(block, memoryview(data))
    allocator.copyout(memoryview(out), block)
    wrong = next((at for at, (a, b) in enumerate(zip(data, out, strict=True)) if a != b), None)
    probe.expect("the first byte that differs", wrong, None)
    return {"bytes": len(data)}


_GROUPS: Final = 9
_ITEMS: Final = 64
_KERNEL: Final = """
declare i32 @llvm.amdgcn.workitem.id.x()
declare i32 @llvm.amdgcn.workgroup.id.x()
declare void @llvm.amdgcn.s.barrier()
{more}
define amdgpu_kernel void @probe(ptr addrspace(1) %out, i32 %n) #0 {{
  {begin}
  %lane = call i32 @llvm.amdgcn.workitem.id.x()
  %group = call i32 @llvm.amdgcn.workgroup.id.x()
  %before = mul i32 %group, 64
  %item = add i32 %before, %lane
  {body}
  %to = getelementptr i32, ptr addrspace(1) %out, i32 %item
  store i32 %result, ptr addrspace(1) %to
  ret void
}}
attributes #0 = {{ "amdgpu-no-dispatch-ptr" "amdgpu-no-queue-ptr" "amdgpu-no-dispatch-id" "amdgpu-no-implicitarg-ptr"
  "amdgpu-no-workgroup-id-y" "amdgpu-no-workgroup-id-z" "amdgpu-no-workitem-id-y" "amdgpu-no-workitem-id-z"
  "amdgpu-no-lds-kernel-id" "amdgpu-flat-work-group-size"="64,64" }}
"""
_PRIVATE: Final = """
  %i = and i32 %item, 127
  %p = getelementptr [128 x i32], ptr addrspace(5) %a, i32 0, i32 %i
  %x = mul i32 %item, %n
  store volatile i32 %x, ptr addrspace(5) %p
  %result = load volatile i32, ptr addrspace(5) %p
"""
_SHARED: Final = """
  %p = getelementptr [64 x i32], ptr addrspace(3) @local, i32 0, i32 %lane
  %x = mul i32 %item, %n
  store i32 %x, ptr addrspace(3) %p
  fence syncscope("workgroup") release
  call void @llvm.amdgcn.s.barrier()
  fence syncscope("workgroup") acquire
  %other = sub i32 63, %lane
  %q = getelementptr [64 x i32], ptr addrspace(3) @local, i32 0, i32 %other
  %result = load i32, ptr addrspace(3) %q
"""


def _launched(probe: Probe, body: str, more: str = "", begin: str = "") -> list[int]:
    """What a kernel stores that is compiled for the card and launched once."""
    if not llvm.available():
        raise Difference(f"no kernel can be compiled: {llvm.MISSING}")
    device = probe.device
    lib = AMDGPUCompiler(device.architecture.name).compile(_KERNEL.format(more=more, begin=begin, body=body))
    program, count = device.program("probe", lib), _GROUPS * _ITEMS
    out = device.allocator.alloc(4 * count, HOST_OPTIONS)
    out.host_view("I").write(0, array("I", [0xDEAD]) * count)
    program(out, global_size=(_GROUPS, 1, 1), local_size=(_ITEMS, 1, 1), vals=(3,))
    device.synchronize()
    return list(out.host_view("I").read(0, count))


def dispatch(probe: Probe) -> object:
    """A kernel runs: each of its work-items stores a number."""
    found = _launched(probe, "%x = mul i32 %item, %n\n  %result = add i32 %x, 1")
    probe.expect("what work-items stored", found, [3 * item + 1 for item in range(len(found))])
    return {"groups": _GROUPS, "items": _ITEMS, "packets": probe.device.packets}


def scratch(probe: Probe) -> object:
    """Each work-item has private memory of its own."""
    found = _launched(probe, _PRIVATE, begin="%a = alloca [128 x i32], align 4, addrspace(5)")
    probe.expect("what private memory held", found, [3 * item for item in range(len(found))])
    return {"bytes": probe.device.scratch.nbytes}


def shared(probe: Probe) -> object:
    """A group's work-items read one another's local memory behind a barrier."""
    found = _launched(probe, _SHARED, more="@local = internal addrspace(3) global [64 x i32] poison, align 16")
    turned = [3 * (item - item % _ITEMS + _ITEMS - 1 - item % _ITEMS) for item in range(len(found))]
    probe.expect("what local memory held", found, turned)
    return {"bytes": 4 * _ITEMS}


STEPS: Final[tuple[Callable[[Probe], object], ...]] = (
    version, topology, queues, memory, signal, write, timestamp, copy, dispatch, scratch, shared,
)  # fmt: skip


def run(entry: DevEntry, told: Callable[[str], None] = print) -> dict[str, object]:
    """Runs the steps, up to the first that differs.

    Returns:
      what each saw, by its name; ``"stopped"`` names the one that differed, or is None.
    """
    probe = Probe(entry)
    probe.facts |= {"host": platform.platform(), "python": platform.python_version(), "entry": str(entry)}
    probe.facts["stopped"] = None
    for step in STEPS:
        what = (step.__doc__ or "").strip()
        try:
            probe.facts[step.__name__] = step(probe)
        except Exception as error:
            probe.facts |= {"stopped": step.__name__, "error": str(error), "trace": traceback.format_exc()}
            told(f"{step.__name__:10} DIFFERS  {what}\n  {error}")
            return probe.facts
        told(f"{step.__name__:10} as expected  {what}")
    return probe.facts


def main(arguments: list[str]) -> int:
    """Runs the probe and writes its file; the exit status is 1 if a step differed."""
    parser = argparse.ArgumentParser(prog="python -m tools.amd_probe", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("card", nargs="?", default="AMD", help="an entry of DEV: AMD, KFD:1+AMD, MOCKKFD+AMD::gfx1100")
    parser.add_argument("file", nargs="?", default="amd_probe.json", type=Path, help="what is to be sent")
    chosen = parser.parse_args(arguments)
    try:
        entry = parse_dev(chosen.card)[0]
    except DevSyntaxError as error:
        parser.error(str(error))
    if entry.device != "AMD":
        parser.error(f"{entry} is no card of AMD's")
    out: Path = chosen.file
    facts = run(entry)
    out.write_text(json.dumps(facts, indent=1, default=str), encoding="utf-8")
    print(f"{out}: send this file with what you say about it")
    return 0 if facts["stopped"] is None else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
