"""PTX, the assembly language of NVIDIA's virtual machine, written without a compiler in between.

A vector is so many registers. It is loaded and stored in pieces of two or four elements, or of eight halves in four
words, where its index is seen to be a multiple of them, for which buffers must begin at a multiple of 16 bytes. A gate
is a predicate on the access itself.

Example:
  >>> from tg_codegen.render.ptx import PTXRenderer
  >>> from tg_codegen.ir.uop import UOp, UOps
  >>> from tg_dtype import dtypes
  >>> print(PTXRenderer().render("nothing", [UOp(UOps.PARAM, dtypes.float32.ptr(), (), 0)]), end="")
  .version 7.0
  .target sm_80
  .address_size 64
  .visible .entry nothing(.param .u64 nothing_data0)
  {
    .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [nothing_data0];
    cvta.to.global.u64 %rd1, %rd1;
    ret;
  }
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import ClassVar

from tg_dtype import AddrSpace, DType, PtrDType, dtypes
from tg_lazy import TRANSCENDENTAL, Ops

from ...ir.facts import element, kernel_facts
from ...ir.uop import UOp, UOps, is_alu
from ...machine.capability import capability
from ...machine.renderer import Renderer
from ...machine.target import Target
from .. import dynamic
from ..mma import TENSOR_CORES, mma, with_tensor_cores
from .arithmetic import PTXArithmetic
from .conversion import PTXConversion
from .memory import SPACES, PTXAccess
from .text import PTXText, bits_suffix
from .values import PTXValues

_AXES = {"g": "ctaid", "l": "tid"}
_BLOCK = "shared_block"
_SCALARS = frozenset({
    dtypes.int8, dtypes.uint8, dtypes.int16, dtypes.uint16, dtypes.int32, dtypes.uint32, dtypes.int64, dtypes.uint64,
    dtypes.float16, dtypes.float32, dtypes.float64,
})  # fmt: skip
# The first version of the language that knows the target; drivers read all versions up to their own.
_VERSIONS = ((120, "8.7"), (100, "8.6"), (89, "7.8"), (87, "7.4"), (86, "7.1"))


class PTXRenderer(Renderer):
    """Writes PTX.

    Args:
      arch: compute capability that it is written for, ``sm_75`` or later; a letter at its end stays (``sm_90a``).
      target: the machine; a common GPU if omitted.
      tf32: do products of fp32 by tensor cores, which round their operands to 10 bits of mantissa.

    Raises:
      ValueError: if ``arch`` is no compute capability, or one before 7.5.
    """

    name: ClassVar[str] = "PTX"
    matrices: ClassVar[frozenset[str]] = TENSOR_CORES

    def __init__(
        self, arch: str = "sm_80", target: Target | None = None, *, tf32: bool = False
    ) -> None:
        try:
            sm = capability(arch, 75)
        except ValueError as error:
            raise ValueError(f"PTX: {error}") from None
        target = target or Target(kind="gpu", vector_bytes=16, registers=255, shared_bytes=49152, local_max=1024)
        super().__init__(with_tensor_cores(target, arch, tf32))
        self.arch, self.sm = arch, sm

    def render(self, name: str, uops: Sequence[UOp]) -> str:
        return PTXFunction(self, name, uops).module()

    def supports_dtype(self, dtype: DType) -> bool:
        if dtype.scalar() is dtypes.bfloat16:
            return self.sm >= 90  # before, there is fma alone
        return dtypes.is_bool(dtype) or dtype.scalar() in _SCALARS

    def supports_op(self, op: Ops, dtype: DType) -> bool:
        if super().supports_op(op, dtype) or op not in TRANSCENDENTAL:
            return super().supports_op(op, dtype)
        # ex2.approx is good to 2**-22 everywhere, lg2.approx near 1 only absolutely, sin.approx only near 0.
        return dtype.bits <= 32 if op is Ops.EXP2 else op is Ops.LOG2 and dtype.bits == 16

    @property
    def version(self) -> str:
        """The version of the language that is stated."""
        return next((version for sm, version in _VERSIONS if self.sm >= sm), "7.0")

    @property
    def key(self) -> str:
        return f"{super().key}:{self.arch}"


class PTXFunction:
    """One kernel while its text is being written."""

    def __init__(self, renderer: PTXRenderer, name: str, uops: Sequence[UOp]) -> None:
        self._renderer, self._name, self._uops = renderer, name, uops
        self._facts = kernel_facts(uops)
        self._text = PTXText()
        self._values = PTXValues(self._text)
        conversion = PTXConversion(self._text)
        fused = renderer.target.fused_multiply_add
        self._arithmetic = PTXArithmetic(self._text, self._values, conversion, self._facts, renderer.sm, fused)
        self._memory = PTXAccess(self._text, self._values, conversion, self._facts)
        self._arrays: list[str] = []
        self._dynamic = dynamic.places(uops)
        self._labels: dict[UOp, str] = {}

    # text

    def _needed(self) -> str:
        """The version of the language that knows the kernel's instructions."""
        eighths = any(u.op is UOps.MATRIX and u.arg.a.itemsize == 1 and dtypes.is_float(u.arg.a) for u in self._uops)
        return "8.4" if eighths else "7.0"

    def module(self) -> str:
        """The whole module.

        Raises:
          ValueError: for a node that has no form here.
        """
        parameters = []
        for u in self._facts.params:
            parameter = f"{self._name}_data{u.arg}"
            parameters.append(f".param .u64 {parameter}")
            base = self._text.emit("ld.param.u64", "rd", f"[{parameter}]")
            self._text.line(f"cvta.to.global.u64 {base}, {base}")
            self._values.lanes[u] = [base]
        for number, u in enumerate(self._facts.variables):
            parameter = f"{self._name}_var{number}"
            parameters.append(f".param .u32 {parameter}")
            self._values.lanes[u] = [self._text.emit("ld.param.u32", "r", f"[{parameter}]")]
        for u in self._uops:
            self._statement(u)
        group = self._facts.work_group()
        head = [
            f".version {max(self._renderer.version, self._needed(), key=lambda v: [int(n) for n in v.split('.')])}",
            f".target {self._renderer.arch}",
            ".address_size 64",
            *self._shared_block(),
            f".visible .entry {self._name}({', '.join(parameters)})",
            *([f".maxntid {', '.join(map(str, group))}"] if group else []),
        ]
        body = [*self._text.declarations(), *self._arrays, *self._text.body]
        return "\n".join([*head, "{", *body, "  ret;", "}"]) + "\n"

    def _shared_block(self) -> list[str]:
        """The declaration of shared memory whose size a launch states, where the kernel wants too much of it."""
        if not self._dynamic:
            return []
        size = dynamic.variable(self._name, dynamic.total(self._dynamic))
        return [f".extern .shared .align 16 .b8 {_BLOCK}[];", f".visible .global .align 1 .b8 {size};"]

    def _statement(self, u: UOp) -> None:
        if is_alu(u):
            self._values.keep(u, self._arithmetic.alu(u))
            return
        text, values = self._text, self._values
        match u.op:
            case UOps.PARAM | UOps.VAR | UOps.CONST | UOps.PREFETCH:
                pass
            case UOps.SPECIAL:
                self._special(u)
            case UOps.AFTER:
                values.lanes[u] = values.lanes[u.src[0]]
            case UOps.SCRATCH:
                self._scratch(u)
            case UOps.ACC:
                values.lanes[u] = [text.move(lane, u.dtype.scalar()) for lane in values.value(u.src[0])]
                values.changes(values.lanes[u])
            case UOps.ASSIGN:
                self._assign(values.lanes[u.src[0]], values.value(u.src[1]), u.src[1].dtype.scalar())
            case UOps.READ:
                values.keep(u, values.lanes[u.src[0]])
            case UOps.RANGE:
                self._open_range(u)
            case UOps.ENDRANGE:
                self._close_range(u.src[0])
            case UOps.IF:
                label = self._labels[u] = self._label("if")
                text.line(f"@!{values.one(u.src[0])} bra {label}")
                values.open_scope()
            case UOps.ENDIF:
                values.close_scope()
                text.body.append(f"{self._labels[u.src[0]]}:")
            case UOps.LOAD:
                values.lanes[u] = self._memory.load(u)
            case UOps.STORE:
                self._memory.store(u)
            case UOps.BARRIER:
                text.line("bar.sync 0")
            case UOps.VECTORIZE:
                values.keep(u, [values.one(operand) for operand in u.src])
            case UOps.BROADCAST:
                values.keep(u, [values.one(u.src[0])] * u.dtype.count)
            case UOps.GEP:
                lanes = [lane for operand in u.src for lane in values.value(operand)]
                values.keep(u, [lanes[place] for place in u.arg])
            case UOps.MATRIX:
                self._matrix(u)
            case _:
                raise ValueError(f"PTX: {u!r} has no form in a linear kernel")

    def _matrix(self, u: UOp) -> None:
        """An ``mma``: operands of less than four bytes are packed into registers of four."""
        acc, *factors = u.src
        kind = "f" if dtypes.is_float(u.dtype) else "r"
        words = [[self._word(lanes, s.dtype.scalar()) for lanes in self._parts(s)] for s in factors]
        before = [self._text.in_register(lane, u.dtype.scalar()) for lane in self._values.value(acc)]
        after = [self._text.register(kind) for _ in before]
        lists = ", ".join(f"{{{', '.join(names)}}}" for names in (after, *words, before))
        self._text.line(f"{mma(u.arg)} {lists}")
        self._values.keep(u, after)

    def _parts(self, u: UOp) -> list[list[str]]:
        """A fragment's lanes, those of one register together."""
        each = 4 // u.dtype.scalar().itemsize
        lanes = self._values.value(u)
        return [lanes[at : at + each] for at in range(0, len(lanes), each)]

    def _word(self, lanes: list[str], dtype: DType) -> str:
        """Lanes packed into a register of four bytes; fp32 is rounded to tf32."""
        if dtype is dtypes.float32:
            return self._text.emit("cvt.rna.tf32.f32", "r", *lanes)
        if dtypes.is_float(dtype):
            registers = (self._text.in_register(lane, dtype) for lane in lanes)
            return self._text.emit("mov.b32", "r", f"{{{', '.join(registers)}}}")
        while len(lanes) > 1:
            select = "0x0040" if len(lanes) == 4 else "0x5410"
            lanes = [self._text.emit("prmt.b32", "r", *lanes[at : at + 2], select) for at in range(0, len(lanes), 2)]
        return lanes[0]

    def _special(self, u: UOp) -> None:
        name = u.arg[0]
        if name[0] not in _AXES:
            raise ValueError(f"PTX: SPECIAL {name} has no meaning on a GPU")
        self._values.lanes[u] = [self._text.emit("mov.u32", "r", f"%{_AXES[name[0]]}.{'xyz'[int(name[-1])]}")]

    def _scratch(self, u: UOp) -> None:
        name, size = u.arg
        assert isinstance(u.dtype, PtrDType)
        shared = u.dtype.space is AddrSpace.LOCAL
        array = f"{re.sub(r'[^A-Za-z0-9_]', '_', name)}_{len(self._arrays)}"
        nbytes = size * max(element(u).itemsize, 1)
        if u in self._dynamic:
            base = self._text.emit("mov.u32", "r", _BLOCK)
            self._values.lanes[u] = [self._text.emit("add.u32", "r", base, str(self._dynamic[u]))]
            return
        self._arrays.append(f"  .{SPACES[u.dtype.space]} .align 16 .b8 {array}[{nbytes}];")
        # Shared memory is addressed by 32 bits, which spares the arithmetic of 64.
        kind = ("mov.u32", "r") if shared else ("mov.u64", "rd")
        self._values.lanes[u] = [self._text.emit(*kind, array)]

    def _assign(self, registers: Sequence[str], values: Sequence[str], dtype: DType) -> None:
        name = "pred" if dtypes.is_bool(dtype) else bits_suffix(dtype)
        for register, value in zip(registers, values, strict=True):
            self._text.line(f"mov.{name} {register}, {value}")

    # loops

    def _label(self, stem: str) -> str:
        return f"${re.sub(r'[^A-Za-z0-9_]', '_', stem)}_{len(self._labels)}"

    def _open_range(self, u: UOp) -> None:
        label = self._labels[u] = self._label(f"L_{u.arg}")
        counter = self._text.move(self._values.one(u.src[0]), u.dtype)
        self._values.lanes[u] = [counter]
        self._values.changes([counter])
        known = u.src[0].is_const and u.src[1].is_const and u.src[0].arg < u.src[1].arg
        if not known:
            done = self._text.emit(f"setp.ge.s{u.dtype.bits}", "p", counter, self._values.one(u.src[1]))
            self._text.line(f"@{done} bra {label}_end")
        self._text.body.append(f"{label}:")
        self._values.open_scope()

    def _close_range(self, u: UOp) -> None:
        label, counter = self._labels[u], self._values.one(u)
        self._values.close_scope()
        step = self._values.one(u.src[2]) if len(u.src) > 2 else "1"
        self._text.line(f"add.s{u.dtype.bits} {counter}, {counter}, {step}")
        again = self._text.emit(f"setp.lt.s{u.dtype.bits}", "p", counter, self._values.one(u.src[1]))
        self._text.line(f"@{again} bra {label}")
        self._text.body.append(f"{label}_end:")
