"""The code generator: kernel ASTs to optimised loops, to UOps, to a target's text."""

from .program import BufferParam, Estimates, ProgramSpec
from .renderer import Renderer
from .target import Target
from .uop import KOp, UOp, UOps

__all__ = ["BufferParam", "Estimates", "KOp", "ProgramSpec", "Renderer", "Target", "UOp", "UOps"]
