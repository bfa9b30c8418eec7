"""OpenCL through the ICD loader: bindings, discovery, memory and programs."""
