"""Kernels' ASTs, formed of the nodes of a step: every view is pushed down to what it reads, constants are folded."""
