"""LLVM IR for the host CPU: text with opaque pointers, for LLVM 19 and later.

Registers that change (ACC) and private arrays (SCRATCH) are ``alloca`` in the entry block; LLVM's first pass turns the
registers into SSA. A bool is an ``i8`` in memory and an ``i1`` in a register. The text names no target: the compiler
that takes it states triple, CPU and features.

Example:
    >>> from tg_codegen.render_llvm import LLVMRenderer
    >>> LLVMRenderer().name
    'LLVM'
"""

from __future__ import annotations

import functools
import re
import struct
from collections.abc import Callable, Sequence
from typing import ClassVar

from tg_dtype import ConstType, DType, PtrDType, dtypes, to_bits
from tg_lazy import TRANSCENDENTAL, Ops

from .facts import element, kernel_facts
from .renderer import Renderer
from .target import Target
from .uop import UOp, UOps, is_alu

_FLOATS = {dtypes.float16: "half", dtypes.float32: "float", dtypes.float64: "double"}
_SHORT = {"half": "f16", "float": "f32", "double": "f64"}
_FLOAT_ARITHMETIC = {Ops.ADD: "fadd", Ops.SUB: "fsub", Ops.MUL: "fmul", Ops.FDIV: "fdiv"}
_FLOAT_COMPARISON = {Ops.CMPLT: "olt", Ops.CMPEQ: "oeq", Ops.CMPNE: "une"}
_INT_ARITHMETIC = {
    Ops.ADD: "add", Ops.SUB: "sub", Ops.MUL: "mul", Ops.AND: "and", Ops.OR: "or", Ops.XOR: "xor", Ops.SHL: "shl",
}  # fmt: skip
_BOOL_ARITHMETIC = {
    Ops.ADD: "or", Ops.SUB: "xor", Ops.MUL: "and", Ops.AND: "and", Ops.OR: "or", Ops.XOR: "xor", Ops.MAX: "or",
    Ops.IDIV: "and", Ops.CMPNE: "xor",
}  # fmt: skip
LINE = 64  # bytes of a cache line, and more than any vector has
_MATRICES = {
    "vdpbf16ps": ("llvm.x86.avx512bf16.dpbf16ps.512", "<32 x bfloat>"),
    "vpdpbusd": ("llvm.x86.avx512.vpdpbusd.512", "<64 x i8>"),
    "vpdpbusd.turned": ("llvm.x86.avx512.vpdpbusd.512", "<64 x i8>"),
    "vpdpwssd": ("llvm.x86.avx512.vpdpwssd.512", "<32 x i16>"),
}
_SCALES = {
    (dtypes.float32, 16): "llvm.x86.avx512.mask.scalef.ps.512",
    (dtypes.float64, 8): "llvm.x86.avx512.mask.scalef.pd.512",
}
_NO_WRAP = frozenset({"add", "sub", "mul", "shl"})


class LLVMRenderer(Renderer):
    """Writes LLVM IR for a CPU.

    Args:
      target: the machine; a plain CPU if omitted.
      strict: forbid LLVM to contract a multiplication and an addition that the kernel states apart. MULACC is fused
        either way where the CPU can.
    """

    name: ClassVar[str] = "LLVM"
    matrices: ClassVar[frozenset[str]] = frozenset(_MATRICES)
    scales: ClassVar[bool] = True

    def __init__(self, target: Target | None = None, *, strict: bool = False) -> None:
        super().__init__(target or Target())
        self.strict = strict

    def render(self, name: str, uops: Sequence[UOp]) -> str:
        return _Function(self, name, uops).text()

    def supports_dtype(self, dtype: DType) -> bool:
        return not dtypes.is_float(dtype) or dtype.scalar() in _FLOATS

    def supports_op(self, op: Ops, dtype: DType) -> bool:
        return op not in TRANSCENDENTAL

    @property
    def key(self) -> str:
        return f"{super().key}:strict={self.strict}"


def _scalar(dtype: DType, memory: bool = False) -> str:
    if dtypes.is_bool(dtype):
        return "i8" if memory else "i1"
    if dtypes.is_int(dtype):
        return f"i{dtype.bits}"
    found = _FLOATS.get(dtype.scalar())
    if found is None:
        raise ValueError(f"LLVM: {dtype.name} has no arithmetic here; it must be legalised to another dtype")
    return found


