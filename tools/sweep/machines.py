"""The machines that a sweep plans for: CPUs by vectors and threads, and every language for GPUs with its limits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

from tg_codegen import Renderer, Target
from tg_codegen.ir.matrix import AVX2_DOTS, AVX512_DOTS
from tg_codegen.render.llvm import AMDLLVMRenderer
from tg_codegen.render.renderers import (
    ClangRenderer,
    CUDARenderer,
    LLVMRenderer,
    MSLRenderer,
    OpenCLRenderer,
    PTXRenderer,
    WGSLRenderer,
)
from tg_lazy.cost import Limits

VECTORS = {16: (16, 256 << 10), 32: (16, 512 << 10), 64: (32, 1 << 20)}
"""Bytes of a vector: how many such registers there are, and the bytes of a second-level cache that goes with them."""
ELSEWHERE = {
    "NEON": Target(vector_bytes=16, registers=32, threads=4, l2_bytes=1 << 19),
    "SVE": Target(vector_bytes=32, registers=32, threads=4, l2_bytes=1 << 20),
    "scalar": Target(vector_bytes=4, registers=32),
}  # fmt: skip
"""Machines whose vectors and registers do not go together as on x86: Cortex-A76, Neoverse V1, and none at all."""
THREADS = (1, 2, 4, 8)


@dataclass(frozen=True, slots=True)
class Machine:
    """What kernels are planned for.

    Attributes:
      name: as ``--machine`` takes it.
      device: the device whose graphs are scheduled.
      limits: what the scheduler knows of it.
      make: the renderer.
    """

    name: str
    device: str
    limits: Limits
    make: Callable[[], Renderer]

    @property
    def renderer(self) -> Renderer:
        """The language, and the machine's shape."""
        return _rendered(self)


@cache
def _rendered(machine: Machine) -> Renderer:
    return machine.make()


def cpu(vector_bytes: int, threads: int, language: type[LLVMRenderer] | type[ClangRenderer]) -> Machine:
    """A CPU of some vectors and threads."""
    registers, cache_bytes = VECTORS[vector_bytes]
    target = Target(
        vector_bytes=vector_bytes, registers=registers, threads=threads, l1_bytes=32 << 10, l2_bytes=cache_bytes,
        last_bytes=32 << 20, matrices={64: AVX512_DOTS, 32: AVX2_DOTS}.get(vector_bytes, ()), scales=vector_bytes == 64,
    )  # fmt: skip
    name = f"{language.name}-{8 * vector_bytes}x{threads}"
    return Machine(name, "CPU", Limits(row_bytes=cache_bytes).of_threads(target.threads), lambda: language(target))


def elsewhere(name: str) -> Machine:
    """A CPU of another instruction set."""
    target = replace(ELSEWHERE[name], last_bytes=8 << 20)
    limits = Limits(row_bytes=target.l2_bytes).of_threads(target.threads)
    return Machine(f"LLVM-{name}", "CPU", limits, lambda: LLVMRenderer(target))


def _cpus() -> list[Machine]:
    found = [cpu(width, threads, LLVMRenderer) for width in VECTORS for threads in THREADS]
    found += [cpu(width, 2, ClangRenderer) for width in VECTORS]
    return [*found, *(elsewhere(name) for name in ELSEWHERE)]


CPUS = _cpus()
GPUS = [
    Machine("CL", "NULL", Limits(), OpenCLRenderer),
    Machine("CUDA", "NULL", Limits(), CUDARenderer),
    Machine("PTX", "NULL", Limits(), lambda: PTXRenderer("sm_90")),
    Machine("MSL", "NULL", Limits(buffers=30), lambda: MSLRenderer(bfloat=True)),
    Machine("WGSL", "NULL", Limits(buffers=8), WGSLRenderer),
    Machine("gfx1100", "NULL", Limits(), lambda: AMDLLVMRenderer("gfx1100")),
    Machine("gfx942", "NULL", Limits(), lambda: AMDLLVMRenderer("gfx942")),
]
MACHINES = {machine.name: machine for machine in (*CPUS, *GPUS)}
