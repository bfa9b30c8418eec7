"""OpenCL through the ICD loader: bindings, discovery, memory and programs. The device is ``devices.cl``."""
