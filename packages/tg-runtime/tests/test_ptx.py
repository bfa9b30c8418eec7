"""PTX run on the host: its text, its instructions, and threads that wait for one another."""

from __future__ import annotations

import ctypes
import functools
import math
import random
import struct
from collections.abc import Callable, Sequence

import pytest

from tg_codegen.conformance import Case, cases
from tg_codegen.ir.builder import LinearBuilder
from tg_codegen.render.ptx import PTXRenderer
from tg_dtype import AddrSpace, dtypes, to_bits
from tg_lazy import Ops
from tg_runtime.emulators.ptx import Kernel, MisalignedAddress, Program, PTXSyntaxError, PTXUnsupported, parse
from tg_runtime.emulators.ptx.liveness import live_after
from tg_runtime.emulators.ptx.machine import MISSING, available
from tg_runtime.emulators.ptx.syntax import Address, Immediate, Instruction, Label, Register, Symbol, Vector
from tg_runtime.errors import DeviceError

needs_llvm = pytest.mark.skipif(not available(), reason=MISSING)
HEAD = ".version 8.0\n.target sm_90\n.address_size 64\n"


def text(body: str, params: str = ".param .u64 out", name: str = "k", before: str = "") -> str:
    kinds = {"pred %p": 9, "b16 %h": 9, "b32 %r": 20, "b64 %rd": 9, "f32 %f": 9, "f64 %d": 9}
    registers = " ".join(f".reg .{kind}<{count}>;" for kind, count in kinds.items())
    return f"{HEAD}{before}.visible .entry {name}({params})\n{{\n{registers}\n{body}\nret;\n}}\n"


def launch(kernel: Kernel, *arguments: object, grid: tuple[int, int, int] = (1, 1, 1),
           block: tuple[int, int, int] = (1, 1, 1), shared: int = 0) -> None:  # fmt: skip
    """Arguments are arrays of ctypes, or integers of 32 bits."""
    raw = b""
    for argument in arguments:
        if isinstance(argument, int):
            raw += struct.pack("<i", argument)
        else:
            raw += b"\0" * (-len(raw) % 8) + struct.pack("<Q", ctypes.addressof(argument))  # type: ignore[arg-type]
    kernel.launch(raw, grid, block, shared)


def words(count: int, values: Sequence[int] = ()) -> ctypes.Array[ctypes.c_uint32]:
    return (ctypes.c_uint32 * count)(*(v & 0xFFFFFFFF for v in values))


def run_words(body: str, results: int = 1, **arguments: object) -> list[int]:
    """The words that a kernel stores at ``%rd1``."""
    out = words(results)
    kernel = Program(text(f"ld.param.u64 %rd1, [out];\n{body}")).kernels["k"]
    launch(kernel, out, **arguments)  # type: ignore[arg-type]
    return list(out)


def bits(value: float) -> int:
    found: int = struct.unpack("<I", struct.pack("<f", value))[0]
    return found


# text


def test_parser() -> None:
    module = parse(
        HEAD
        + """
.global .align 4 .b8 table[4] = {1, 2, 0xff, 4};
.extern .shared .align 16 .b8 dyn[];
.visible .entry k(.param .u64 .ptr .global .align 16 out, .param .align 8 .b8 blob[24])
.maxntid 32, 2, 1
{ // a comment
  .reg .pred %p<2>; .reg .b32 %r<3>, %x;
  .local .align 8 .b8 depot[40];
$again:
  @!%p1 bra $again; /* another */
  ld.global.v2.u32 {%r1, _}, [%rd1+-8];
  setp.lt.and.s32 %p0|%p1, %r1, -5, !%p1;
  { .reg .b32 %r1; mov.u32 %r1, %tid.x; mov.b32 %r1, 0f3F800000; }
  call.uni (retval0), fn, (param0, param1);
  ret;
}
"""
    )
    function = module.functions["k"]
    assert module.variables["table"].initial == bytes((1, 2, 255, 4))
    assert module.variables["dyn"].nbytes == 0
    assert [(p.name, p.nbytes, p.align) for p in function.params] == [("out", 8, 8), ("blob", 24, 8)]
    assert function.max_threads == (32, 2, 1)
    assert [v.nbytes for v in function.variables] == [40]
    assert function.body is not None
    label, branch, load, compare, move, constant, call, _ = function.body
    assert label == Label("$again")
    assert isinstance(branch, Instruction)
    assert branch.guard == Register("%p1", negated=True)
    assert branch.operands == (Symbol("$again"),)
    assert isinstance(load, Instruction)
    assert str(load) == "ld.global.v2.u32"
    assert load.operands == (Vector((Register("%r1"), Symbol("_"))), Address(Register("%rd1"), -8))
    assert isinstance(compare, Instruction)
    assert compare.operands[2:] == (Register("%r1"), Immediate(-5), Register("%p1", negated=True))
    assert isinstance(move, Instruction)
    inner = move.operands[0]
    assert isinstance(inner, Register)
    assert inner.name != "%r1"  # the block's own
    assert move.operands[1] == Register("%tid.x")
    assert isinstance(constant, Instruction)
    assert constant.operands == (inner, Immediate(0x3F800000, 32))
    assert isinstance(call, Instruction)
    assert len(call.operands) == 3


