"""Holding every library to an older instruction set than the machine's, by the variables that each of them reads."""

from __future__ import annotations

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
