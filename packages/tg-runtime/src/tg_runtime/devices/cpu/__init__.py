"""See :mod:`tg_runtime.backends.cpu.device`."""

from ...backends.cpu.device import CPUDevice as CPUDevice
