"""The CUDA driver API: values from its header, and the prototypes of the functions that we call."""
