"""LLVM IR for the host CPU: text with opaque pointers, for LLVM 19 and later.

Registers that change (ACC) and private arrays (SCRATCH) are ``alloca`` in the entry block; LLVM's first pass turns the
registers into SSA. A bool is an ``i8`` in memory and an ``i1`` in a register. The text names no target: the compiler
that takes it states triple, CPU and features.

Example:
  >>> from tg_codegen.render.llvm import LLVMRenderer
  >>> LLVMRenderer().name
  'LLVM'
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import ClassVar

from tg_dtype import DType, dtypes
from tg_shape import upper

from ...ir.facts import element, kernel_facts
from ...ir.uop import UOp, UOps, is_alu
from ...machine.renderer import Renderer
from ...machine.target import Target
from .arithmetic import MATRICES, LLVMArithmetic
from .conversion import LLVMConversion
from .dialect import CPU, LLVMDialect
from .memory import LLVMAccess
from .text import FLOATS, LLVMText, llvm_literal, llvm_type, scalar_type
from .tiles import TILES, LLVMTileRegisters


class LLVMRenderer(Renderer):
    """Writes LLVM IR for a CPU.

    Args:
      target: the machine; a plain CPU if omitted.
    """

    name: ClassVar[str] = "LLVM"
    matrices: ClassVar[frozenset[str]] = frozenset({*MATRICES, *TILES})
    scales: ClassVar[bool] = True

    def __init__(self, target: Target | None = None) -> None:
        super().__init__(target or Target())

    def render(self, name: str, uops: Sequence[UOp]) -> str:
        return LLVMFunction(name, uops, CPU).module()

    def supports_dtype(self, dtype: DType) -> bool:
        return not dtypes.is_float(dtype) or dtype.scalar() in FLOATS


class LLVMFunction:
    """One kernel while its text is being written.

    Args:
      name: of the kernel.
      uops: its linear UOps.
      dialect: of the machine.
    """

    def __init__(self, name: str, uops: Sequence[UOp], dialect: LLVMDialect) -> None:
        self._name, self._uops, self._dialect = name, uops, dialect
        self._facts = kernel_facts(uops)
        self._text = LLVMText(dialect.spaces)
        self._conversion = LLVMConversion(self._text)
        self._arithmetic = LLVMArithmetic(self._text, self._facts, self._conversion)
        self._memory = LLVMAccess(self._text, self._facts)
        self._tiles = LLVMTileRegisters(self._text, uops)
        self._allocas: list[str] = []
        self._globals: list[str] = []
        self._as_written = ""
        self._labels: dict[UOp, str] = {}

    def module(self) -> str:
        """The whole module.

        Raises:
          ValueError: for a node that has no form here.
        """
        parameters = []
        for u in self._facts.params:
            self._text.values[u] = f"%data{u.arg}"
            parameters.append(f"{self._text.pointer(u)} noalias %data{u.arg}")
        for u in self._facts.variables:
            self._text.values[u] = f"%var.{_identifier(u.arg.name)}"
            parameters.append(f"i32 {_bounds(u.arg.vmin, u.arg.vmax)}{self._text.values[u]}")
        if self._facts.core is not None:
            self._text.values[self._facts.core] = "%core_id"
            size = self._facts.core.arg[1]
            parameters.append(f"i32 {_bounds(0, upper(size) - 1)}%core_id")
        for u in self._uops:
            self._statement(u)
        more = self._dialect.metadata(self._text, self._facts)
        attributes = self._dialect.attributes(self._facts, self._uops)
        lines = [
            *self._globals,
            f"define {self._dialect.convention}void @{self._name}({', '.join(parameters)}) #0{more} {{",
            "entry:",
            *(f"  {line}" for line in (*self._allocas, *self._tiles.memory)),
            *(f"  {line}" for line in self._memory.entry),
            *self._text.body,
            # what went past the caches is seen by whoever is told next
            *(["  fence seq_cst"] if self._memory.aligned else []),
            "  ret void",
            "}",
            *self._text.declarations,
            f'attributes #0 = {{ nounwind "no-builtins"{attributes} }}',
            *self._text.metadata,
        ]
        return "\n".join(lines) + "\n"

    def _statement(self, u: UOp) -> None:
        if is_alu(u):
            self._text.values[u] = self._dialect.alu(self._text, u) or self._arithmetic.alu(u)
            return
        text, values = self._text, self._text.values
        match u.op:
            case UOps.CONST | UOps.PARAM | UOps.VAR:
                pass
            case UOps.LOAD:
                if u in self._tiles.operands:
                    values[u] = self._tiles.load(u, self._memory.address(u.src[0], u.src[1]))
                else:
                    values[u] = self._memory.load(u)
            case UOps.STORE:
                self._memory.store(u)
            case UOps.GEP:
                if len(u.arg) == 1:
                    source, lane = divmod(u.arg[0], u.src[0].dtype.count)
                    values[u] = text.emit(f"extractelement {text.typed(u.src[source])}, i32 {lane}")
                else:
                    lanes = ", ".join(f"i32 {lane}" for lane in u.arg)
                    second = text.typed(u.src[1]) if len(u.src) > 1 else f"{llvm_type(u.src[0].dtype)} poison"
                    mask = f"<{len(u.arg)} x i32> <{lanes}>"
                    values[u] = text.emit(f"shufflevector {text.typed(u.src[0])}, {second}, {mask}")
            case UOps.BARRIER:
                self._dialect.barrier(text)
            case UOps.SPECIAL:
                if u is not self._facts.core:
                    values[u] = self._dialect.coordinate(text, u)
            case UOps.AFTER:
                values[u] = values[u.src[0]]
            case UOps.SCRATCH:
                self._scratch(u)
            case UOps.ACC:
                register = values[u] = f"%reg{len(self._allocas)}"
                self._allocas.append(f"{register} = alloca {llvm_type(u.dtype)}{self._private}")
                text.line(f"store {llvm_type(u.dtype)} {self._tiles.vector(u.src[0])}, {text.register} {register}")
            case UOps.ASSIGN:
                kind = llvm_type(u.src[1].dtype)
                text.line(f"store {kind} {self._tiles.vector(u.src[1])}, {text.register} {values[u.src[0]]}")
            case UOps.READ:
                values[u] = self._tiles.kept(u, text.value(u.src[0]))
            case UOps.RANGE:
                self._open_range(u)
            case UOps.ENDRANGE:
                self._close_range(u.src[0])
            case UOps.IF:
                label = self._labels[u] = text.fresh("if")
                text.line(f"br i1 {text.value(u.src[0])}, label %{label}, label %{label}.end")
                text.open_block(label)
            case UOps.ENDIF:
                label = self._labels[u.src[0]]
                text.line(f"br label %{label}.end")
                text.open_block(f"{label}.end")
            case UOps.PREFETCH:
                place = self._memory.address(u.src[0], u.src[1], inbounds=False)
                prefetch = f"llvm.prefetch.p{text.spaces.number(u.src[0])}"
                how = (("i32", "0"), ("i32", "3"), ("i32", "1"))
                text.call(prefetch, "void", (text.pointer(u.src[0]), place), *how)
            case UOps.VECTORIZE:
                kind, vector = llvm_type(u.dtype), _constant_lanes(u)
                for lane, operand in enumerate(u.src):
                    if not operand.is_const:
                        vector = text.emit(f"insertelement {kind} {vector}, {text.typed(operand)}, i32 {lane}")
                values[u] = vector
            case UOps.BROADCAST:
                values[u] = self._conversion.broadcast(u)
            case UOps.MATRIX:
                together = self._tiles.product if u.arg.tiled else self._arithmetic.matrix
                values[u] = together(u) if self._dialect.matrix is None else self._dialect.matrix(text, u)
            case UOps.SCALE:
                values[u] = self._arithmetic.scale(u)
            case _:
                raise ValueError(f"{self._dialect.language}: {u!r} has no form in a linear kernel")

    @property
    def _private(self) -> str:
        """Where an ``alloca`` is, if that has to be said."""
        return f", addrspace({self._text.spaces.private})" if self._text.spaces.private else ""

    def _scratch(self, u: UOp) -> None:
        """An array of a work-item, or one that its group shares."""
        (name, size), space = u.arg, self._text.spaces.number(u)
        array = f"[{size} x {scalar_type(element(u), memory=True)}]"
        if space and space == self._text.spaces.shared:
            self._text.values[u] = f"@{self._name}.{_identifier(name)}"
            self._globals.append(
                f"{self._text.values[u]} = internal addrspace({space}) global {array} poison, align 16"
            )
        else:
            self._text.values[u] = f"%buf.{_identifier(name)}"
            self._allocas.append(f"{self._text.values[u]} = alloca {array}, align 64{self._private}")

    def _open_range(self, u: UOp) -> None:
        label = self._labels[u] = f"{_identifier(u.arg)}.{self._text.fresh('loop')}"
        counter = self._text.values[u] = f"%{label}.i"
        kind, start = llvm_type(u.dtype), self._text.value(u.src[0])
        before = self._text.block
        self._text.line(f"br label %{label}")
        self._text.open_block(label)
        self._text.line(f"{counter} = phi {kind} [ {start}, %{before} ], [ {counter}.next, %{label}.latch ]")
        if not _runs(u):
            self._text.line(f"{counter}.go = icmp slt {kind} {counter}, {self._text.value(u.src[1])}")
            self._text.line(f"br i1 {counter}.go, label %{label}.body, label %{label}.end")
            self._text.open_block(f"{label}.body")

    def _close_range(self, u: UOp) -> None:
        label, counter, kind = self._labels[u], self._text.values[u], llvm_type(u.dtype)
        step = self._text.value(u.src[2]) if len(u.src) > 2 else "1"
        self._text.line(f"br label %{label}.latch")
        self._text.open_block(f"{label}.latch")
        self._text.line(f"{counter}.next = add nsw {kind} {counter}, {step}")
        if _runs(u):
            self._text.line(f"{counter}.go = icmp slt {kind} {counter}.next, {self._text.value(u.src[1])}")
            self._text.line(f"br i1 {counter}.go, label %{label}, label %{label}.end{self._loop_metadata()}")
        else:
            self._text.line(f"br label %{label}{self._loop_metadata()}")
        self._text.open_block(f"{label}.end")

    def _loop_metadata(self) -> str:
        # Whoever wrote vectors chose the widths and the unrolling too; LLVM's own search would only cost compile time.
        if self._facts.lanes == 1:
            return ""
        if not self._as_written:
            parts = ('!{!"llvm.loop.unroll.disable"}', '!{!"llvm.loop.vectorize.enable", i1 false}')
            self._as_written = ", ".join(f"!{self._text.fresh_metadata(part)}" for part in parts)
        number = len(self._text.metadata)
        self._text.fresh_metadata(f"distinct !{{!{number}, {self._as_written}}}")
        return f", !llvm.loop !{number}"

def _identifier(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_]", "_", name)


def _constant_lanes(u: UOp) -> str:
    """A VECTORIZE's lanes that are constants, in a literal; the others are inserted into it."""
    if not any(operand.is_const for operand in u.src):
        return "poison"
    kind = llvm_type(u.dtype.scalar())
    lanes = (llvm_literal(x.arg, x.dtype) if x.is_const else "poison" for x in u.src)
    return f"<{', '.join(f'{kind} {lane}' for lane in lanes)}>"


def _runs(u: UOp) -> bool:
    """Whether a RANGE is known to run at least once."""
    return u.src[0].is_const and u.src[1].is_const and bool(u.src[0].arg < u.src[1].arg)


def _bounds(low: int, high: int) -> str:
    return f"range(i32 {low}, {high + 1}) " if -(2**31) < low <= high < 2**31 - 1 else ""
