"""See :mod:`tg_runtime.backends.opencl.device`."""

from ...backends.opencl.device import CLDevice as CLDevice
