"""A CUDA driver without a GPU: it keeps the driver API's rules and runs PTX on the host."""
