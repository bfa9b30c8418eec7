"""LLVM IR."""

from .amdgpu import AMDLLVMRenderer
from .renderer import LLVMRenderer

__all__ = ["AMDLLVMRenderer", "LLVMRenderer"]
