"""WebGPU through Dawn or wgpu-native: bindings, the driver, memory and programs."""
