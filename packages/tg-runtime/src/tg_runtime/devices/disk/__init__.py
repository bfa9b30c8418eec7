"""See :mod:`tg_runtime.backends.disk.device`."""

from ...backends.disk.device import DiskDevice as DiskDevice
