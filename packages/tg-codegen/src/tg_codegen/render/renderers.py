"""The renderers by the name that ``DEV`` gives them."""

from __future__ import annotations

from ..machine.renderer import Renderer
from .c import ClangRenderer
from .cuda import CUDARenderer
from .llvm import LLVMRenderer
from .msl import MSLRenderer
from .opencl import OpenCLRenderer
from .ptx import PTXRenderer
from .wgsl import WGSLRenderer

__all__ = [
    "RENDERERS", "CUDARenderer", "ClangRenderer", "LLVMRenderer", "MSLRenderer", "OpenCLRenderer", "PTXRenderer",
    "WGSLRenderer",
]  # fmt: skip

RENDERERS: dict[str, type[Renderer]] = {
    renderer.name: renderer
    for renderer in (
        ClangRenderer, LLVMRenderer, OpenCLRenderer, CUDARenderer, PTXRenderer, MSLRenderer, WGSLRenderer,
    )
}  # fmt: skip
