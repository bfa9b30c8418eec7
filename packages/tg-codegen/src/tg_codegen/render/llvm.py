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
from collections.abc import Iterator, Sequence
from typing import ClassVar

from tg_dtype import ConstType, DType, dtypes

from ..ir.facts import element, kernel_facts
from ..ir.scalar import constant_lanes
from ..ir.uop import UOp, UOps, is_alu
from ..machine.renderer import Renderer
from ..machine.target import Target
from .llvm_arithmetic import MATRICES, LLVMArithmetic
from .llvm_text import FLOATS, literal, llvm_type, overload, scalar_type

PAGE = 4096  # bytes of the smallest page, and of the guard behind a thread's stack
LINE = 64  # bytes of a cache line, and more than any vector has


class LLVMRenderer(Renderer):
    """Writes LLVM IR for a CPU.

    Args:
      target: the machine; a plain CPU if omitted.
    """

    name: ClassVar[str] = "LLVM"
    matrices: ClassVar[frozenset[str]] = frozenset(MATRICES)
    scales: ClassVar[bool] = True

    def __init__(self, target: Target | None = None) -> None:
        super().__init__(target or Target())

    def render(self, name: str, uops: Sequence[UOp]) -> str:
        return _Function(self, name, uops).text()

    def supports_dtype(self, dtype: DType) -> bool:
        return not dtypes.is_float(dtype) or dtype.scalar() in FLOATS


