"""LLVM IR for AMD GPUs to relocatable code objects, in process, through llvmlite: no ROCm on the machine."""

from __future__ import annotations

import re

from tg_codegen.machine.amdgpu import amd_gpu

from ..device.compiler import rejected
from ..host.arch import CPUArch
from .llvm import LLVMCompiler

TRIPLE = "amdgcn-amd-amdhsa"
_ASSEMBLY = re.compile(r"\bcall\b[^\n]*\basm\b|^module asm\b", re.MULTILINE)


class AMDGPUCompiler(LLVMCompiler):
    """Compiles LLVM IR text for an AMD GPU.

    The object has the kernel's code in ``.text``, its descriptor ``NAME.kd`` in ``.rodata``, and metadata in a note
    (LLVM, "User Guide for AMDGPU Backend", "Code Object").

    Args:
      arch: the instruction set, as ``gfx1100``.
      level: how hard LLVM tries, 0 to 3.

    Raises:
      ValueError: if there is no such instruction set.
    """

    def __init__(self, arch: str, level: int = 2) -> None:
        super().__init__(CPUArch(cpu=amd_gpu(arch).arch), TRIPLE, level)

    def compile(self, src: str) -> bytes:
        """The object file of LLVM IR text.

        Raises:
          CompileError: if LLVM rejects the text, or it has assembly in it, of which LLVM would end the process.
          MemoryError: as of :meth:`module`.
        """
        if _ASSEMBLY.search(src):
            raise rejected("LLVM", "there is assembly in it, which is not taken for AMD GPUs", src, ".ll")
        return super().compile(src)
