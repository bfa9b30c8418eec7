"""LLVM IR for AMD GPUs: address spaces, work-items, barriers, and a kernel that gets its own arguments and no others.

Source: LLVM, "User Guide for AMDGPU Backend": "Address Spaces", "LLVM IR Intrinsics", "LLVM IR Attributes".

Example:
  >>> from tg_codegen.render.llvm import AMDLLVMRenderer
  >>> AMDLLVMRenderer("gfx1100").target.shared_bytes
  65536
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Final

from tg_dtype import DType, dtypes
from tg_lazy import TRANSCENDENTAL, Ops
from tg_shape import upper

from ...ir.amd_matrix import AMD_INSTRUCTIONS
from ...ir.facts import KernelFacts
from ...ir.uop import UOp
from ...machine.amdgpu import amd_gpu, amd_target
from ...machine.renderer import Renderer
from ...machine.target import Target
from .amd_halves import exact_halves
from .dialect import LLVMDialect
from .renderer import LLVMFunction
from .text import FLOATS, LLVMText, Spaces, llvm_type

_AXES: Final = "xyz"
_PLACES: Final = {"g": "llvm.amdgcn.workgroup.id", "l": "llvm.amdgcn.workitem.id"}
_NOT_PASSED: Final = (
    "dispatch-ptr", "queue-ptr", "dispatch-id", "implicitarg-ptr", "lds-kernel-id", "hostcall-ptr", "heap-ptr",
    "multigrid-sync-arg", "default-queue", "completion-action", "flat-scratch-init",
)  # fmt: skip
"""What a kernel would get beside its arguments, if LLVM were not told that it wants none of it."""
_IDS: Final = ("workgroup-id", "workitem-id")


def _attributes(facts: KernelFacts, uops: Sequence[UOp]) -> str:
    x, y, z = facts.work_group() or (1, 1, 1)
    asked = {f"{_IDS['gl'.index(name[0])]}-{_AXES[int(name[-1])]}" for name in facts.specials}
    others = [f"{kind}-{axis}" for kind in _IDS for axis in _AXES if f"{kind}-{axis}" not in asked]
    absent = " ".join(f'"amdgpu-no-{name}"' for name in (*_NOT_PASSED, *others))
    return f' "amdgpu-flat-work-group-size"="{x * y * z},{x * y * z}" "uniform-work-group-size"="true" {absent}'


def _metadata(text: LLVMText, facts: KernelFacts) -> str:
    sizes = ", ".join(f"i32 {size}" for size in facts.work_group() or (1, 1, 1))
    return f" !reqd_work_group_size !{text.fresh_metadata(f'!{{{sizes}}}')}"


def _coordinate(text: LLVMText, u: UOp) -> str:
    name, size = u.arg
    if name[0] not in _PLACES:
        raise ValueError(f"AMD: SPECIAL {name} has no meaning on a GPU")
    intrinsic = f"{_PLACES[name[0]]}.{_AXES[int(name[-1])]}"
    place = text.call(intrinsic, "i32", returned=f"range(i32 0, {min(upper(size), 2**31 - 1)}) ")
    return place if u.dtype.bits == 32 else text.emit(f"zext i32 {place} to i{u.dtype.bits}")


def _barrier(text: LLVMText) -> None:
    text.line('fence syncscope("workgroup") release')
    text.call("llvm.amdgcn.s.barrier", "void")
    text.line('fence syncscope("workgroup") acquire')


_OPERANDS: Final[Mapping[DType, str]] = {dtypes.float16: "half", dtypes.float32: "float", dtypes.bfloat16: "i16"}
_PER_WORD: Final = 4


def _operand(dtype: DType, count: int, intrinsic: str) -> str:
    """The type of an operand: halves as they are, the bits of bfloat16, four bytes in a word."""
    if dtype.itemsize > 1:
        lane = "bfloat" if intrinsic == "mfma.f32.16x16x32.bf16" else _OPERANDS[dtype]
        return lane if count == 1 else f"<{count} x {lane}>"
    if intrinsic.startswith("mfma") and count == 2 * _PER_WORD:
        return "i64"
    return f"<{count // _PER_WORD} x i32>"


def _mangled(kind: str) -> str:
    """A type as it stands in an intrinsic's name: ``<8 x float>`` is ``v8f32``."""
    count, lane = kind[1:-1].split(" x ")
    return f"v{count}{ {'half': 'f16', 'float': 'f32'}.get(lane, lane) }"


def _matrix(text: LLVMText, u: UOp) -> str:
    row = AMD_INSTRUCTIONS[u.arg.name]
    total, kinds, values = llvm_type(u.dtype), list[str](), list[str]()
    for operand, dtype in zip(u.src[1:], (u.arg.a, u.arg.b), strict=True):
        kinds.append(_operand(dtype, operand.dtype.count, row.intrinsic))
        value = text.typed(operand)
        same = llvm_type(operand.dtype) == kinds[-1]
        values.append(text.value(operand) if same else text.emit(f"bitcast {value} to {kinds[-1]}"))
    acc = (total, text.value(u.src[0]))
    both = list(zip(kinds, values, strict=True))
    if row.intrinsic.startswith("mfma"):
        modifiers = [("i32", "0")] * 3
        return text.call(f"llvm.amdgcn.{row.intrinsic}", total, *both, acc, *modifiers)
    name = f"llvm.amdgcn.{row.intrinsic}.{_mangled(total)}.{_mangled(kinds[0])}"
    if row.intrinsic.endswith("iu8"):
        signs = [("i1", "false" if dtypes.is_unsigned(dtype) else "true") for dtype in (u.arg.a, u.arg.b)]
        return text.call(name, total, signs[0], both[0], signs[1], both[1], acc, ("i1", "false"))
    return text.call(name, total, *both, acc)


AMDGPU_DIALECT = LLVMDialect(
    language="AMD", spaces=Spaces(buffers=1, shared=3, private=5), convention="amdgpu_kernel ",
    attributes=_attributes, coordinate=_coordinate, barrier=_barrier, metadata=_metadata,
    matrix=_matrix, alu=exact_halves,
)  # fmt: skip


class AMDLLVMRenderer(Renderer):
    """Writes LLVM IR for an AMD GPU.

    Args:
      arch: the instruction set, as ``gfx1100``.
      target: the machine; a card of that kind if omitted.

    Raises:
      ValueError: if there is no such instruction set.
    """

    name: ClassVar[str] = "LLVM"
    matrices: ClassVar[frozenset[str]] = frozenset(AMD_INSTRUCTIONS)

    def __init__(self, arch: str, target: Target | None = None) -> None:
        self.arch = amd_gpu(arch).arch
        super().__init__(target or amd_target(arch))

    def render(self, name: str, uops: Sequence[UOp]) -> str:
        return LLVMFunction(name, uops, AMDGPU_DIALECT).module()

    def supports_dtype(self, dtype: DType) -> bool:
        return not dtypes.is_float(dtype) or dtype.scalar() in FLOATS

    def supports_op(self, op: Ops, dtype: DType) -> bool:
        if super().supports_op(op, dtype) or op not in TRANSCENDENTAL:
            return super().supports_op(op, dtype)
        # v_exp_f32 is good to one unit in the last place; v_log_f32 near 1 only absolutely, v_sin_f32 only near 0
        return op is Ops.EXP2 and dtype.bits <= 32

    @property
    def key(self) -> str:
        return f"{super().key}:{self.arch}"
