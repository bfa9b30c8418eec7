"""WGSL, the shading language of WebGPU."""

from .renderer import MOST_GROUPS, WGSLRenderer

__all__ = ["MOST_GROUPS", "WGSLRenderer"]
