"""Buffers, and the memory that needs no driver: the host's, memory shared between processes, files."""
