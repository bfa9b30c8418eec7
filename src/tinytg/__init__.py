"""tinytg: a tensor compiler, from dtypes to a PyTorch-like Tensor."""
