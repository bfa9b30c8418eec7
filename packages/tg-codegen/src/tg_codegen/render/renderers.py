"""The renderers by the name that ``DEV`` gives them."""

from __future__ import annotations

from ..machine.renderer import Renderer
from .c.clang import ClangRenderer
from .c.cuda import CUDARenderer
from .c.msl import MSLRenderer
from .c.opencl import OpenCLRenderer
from .llvm import LLVMRenderer
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
