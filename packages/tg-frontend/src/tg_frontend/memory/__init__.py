"""Memory that tensors share, and computing them."""
