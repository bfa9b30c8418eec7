"""LLVM IR for AMD GPUs to relocatable code objects, in process, through llvmlite: no ROCm on the machine."""

from __future__ import annotations

import re
from typing import Any

from tg_codegen.machine.amdgpu import amd_gpu

from ..device.compiler import rejected
from ..host.arch import CPUArch
from .llvm import LLVMCompiler

TRIPLE = "amdgcn-amd-amdhsa"
_ASSEMBLY = re.compile(r"\b(?:call|callbr|invoke)\b[^;{}=]*?\basm\b|^\s*module\s+asm\b", re.MULTILINE)
_SHARED = re.compile(r"[^\n]*? = [^\n]*?\baddrspace\(3\)[^\n]*? global ")


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

    def module(self, src: str) -> Any:
        """The optimised module.

        LLVM ends the process where it meets assembly, or more local memory than there is: both are refused before.

        Raises:
          CompileError: if LLVM rejects the text, or it has either.
          MemoryError: as of :class:`~tg_runtime.compilers.llvm.LLVMCompiler`.
        """
        if _ASSEMBLY.search(src):
            raise rejected("LLVM", "there is assembly in it, which is not taken for AMD GPUs", src, ".ll")
        module = super().module(src)
        shared = sum(
            self.machine.target_data.get_abi_size(variable.global_value_type)
            for variable in module.global_variables if _SHARED.match(str(variable))
        )  # fmt: skip
        most = amd_gpu(self.arch.cpu).shared_bytes
        if shared > most:
            what = f"its work-groups share {shared} bytes of local memory; {self.arch.cpu} has {most}"
            raise rejected("LLVM", what, src, ".ll")
        return module