@pytest.mark.parametrize(
    ("damaged", "message"),
    [
        (HEAD + ".visible .entry k() { add.s32 %r1 %r2; }", "'%r2' in the operands of add"),
        (HEAD + ".visible .entry k() { ret;", "the body of k has no end"),
        (HEAD + ".entry k() { ` }", "is not understood"),
        (HEAD + ".wild", "'wild' is not known here"),
        (".address_size 32", "only addresses of 64 bits"),
        (HEAD + ".entry k() { .reg .v2 .b32 %r1; }", "vector registers"),
    ],
    ids=["operands", "end", "token", "directive", "address size", "vector register"],
)
def test_damaged_text(damaged: str, message: str) -> None:
    with pytest.raises(PTXSyntaxError, match=message):
        parse(damaged)


def test_liveness() -> None:
    body = "mov.u32 %r1, 1; mov.u32 %r2, 2; bar.sync 0; @%p1 mov.u32 %r2, 3; st.global.u32 [%rd1], %r2;"
    function = parse(text(body)).functions["k"]
    assert function.body is not None
    live = live_after(function.body, function.registers)
    assert live[2] == {"%r2", "%p1", "%rd1"}
    assert live[3] == {"%r2", "%rd1"}
    assert live[4] == frozenset()


# what our own renderer writes


@functools.cache
def rendered(arch: str) -> dict[str, Case]:
    return {case.name: case for case in cases(PTXRenderer(arch), lanes=4)}


def run_case(case: Case, source: str) -> None:
    buffers = case.buffers()
    memory = [(ctypes.c_char * (len(b) + 16)).from_buffer_copy(bytes(b) + bytes(16)) for b in buffers]
    launch(Program(source).kernels[case.name], *memory, *case.vals)
    case.check([bytes(m)[: len(b)] for m, b in zip(memory, buffers, strict=True)])


@pytest.mark.drawn(24)
@needs_llvm
@pytest.mark.parametrize("name", rendered("sm_90"))
def test_renderer_conforms(name: str) -> None:
    case = rendered("sm_90")[name]
    run_case(case, PTXRenderer("sm_90").render(name, case.uops))


@needs_llvm
@pytest.mark.parametrize("name", [name for name in rendered("sm_75") if "alu_float" in name])
def test_renderer_conforms_on_older_ones(name: str) -> None:
    case = rendered("sm_75")[name]
    run_case(case, PTXRenderer("sm_75").render(name, case.uops))


@needs_llvm
@pytest.mark.parametrize("name", ["alu_float16x8", "alu_bfloat16x8", "cast_float16x8", "lanes", "gated_blocks"])
def test_eight_lanes(name: str) -> None:
    """Eight halves are one access."""
    renderer = PTXRenderer("sm_90")
    (case,) = (case for case in cases(renderer, lanes=8) if case.name == name)
    source = renderer.render(name, case.uops)
    assert ("ld.global.nc.v4.b32" in source) == ("float16x8" in name or "blocks" in name)
    run_case(case, source)


@needs_llvm
def test_halves_behind_a_gate() -> None:
    """What is not loaded is the alternative, in every half of every word."""
    k = LinearBuilder()
    out, a, limit = k.param(0, dtypes.float16), k.param(1, dtypes.float16), k.variable("limit", 0, 16)
    with k.range(16, step=8) as i:
        inside = k.alu(Ops.CMPLT, i, limit)
        k.store(out, i, k.load(a, i, 8, inside, k.const(-2.0, dtypes.float16.vec(8))))
    source = PTXRenderer().render("k", k.uops)
    assert "st.global.v4.b32" in source
    given = struct.pack("<16e", *range(16))
    memory = (ctypes.c_uint32 * 8).from_buffer_copy(given)
    target = words(8)
    launch(Program(source).kernels["k"], target, memory, 8)
    assert struct.unpack("<16e", bytes(target)) == (*map(float, range(8)), *[-2.0] * 8)


