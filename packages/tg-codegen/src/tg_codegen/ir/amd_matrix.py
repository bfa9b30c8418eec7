"""Matrix instructions of AMD GPUs: WMMA of gfx11 and gfx12, MFMA of gfx942 and gfx950.

Sources: *RDNA 3* and *RDNA 4 Instruction Set Architecture*, "Wave Matrix Multiply Accumulate"; *CDNA 3* and *CDNA 4
Instruction Set Architecture*, "Matrix Arithmetic Instructions"; LLVM's ``IntrinsicsAMDGPU.td`` for names and operands.

All multiply 16 rows by 16 columns. A lane has several elements of one row of the first operand, of one column of the
second, and of one column of the sum. Which elements along the depth a lane has does not matter for the result, as long
as it is the same for both operands.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from tg_dtype import DType, dtypes

from .matrix import Fragment, MatrixInstruction, Offset

F16, BF16, F32, I8, U8, I32 = (
    dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.int8, dtypes.uint8, dtypes.int32)  # fmt: skip
E4M3, E5M2 = dtypes.fp8e4m3, dtypes.fp8e5m2
_SIDE: Final = 16
_BESIDE: Final = tuple(1 << i for i in range(4))


@dataclass(frozen=True, slots=True)
class Row:
    """An instruction, and how LLVM is asked for it.

    Attributes:
      intrinsic: LLVM's name, without ``llvm.amdgcn``.
      mnemonic: of the instruction.
      instruction: what it does.
    """

    intrinsic: str
    mnemonic: str
    instruction: MatrixInstruction


def _bits(n: int) -> tuple[int, ...]:
    return tuple(1 << i for i in range((n - 1).bit_length()))


def _product(
    name: str, a: DType, b: DType, acc: DType, k: int, lanes: int, each: int, spread: int
) -> MatrixInstruction:  # fmt: skip
    """An instruction of ``lanes`` lanes that is ``k`` deep.

    Args:
      each: elements of an operand that a lane has: of a part of the depth, or of all of it, twice.
      spread: how many rows apart a lane's neighbouring elements of the sum are.
    """
    groups = lanes // _SIDE
    parts = [each * step for step in _bits(groups)]  # of the depth: which group of lanes has which
    if groups * each > k:
        parts = [0] * len(parts)  # every group has all
    first = Fragment(tuple((0, s) for s in _bits(each)), (*((s, 0) for s in _BESIDE), *((0, s) for s in parts)))
    second = Fragment(tuple((s, 0) for s in _bits(each)), (*((0, s) for s in _BESIDE), *((s, 0) for s in parts)))
    rows = _SIDE // groups
    down: tuple[Offset, ...] = tuple((s * spread, 0) for s in _bits(rows))
    between = 1 if spread > 1 else rows
    total = Fragment(down, (*((0, s) for s in _BESIDE), *((s * between, 0) for s in _bits(groups))))
    return MatrixInstruction(name, a, b, acc, (_SIDE, _SIDE, k), (first, second, total), lanes)


def _row(
    generation: str, intrinsic: str, mnemonic: str, a: DType, b: DType, acc: DType, k: int, *, lanes: int, each: int,
    spread: int = 1,
) -> Row:  # fmt: skip
    name = f"{generation}.{mnemonic.removeprefix('v_')}.{a.name}.{b.name}"
    return Row(intrinsic, mnemonic, _product(name, a, b, acc, k, lanes, each, spread))


def _integers(
    generation: str, intrinsic: str, mnemonic: str, k: int, *, lanes: int, each: int, spread: int
) -> list[Row]:  # fmt: skip
    return [
        _row(generation, intrinsic, mnemonic, a, b, I32, k, lanes=lanes, each=each, spread=spread)
        for a in (I8, U8) for b in (I8, U8)
    ]  # fmt: skip


def _wmma(generation: str, each: int, spread: int) -> list[Row]:
    """Those of gfx11 and gfx12: a wave of 32 lanes, 16 deep."""
    how = {"lanes": 32, "each": each, "spread": spread}
    return [
        _row(generation, "wmma.f32.16x16x16.f16", "v_wmma_f32_16x16x16_f16", F16, F16, F32, 16, **how),
        _row(generation, "wmma.f32.16x16x16.bf16", "v_wmma_f32_16x16x16_bf16", BF16, BF16, F32, 16, **how),
        *_integers(generation, "wmma.i32.16x16x16.iu8", "v_wmma_i32_16x16x16_iu8", 16, **how),
    ]


def _floats8(
    generation: str, prefix: str, mnemonic: str, k: int, *, lanes: int, each: int, spread: int = 1
) -> list[Row]:  # fmt: skip
    names = {E4M3: "fp8", E5M2: "bf8"}
    return [
        _row(generation, f"{prefix}.{names[a]}.{names[b]}", f"{mnemonic}_{names[a]}_{names[b]}", a, b, F32, k,
             lanes=lanes, each=each, spread=spread)
        for a in names for b in names
    ]  # fmt: skip


_GFX11: Final = _wmma("gfx11", 16, 2)
_GFX12: Final = [
    *_wmma("gfx12", 8, 1),
    *_floats8("gfx12", "wmma.f32.16x16x16", "v_wmma_f32_16x16x16", 16, lanes=32, each=8),
]  # fmt: skip
_GFX9: Final = [
    _row("gfx942", "mfma.f32.16x16x16f16", "v_mfma_f32_16x16x16_f16", F16, F16, F32, 16, lanes=64, each=4),
    _row("gfx942", "mfma.f32.16x16x16bf16.1k", "v_mfma_f32_16x16x16_bf16", BF16, BF16, F32, 16, lanes=64, each=4),
    _row("gfx942", "mfma.f32.16x16x4f32", "v_mfma_f32_16x16x4_f32", F32, F32, F32, 4, lanes=64, each=1),
    _row("gfx942", "mfma.i32.16x16x32.i8", "v_mfma_i32_16x16x32_i8", I8, I8, I32, 32, lanes=64, each=8),
]

AMD_ROWS: Final[dict[str, list[Row]]] = {
    "gfx11": _GFX11,
    "gfx12": _GFX12,
    "gfx942": _GFX9,
    "gfx950": [
        _row("gfx950", "mfma.f32.16x16x32.f16", "v_mfma_f32_16x16x32_f16", F16, F16, F32, 32, lanes=64, each=8),
        _row("gfx950", "mfma.f32.16x16x32.bf16", "v_mfma_f32_16x16x32_bf16", BF16, BF16, F32, 32, lanes=64, each=8),
        _row("gfx950", "mfma.i32.16x16x64.i8", "v_mfma_i32_16x16x64_i8", I8, I8, I32, 64, lanes=64, each=16),
        *_floats8("gfx950", "mfma.f32.16x16x32", "v_mfma_f32_16x16x32", 32, lanes=64, each=8),
        *_GFX9,
    ],
}  # fmt: skip
"""Those that are used, the best first, by the beginning of an architecture's name."""

