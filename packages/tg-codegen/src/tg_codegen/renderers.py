"""The renderers by the name that ``DEV`` gives them."""

from __future__ import annotations

from .render_c import ClangRenderer
from .render_cuda import CUDARenderer
from .render_llvm import LLVMRenderer
from .render_msl import MSLRenderer
from .render_opencl import OpenCLRenderer
from .render_ptx import PTXRenderer
from .render_wgsl import WGSLRenderer
from .renderer import Renderer

RENDERERS: dict[str, type[Renderer]] = {
    renderer.name: renderer
    for renderer in (
        ClangRenderer, LLVMRenderer, OpenCLRenderer, CUDARenderer, PTXRenderer, MSLRenderer, WGSLRenderer,
    )
}  # fmt: skip
