"""Hardware command queues: signals, timelines, bound queues, and a device whose queues are threads of this process."""

from __future__ import annotations

from .allocator import HCQAllocator
from .args import ArgsLayout, HCQArgsState
from .buffer import HCQBuffer
from .compiled import HCQCompiled
from .errors import DeviceFault, DeviceTimeout
from .fileio import MMIO, FileIO
from .graph import HCQGraph
from .kernargs import KernargsRing
from .patch import PatchTable
from .program import HCQProgram
from .queue import HWQueue
from .signal import HCQSignal
from .timeline import Timeline

__all__ = [
    "MMIO",
    "ArgsLayout",
    "DeviceFault",
    "DeviceTimeout",
    "FileIO",
    "HCQAllocator",
    "HCQArgsState",
    "HCQBuffer",
    "HCQCompiled",
    "HCQGraph",
    "HCQProgram",
    "HCQSignal",
    "HWQueue",
    "KernargsRing",
    "PatchTable",
    "Timeline",
]
