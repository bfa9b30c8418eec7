"""Holding every library to an older instruction set than the machine's, by the variables that each of them reads."""

from __future__ import annotations

from .workload import Goal, Workload

HELD: dict[str, dict[str, str]] = {
    "avx2": {
        "DEV": "CPU:LLVM:x86_64,haswell",
        "ATEN_CPU_CAPABILITY": "avx2",
        "MKL_ENABLE_INSTRUCTIONS": "AVX2",
        "DNNL_MAX_CPU_ISA": "AVX2",
        "OPENBLAS_CORETYPE": "Haswell",
        "XLA_FLAGS": "--xla_cpu_max_isa=AVX2",
    },
}
"""Of an instruction set, the variables: of tinytg, PyTorch and its libraries, NumPy's OpenBLAS, and JAX.

tinygrad reads none and compiles for the machine that it finds.
"""

_SHARES = {"conv 3x3, 8x64x56x56 -> 64": 0.8, "conv 7x7 stride 2, 8x3x224x224 -> 64": 0.7}
_BESIDE_TORCH = {"memory": 0.9, "dispatch": None}


def goals(workload: Workload, isa: str = "") -> tuple[Goal, ...]:
    """What a workload is to reach: on the machine as it is its own goals, or those of a held instruction set.

    There it is to be as fast as PyTorch held alike, and at nine tenths of its speed where both read memory at its
    limit; large products and convolutions are to reach a share of what the instruction set can do.

    >>> from .workloads import WORKLOADS
    >>> [(goal.kind, goal.value) for goal in goals(WORKLOADS["sgemm 1024"], "avx2")]
    [('torch', 1.0), ('share', 0.8)]
    """
    if not isa:
        return workload.goals
    least = _BESIDE_TORCH.get(workload.group, 1.0)
    found = [] if least is None else [Goal("torch", least)]
    large = workload.name.startswith("sgemm") and workload.name != "sgemm 256"
    part = 0.8 if large else _SHARES.get(workload.name)
    return (*found, Goal("share", part)) if part else tuple(found)
