"""Hardware command queues: signals, timelines, bound queues, and a device whose queues are threads of this process."""

from __future__ import annotations

from .core.allocator import HCQAllocator
from .core.args import ArgsLayout, HCQArgsState
from .core.buffer import HCQBuffer
from .core.compiled import HCQCompiled
from .core.errors import ContentLost, DeviceFault, DeviceLost, DeviceTimeout
from .core.fault import FaultReport, Known
from .core.fileio import MMIO, FileIO
from .core.graph import HCQGraph
from .core.kernargs import KernargsRing
from .core.patch import PatchTable
from .core.program import HCQProgram
from .core.queue import HWQueue
from .core.ring import Ring
from .core.signal import HCQSignal
from .core.software import SoftwareSystem
from .core.system import System, offer_system, system_for
from .core.timeline import Timeline
from .core.upload import UploadedCode

__all__ = [
    "MMIO",
    "ArgsLayout",
    "ContentLost",
    "DeviceFault",
    "DeviceLost",
    "DeviceTimeout",
    "FaultReport",
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
    "Known",
    "PatchTable",
    "Ring",
    "SoftwareSystem",
    "System",
    "Timeline",
    "UploadedCode",
    "offer_system",
    "system_for",
]
