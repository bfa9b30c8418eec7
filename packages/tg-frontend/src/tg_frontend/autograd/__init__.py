"""Differentiation: differentiable functions, and the way back through what was applied."""