@needs_llvm
def test_nothing_is_contracted() -> None:
    k = LinearBuilder()
    out, a = k.param(0, dtypes.float32), k.param(1, dtypes.float32)
    x = k.load(a, k.const(0))
    k.store(out, k.const(0), k.alu(Ops.ADD, k.alu(Ops.MUL, x, x), x))
    source = PTXRenderer().render("k", k.uops)
    assert "mul.rn.f32" in source
    assert "add.rn.f32" in source
    assert "fma" not in source


@needs_llvm
def test_work_group_of_the_renderer() -> None:
    """Threads exchange what they read through shared memory."""
    k = LinearBuilder()
    out, a = k.param(0, dtypes.float32), k.param(1, dtypes.float32)
    group, item = k.special("gidx0", 4), k.special("lidx0", 16)
    tile = k.scratch("tile", dtypes.float32, 16, AddrSpace.LOCAL)
    at = k.alu(Ops.ADD, k.alu(Ops.MUL, group, k.const(16)), item)
    k.store(tile, item, k.load(a, at))
    k.barrier()
    k.store(out, at, k.load(k.after(tile), k.alu(Ops.SUB, k.const(15), item)))
    kernel = Program(PTXRenderer().render("turn", k.uops)).kernels["turn"]
    assert kernel.max_threads == (16, 1, 1)
    assert kernel.shared_bytes == 64
    source = (ctypes.c_float * 64)(*range(64))
    target = (ctypes.c_float * 64)()
    launch(kernel, target, source, grid=(4, 1, 1), block=(16, 1, 1))
    assert list(target) == [float(16 * (i // 16) + 15 - i % 16) for i in range(64)]


# instructions


@needs_llvm
def test_places() -> None:
    """Every thread of every block knows where it is."""
    body = """
    mov.u32 %r1, %ctaid.z; mov.u32 %r2, %nctaid.y; mov.u32 %r3, %ctaid.y; mad.lo.u32 %r1, %r1, %r2, %r3;
    mov.u32 %r2, %nctaid.x; mov.u32 %r3, %ctaid.x; mad.lo.u32 %r1, %r1, %r2, %r3;
    mov.u32 %r2, %ntid.z; mov.u32 %r3, %tid.z; mad.lo.u32 %r1, %r1, %r2, %r3;
    mov.u32 %r2, %ntid.y; mov.u32 %r3, %tid.y; mad.lo.u32 %r1, %r1, %r2, %r3;
    mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x; mad.lo.u32 %r1, %r1, %r2, %r3;
    mad.wide.u32 %rd2, %r1, 4, %rd1; add.u32 %r1, %r1, 1; st.global.u32 [%rd2], %r1;"""
    assert run_words(body, 720, grid=(2, 3, 4), block=(5, 2, 3)) == list(range(1, 721))


CARRIES = """
add.cc.u32 %r1, 0xffffffff, 2; addc.u32 %r2, 5, 6; sub.cc.u32 %r3, 1, 2; subc.u32 %r4, 10, 3;
mad.lo.cc.u32 %r5, 0x10000, 0x10000, 7; madc.hi.u32 %r6, 0x10000, 0x10000, 0;
st.global.v2.u32 [%rd1], {%r1, %r2}; st.global.v2.u32 [%rd1+8], {%r3, %r4}; st.global.v2.u32 [%rd1+16], {%r5, %r6};"""


@needs_llvm
def test_carries() -> None:
    assert run_words(CARRIES, 6) == [1, 12, 0xFFFFFFFF, 6, 7, 1]


@needs_llvm
def test_bits() -> None:
    """Instructions on bits against Python's integers."""
    r = random.Random(0)
    for _ in range(4):
        a, b, n = r.getrandbits(32), r.getrandbits(32), r.randrange(40)
        begin, size, table = r.randrange(40), r.randrange(40), r.randrange(256)
        signed = a - (1 << 32) if a >> 31 else a
        mask = (1 << size) - 1
        field = (signed >> min(begin, 31)) & 0xFFFFFFFF if begin >= 32 else (signed >> begin)
        field &= mask
        if size and field >> (size - 1) & 1:
            field -= 1 << size
        pair = (b << 32) | a
        chosen = [0x7, 0x0, 0xC, 0x3]
        bytes_of = pair.to_bytes(8, "little")
        picked = [bytes_of[c & 7] if c < 8 else 0xFF * (bytes_of[c & 7] >> 7) for c in chosen]
        want = {
            f"bfe.s32 %r9, {a}, {begin}, {size}": field,
            f"bfi.b32 %r9, {a}, {b}, {begin}, {size}": (b & ~(mask << begin)) | ((a & mask) << begin),
            f"prmt.b32 %r9, {a}, {b}, 0x3C07": int.from_bytes(bytes(picked), "little"),
            f"lop3.b32 %r9, {a}, {b}, {n}, {table}": sum(
                (table >> ((a >> i & 1) * 4 + (b >> i & 1) * 2 + (n >> i & 1)) & 1) << i for i in range(32)
            ),
            f"shf.l.wrap.b32 %r9, {a}, {b}, {n}": (pair << (n % 32)) >> 32,
            f"shf.r.clamp.b32 %r9, {a}, {b}, {n}": pair >> min(n, 32),
            f"shl.b32 %r9, {a}, {n}": a << n,
            f"shr.s32 %r9, {a}, {n}": signed >> n,
            f"shr.u32 %r9, {a}, {n}": a >> n,
            f"popc.b32 %r9, {a}": a.bit_count(),
            f"clz.b32 %r9, {a}": 32 - a.bit_length(),
            f"bfind.u32 %r9, {a}": a.bit_length() - 1,
            f"brev.b32 %r9, {a}": int(f"{a:032b}"[::-1], 2),
            f"mul.hi.u32 %r9, {a}, {b}": (a * b) >> 32,
            f"sad.u32 %r9, {a}, {b}, {n}": abs(a - b) + n,
            f"min.s32 %r9, {a}, {n}": min(signed, n),
            f"cnot.b32 %r9, {a}": int(a == 0),
            f"add.sat.s32 %r9, {a}, {signed}": max(min(2 * signed, 2**31 - 1), -(2**31)),
            f"div.s32 %r9, {a}, 0": -1,
            f"rem.u32 %r9, {a}, 0": a,
            f"dp4a.u32.u32 %r9, {a}, {b}, {n}": n + sum(
                x * y for x, y in zip(a.to_bytes(4, "little"), b.to_bytes(4, "little"), strict=True)
            ),
        }  # fmt: skip
        body = "\n".join(f"{line}; st.global.u32 [%rd1+{4 * i}], %r9;" for i, line in enumerate(want))
        got = dict(zip(want, run_words(body, len(want)), strict=True))
        assert got == {line: value & 0xFFFFFFFF for line, value in want.items()}


ROUNDINGS = {
    "cvt.rn.f32.f64 %f1, 0d3FF0000018000000": bits(1.0 + 2**-23),
    "cvt.rz.f32.f64 %f1, 0d3FF0000018000000": bits(1.0),
    "cvt.rp.f32.f64 %f1, 0d3FF0000008000000": bits(1.0 + 2**-23),
    "cvt.rm.f32.f64 %f1, 0dBFF0000008000000": bits(-1.0 - 2**-23),
    "cvt.rz.f32.s64 %f1, -9223372036854775807": bits(-(2.0**63 - 2.0**39)),
    "cvt.rn.f32.u64 %f1, 18446744073709551615": bits(2.0**64),
    "cvt.rni.f32.f32 %f1, 0f40200000": bits(2.0),
    "cvt.rmi.f32.f32 %f1, 0fC0200000": bits(-3.0),
    "cvt.sat.f32.f32 %f1, 0f40200000": bits(1.0),
    "cvt.rzi.s32.f32 %f1, 0fC0200000": -2,
    "cvt.rzi.u32.f32 %f1, 0fC0200000": 0,
    "cvt.rzi.s32.f32 %f1, 0f7FC00000": 0,
    "cvt.rzi.s32.f64 %f1, 0d7FF8000000000000": -(2**31),
    "cvt.sat.u8.s32 %f1, 300": 255,
    "cvt.sat.s8.s32 %f1, -300": -128,
    "add.rz.f32 %f1, 0f3F800000, 0f33C00000": bits(1.0),
    "mul.ftz.f32 %f1, 0f00800000, 0f3F000000": 0,
    "max.f32 %f1, 0f7FC00000, 0f3F800000": bits(1.0),
    "abs.f32 %f1, 0fBF800000": bits(1.0),
    "copysign.f32 %f1, 0fBF800000, 0f40000000": bits(-2.0),
    "rsqrt.approx.f32 %f1, 0f40800000": bits(0.5),
    "lg2.approx.f32 %f1, 0f41000000": bits(3.0),
    "set.lt.u32.f32 %f1, 0f40000000, 0f41000000": -1,
    "slct.f32.s32 %f1, 0f40000000, 0f41000000, -1": bits(8.0),
}


@needs_llvm
def test_conversions() -> None:
    body = "\n".join(f"{line}; st.global.f32 [%rd1+{4 * i}], %f1;" for i, line in enumerate(ROUNDINGS))
    got = dict(zip(ROUNDINGS, run_words(body, len(ROUNDINGS)), strict=True))
    assert got == {line: value & 0xFFFFFFFF for line, value in ROUNDINGS.items()}


@needs_llvm
def test_pairs_of_halves() -> None:
    """Two floats of 16 bits in a register; the first operand of a conversion is the upper one."""
    body = """
    cvt.rn.f16x2.f32 %r1, 0f3F800000, 0f40000000; fma.rn.f16x2 %r2, %r1, %r1, %r1; neg.f16x2 %r2, %r2;
    mov.b32 {%h1, %h2}, %r2; cvt.f32.f16 %f1, %h1; cvt.f32.f16 %f2, %h2; st.global.v2.f32 [%rd1], {%f1, %f2};
    cvt.rn.bf16x2.f32 %r1, 0f3F800000, 0f40000000; max.bf16x2 %r2, %r1, %r1; mov.b32 {%h1, %h2}, %r2;
    st.global.v2.u16 [%rd1+8], {%h2, %h1};"""
    assert run_words(body, 3) == [bits(-6.0), bits(-2.0), 0x40003F80]


@needs_llvm
def test_variables_lie_as_they_ask() -> None:
    names = [f"v{n}" for n in range(4)]
    before = "".join(f".global .align 64 .b8 {name}[1];\n" for name in names)
    body = "ld.param.u64 %rd1, [out];\n" + "\n".join(
        f"mov.u64 %rd2, {name}; cvt.u32.u64 %r1, %rd2; and.b32 %r1, %r1, 63; st.global.u32 [%rd1+{4 * n}], %r1;"
        for n, name in enumerate(names))
    out = words(4, [1] * 4)
    launch(Program(text(body, before=before)).kernels["k"], out)
    assert list(out) == [0] * 4


@needs_llvm
def test_functions_and_tables() -> None:
    """A function that is called, with parameters in memory; constants; local memory by its generic address."""
    before = """
.const .align 4 .u32 table[4] = {10, 20, 30, 40};
.func (.param .b32 result) add_one(.param .b32 number)
{ .reg .b32 %r<3>; ld.param.u32 %r1, [number]; add.u32 %r2, %r1, 1; st.param.b32 [result], %r2; ret; }
"""
    body = """
    ld.param.u64 %rd1, [out];
    ld.const.u32 %r1, [table+8];
    { .param .b32 given; .param .b32 got; st.param.b32 [given], %r1; call.uni (got), add_one, (given);
      ld.param.b32 %r2, [got]; }
    mov.u64 %rd2, depot; cvta.local.u64 %rd3, %rd2; st.u32 [%rd3+4], %r2; ld.local.u32 %r3, [%rd2+4];
    st.global.u32 [%rd1], %r3;"""
    out = words(1)
    program = Program(text(".local .align 8 .b8 depot[16];\n" + body, before=before))
    launch(program.kernels["k"], out)
    assert list(out) == [31]


@needs_llvm
def test_atomics() -> None:
    """The sum of all threads of all blocks, an exchange, a compare and exchange, a wrapping counter, halves."""
    body = """
    mov.u32 %r1, %tid.x; cvt.rn.f32.u32 %f1, %r1;
    red.global.add.u32 [%rd1], %r1; atom.global.max.u32 %r2, [%rd1+4], %r1; atom.global.cas.b32 %r3, [%rd1+8], 0, 77;
    atom.global.inc.u32 %r4, [%rd1+12], 5; red.global.add.f32 [%rd1+16], %f1; atom.global.exch.b32 %r5, [%rd1+20], 3;
    cvt.rn.f16x2.f32 %r6, %f1, 0f3F800000; red.global.add.noftz.f16x2 [%rd1+24], %r6;"""
    halves = struct.unpack("<I", struct.pack("<ee", 20.0, 90.0))[0]
    assert run_words(body, 7, grid=(2, 1, 1), block=(10, 1, 1)) == [90, 9, 77, 20 % 6, bits(90.0), 3, halves]


# threads that wait


BLOCK_SUM = """
.shared .align 4 .b8 tile[256];
mov.u32 %r1, %tid.x; mov.u32 %r2, tile; mad.lo.u32 %r3, %r1, 4, %r2; st.shared.u32 [%r3], %r1;
mov.u32 %r4, 32;
$again:
bar.sync 0;
setp.ge.u32 %p1, %r1, %r4;
@%p1 bra $skip;
mad.lo.u32 %r5, %r4, 4, %r3; ld.shared.u32 %r6, [%r5]; ld.shared.u32 %r7, [%r3]; add.u32 %r7, %r7, %r6;
st.shared.u32 [%r3], %r7;
$skip:
shr.u32 %r4, %r4, 1;
setp.ne.u32 %p2, %r4, 0;
@%p2 bra $again;
setp.ne.u32 %p3, %r1, 0;
@%p3 ret;
mov.u32 %r8, %ctaid.x; mad.wide.u32 %rd2, %r8, 4, %rd1; ld.shared.u32 %r7, [tile]; st.global.u32 [%rd2], %r7;"""


@needs_llvm
def test_barriers_in_a_loop() -> None:
    assert run_words(BLOCK_SUM, 3, grid=(3, 1, 1), block=(64, 1, 1)) == [64 * 63 // 2] * 3


@needs_llvm
def test_dynamic_shared_memory() -> None:
    before = ".extern .shared .align 16 .b8 dyn[];\n"
    body = """
    ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; mov.u32 %r2, dyn; mad.lo.u32 %r3, %r1, 4, %r2;
    st.shared.u32 [%r3], %r1; bar.sync 0; xor.b32 %r4, %r1, 7; mad.lo.u32 %r3, %r4, 4, %r2; ld.shared.u32 %r5, [%r3];
    mad.wide.u32 %rd2, %r1, 4, %rd1; st.global.u32 [%rd2], %r5;"""
    out = words(8)
    launch(Program(text(body, before=before)).kernels["k"], out, block=(8, 1, 1), shared=32)
    assert list(out) == [7, 6, 5, 4, 3, 2, 1, 0]


WARP = """
mov.u32 %r1, %laneid; mul.lo.u32 %r2, %r1, %r1; mov.u32 %r10, %tid.x; mad.wide.u32 %rd2, %r10, 32, %rd1;
shfl.sync.up.b32 %r3|%p1, %r2, 3, 0, -1; shfl.sync.down.b32 %r4, %r2, 5, 0x181f, -1;
shfl.sync.bfly.b32 %r5, %r2, 9, 31, -1;
shfl.sync.idx.b32 %r6, %r2, 40, 31, -1; and.b32 %r7, %r1, 1; setp.eq.u32 %p2, %r7, 1; vote.sync.ballot.b32 %r8, %p2, -1;
vote.sync.any.pred %p3, %p2, -1; vote.sync.all.pred %p4, %p2, -1; redux.sync.add.s32 %r9, %r1, -1;
selp.u32 %r11, 1, 0, %p1; selp.u32 %r12, 2, 0, %p3; selp.u32 %r13, 4, 0, %p4; or.b32 %r11, %r11, %r12;
or.b32 %r11, %r11, %r13; mov.u32 %r14, %lanemask_lt;
st.global.v4.u32 [%rd2], {%r3, %r4, %r5, %r6}; st.global.v4.u32 [%rd2+16], {%r8, %r9, %r11, %r14};"""


@needs_llvm
def test_warps() -> None:
    """Shuffles, votes and reductions of two warps."""
    found = run_words(WARP, 512, block=(64, 1, 1))
    for thread in range(64):
        lane = thread % 32
        down = lane + 5 if lane % 8 + 5 < 8 else lane
        want = [
            (lane - 3) ** 2 if lane >= 3 else lane**2, down**2, (lane ^ 9) ** 2, 64, 0xAAAAAAAA, 496,
            (1 if lane >= 3 else 0) + 2, (1 << lane) - 1,
        ]  # fmt: skip
        assert found[8 * thread : 8 * thread + 8] == want, thread


@needs_llvm
def test_half_a_warp() -> None:
    """Lanes of a mask wait for each other alone; a block may be smaller than a warp."""
    body = """
    mov.u32 %r1, %laneid; setp.lt.u32 %p1, %r1, 4; mad.wide.u32 %rd2, %r1, 4, %rd1;
    @!%p1 bra $other;
    shfl.sync.bfly.b32 %r2, %r1, 1, 31, 15; shfl.sync.bfly.b32 %r2, %r2, 2, 31, 15; bra $done;
    $other:
    shfl.sync.bfly.b32 %r2, %r1, 1, 31, 0xf0; bar.warp.sync 0xf0;
    $done:
    st.global.u32 [%rd2], %r2;"""
    assert run_words(body, 8, block=(8, 1, 1)) == [3, 2, 1, 0, 5, 4, 7, 6]


# what goes wrong


@needs_llvm
def test_faults() -> None:
    """Each names the kernel; the process goes on."""
    stuck = "mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 0; @%p1 bra $warp; bar.sync 0; ret; $warp: bar.warp.sync -1;"
    with pytest.raises(DeviceError, match="kernel k: its threads wait for others that never come"):
        run_words(stuck, block=(4, 1, 1))
    with pytest.raises(DeviceError, match="kernel k: it trapped"):
        run_words("trap;")
    with pytest.raises(MisalignedAddress, match="kernel k: an access that is not aligned"):
        run_words("st.global.v2.u32 [%rd1+4], {%r1, %r1};", 4)
    with pytest.raises(MisalignedAddress):
        run_words("bar.sync 0; ld.global.u32 %r1, [%rd1+2];", 4)


@needs_llvm
@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("txq.width.b32 %r1, [%rd1];", "line 7: txq.width.b32 is not known"),
        ("mov.u32 %r1, %nosuch;", "%nosuch is no register"),
        ("call.uni absent, ();", "the function absent is not in the text"),
        ("add.rz.f64 %d1, %d1, %d1;", "add.rz.f64 is not known"),
        ("mov.u64 %rd1, absent;", "absent is not declared"),
        ("cvt.rn.f16x2.f64 %r1, %d1, %d1;", "cvt.rn.f16x2.f64 is not known"),
        ("cvt.rn.f16x2.f32 %r1, %f1;", "cvt.rn.f16x2.f32 is not known"),
    ],
    ids=["opcode", "register", "function", "rounding", "variable", "pair of doubles", "pair of one"],
)
def test_refusals(line: str, message: str) -> None:
    with pytest.raises(PTXUnsupported, match=message):
        Program(text(line))


@needs_llvm
def test_approximations_are_close() -> None:
    values = [0.1, 1.5, -3.25, 7.0]
    body = "\n".join(
        f"ex2.approx.ftz.f32 %f2, 0f{bits(v):08X}; st.global.f32 [%rd1+{4 * i}], %f2;" for i, v in enumerate(values)
    )
    got = [struct.unpack("<f", struct.pack("<I", word))[0] for word in run_words(body, len(values))]
    assert all(math.isclose(g, 2.0**v, rel_tol=1e-6) for g, v in zip(got, values, strict=True))


# matrices


def half(value: float) -> int:
    found: int = struct.unpack("<H", struct.pack("<e", value))[0]
    return found


# How a number of each dtype is stored, and how many are in a register.
ENCODED: dict[str, tuple[Callable[[float], int], int]] = {
    "f16": (half, 2),
    "bf16": (lambda v: bits(v) >> 16, 2),
    "tf32": (bits, 1),
    "e5m2": (lambda v: half(v) >> 8, 4),
    "e4m3": (lambda v: to_bits(v, dtypes.fp8e4m3), 4),
    "s8": (lambda v: int(v) & 255, 4),
}


@needs_llvm
@pytest.mark.parametrize(
    ("kind", "depth"),
    [("f16", 16), ("f16", 8), ("bf16", 16), ("tf32", 8), ("tf32", 4), ("e5m2", 32), ("e4m3", 32), ("s8", 32),
     ("s8", 16)],
)
def test_matrix_products(kind: str, depth: int) -> None:
    """A 16 by ``depth`` matrix and one of ``depth`` by 8, spread over the registers of a warp, plus 1."""
    r = random.Random(depth)
    encode, each = ENCODED[kind]
    a = [[float(r.randint(-3, 3)) for _ in range(depth)] for _ in range(16)]
    b = [[float(r.randint(-3, 3)) for _ in range(8)] for _ in range(depth)]
    steps = depth // (4 * each)
    given = []
    for lane in range(32):
        group, quarter = divmod(lane, 4)
        places = [4 * each * step + each * quarter for step in range(steps)]
        rows = [a[group + 8 * (n % 2)][at : at + each] for at in places for n in range(2)]
        columns = [[b[at + n][group] for n in range(each)] for at in places]
        for part in (*rows, *columns):
            given.append(sum(encode(v) << (32 // each * n) for n, v in enumerate(part)))
    count = 3 * steps
    registers = [f"%r{n + 1}" for n in range(count)]
    loads = "\n".join(f"ld.global.u32 {name}, [%rd3+{4 * n}];" for n, name in enumerate(registers))
    sums = ("%f1, %f2, %f3, %f4", "f32") if kind != "s8" else ("%r11, %r12, %r13, %r14", "s32")
    one = "0f3F800000" if kind != "s8" else "1"
    ones = "\n".join(f"mov.b32 {name}, {one};" for name in sums[0].split(", "))
    source = text(
        f"""
        ld.param.u64 %rd1, [out]; ld.param.u64 %rd2, [given]; mov.u32 %r18, %tid.x;
        mad.wide.u32 %rd3, %r18, {4 * count}, %rd2; mad.wide.u32 %rd4, %r18, 16, %rd1;
        {loads}
        {ones}
        mma.sync.aligned.m16n8k{depth}.row.col.{sums[1]}.{kind}.{kind}.{sums[1]} {{{sums[0]}}},
          {{{", ".join(registers[: 2 * steps])}}}, {{{", ".join(registers[2 * steps :])}}}, {{{sums[0]}}};
        st.global.v4.b32 [%rd4], {{{sums[0]}}};""",
        ".param .u64 out, .param .u64 given",
    )
    out = words(128)
    launch(Program(source).kernels["k"], out, words(len(given), given), block=(32, 1, 1))
    for lane in range(32):
        group, quarter = divmod(lane, 4)
        for place in range(4):
            row, column = group + 8 * (place // 2), 2 * quarter + place % 2
            want = 1.0 + sum(a[row][k] * b[k][column] for k in range(depth))
            got = out[4 * lane + place]
            assert got == (bits(want) if kind != "s8" else int(want) & 0xFFFFFFFF), (lane, place)


PLACED = """
    .shared .align 16 .b8 tile[512];
    ld.param.u64 %rd1, [out]; ld.param.u64 %rd2, [given]; mov.u32 %r1, %tid.x;
    mad.wide.u32 %rd3, %r1, 16, %rd2; mov.u32 %r2, tile; mad.lo.u32 %r3, %r1, 16, %r2;"""
"""A program's begin: 16 bytes for each thread, at %r3 in shared memory, to come from %rd3."""


@needs_llvm
def test_matrices_from_shared_memory() -> None:
    """Rows of eight halves, as they are and transposed; copied there by asynchronous copies."""
    body = PLACED + """
    cp.async.ca.shared.global [%r3], [%rd3], 16; cp.async.commit_group; cp.async.wait_group 0; bar.sync 0;
    ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r4, %r5, %r6, %r7}, [%r3];
    ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%r8, %r9}, [%r3];
    mad.wide.u32 %rd4, %r1, 32, %rd1; st.global.v4.u32 [%rd4], {%r4, %r5, %r6, %r7};
    st.global.v2.u32 [%rd4+16], {%r8, %r9};"""
    out, given = words(256), words(128, [(2 * i + 1) << 16 | 2 * i for i in range(128)])
    launch(Program(text(body, ".param .u64 out, .param .u64 given")).kernels["k"], out, given, block=(32, 1, 1))
    for lane in range(32):
        group, quarter = divmod(lane, 4)
        plain = [64 * matrix + 8 * group + 2 * quarter for matrix in range(4)]
        turned = [64 * matrix + 16 * quarter + group for matrix in range(2)]
        want = [v | (v + 1) << 16 for v in plain] + [v | (v + 8) << 16 for v in turned]
        assert list(out[8 * lane : 8 * lane + 6]) == want


@needs_llvm
def test_asynchronous_copies_fill_up_with_zeros() -> None:
    """A copy of 16 bytes of which 0, 4, 8 or 12 are read, over what an earlier one left."""
    body = PLACED + """
    cp.async.ca.shared.global [%r3], [%rd3], 16; cp.async.wait_all;
    and.b32 %r4, %r1, 3; shl.b32 %r4, %r4, 2;
    cp.async.ca.shared.global [%r3], [%rd3], 16, %r4; cp.async.wait_all; bar.sync 0;
    ld.shared.v4.u32 {%r5, %r6, %r7, %r8}, [%r3];
    mad.wide.u32 %rd4, %r1, 16, %rd1; st.global.v4.u32 [%rd4], {%r5, %r6, %r7, %r8};"""
    out, given = words(128), words(128, list(range(1, 129)))
    launch(Program(text(body, ".param .u64 out, .param .u64 given")).kernels["k"], out, given, block=(32, 1, 1))
    assert list(out) == [i + 1 if i % 4 < i // 4 % 4 else 0 for i in range(128)]