@functools.cache
def _type(dtype: DType, memory: bool = False) -> str:
    """The LLVM type of a value in a register, or in memory."""
    if isinstance(dtype, PtrDType):
        return "ptr"
    scalar = _scalar(dtype.scalar(), memory)
    return scalar if dtype.count == 1 else f"<{dtype.count} x {scalar}>"


@functools.cache
def _overload(dtype: DType, memory: bool = False) -> str:
    """The type as it stands in the name of an intrinsic."""
    scalar = _scalar(dtype.scalar(), memory)
    short = _SHORT.get(scalar, scalar)
    return short if dtype.count == 1 else f"v{dtype.count}{short}"


def _literal(value: ConstType, dtype: DType) -> str:
    scalar = dtype.scalar()
    if dtypes.is_bool(scalar):
        text = "true" if value else "false"
    elif dtypes.is_int(scalar):
        text = str(int(value))
    elif scalar is dtypes.float16:
        text = f"0xH{to_bits(value, scalar):04X}"
    else:
        text = "0x" + struct.pack(">d", value).hex().upper()
    return text if dtype.count == 1 else f"splat ({_scalar(scalar)} {text})"


class _Function:
    """One kernel while its text is being written."""

    def __init__(self, renderer: LLVMRenderer, name: str, uops: Sequence[UOp]) -> None:
        self.renderer, self.name, self.uops = renderer, name, uops
        self.facts = kernel_facts(uops)
        self.values: dict[UOp, str] = {}
        self.allocas: list[str] = []
        self.entry: list[str] = []
        self.body: list[str] = []
        self.declarations: dict[str, None] = {}
        self.metadata: list[str] = []
        self.as_written = self.once = ""
        self.block = "entry"
        self.labels: dict[UOp, str] = {}
        self.serial = 0
        self.contract = "" if renderer.strict else "contract "
        self.aligned: dict[str, str] = {}

    # text

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
            'attributes #0 = { nounwind "no-builtins" }',
            *self.metadata,
        ]
        return "\n".join(lines) + "\n"

    def fresh(self, stem: str) -> str:
        self.serial += 1
        return f"{stem}{self.serial}"

    def line(self, text: str) -> None:
        self.body.append(f"  {text}")

    def emit(self, text: str, stem: str = "t") -> str:
        """An instruction that has a value; returns the value's name."""
        name = f"%{self.fresh(stem)}"
        self.line(f"{name} = {text}")
        return name

    def open_block(self, label: str) -> None:
        self.body.append(f"{label}:")
        self.block = label

    def call(self, intrinsic: str, result: str, *arguments: tuple[str, str], flags: str = "") -> str:
        """A call of an intrinsic with (type, value) arguments; ``result`` is its type, ``void`` for none."""
        types = ", ".join(t for t, _ in arguments)
        self.declarations[f"declare {result} @{intrinsic}({types})"] = None
        text = f"call {flags}{result} @{intrinsic}({', '.join(f'{t} {v}' for t, v in arguments)})"
        if result == "void":
            self.line(text)
            return ""
        return self.emit(text)

    def value(self, u: UOp) -> str:
        """What stands for the node as an operand, here and now."""
        if u.op is UOps.CONST:
            return _literal(u.arg, u.dtype)
        if u.op is UOps.ACC:
            return self.emit(f"load {_type(u.dtype)}, ptr {self.values[u]}", "acc")
        return self.values[u]

    def typed(self, u: UOp) -> str:
        return f"{_type(u.dtype)} {self.value(u)}"

    # statements

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
                array = f"[{size} x {_scalar(element(u), memory=True)}]"
                self.allocas.append(f"{self.values[u]} = alloca {array}, align 64")
            case UOps.ACC:
                register = self.values[u] = f"%reg{len(self.allocas)}"
                self.allocas.append(f"{register} = alloca {_type(u.dtype)}")
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
                kind, vector = _type(u.dtype), "poison"
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
                    second = self.typed(u.src[1]) if len(u.src) > 1 else f"{_type(u.src[0].dtype)} poison"
                    mask = f"<{len(u.arg)} x i32> <{lanes}>"
                    self.values[u] = self.emit(f"shufflevector {self.typed(u.src[0])}, {second}, {mask}")
            case UOps.MATRIX:
                self.values[u] = self.matrix(u)
            case UOps.SCALE:
                self.values[u] = self.scale(u)
            case _:
                raise ValueError(f"LLVM: {u!r} has no form in a linear kernel")

    def scale(self, u: UOp) -> str:
        """A multiplication by a power of two, which AVX-512 takes as a float."""
        kind, lanes = _type(u.dtype), u.dtype.count
        direct = _SCALES.get((u.dtype.scalar(), lanes))
        if direct is not None:
            mask = "i16" if lanes == 16 else "i8"
            self.declarations[f"declare {kind} @{direct}({kind}, {kind}, {kind}, {mask}, i32)"] = None
            operands = f"{self.typed(u.src[0])}, {self.typed(u.src[1])}, {kind} zeroinitializer, {mask} -1, i32 4"
            return self.emit(f"call {kind} @{direct}({operands})")
        whole = dtypes.int32.vec(lanes)
        power = self.emit(f"fptosi {self.typed(u.src[1])} to {_type(whole)}")
        name = f"llvm.ldexp.{_overload(u.dtype)}.{_overload(whole)}"
        self.declarations[f"declare {kind} @{name}({kind}, {_type(whole)})"] = None
        return self.emit(f"call {kind} @{name}({self.typed(u.src[0])}, {_type(whole)} {power})")

    def matrix(self, u: UOp) -> str:
        """A dot product: its first operand is one lane's worth, for all lanes."""
        intrinsic, kind = _MATRICES[u.arg.name]
        acc, lanes = _type(u.dtype), u.dtype.count
        lane = f"i{u.dtype.scalar().bits}"
        one = self.emit(f"bitcast {self.typed(u.src[1])} to {lane}")
        every = self.emit(f"insertelement <{lanes} x {lane}> poison, {lane} {one}, i32 0")
        words = f"<{lanes} x {lane}>"
        every = self.emit(f"shufflevector {words} {every}, {words} poison, <{lanes} x i32> zeroinitializer")
        a = self.emit(f"bitcast {words} {every} to {kind}")
        b = self.value(u.src[2])
        if kind != _type(u.src[2].dtype):
            b = self.emit(f"bitcast {self.typed(u.src[2])} to {kind}")
        if u.arg.name.endswith(".turned"):
            a, b = b, a
        self.declarations[f"declare {acc} @{intrinsic}({acc}, {kind}, {kind})"] = None
        return self.emit(f"call {acc} @{intrinsic}({acc} {self.value(u.src[0])}, {kind} {a}, {kind} {b})")

    def splat(self, value: str, dtype: DType) -> str:
        kind, count = _type(dtype), dtype.count
        one = self.emit(f"insertelement {kind} poison, {_type(dtype.scalar())} {value}, i32 0")
        return self.emit(f"shufflevector {kind} {one}, {kind} poison, <{count} x i32> zeroinitializer")

    def open_range(self, u: UOp) -> None:
        label = self.labels[u] = f"{_identifier(u.arg)}.{self.fresh('loop')}"
        counter = self.values[u] = f"%{label}.i"
        kind, start = _type(u.dtype), self.value(u.src[0])
        before = self.block
        self.line(f"br label %{label}")
        self.open_block(label)
        self.line(f"{counter} = phi {kind} [ {start}, %{before} ], [ {counter}.next, %{label}.latch ]")
        if not _runs(u):
            self.line(f"{counter}.go = icmp slt {kind} {counter}, {self.value(u.src[1])}")
            self.line(f"br i1 {counter}.go, label %{label}.body, label %{label}.end")
            self.open_block(f"{label}.body")

    def close_range(self, u: UOp) -> None:
        label, counter, kind = self.labels[u], self.values[u], _type(u.dtype)
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

    # memory

    def address(self, pointer: UOp, index: UOp, inbounds: bool = True) -> str:
        kind = _scalar(element(pointer), memory=True)
        flag = " inbounds" if inbounds else ""
        return self.emit(f"getelementptr{flag} {kind}, ptr {self.values[pointer]}, {self.typed(index)}", "p")

    def from_memory(self, value: str, dtype: DType) -> str:
        if not dtypes.is_bool(dtype):
            return value
        return self.emit(f"icmp ne {_type(dtype, memory=True)} {value}, zeroinitializer" if dtype.count > 1
                         else f"icmp ne i8 {value}, 0")  # fmt: skip

    def to_memory(self, value: str, dtype: DType) -> str:
        if not dtypes.is_bool(dtype):
            return value
        return self.emit(f"zext {_type(dtype)} {value} to {_type(dtype, memory=True)}")

    def lanes(self, u: UOp, dtype: DType) -> str:
        """The operand ``u`` spread over as many lanes as ``dtype`` has."""
        wide = u.dtype.scalar().vec(dtype.count)
        if u.dtype.count == dtype.count:
            return self.value(u)
        return _literal(u.arg, wide) if u.is_const else self.splat(self.value(u), wide)

    def plain_load(self, u: UOp, inbounds: bool = True) -> str:
        kind, align = _type(u.dtype, memory=True), element(u.src[0]).itemsize
        return self.emit(f"load {kind}, ptr {self.address(u.src[0], u.src[1], inbounds)}, align {align}", "val")

    def load(self, u: UOp) -> str:
        if len(u.src) < 3:
            return self.from_memory(self.plain_load(u), u.dtype)
        gate, dtype, kind = u.src[2], u.dtype, _type(u.dtype, memory=True)
        zero = "0" if kind.startswith("i") else "zeroinitializer"
        other = self.to_memory(self.lanes(u.src[3], dtype), dtype) if len(u.src) > 3 else zero
        if gate.dtype.count > 1:
            pointer = self.address(u.src[0], u.src[1], inbounds=False)
            value = self.call(
                f"llvm.masked.load.{_overload(dtype, memory=True)}.p0", kind,
                ("ptr", pointer), ("i32", str(element(u.src[0]).itemsize)),
                (_type(gate.dtype), self.value(gate)), (kind, other),
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
        kind, text = _type(dtype, memory=True), self.to_memory(self.value(value), dtype)
        if len(u.src) < 4:
            place = self.address(pointer, index)
            if self.facts.streamed(u):
                self.stream(f"store {kind} {text}, ptr {place}", self.values[pointer], dtype.itemsize, align)
            else:
                self.line(f"store {kind} {text}, ptr {place}, align {align}")
            return
        gate = u.src[3]
        if gate.dtype.count > 1:
            self.call(
                f"llvm.masked.store.{_overload(dtype, memory=True)}.p0", "void",
                (kind, text), ("ptr", self.address(pointer, index, inbounds=False)), ("i32", str(align)),
                (_type(gate.dtype), self.value(gate)),
            )  # fmt: skip
            return
        label = self.fresh("store")
        self.line(f"br i1 {self.value(gate)}, label %{label}, label %{label}.end")
        self.open_block(label)
        self.line(f"store {kind} {text}, ptr {self.address(pointer, index)}, align {align}")
        self.line(f"br label %{label}.end")
        self.open_block(f"{label}.end")

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

    # arithmetic

    def alu(self, u: UOp) -> str:
        op, dtype = u.op, u.src[-1].dtype
        if op in (Ops.CAST, Ops.BITCAST):
            convert: Callable[[str, DType, DType], str] = self.cast if op is Ops.CAST else self.bitcast
            return convert(self.value(u.src[0]), u.src[0].dtype, u.dtype)
        values = [self.value(operand) for operand in u.src]
        if op is Ops.WHERE:
            return self.select(values[0], values[1], values[2], dtype, _type(u.src[0].dtype))
        if dtypes.is_float(dtype):
            found = self.float_alu(op, dtype, values)
        elif dtypes.is_bool(dtype):
            found = self.bool_alu(op, dtype, values)
        else:
            found = self.int_alu(u, dtype, values)
        if found is None:
            raise ValueError(f"LLVM: {u.op.name} of {dtype.name} has no instruction; it must be decomposed")
        return found

    def select(self, condition: str, yes: str, no: str, dtype: DType, condition_type: str = "") -> str:
        kind = _type(dtype)
        mask = condition_type or _type(dtypes.bool.vec(dtype.count))
        return self.emit(f"select {mask} {condition}, {kind} {yes}, {kind} {no}")

    def float_alu(self, op: object, dtype: DType, v: list[str]) -> str | None:
        kind, name = _type(dtype), _overload(dtype)
        if op in _FLOAT_ARITHMETIC:
            flags = "" if op is Ops.FDIV else self.contract
            return self.emit(f"{_FLOAT_ARITHMETIC[op]} {flags}{kind} {v[0]}, {v[1]}")
        if op in _FLOAT_COMPARISON:
            return self.emit(f"fcmp {_FLOAT_COMPARISON[op]} {kind} {v[0]}, {v[1]}")
        match op:
            case Ops.NEG:
                return self.emit(f"fneg {kind} {v[0]}")
            case Ops.RECIP:
                return self.emit(f"fdiv {kind} {_literal(1.0, dtype)}, {v[0]}")
            case Ops.SQRT:
                return self.call(f"llvm.sqrt.{name}", kind, (kind, v[0]))
            case Ops.TRUNC:
                return self.call(f"llvm.trunc.{name}", kind, (kind, v[0]))
            case Ops.MULACC:
                return self.call(f"llvm.fmuladd.{name}", kind, *((kind, x) for x in v))
            case Ops.MAX:
                # On x86 this is max, compare, blend: max gives its second operand when either is NaN, so only a NaN in
                # the first needs mending. Without nsz the zeros would be ordered too, at twice the price; two nested
                # selects come out one instruction longer, because LLVM merges their conditions.
                return self.call(f"llvm.maximum.{name}", kind, *((kind, x) for x in v), flags="nsz ")
        return None

    def bool_alu(self, op: object, dtype: DType, v: list[str]) -> str | None:
        kind = _type(dtype)
        if op in _BOOL_ARITHMETIC:
            return self.emit(f"{_BOOL_ARITHMETIC[op]} {kind} {v[0]}, {v[1]}")
        match op:
            case Ops.NEG:
                return v[0]
            case Ops.NOT:
                return self.emit(f"xor {kind} {v[0]}, {_literal(True, dtype)}")
            case Ops.CMPEQ:
                return self.emit(f"icmp eq {kind} {v[0]}, {v[1]}")
            case Ops.CMPLT:
                return self.emit(f"icmp ult {kind} {v[0]}, {v[1]}")
            case Ops.MOD:
                return _literal(False, dtype)
            case Ops.MULACC:
                return self.emit(f"or {kind} {self.emit(f'and {kind} {v[0]}, {v[1]}')}, {v[2]}")
        return None

    def int_alu(self, u: UOp, dtype: DType, v: list[str]) -> str | None:
        kind, sign = _type(dtype), "u" if dtypes.is_unsigned(dtype) else "s"
        exact = u in self.facts.address
        if u.op in _INT_ARITHMETIC:
            return self.int_binary(_INT_ARITHMETIC[u.op], kind, v[0], v[1], exact)
        match u.op:
            case Ops.NEG:
                return self.int_binary("sub", kind, _literal(0, dtype), v[0], exact)
            case Ops.NOT:
                return self.emit(f"xor {kind} {v[0]}, {_literal(-1, dtype)}")
            case Ops.MULACC:
                return self.int_binary("add", kind, self.int_binary("mul", kind, v[0], v[1], exact), v[2], exact)
            case Ops.MAX:
                return self.call(f"llvm.{sign}max.{_overload(dtype)}", kind, (kind, v[0]), (kind, v[1]))
            case Ops.SHR:
                return self.emit(f"{'l' if sign == 'u' else 'a'}shr {kind} {v[0]}, {v[1]}")
            case Ops.CMPLT:
                return self.emit(f"icmp {sign}lt {kind} {v[0]}, {v[1]}")
            case Ops.CMPEQ:
                return self.emit(f"icmp eq {kind} {v[0]}, {v[1]}")
            case Ops.CMPNE:
                return self.emit(f"icmp ne {kind} {v[0]}, {v[1]}")
            case Ops.IDIV | Ops.MOD:
                return self.divide(u.op, dtype, v[0], v[1], guarded=not self.facts.divides_safely(u.src[1]))
        return None

    def int_binary(self, instruction: str, kind: str, a: str, b: str, exact: bool) -> str:
        flags = " nsw" if exact and instruction in _NO_WRAP else ""
        return self.emit(f"{instruction}{flags} {kind} {a}, {b}")

    def divide(self, op: Ops, dtype: DType, a: str, b: str, guarded: bool) -> str:
        kind, sign = _type(dtype), "u" if dtypes.is_unsigned(dtype) else "s"
        instruction = f"{sign}{'div' if op is Ops.IDIV else 'rem'}"
        if not guarded:
            return self.emit(f"{instruction} {kind} {a}, {b}")
        # Dividing by 0 and the least integer by -1 both trap on x86: divide by 1 instead and choose the result after.
        zero, one, minus_one = (_literal(n, dtype) for n in (0, 1, -1))
        by_zero = unsafe = self.emit(f"icmp eq {kind} {b}, {zero}")
        if sign == "s":
            by_minus_one = self.emit(f"icmp eq {kind} {b}, {minus_one}")
            unsafe = self.emit(f"or {_type(dtypes.bool.vec(dtype.count))} {by_zero}, {by_minus_one}")
        result = self.emit(f"{instruction} {kind} {a}, {self.select(unsafe, one, b, dtype)}")
        if op is Ops.MOD:
            return result  # a % 1 is 0, which is the answer in both cases
        if sign == "s":
            result = self.select(by_minus_one, self.emit(f"sub {kind} {zero}, {a}"), result, dtype)
        return self.select(by_zero, zero, result, dtype)

    # conversion

    def bitcast(self, value: str, src: DType, dst: DType) -> str:
        raw = self.to_memory(value, src)
        if _type(src, memory=True) != _type(dst, memory=True):
            raw = self.emit(f"bitcast {_type(src, memory=True)} {raw} to {_type(dst, memory=True)}")
        return self.from_memory(raw, dst)

    def broadcast(self, u: UOp) -> str:
        """A scalar in all lanes; what was widened from 16 bits is widened there, which takes fewer instructions."""
        scalar = u.src[0]
        if scalar.op is Ops.CAST and scalar.dtype is dtypes.float32 and scalar.src[0].dtype is dtypes.float16:
            narrow = dtypes.float16.vec(u.dtype.count)
            return self.cast_float(self.splat(self.value(scalar.src[0]), narrow), narrow, u.dtype)
        return self.splat(self.value(scalar), u.dtype)

    def cast(self, value: str, src: DType, dst: DType) -> str:
        if src is dst:
            return value
        from_type, to_type = _type(src), _type(dst)
        if dtypes.is_bool(dst):
            comparison = "fcmp une" if dtypes.is_float(src) else "icmp ne"
            return self.emit(f"{comparison} {from_type} {value}, {_literal(dtypes.as_const(0, src), src)}")
        if dtypes.is_float(src):
            if dtypes.is_float(dst):
                return self.cast_float(value, src, dst)
            if src.count > 1:
                return self.saturate(value, src, dst)
            kind = "ui" if dtypes.is_unsigned(dst) else "si"
            return self.call(f"llvm.fpto{kind}.sat.{_overload(dst)}.{_overload(src)}", to_type, (from_type, value))
        unsigned = dtypes.is_unsigned(src) or dtypes.is_bool(src)
        if dtypes.is_float(dst):
            # Exact up to 2**24, and float16 is infinite from 65520 on: going through float32 rounds only once.
            via = dtypes.float32.vec(dst.count) if dst.scalar() is dtypes.float16 else dst
            number = self.emit(f"{'ui' if unsigned else 'si'}tofp {from_type} {value} to {_type(via)}")
            return self.cast(number, via, dst)
        if dst.bits == src.bits:
            return value
        instruction = "trunc" if dst.bits < src.bits else "zext" if unsigned else "sext"
        return self.emit(f"{instruction} {from_type} {value} to {to_type}")

    def saturate(self, value: str, src: DType, dst: DType) -> str:
        """Vectors of floats to integers. LLVM has an intrinsic, but makes scalars of it on x86."""
        if src.bits < 32:
            value, src = self.cast(value, src, dtypes.float32.vec(src.count)), dtypes.float32.vec(src.count)
        kind, low, high = _type(src), int(dtypes.min(dst)), int(dtypes.max(dst))
        # Narrow integers are converted as 32 bits.
        via = dst if dst.bits >= 32 else dtypes.int32.vec(dst.count)
        least = _literal(float(low), src)
        if dst.bits <= dtypes.finfo(src)[1] + 1:  # the greatest value is a float: clamp, and mend NaN
            greatest = _literal(float(high), src)
            value = self.select(self.emit(f"fcmp uno {kind} {value}, {value}"), _literal(0.0, src), value, src)
            value = self.select(self.emit(f"fcmp ogt {kind} {value}, {least}"), value, least, src)
            value = self.select(self.emit(f"fcmp olt {kind} {value}, {greatest}"), value, greatest, src)
            number = self.to_int(value, src, via)
            return self.cast(number, via, dst)
        past = _literal(float(high + 1), src)
        above, below = self.emit(f"fcmp oge {kind} {value}, {past}"), self.emit(f"fcmp ole {kind} {value}, {least}")
        flags = _type(dtypes.bool.vec(src.count))
        unfit = self.emit(f"or {flags} {self.emit(f'fcmp uno {kind} {value}, {value}')}, {above}")
        unfit = self.emit(f"or {flags} {unfit}, {below}")
        number = self.to_int(self.select(unfit, _literal(0.0, src), value, src), src, dst)
        if low:
            number = self.select(below, _literal(low, dst), number, dst)
        return self.select(above, _literal(high, dst), number, dst)

    def to_int(self, value: str, src: DType, dst: DType) -> str:
        return self.emit(f"fpto{'ui' if dtypes.is_unsigned(dst) else 'si'} {_type(src)} {value} to {_type(dst)}")

    def cast_float(self, value: str, src: DType, dst: DType) -> str:
        if dst.bits > src.bits:
            return self.emit(f"fpext {_type(src)} {value} to {_type(dst)}")
        if src.scalar() is dtypes.float64 and dst.scalar() is dtypes.float16:
            value, src = self.round_to_odd(value, src.count), dtypes.float32.vec(src.count)
        return self.emit(f"fptrunc {_type(src)} {value} to {_type(dst)}")

    def round_to_odd(self, value: str, count: int) -> str:
        """float64 to float32 such that rounding the result once more, to float16, is as rounding once.

        x86 has no instruction for float64 to float16, and LLVM would call a library.
        """
        double, single, word = dtypes.float64.vec(count), dtypes.float32.vec(count), dtypes.int32.vec(count)
        d, s, w = _type(double), _type(single), _type(word)
        near = self.emit(f"fptrunc {d} {value} to {s}")
        back = self.emit(f"fpext {s} {near} to {d}")
        fabs = f"llvm.fabs.{_overload(double)}"
        away = self.emit(f"fcmp ogt {d} {self.call(fabs, d, (d, back))}, {self.call(fabs, d, (d, value))}")
        bits = self.emit(f"bitcast {s} {near} to {w}")
        toward_zero = self.emit(f"add {w} {bits}, {self.emit(f'sext {_type(dtypes.bool.vec(count))} {away} to {w}')}")
        odd = self.emit(f"or {w} {toward_zero}, {_literal(1, word)}")
        inexact = self.emit(f"fcmp one {d} {back}, {value}")
        return self.emit(f"bitcast {w} {self.select(inexact, odd, bits, word)} to {s}")


def _identifier(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_]", "_", name)


def _runs(u: UOp) -> bool:
    """Whether a RANGE is known to run at least once."""
    return u.src[0].is_const and u.src[1].is_const and bool(u.src[0].arg < u.src[1].arg)


def _bounds(low: int, high: int) -> str:
    return f"range(i32 {low}, {high + 1}) " if -(2**31) < low <= high < 2**31 - 1 else ""
