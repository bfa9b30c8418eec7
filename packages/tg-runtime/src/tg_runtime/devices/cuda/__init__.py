"""See :mod:`tg_runtime.backends.cuda.device`."""

from ...backends.cuda.device import CUDADevice as CUDADevice
