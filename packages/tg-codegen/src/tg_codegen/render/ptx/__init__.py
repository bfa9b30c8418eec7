"""PTX, the assembly language of NVIDIA's GPUs."""

from .renderer import PTXRenderer

__all__ = ["PTXRenderer"]