REFUSED: Final = {
    r"v_(swmmac|smfmac)_.*": "half of the first operand is left out, which no tensor says",
    r"v_wmma_(f16|bf16)_.*": "the sum is rounded to 16 bits at every step",
    r".*_iu4|.*f8f6f4|v_mfma_ld_scale_b32": "there is no dtype of 4 or 6 bits",
    r".*_xf32": "the operands lose 13 bits, which a product of float32 may not",
    r"v_mfma_f64_.*": "where its elements lie is known from one source alone",
    r"v_mfma_.*_(2b|4b|16b)_(f32|f16|bf16|i8)": "it does several small products at once, for which there is no loop",
    r"v_mfma_(f32|i32)_32x32x\d+_(f32|f16|bf16|i8)": "the one of 16 rows does as much in a cycle, with fewer registers",
    r"v_mfma_f32_32x32x16_(fp8|bf8)_(fp8|bf8)": "the one of 16 rows does as much in a cycle, with fewer registers",
}
"""Why others that there are are not used, by patterns of their mnemonics."""
REFUSED_ON: Final = {
    "gfx942": {
        r"v_mfma_f32_16x16x32_(fp8|bf8)_(fp8|bf8)":
            "its 8-bit floats are not those of the dtypes: they have no infinity and another bias",
    },
}  # fmt: skip
"""The same, on one architecture."""


def refusal(arch: str, mnemonic: str) -> str | None:
    """Why a matrix instruction of an architecture is not used; None if it is, or is not known.

    >>> refusal("gfx1100", "v_wmma_i32_16x16x16_iu4")
    'there is no dtype of 4 or 6 bits'
    """
    if any(row.mnemonic == mnemonic for row in amd_rows(arch)):
        return None
    patterns = {**REFUSED_ON.get(arch, {}), **REFUSED}
    return next((why for pattern, why in patterns.items() if re.fullmatch(pattern, mnemonic)), None)


def amd_rows(arch: str) -> list[Row]:
    """The rows of an architecture; none if it multiplies no matrices.

    >>> [row.mnemonic for row in amd_rows("gfx942")][:2]
    ['v_mfma_f32_16x16x16_f16', 'v_mfma_f32_16x16x16_bf16']
    """
    return next((rows for prefix, rows in AMD_ROWS.items() if arch.startswith(prefix)), [])


AMD_INSTRUCTIONS: Final = {row.instruction.name: row for rows in AMD_ROWS.values() for row in rows}
"""The row of each instruction that is used."""