class _Function(LLVMArithmetic):
    """One kernel while its text is being written."""

    def __init__(self, renderer: LLVMRenderer, name: str, uops: Sequence[UOp]) -> None:
        super().__init__(kernel_facts(uops))
        self.renderer, self.name, self.uops = renderer, name, uops
        self.allocas: list[str] = []
        self.entry: list[str] = []
        self.metadata: list[str] = []
        self.as_written = self.once = ""
        self.labels: dict[UOp, str] = {}
        self.aligned: dict[str, str] = {}
        self.gates: dict[UOp, tuple[ConstType, ...] | None] = {}  # the lanes of those that are constants

    def text(self) -> str:
        """The whole module.

        Raises:
          ValueError: a node that has no form here.
        """
        parameters = []
        for u in self.facts.params:
            self.values[u] = f"%data{u.arg}"
            parameters.append(f"ptr noalias %data{u.arg}")
        for u in self.facts.variables:
            self.values[u] = f"%var.{_identifier(u.arg.name)}"
            parameters.append(f"i32 {_bounds(u.arg.vmin, u.arg.vmax)}{self.values[u]}")
        if self.facts.core is not None:
            self.values[self.facts.core] = "%core_id"
            size = self.facts.core.arg[1]
            parameters.append(f"i32 {_bounds(0, (size if isinstance(size, int) else size.vmax) - 1)}%core_id")
        for u in self.uops:
            self.statement(u)
        lines = [
            f"define void @{self.name}({', '.join(parameters)}) #0 {{",
            "entry:",
            *(f"  {line}" for line in self.allocas),
            *(f"  {line}" for line in self.entry),
            *self.body,
            *(["  fence seq_cst"] if self.aligned else []),  # what went past the caches is seen by whoever is told next
            "  ret void",
            "}",
            *self.declarations,
            f'attributes #0 = {{ nounwind "no-builtins"{self.probed()} }}',
            *self.metadata,
        ]
        return "\n".join(lines) + "\n"

    def probed(self) -> str:
        """What has LLVM touch a large frame page by page: without stack it faults, and does not write elsewhere."""
        nbytes = sum(u.arg[1] * element(u).itemsize for u in self.uops if u.op is UOps.SCRATCH)
        return ' "probe-stack"="inline-asm"' if nbytes > PAGE else ""

    def statement(self, u: UOp) -> None:
        if is_alu(u):
            self.values[u] = self.alu(u)
            return
        match u.op:
            case UOps.CONST | UOps.PARAM | UOps.VAR | UOps.BARRIER:
                pass  # a CPU kernel is one thread of control: it has nothing to wait for
            case UOps.SPECIAL:
                if u.arg[0] != "core_id":
                    raise ValueError(f"LLVM: SPECIAL {u.arg[0]} has no meaning on a CPU")
            case UOps.AFTER:
                self.values[u] = self.values[u.src[0]]
            case UOps.SCRATCH:
                name, size = u.arg
                self.values[u] = f"%buf.{_identifier(name)}"
                array = f"[{size} x {scalar_type(element(u), memory=True)}]"
                self.allocas.append(f"{self.values[u]} = alloca {array}, align 64")
            case UOps.ACC:
                register = self.values[u] = f"%reg{len(self.allocas)}"
                self.allocas.append(f"{register} = alloca {llvm_type(u.dtype)}")
                self.line(f"store {self.typed(u.src[0])}, ptr {register}")
            case UOps.ASSIGN:
                self.line(f"store {self.typed(u.src[1])}, ptr {self.values[u.src[0]]}")
            case UOps.READ:
                self.values[u] = self.value(u.src[0])
            case UOps.RANGE:
                self.open_range(u)
            case UOps.ENDRANGE:
                self.close_range(u.src[0])
            case UOps.IF:
                label = self.labels[u] = self.fresh("if")
                self.line(f"br i1 {self.value(u.src[0])}, label %{label}, label %{label}.end")
                self.open_block(label)
            case UOps.ENDIF:
                label = self.labels[u.src[0]]
                self.line(f"br label %{label}.end")
                self.open_block(f"{label}.end")
            case UOps.LOAD:
                self.values[u] = self.load(u)
            case UOps.STORE:
                self.store(u)
            case UOps.PREFETCH:
                place = self.address(u.src[0], u.src[1], inbounds=False)
                self.call("llvm.prefetch.p0", "void", ("ptr", place), ("i32", "0"), ("i32", "3"), ("i32", "1"))
            case UOps.VECTORIZE:
                kind, vector = llvm_type(u.dtype), "poison"
                for lane, operand in enumerate(u.src):
                    vector = self.emit(f"insertelement {kind} {vector}, {self.typed(operand)}, i32 {lane}")
                self.values[u] = vector
            case UOps.BROADCAST:
                self.values[u] = self.broadcast(u)
            case UOps.GEP:
                if len(u.arg) == 1:
                    source, lane = divmod(u.arg[0], u.src[0].dtype.count)
                    self.values[u] = self.emit(f"extractelement {self.typed(u.src[source])}, i32 {lane}")
                else:
                    lanes = ", ".join(f"i32 {lane}" for lane in u.arg)
                    second = self.typed(u.src[1]) if len(u.src) > 1 else f"{llvm_type(u.src[0].dtype)} poison"
                    mask = f"<{len(u.arg)} x i32> <{lanes}>"
                    self.values[u] = self.emit(f"shufflevector {self.typed(u.src[0])}, {second}, {mask}")
            case UOps.MATRIX:
                self.values[u] = self.matrix(u)
            case UOps.SCALE:
                self.values[u] = self.scale(u)
            case _:
                raise ValueError(f"LLVM: {u!r} has no form in a linear kernel")

    def open_range(self, u: UOp) -> None:
        label = self.labels[u] = f"{_identifier(u.arg)}.{self.fresh('loop')}"
        counter = self.values[u] = f"%{label}.i"
        kind, start = llvm_type(u.dtype), self.value(u.src[0])
        before = self.block
        self.line(f"br label %{label}")
        self.open_block(label)
        self.line(f"{counter} = phi {kind} [ {start}, %{before} ], [ {counter}.next, %{label}.latch ]")
        if not _runs(u):
            self.line(f"{counter}.go = icmp slt {kind} {counter}, {self.value(u.src[1])}")
            self.line(f"br i1 {counter}.go, label %{label}.body, label %{label}.end")
            self.open_block(f"{label}.body")

    def close_range(self, u: UOp) -> None:
        label, counter, kind = self.labels[u], self.values[u], llvm_type(u.dtype)
        step = self.value(u.src[2]) if len(u.src) > 2 else "1"
        self.line(f"br label %{label}.latch")
        self.open_block(f"{label}.latch")
        self.line(f"{counter}.next = add nsw {kind} {counter}, {step}")
        if _runs(u):
            self.line(f"{counter}.go = icmp slt {kind} {counter}.next, {self.value(u.src[1])}")
            self.line(f"br i1 {counter}.go, label %{label}, label %{label}.end{self.loop_metadata()}")
        else:
            self.line(f"br label %{label}{self.loop_metadata()}")
        self.open_block(f"{label}.end")

    def loop_metadata(self) -> str:
        # Whoever wrote vectors chose the widths and the unrolling too; LLVM's own search would only cost compile time.
        if self.facts.lanes == 1:
            return ""
        if not self.as_written:
            parts = ('!{!"llvm.loop.unroll.disable"}', '!{!"llvm.loop.vectorize.enable", i1 false}')
            self.as_written = ", ".join(f"!{self.fresh_metadata(part)}" for part in parts)
        number = len(self.metadata)
        self.fresh_metadata(f"distinct !{{!{number}, {self.as_written}}}")
        return f", !llvm.loop !{number}"

    def fresh_metadata(self, text: str) -> int:
        """The number of a new line of metadata."""
        self.metadata.append(f"!{len(self.metadata)} = {text}")
        return len(self.metadata) - 1

    def address(self, pointer: UOp, index: UOp, inbounds: bool = True) -> str:
        kind = scalar_type(element(pointer), memory=True)
        flag = " inbounds" if inbounds else ""
        return self.emit(f"getelementptr{flag} {kind}, ptr {self.values[pointer]}, {self.typed(index)}", "p")

    def lanes(self, u: UOp, dtype: DType) -> str:
        """The operand ``u`` spread over as many lanes as ``dtype`` has."""
        wide = u.dtype.scalar().vec(dtype.count)
        if u.dtype.count == dtype.count:
            return self.value(u)
        return literal(u.arg, wide) if u.is_const else self.splat(self.value(u), wide)

    def plain_load(self, u: UOp, inbounds: bool = True) -> str:
        kind, align = llvm_type(u.dtype, memory=True), element(u.src[0]).itemsize
        return self.emit(f"load {kind}, ptr {self.address(u.src[0], u.src[1], inbounds)}, align {align}", "val")

    def load(self, u: UOp) -> str:
        if len(u.src) < 3:
            return self.from_memory(self.plain_load(u), u.dtype)
        gate, dtype, kind = u.src[2], u.dtype, llvm_type(u.dtype, memory=True)
        zero = "0" if kind.startswith("i") else "zeroinitializer"
        other = self.to_memory(self.lanes(u.src[3], dtype), dtype) if len(u.src) > 3 else zero
        if gate.dtype.count > 1:
            pointer = self.address(u.src[0], u.src[1], inbounds=False)
            value = self.call(
                f"llvm.masked.load.{overload(dtype, memory=True)}.p0", kind,
                ("ptr", pointer), ("i32", str(element(u.src[0]).itemsize)),
                (llvm_type(gate.dtype), self.value(gate)), (kind, other),
            )  # fmt: skip
            return self.from_memory(value, dtype)
        before, label = self.block, self.fresh("load")
        self.line(f"br i1 {self.value(gate)}, label %{label}, label %{label}.end")
        self.open_block(label)
        value = self.plain_load(u)
        self.line(f"br label %{label}.end")
        self.open_block(f"{label}.end")
        return self.from_memory(self.emit(f"phi {kind} [ {value}, %{label} ], [ {other}, %{before} ]"), dtype)

    def store(self, u: UOp) -> None:
        pointer, index, value = u.src[:3]
        dtype, align = value.dtype, element(pointer).itemsize
        kind, text = llvm_type(dtype, memory=True), self.to_memory(self.value(value), dtype)
        if len(u.src) < 4:
            place = self.address(pointer, index)
            if self.facts.streamed(u):
                self.stream(f"store {kind} {text}, ptr {place}", self.values[pointer], dtype.itemsize, align)
            else:
                self.line(f"store {kind} {text}, ptr {place}, align {align}")
            return
        gate = u.src[3]
        if gate not in self.gates:
            self.gates[gate] = constant_lanes(gate)
        known = self.gates[gate]
        if known is not None:
            wanted = known * (dtype.count // len(known))
            self.store_lanes(wanted, text, self.address(pointer, index, inbounds=False), dtype, align)
            return
        if gate.dtype.count > 1:
            self.call(
                f"llvm.masked.store.{overload(dtype, memory=True)}.p0", "void",
                (kind, text), ("ptr", self.address(pointer, index, inbounds=False)), ("i32", str(align)),
                (llvm_type(gate.dtype), self.value(gate)),
            )  # fmt: skip
            return
        label = self.fresh("store")
        self.line(f"br i1 {self.value(gate)}, label %{label}, label %{label}.end")
        self.open_block(label)
        self.line(f"store {kind} {text}, ptr {self.address(pointer, index)}, align {align}")
        self.line(f"br label %{label}.end")
        self.open_block(f"{label}.end")

    def store_lanes(self, wanted: Sequence[ConstType], value: str, place: str, dtype: DType, align: int) -> None:
        """Stores the lanes that are wanted, known now, in pieces of 2**n lanes.

        ``llvm.masked.store`` is for masks that the kernel computes: LLVM 22 stores a narrowed vector (``trunc``,
        ``fptrunc``) whole lanes of the wider type where its mask is a constant with one lane, past what is wanted.
        """
        lane = scalar_type(dtype.scalar(), memory=True)
        for first, count in _pieces(wanted):
            if count == 1:
                kind, piece = lane, self.emit(f"extractelement <{dtype.count} x {lane}> {value}, i32 {first}")
            else:
                kind, whole = f"<{count} x {lane}>", f"<{dtype.count} x {lane}>"
                mask = ", ".join(f"i32 {first + i}" for i in range(count))
                piece = self.emit(f"shufflevector {whole} {value}, {whole} poison, <{count} x i32> <{mask}>")
            at = self.emit(f"getelementptr inbounds {lane}, ptr {place}, i64 {first}", "p") if first else place
            self.line(f"store {kind} {piece}, ptr {at}, align {align}")

    def stream(self, text: str, buffer: str, nbytes: int, align: int) -> None:
        """A store past the caches if the buffer is aligned to whole lines, which is known when the kernel runs."""
        aligned = self.aligned.get(buffer)
        if aligned is None:
            aligned = self.aligned[buffer] = f"{buffer}.aligned"
            self.entry += [
                f"{buffer}.word = ptrtoint ptr {buffer} to i64",
                f"{buffer}.past = and i64 {buffer}.word, {LINE - 1}",
                f"{aligned} = icmp eq i64 {buffer}.past, 0",
            ]
        if not self.once:
            self.once = f"!{self.fresh_metadata('!{i32 1}')}"
        label = self.fresh("stream")
        self.line(f"br i1 {aligned}, label %{label}, label %{label}.cached")
        self.open_block(label)
        self.line(f"{text}, align {nbytes}, !nontemporal {self.once}")
        self.line(f"br label %{label}.end")
        self.open_block(f"{label}.cached")
        self.line(f"{text}, align {align}")
        self.line(f"br label %{label}.end")
        self.open_block(f"{label}.end")


def _identifier(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_]", "_", name)


def _pieces(wanted: Sequence[ConstType]) -> Iterator[tuple[int, int]]:
    """Runs of lanes that are wanted, each cut into powers of two: the first lane and the number of lanes.

    >>> list(_pieces([True] * 5 + [False, True, True]))
    [(0, 4), (4, 1), (6, 2)]
    """
    first, lanes = 0, [*wanted, False]
    for end, lane in enumerate(lanes):
        if lane:
            continue
        while first < end:
            count = 1 << (end - first).bit_length() - 1
            yield first, count
            first += count
        first = end + 1


def _runs(u: UOp) -> bool:
    """Whether a RANGE is known to run at least once."""
    return u.src[0].is_const and u.src[1].is_const and bool(u.src[0].arg < u.src[1].arg)


def _bounds(low: int, high: int) -> str:
    return f"range(i32 {low}, {high + 1}) " if -(2**31) < low <= high < 2**31 - 1 else ""
