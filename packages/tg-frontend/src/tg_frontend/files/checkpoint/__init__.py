"""PyTorch's checkpoints."""
