"""``mma.sync``: the matrix instructions of NVIDIA GPUs as text, for CUDA C++ and PTX alike.

Source: *Parallel Thread Execution ISA*, section "Multiply-and-Accumulate Instruction: mma".
"""

from __future__ import annotations

from dataclasses import replace

from ..ir.matrix import MMA, MMA_TF32, MatrixInstruction, tensor_cores
from ..machine.capability import capability
from ..machine.target import Target

TENSOR_CORES = frozenset({MMA_TF32.name, *(found.name for found, _ in MMA)})


def mma(instruction: MatrixInstruction) -> str:
    """The instruction without its operands.

    >>> mma(MMA_TF32)
    'mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32'
    """
    shape, _, dtypes = instruction.name.partition(".")
    return f"mma.sync.aligned.{shape}.row.col.{dtypes}"


def short_name(instruction: MatrixInstruction) -> str:
    """A name for a function that does it."""
    return "mma_" + instruction.name.replace(".", "_")


def with_tensor_cores(target: Target, arch: str, tf32: bool = False) -> Target:
    """A target that states no matrix instructions, with those of a compute capability (``sm_80``)."""
    return target if target.matrices else replace(target, matrices=tensor_cores(capability(arch), tf32))
