"""The core of Tensor: what it holds, arithmetic, movement."""
