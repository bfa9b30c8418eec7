"""What a person with an AMD card runs first: each mechanism of the driver alone, up to the first that differs.

    python -m tools.amd_probe                              # the first card that the kernel lists
    python -m tools.amd_probe KFD:1+AMD probe.json         # the second one; what was found goes to this file
    python -m tools.amd_probe MOCKKFD+AMD::gfx1100         # the software card

It prints a line a step, and writes one file to send: versions, the topology, and what each step saw.
"""

from __future__ import annotations

import json
import platform
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tg_hcq.amd import AMDDevice
from tg_hcq.amd.kfd.topology import nodes
from tg_hcq.amd.process import process_of
from tg_hcq.core.allocator import HOST_OPTIONS
from tg_hcq.core.system import system_for
from tg_runtime import BufferOptions, DevEntry
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
    device, stamps, host = probe.device, [], []
    for _ in range(2):
        seen = device.new_signal()
        device.compute_queue().timestamp(seen).signal(seen, 1).submit(device)
        seen.wait(1)
        host.append(time.perf_counter() * 1e6)
        stamps.append(seen.timestamp)
        time.sleep(0.1)
    card, here = stamps[1] - stamps[0], host[1] - host[0]
    if abs(card - here) > _OFF * here:
        raise Difference(f"between two timestamps {card:.0f} us passed on the card, {here:.0f} us on the host")
    return {"card": card, "host": here}


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


STEPS: Final[tuple[Callable[[Probe], object], ...]] = (
    version, topology, queues, memory, signal, write, timestamp, copy,
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
    entry = parse_dev(arguments[0] if arguments else "AMD")[0]
    out = Path(arguments[1] if len(arguments) > 1 else "amd_probe.json")
    facts = run(entry)
    out.write_text(json.dumps(facts, indent=1, default=str), encoding="utf-8")
    print(f"{out}: send this file with what you say about it")
    return 0 if facts["stopped"] is None else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
