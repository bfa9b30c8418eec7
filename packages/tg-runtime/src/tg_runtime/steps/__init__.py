"""Runners execute one step of a schedule on buffers: their base, and the runners of steps other than kernels."""
