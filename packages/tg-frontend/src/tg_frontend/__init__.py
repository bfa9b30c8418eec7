"""Tensor, automatic differentiation, nn, optimisers, state files and TinyJit."""
