"""Kernels' ASTs, built from the nodes of a step: every view is pushed down to what it reads, constants are folded."""
