"""LLVM IR."""

from .renderer import LLVMRenderer

__all__ = ["LLVMRenderer"]
