"""See :mod:`tg_runtime.backends.shm.device`."""

from ...backends.shm.device import ShmDevice as ShmDevice
