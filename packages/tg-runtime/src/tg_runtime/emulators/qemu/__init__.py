"""Kernels of another processor, run by QEMU's user mode."""
