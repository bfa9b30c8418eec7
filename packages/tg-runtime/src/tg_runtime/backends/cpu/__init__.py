"""The host CPU as a device: memory, compilers, the loader, the worker pool, programs and graphs."""
