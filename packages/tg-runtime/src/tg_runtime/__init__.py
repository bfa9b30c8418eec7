"""Devices, allocators, buffers, compilers and the execution of schedules."""
