"""HOSTQ: a device whose command processors are threads of this process, over the same core as a driver for hardware."""

from .device import MEMORY, HostQueue, HostQueueAllocator, HostQueueDevice, HostQueueProgram

__all__ = ["MEMORY", "HostQueue", "HostQueueAllocator", "HostQueueDevice", "HostQueueProgram"]
