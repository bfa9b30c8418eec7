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

from ..ir.facts import element, kernel_facts, pointer_base
from ..ir.uop import UOp, UOps, is_alu
from ..machine.capability import capability
from ..machine.renderer import Renderer
from ..machine.target import Target
from . import dynamic
from .mma import TENSOR_CORES, mma, with_tensor_cores
from .ptx_arithmetic import PTXArithmetic, bits_suffix, memory_suffix, register_class

_AXES = {"g": "ctaid", "l": "tid"}
_BLOCK = "shared_block"
_SPACES = {AddrSpace.GLOBAL: "global", AddrSpace.LOCAL: "shared", AddrSpace.REG: "local"}
_WIDEST_ACCESS = 16  # bytes of one load or store instruction
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
      ValueError: ``arch`` is no compute capability, or one before 7.5.
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
        return _Kernel(self, name, uops).text()

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


class _Kernel(PTXArithmetic):
    """One kernel while its text is being written."""

    def __init__(self, renderer: PTXRenderer, name: str, uops: Sequence[UOp]) -> None:
        super().__init__(renderer.sm, renderer.target.fused_multiply_add)
        self.renderer, self.name, self.uops = renderer, name, uops
        self.facts = kernel_facts(uops)
        self.values: dict[UOp, list[str]] = {}
        self.mutable: set[str] = set()
        self.arrays: list[str] = []
        self.dynamic = dynamic.places(uops)
        self.labels: dict[UOp, str] = {}
        # Addresses and constants known here: one table for each open loop or branch.
        self.scopes: list[dict[object, str]] = [{}]

    # text

    def needed(self) -> str:
        """The version of the language that knows the kernel's instructions."""
        eighths = any(u.op is UOps.MATRIX and u.arg.a.itemsize == 1 and dtypes.is_float(u.arg.a) for u in self.uops)
        return "8.4" if eighths else "7.0"

    def text(self) -> str:
        """The whole module.

        Raises:
          ValueError: a node that has no form here.
        """
        parameters = []
        for u in self.facts.params:
            parameter = f"{self.name}_data{u.arg}"
            parameters.append(f".param .u64 {parameter}")
            base = self.emit("ld.param.u64", "rd", f"[{parameter}]")
            self.line(f"cvta.to.global.u64 {base}, {base}")
            self.values[u] = [base]
        for number, u in enumerate(self.facts.variables):
            parameter = f"{self.name}_var{number}"
            parameters.append(f".param .u32 {parameter}")
            self.values[u] = [self.emit("ld.param.u32", "r", f"[{parameter}]")]
        for u in self.uops:
            self.statement(u)
        group = self.facts.work_group()
        head = [
            f".version {max(self.renderer.version, self.needed(), key=lambda v: [int(n) for n in v.split('.')])}",
            f".target {self.renderer.arch}",
            ".address_size 64",
            *self.shared_block(),
            f".visible .entry {self.name}({', '.join(parameters)})",
            *([f".maxntid {', '.join(map(str, group))}"] if group else []),
        ]
        body = [*self.declarations(), *self.arrays, *self.body]
        return "\n".join([*head, "{", *body, "  ret;", "}"]) + "\n"

    def shared_block(self) -> list[str]:
        """The declaration of shared memory whose size a launch states, where the kernel wants too much of it."""
        if not self.dynamic:
            return []
        size = dynamic.variable(self.name, dynamic.total(self.dynamic))
        return [f".extern .shared .align 16 .b8 {_BLOCK}[];", f".visible .global .align 1 .b8 {size};"]

    def value(self, u: UOp) -> list[str]:
        """The lanes of an operand, each a register or an immediate."""
        found = self.values.get(u)
        if found is not None:
            return found
        return [self.constant(u)] * u.dtype.count

    def constant(self, u: UOp) -> str:
        scalar = u.dtype.scalar()
        key = UOp(UOps.CONST, scalar, (), u.arg)
        for scope in self.scopes:
            if key in scope:
                return scope[key]
        text = self.literal(u.arg, scalar)
        if text.startswith("%"):
            self.scopes[-1][key] = text
        return text

    def one(self, u: UOp) -> str:
        """A scalar operand."""
        return self.value(u)[0]

    def keep(self, u: UOp, lanes: Sequence[str]) -> None:
        """Makes ``lanes`` the value of a node; what may change later is copied."""
        scalar = u.dtype.scalar()
        self.values[u] = [self.move(lane, scalar) if lane in self.mutable else lane for lane in lanes]

    def statement(self, u: UOp) -> None:
        if is_alu(u):
            self.keep(u, self.alu(u))
            return
        match u.op:
            case UOps.PARAM | UOps.VAR | UOps.CONST | UOps.PREFETCH:
                pass
            case UOps.SPECIAL:
                self.special(u)
            case UOps.AFTER:
                self.values[u] = self.values[u.src[0]]
            case UOps.SCRATCH:
                self.scratch(u)
            case UOps.ACC:
                self.values[u] = [self.move(lane, u.dtype.scalar()) for lane in self.value(u.src[0])]
                self.mutable.update(self.values[u])
            case UOps.ASSIGN:
                self.assign(self.values[u.src[0]], self.value(u.src[1]), u.src[1].dtype.scalar())
            case UOps.READ:
                self.keep(u, self.values[u.src[0]])
            case UOps.RANGE:
                self.open_range(u)
            case UOps.ENDRANGE:
                self.close_range(u.src[0])
            case UOps.IF:
                label = self.labels[u] = self.label("if")
                self.line(f"@!{self.one(u.src[0])} bra {label}")
                self.scopes.append({})
            case UOps.ENDIF:
                self.scopes.pop()
                self.body.append(f"{self.labels[u.src[0]]}:")
            case UOps.LOAD:
                self.values[u] = self.load(u)
            case UOps.STORE:
                self.store(u)
            case UOps.BARRIER:
                self.line("bar.sync 0")
            case UOps.VECTORIZE:
                self.keep(u, [self.one(operand) for operand in u.src])
            case UOps.BROADCAST:
                self.keep(u, [self.one(u.src[0])] * u.dtype.count)
            case UOps.GEP:
                lanes = [lane for operand in u.src for lane in self.value(operand)]
                self.keep(u, [lanes[place] for place in u.arg])
            case UOps.MATRIX:
                self.matrix(u)
            case _:
                raise ValueError(f"PTX: {u!r} has no form in a linear kernel")

    def matrix(self, u: UOp) -> None:
        """An ``mma``: operands of less than four bytes are packed into registers of four."""
        acc, *factors = u.src
        kind = "f" if dtypes.is_float(u.dtype) else "r"
        words = [[self.word(lanes, s.dtype.scalar()) for lanes in self.parts(s)] for s in factors]
        before = [self.in_register(lane, u.dtype.scalar()) for lane in self.value(acc)]
        after = [self.register(kind) for _ in before]
        lists = ", ".join(f"{{{', '.join(names)}}}" for names in (after, *words, before))
        self.line(f"{mma(u.arg)} {lists}")
        self.keep(u, after)

    def parts(self, u: UOp) -> list[list[str]]:
        """A fragment's lanes, those of one register together."""
        each = 4 // u.dtype.scalar().itemsize
        lanes = self.value(u)
        return [lanes[at : at + each] for at in range(0, len(lanes), each)]

    def word(self, lanes: list[str], dtype: DType) -> str:
        """Lanes packed into a register of four bytes; fp32 is rounded to tf32."""
        if dtype is dtypes.float32:
            return self.emit("cvt.rna.tf32.f32", "r", *lanes)
        if dtypes.is_float(dtype):
            return self.emit("mov.b32", "r", f"{{{', '.join(self.in_register(lane, dtype) for lane in lanes)}}}")
        while len(lanes) > 1:
            select = "0x0040" if len(lanes) == 4 else "0x5410"
            lanes = [self.emit("prmt.b32", "r", *lanes[at : at + 2], select) for at in range(0, len(lanes), 2)]
        return lanes[0]

    def special(self, u: UOp) -> None:
        name = u.arg[0]
        if name[0] not in _AXES:
            raise ValueError(f"PTX: SPECIAL {name} has no meaning on a GPU")
        self.values[u] = [self.emit("mov.u32", "r", f"%{_AXES[name[0]]}.{'xyz'[int(name[-1])]}")]

    def scratch(self, u: UOp) -> None:
        name, size = u.arg
        assert isinstance(u.dtype, PtrDType)
        shared = u.dtype.space is AddrSpace.LOCAL
        array = f"{re.sub(r'[^A-Za-z0-9_]', '_', name)}_{len(self.arrays)}"
        nbytes = size * max(element(u).itemsize, 1)
        if u in self.dynamic:
            base = self.emit("mov.u32", "r", _BLOCK)
            self.values[u] = [self.emit("add.u32", "r", base, str(self.dynamic[u]))]
            return
        self.arrays.append(f"  .{_SPACES[u.dtype.space]} .align 16 .b8 {array}[{nbytes}];")
        # Shared memory is addressed by 32 bits, which spares the arithmetic of 64.
        self.values[u] = [self.emit("mov.u32", "r", array) if shared else self.emit("mov.u64", "rd", array)]

    def assign(self, registers: Sequence[str], values: Sequence[str], dtype: DType) -> None:
        name = "pred" if dtypes.is_bool(dtype) else bits_suffix(dtype)
        for register, value in zip(registers, values, strict=True):
            self.line(f"mov.{name} {register}, {value}")

    # loops

    def label(self, stem: str) -> str:
        return f"${re.sub(r'[^A-Za-z0-9_]', '_', stem)}_{len(self.labels)}"

    def open_range(self, u: UOp) -> None:
        label = self.labels[u] = self.label(f"L_{u.arg}")
        counter = self.move(self.one(u.src[0]), u.dtype)
        self.values[u] = [counter]
        self.mutable.add(counter)
        known = u.src[0].is_const and u.src[1].is_const and u.src[0].arg < u.src[1].arg
        if not known:
            done = self.emit(f"setp.ge.s{u.dtype.bits}", "p", counter, self.one(u.src[1]))
            self.line(f"@{done} bra {label}_end")
        self.body.append(f"{label}:")
        self.scopes.append({})

    def close_range(self, u: UOp) -> None:
        label, counter = self.labels[u], self.one(u)
        self.scopes.pop()
        step = self.one(u.src[2]) if len(u.src) > 2 else "1"
        self.line(f"add.s{u.dtype.bits} {counter}, {counter}, {step}")
        again = self.emit(f"setp.lt.s{u.dtype.bits}", "p", counter, self.one(u.src[1]))
        self.line(f"@{again} bra {label}")
        self.body.append(f"{label}_end:")

    # memory

    def address(self, pointer: UOp, index: UOp) -> tuple[str, int]:
        """A register, and the bytes to add to it."""
        base, size, offset = pointer_base(pointer), max(element(pointer).itemsize, 1), 0
        while index.op in (Ops.ADD, Ops.SUB) and index.src[1].is_const and index in self.facts.address:
            offset += int(index.src[1].arg) * (1 if index.op is Ops.ADD else -1)
            index = index.src[0]
        if index.is_const:
            offset += int(index.arg)
            if abs(offset * size) < 1 << 31:
                return self.one(base), offset * size
            return self.emit("add.s64", "rd", self.one(base), str(offset * size)), 0
        if abs(offset * size) >= 1 << 31:
            raise ValueError(f"PTX: an index with the constant {offset} is out of reach")
        key = (base, index)
        for scope in self.scopes:
            if key in scope:
                return scope[key], offset * size
        found = self.scaled(self.one(base), self.one(index), index.dtype, size)
        if index.op is not UOps.ACC:
            self.scopes[-1][key] = found
        return found, offset * size

    def scaled(self, base: str, index: str, dtype: DType, size: int) -> str:
        if not base.startswith("%rd"):
            index = self.cast(index, dtype, dtypes.int32)
            return self.emit("mad.lo.s32", "r", index, str(size), base)
        if dtype.bits == 64:
            return self.emit("mad.lo.s64", "rd", index, str(size), base)
        return self.emit("mad.wide.s32", "rd", index, str(size), base)

    def pieces(self, pointer: UOp, index: UOp, count: int) -> list[tuple[int, int]]:
        """(first lane, lanes) of each instruction that an access of ``count`` elements takes."""
        known = self.facts.divisors[index]
        dtype = element(pointer)
        most = min(_WIDEST_ACCESS // max(dtype.itemsize, 1), 4)
        if dtypes.is_float(dtype) and dtype.itemsize == 2:
            most = 8
        found, lane = [], 0
        while lane < count:
            width = most
            while width > 1 and (width > count - lane or known % width or lane % width):
                width //= 2
            found.append((lane, width))
            lane += width
        return found

    def load(self, u: UOp) -> list[str]:
        pointer, index = u.src[:2]
        dtype, count = element(pointer), u.dtype.count
        gates = self.value(u.src[2]) if len(u.src) > 2 else []
        others = self.value(u.src[3]) if len(u.src) > 3 else [self.literal_zero(dtype)]
        others = others * (count // len(others))
        register, offset = self.address(pointer, index)
        space, size = self.space(pointer), max(dtype.itemsize, 1)
        kind = "r" if dtypes.is_bool(dtype) else register_class(dtype)
        pieces = self.pieces(pointer, index, count) if len(gates) < 2 else [(lane, 1) for lane in range(count)]
        lanes: list[str] = []
        for first, width in pieces:
            paired = width == 8
            into = [self.register("r" if paired else kind) for _ in range(4 if paired else width)]
            guard = ""
            if gates:
                given = others[first : first + width]
                for target, other in zip(into, self.paired(given) if paired else given, strict=True):
                    self.fill(target, other, dtypes.uint32 if paired else dtype)
                guard = f"@{gates[first if len(gates) > 1 else 0]} "
            name = f"ld.{space}{self.cached(pointer)}{self.vector_suffix(width, dtype)}"
            place = self.place(register, offset + first * size)
            self.line(f"{guard}{name} {self.braced(into)}, {place}")
            lanes += self.parted(into) if paired else into
        return [self.emit("setp.ne.s32", "p", lane, "0") for lane in lanes] if dtypes.is_bool(dtype) else lanes

    def vector_suffix(self, width: int, dtype: DType) -> str:
        """The end of an access to ``width`` elements; eight are four words."""
        if width == 8:
            return ".v4.b32"
        return f"{f'.v{width}' if width > 1 else ''}.{memory_suffix(dtype)}"

    def braced(self, registers: Sequence[str]) -> str:
        return registers[0] if len(registers) == 1 else f"{{{', '.join(registers)}}}"

    def paired(self, halves: Sequence[str]) -> list[str]:
        """Each two registers of 16 bits as a word."""
        pairs = zip(halves[::2], halves[1::2], strict=True)
        return [self.emit("mov.b32", "r", f"{{{low}, {high}}}") for low, high in pairs]

    def parted(self, words: Sequence[str]) -> list[str]:
        """Words as two registers of 16 bits each."""
        halves = []
        for word in words:
            low, high = self.register("h"), self.register("h")
            self.line(f"mov.b32 {{{low}, {high}}}, {word}")
            halves += [low, high]
        return halves

    def literal_zero(self, dtype: DType) -> str:
        return self.constant(UOp(UOps.CONST, dtype, (), dtypes.as_const(0, dtype)))

    def fill(self, register: str, value: str, dtype: DType) -> None:
        if dtypes.is_bool(dtype):
            self.line(f"selp.b32 {register}, 1, 0, {value}")
        else:
            self.assign([register], [value], dtype)

    def space(self, pointer: UOp) -> str:
        base = pointer_base(pointer).dtype
        assert isinstance(base, PtrDType)
        return _SPACES[base.space]

    def cached(self, pointer: UOp) -> str:
        base = pointer_base(pointer)
        return ".nc" if base.op is UOps.PARAM and base.arg not in self.facts.stored else ""

    def place(self, register: str, offset: int) -> str:
        return f"[{register}+{offset}]" if offset else f"[{register}]"

    def store(self, u: UOp) -> None:
        pointer, index, value = u.src[:3]
        dtype, count = element(pointer), value.dtype.count
        gates = self.value(u.src[3]) if len(u.src) > 3 else []
        lanes = [self.in_register(lane, dtype) for lane in self.value(value)]
        if dtypes.is_bool(dtype):
            lanes = [self.emit("selp.b32", "r", "1", "0", lane) for lane in lanes]
        register, offset = self.address(pointer, index)
        size = max(dtype.itemsize, 1)
        pieces = self.pieces(pointer, index, count) if len(gates) < 2 else [(lane, 1) for lane in range(count)]
        for first, width in pieces:
            guard = f"@{gates[first if len(gates) > 1 else 0]} " if gates else ""
            given = lanes[first : first + width]
            place = self.place(register, offset + first * size)
            source = self.braced(self.paired(given) if width == 8 else given)
            self.line(f"{guard}st.{self.space(pointer)}{self.vector_suffix(width, dtype)} {place}, {source}")

    # arithmetic

    def alu(self, u: UOp) -> list[str]:
        op, dtype = u.op, u.src[-1].dtype.scalar()
        assert isinstance(op, Ops)
        values = [self.value(operand) for operand in u.src]
        if op in (Ops.CAST, Ops.BITCAST):
            convert = self.cast if op is Ops.CAST else self.bitcast
            return [convert(lane, dtype, u.dtype.scalar()) for lane in values[0]]
        guarded = op in (Ops.IDIV, Ops.MOD) and not self.facts.divides_safely(u.src[1])
        exact, count, lanes = u in self.facts.address, u.src[-1].dtype.count, []
        for i in range(count):
            operands = [v[i if len(v) > 1 else 0] for v in values]
            found = self.scalar(op, dtype, operands, exact, guarded)
            if found is None:
                raise ValueError(f"PTX: {op.name} of {dtype.name} has no form; it must be decomposed")
            lanes.append(found)
        return lanes
