"""See :mod:`tg_runtime.backends.webgpu.device`."""

from ...backends.webgpu.device import WebGPUDevice as WebGPUDevice
