"""WebGPU through Dawn: bindings, the driver, memory and programs. The device is ``devices.webgpu``."""
