"""See :mod:`tg_runtime.backends.metal.device`."""

from ...backends.metal.device import MetalDevice as MetalDevice
