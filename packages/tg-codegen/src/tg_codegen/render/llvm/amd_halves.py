"""Reciprocals and square roots of float16 on AMD GPUs, rounded correctly.

LLVM makes one instruction of each, whose result is off by up to 0.51 units in the last place, on gfx9 by one (AMD,
"RDNA3 Instruction Set Architecture", 16.8, V_RCP_F16 and V_SQRT_F16; "AMD Instinct MI300 Instruction Set
Architecture"). float32 has enough digits: no reciprocal of 11 bits lies as near to the middle of two such numbers as
its last digit, and a root that was rounded correctly once can be rounded again (S. A. Figueroa, "When is double
rounding innocuous?", SIGNUM Newsletter 30, 1995).
"""

from __future__ import annotations

from typing import Final

from tg_dtype import dtypes
from tg_lazy import Ops

from ...ir.uop import UOp
from .text import LLVMText, llvm_literal, llvm_type

_ONE: Final = llvm_literal(1.0, dtypes.float32)


def exact_halves(text: LLVMText, u: UOp) -> str | None:
    """Writes a reciprocal or a root of float16; of all else nothing.

    Args:
      text: the function.
      u: an elementwise node, of one lane or several.

    Returns:
      the value, or None if the node is neither.
    """
    if u.dtype.scalar() is not dtypes.float16:
        return None
    sign = _numerator(u)
    if sign is None and u.op is not Ops.SQRT:
        return None
    operand, count, kind = text.value(u.src[-1]), u.dtype.count, llvm_type(u.dtype)
    if sign == -1:
        operand = text.emit(f"fneg {kind} {operand}")
    one = _root if u.op is Ops.SQRT else _reciprocal
    if count == 1:
        return one(text, operand)
    found = "poison"
    for lane in range(count):
        half = one(text, text.emit(f"extractelement {kind} {operand}, i32 {lane}"))
        found = text.emit(f"insertelement {kind} {found}, half {half}, i32 {lane}")
    return found


def _numerator(u: UOp) -> int | None:
    """1 or -1, of a node that divides that by something."""
    if u.op is Ops.RECIP:
        return 1
    first = u.src[0]
    return int(first.arg) if u.op is Ops.FDIV and first.is_const and first.arg in (1, -1) else None


def _reciprocal(text: LLVMText, half: str) -> str:
    """One step of Newton's method: V_RCP_F32 is off by one unit, and then by half a unit (16.8, V_RCP_F32)."""
    x = text.emit(f"fpext half {half} to float")
    near = text.call("llvm.amdgcn.rcp.f32", "float", ("float", x))
    minus = text.emit(f"fneg float {x}")
    error = text.call("llvm.fma.f32", "float", ("float", minus), ("float", near), ("float", _ONE))
    found = text.call("llvm.fma.f32", "float", ("float", error), ("float", near), ("float", near))
    rounded = text.emit(f"fptrunc float {found} to half")
    # of zeros and infinities, which the step makes NaN
    numerator = ("half", llvm_literal(1.0, dtypes.float16))
    return text.call("llvm.amdgcn.div.fixup.f16", "half", ("half", rounded), ("half", half), numerator)


def _root(text: LLVMText, half: str) -> str:
    x = text.emit(f"fpext half {half} to float")
    return text.emit(f"fptrunc float {text.call('llvm.sqrt.f32', 'float', ('float', x))} to half")
