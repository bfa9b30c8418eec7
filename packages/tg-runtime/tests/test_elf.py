"""The ELF loader: real objects of several kinds, made-up damage, and another machine's relocations."""

from __future__ import annotations

import ctypes
import os
import platform
import random
import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from tg_runtime.compilers import llvm
from tg_runtime.host import elf
from tg_runtime.host.elf.riscv import RISCV
from tg_runtime.host.execmem import ExecutableMemory
from tg_runtime.host.libc import address_of

pytestmark = [
    pytest.mark.skipif(not llvm.available(), reason="llvmlite is not installed"),
    pytest.mark.skipif(platform.machine() != "x86_64", reason="the objects are x86-64's"),
]

CONSTANTS = """
@table = private unnamed_addr constant [4 x double] [double 1.0, double 2.5, double 4.0, double 8.0]
define double @look_up(i64 %i) {
  %p = getelementptr [4 x double], ptr @table, i64 0, i64 %i
  %x = load double, ptr %p
  %y = fmul double %x, 3.25
  ret double %y
}
"""
STATE = """
@count = internal global i32 40
@zeroed = internal global [3000 x i32] zeroinitializer
@where = internal global ptr @count
define i32 @next() {
  %p = load ptr, ptr @where
  %old = load i32, ptr %p
  %new = add i32 %old, 1
  store i32 %new, ptr %p
  %q = getelementptr [3000 x i32], ptr @zeroed, i64 0, i64 2999
  %z = load i32, ptr %q
  %sum = add i32 %new, %z
  ret i32 %sum
}
"""
CALLS = """
declare double @cos(double)
declare i64 @strlen(ptr)
@text = private constant [6 x i8] c"seven\\00"
define internal double @local(double %x) noinline {
  %y = call double @cos(double %x)
  ret double %y
}
define double @both(double %x) {
  %a = call double @local(double %x)
  %n = call i64 @strlen(ptr @text)
  %b = uitofp i64 %n to double
  %c = fadd double %a, %b
  ret double %c
}
@pointer = external global i8
define ptr @address_of_external() { ret ptr @cos }
"""


def compile_ir(text: str, triple: str = "") -> bytes:
    return llvm.LLVMCompiler(triple=triple).compile(text)


def test_constants() -> None:
    memory = ExecutableMemory(compile_ir(CONSTANTS))
    look_up = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_int64)(memory.function("look_up"))
    assert [look_up(i) for i in range(4)] == [3.25, 8.125, 13.0, 26.0]


def test_data_and_bss_are_writable() -> None:
    memory = ExecutableMemory(compile_ir(STATE))
    following = ctypes.CFUNCTYPE(ctypes.c_int32)(memory.function("next"))
    assert [following(), following()] == [41, 42]


def test_calls_out_of_reach_go_through_stubs() -> None:
    memory = ExecutableMemory(compile_ir(CALLS))
    both = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(memory.function("both"))
    assert both(0.0) == 6.0
    address = ctypes.CFUNCTYPE(ctypes.c_void_p)(memory.function("address_of_external"))()
    assert ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(address)(0.0) == 1.0


def test_undefined_symbol() -> None:
    lib = compile_ir("declare void @nobody_has_this()\ndefine void @f() { call void @nobody_has_this() ret void }")
    with pytest.raises(elf.ELFError, match="undefined symbol nobody_has_this"):
        ExecutableMemory(lib)


def test_unknown_function() -> None:
    with pytest.raises(elf.ELFError, match="defines no g; it defines f"):
        ExecutableMemory(compile_ir("define void @f() { ret void }")).function("g")


def test_code_is_not_writable() -> None:
    memory = ExecutableMemory(compile_ir("define void @f() { ret void }"))
    with open("/proc/self/maps", encoding="ascii") as maps:
        row = next(line for line in maps if int(line.split("-")[0], 16) <= memory.address
                   < int(line.split("-")[1].split()[0], 16))  # fmt: skip
    assert row.split()[1] == "r-xp"


def test_every_truncation_is_refused() -> None:
    lib = compile_ir(CALLS)
    for length in range(0, len(lib), 7):
        with pytest.raises(elf.ELFError):
            elf.parse(lib[:length])


def test_damage_never_escapes() -> None:
    lib = compile_ir(CALLS)
    r = random.Random(1)
    for _ in range(3000):
        data = bytearray(lib)
        for _ in range(r.randint(1, 4)):
            at = r.choice((r.randrange(64), r.randrange(len(data)), len(data) - r.randrange(1, 900)))
            data[at] = r.randrange(256)
        try:
            elf.parse(bytes(data), most=1 << 24).image(1 << 32, lambda name: 1 << 40)
        except elf.ELFError:
            continue


def test_not_an_object() -> None:
    with pytest.raises(elf.ELFError, match="not an ELF64"):
        elf.parse(b"#include <stdio.h>\n" * 10)
    executable = bytearray(compile_ir("define void @f() { ret void }"))
    executable[16] = 2
    with pytest.raises(elf.ELFError, match="executable .type 2. runs at its own addresses"):
        elf.parse(bytes(executable))
    executable[16] = 4
    with pytest.raises(elf.ELFError, match="type 4; relocatable"):
        elf.parse(bytes(executable))
    executable[16], executable[18] = 1, 21
    with pytest.raises(elf.ELFError, match="machine 21"):
        elf.parse(bytes(executable))


def test_relocation_that_cannot_reach(monkeypatch: pytest.MonkeyPatch) -> None:
    # the constant pool of a code model without position independence: an absolute 32-bit address
    target = llvm._binding().Target.from_triple(llvm.host()[0])
    machine = target.create_target_machine(reloc="static", codemodel="small")
    monkeypatch.setattr(llvm.LLVMCompiler, "_machine", lambda compiler: machine)
    layout = elf.parse(llvm.LLVMCompiler().compile(CONSTANTS))
    assert {r.type for r in layout.file.relocations} & {10, 11}
    layout.image(0x10000, lambda name: None)
    with pytest.raises(elf.ELFError, match="cannot reach 0x7f"):
        layout.image(0x7F0000000000, lambda name: None)


def test_unknown_relocation() -> None:
    lib = bytearray(compile_ir(CALLS))
    obj = elf.ELFFile(bytes(lib))
    table = next(s for s in obj.sections if s.type == 4 and obj.sections[s.info].flags & 2)
    struct.pack_into("<I", lib, table.offset + 8, 200)
    with pytest.raises(elf.ELFError, match=r"relocation type \(200\) of \S+ at \.text\+0x\S+: it is not known"):
        elf.parse(bytes(lib)).image(1 << 32, lambda name: 1 << 40)


def test_another_machine_is_refused() -> None:
    with pytest.raises(elf.ELFError, match=r"machine 183; x86-64 \(62\) can be loaded"):
        ExecutableMemory(compile_ir("define void @f() { ret void }", "aarch64-linux-gnu"))


def test_aarch64_relocations() -> None:
    """The patched instructions are decoded and followed by hand."""
    text = CALLS + "define i8 @external_byte() { %x = load i8, ptr @pointer ret i8 %x }" + CONSTANTS
    layout = elf.parse(compile_ir(text, "aarch64-linux-gnu"))
    base, far = 0x400000, {"cos": 0x7F1234567890, "strlen": base_near(0x400000), "pointer": 0x7F1234567000}
    image = layout.image(base, far.get)
    kinds = set()
    for r in layout.file.relocations:
        at = layout.places.get(r.section)
        if at is None:
            continue
        place = base + at + r.offset
        symbol = layout.file.symbols[r.symbol]
        word: int = struct.unpack_from("<I", image, at + r.offset)[0]
        target = far.get(symbol.name) or base + layout.places[symbol.section] + symbol.value + (r.addend or 0)
        kinds.add(r.type)
        if r.type in (282, 283):
            assert follow_branch(image, base, place, word) == target
        elif r.type in (275, 311):
            pages = (word >> 5 & 0x7FFFF) << 2 | word >> 29 & 3
            page = (place >> 12) + (pages - (1 << 21) if pages >> 20 else pages)
            if r.type == 275:
                assert page == target >> 12
            else:
                low = next(o for o in layout.file.relocations if o.type == 312 and o.symbol == r.symbol)
                second: int = struct.unpack_from("<I", image, layout.places[low.section] + low.offset)[0]
                slot = (page << 12) + (second >> 10 & 0xFFF) * 8
                assert struct.unpack_from("<Q", image, slot - base)[0] == target
        elif r.type == 277:
            assert word >> 10 & 0xFFF == target & 0xFFF
        elif r.type in (278, 284, 285, 286, 299):
            scale = {278: 0, 284: 1, 285: 2, 286: 3, 299: 4}[r.type]
            assert (word >> 10 & 0xFFF) << scale == target & 0xFFF
    assert {275, 277, 282, 311, 312} <= kinds


def base_near(base: int) -> int:
    """An address within a branch's reach of ``base``."""
    return base + 0x5000000


def follow_branch(image: bytes, base: int, place: int, word: int) -> int:
    """Where a branch goes, through a stub if it goes to one."""
    distance = word & 0x03FFFFFF
    target = place + (distance - (1 << 26) if distance >> 25 else distance) * 4
    if base <= target < base + len(image):
        first, second, address = struct.unpack_from("<IIQ", image, target - base)
        if (first, second) == (0x58000050, 0xD61F0200):
            assert isinstance(address, int)
            return address
    return target


# where an instruction has the bits of its distance, from the instruction's highest to its lowest (RISC-V unprivileged
# ISA, "Immediate encoding variants" and chapter "C"); -1: a bit that is no part of it
_JAL = [20, *range(10, 0, -1), 11, *range(19, 11, -1)] + [-1] * 12
_BRANCH = [12, *range(10, 4, -1)] + [-1] * 13 + [4, 3, 2, 1, 11] + [-1] * 7
_C_BRANCH = [-1] * 3 + [8, 4, 3] + [-1] * 3 + [7, 6, 2, 1, 5] + [-1] * 2
_C_JUMP = [-1] * 3 + [11, 4, 9, 8, 10, 6, 7, 3, 2, 1, 5] + [-1] * 2


@pytest.mark.parametrize(("kind", "places"), [(17, _JAL), (16, _BRANCH), (44, _C_BRANCH), (45, _C_JUMP)])
def test_riscv_jumps_hold_their_distance(kind: int, places: list[int]) -> None:
    rng, reach, size = random.Random(kind), 1 << max(places), len(places) // 8
    for distance in [-reach, reach - 2, 0, -2, *(2 * rng.randrange(-reach // 2, reach // 2) for _ in range(200))]:
        old = rng.getrandbits(8 * size)
        image = bytearray(8)
        image[2 : 2 + size] = old.to_bytes(size, "little")
        patch = elf.Patch(2, 0x5000, kind, 0x5000 + distance - 6, 6, name="f")
        RISCV.apply(image, patch, {})
        new = int.from_bytes(image[2 : 2 + size], "little")
        for at, place in enumerate(reversed(places)):
            assert new >> at & 1 == (old >> at & 1 if place < 0 else distance >> place & 1), (distance, at)
        assert not any(image[:2]) and not any(image[2 + size :])
    for distance in (reach, -reach - 2):
        with pytest.raises(elf.Refusal, match="cannot reach"):
            patch = elf.Patch(2, 0x5000, kind, 0x5000 + distance, 0, name="f")
            RISCV.apply(bytearray(8), patch, {})


SHARED = """
#include <math.h>
#include <string.h>
extern int environ_of_nobody __attribute__((weak));
static const char *names[] = {"three", "seven", "eleven"};
int counts[100] = {40};
int *where = &counts[0], *end = counts + 100;
double (*function)(double) = cos;
static volatile int zeros[3000];
int next(void) { return ++*where + zeros[2999]; }
unsigned long length(int i) { return strlen(names[i]) + (&environ_of_nobody != 0); }
double both(double x) { return function(x) + cos(x) + (end - where); }
"""


def shared_object(folder: Path, *options: str) -> Path:
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed")
    (folder / "a.c").write_text(SHARED)
    command = ["gcc", "-O1", "-shared", "-fPIC", "-fno-builtin", "-nostartfiles", *options, "-o", "a.so", "a.c", "-lm"]
    subprocess.run(command, check=True, cwd=folder)
    return folder / "a.so"


def test_a_shared_object_runs(tmp_path: Path) -> None:
    memory = ExecutableMemory(shared_object(tmp_path).read_bytes())
    following = ctypes.CFUNCTYPE(ctypes.c_int)(memory.function("next"))
    assert [following(), following()] == [41, 42]
    length = ctypes.CFUNCTYPE(ctypes.c_ulong, ctypes.c_int)(memory.function("length"))
    assert [length(i) for i in range(3)] == [5, 5, 6]
    assert ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(memory.function("both"))(0.0) == 102.0


def _in_its_library(symbol: str) -> int | None:
    """Where the C library or the one of mathematics has a function, whatever the program has for it."""
    for name in ("libm.so.6", "libc.so.6"):
        found = getattr(ctypes.CDLL(name), symbol, None)
        if found is not None:
            return ctypes.cast(found, ctypes.c_void_p).value
    return None


@pytest.mark.parametrize(
    "options", [(), ("-Wl,-z,norelro",), ("-Wl,-z,separate-code",), ("-Wl,-z,max-page-size=65536",)]
)
def test_a_shared_object_is_in_memory_as_the_systems_loader_puts_it(tmp_path: Path, options: tuple[str, ...]) -> None:
    path = shared_object(tmp_path, "-Wl,-z,now", *options)
    there = ctypes.CDLL(os.fspath(path))
    layout = elf.parse(path.read_bytes())
    next_at = ctypes.cast(there.next, ctypes.c_void_p).value
    assert next_at is not None
    base = next_at - layout.offsets()["next"][0]
    image = layout.image(base, address_of)
    # the dynamic section and the first words of the table of addresses are the loader's own
    own = {".dynamic", ".got", ".got.plt"}
    compared = 0
    for number, place in layout.places.items():
        section = layout.file.sections[number]
        if section.name not in own:
            assert image[place : place + section.size] == ctypes.string_at(base + place, section.size), section.name
            compared += section.size
    assert compared > 12000
    table = {s.name: s for s in layout.file.sections}[".got"]
    words = range(table.address + 24, table.address + table.size, 8)
    # a program that is not position-independent has entries of its own for functions that it calls: those are their
    # addresses everywhere but in slots for calls, which lead to the library (x86-64 psABI, "Function Addresses")
    called = layout.image(base, _in_its_library)
    for at in words:
        assert ctypes.string_at(base + at, 8) in (image[at : at + 8], called[at : at + 8])


def test_parts_that_overlap_or_are_misaligned(tmp_path: Path) -> None:
    lib = shared_object(tmp_path).read_bytes()
    start, size, count = struct.unpack_from("<Q", lib, 32)[0], 56, struct.unpack_from("<H", lib, 56)[0]
    loads = [start + size * i for i in range(count) if struct.unpack_from("<I", lib, start + size * i)[0] == 1]
    for where, value, message in (
        (loads[0] + 40, 0x3000, "segments overlap at 0x"),
        (loads[1] + 48, 3000, "misaligned"),
        (loads[1] + 40, 1 << 50, "ends 0x|most"),
        (loads[1] + 32, 1 << 50, "lies outside the file"),
    ):  # fmt: skip
        damaged = bytearray(lib)
        struct.pack_into("<Q", damaged, where, value)
        with pytest.raises(elf.ELFError, match=message):
            elf.parse(bytes(damaged))
    with pytest.raises(elf.ELFError, match="memory at 0x10010 is misaligned"):
        elf.parse(lib).image(0x10010)
    obj = bytearray(compile_ir(CALLS))
    table = struct.unpack_from("<Q", obj, 40)[0]
    sections = elf.ELFFile(bytes(obj)).sections
    text, data = (next(i for i, s in enumerate(sections) if s.name.startswith(n)) for n in (".text", ".rodata"))
    struct.pack_into("<Q", obj, table + 64 * data + 24, sections[text].offset)
    with pytest.raises(elf.ELFError, match=r"sections \.\S+ and \.\S+ overlap at byte"):
        elf.parse(bytes(obj))
    struct.pack_into("<Q", obj, table + 64 * data + 48, 3)
    with pytest.raises(elf.ELFError, match=r"section \.rodata\S* wants alignment 0x3"):
        elf.parse(bytes(obj))


def test_a_place_across_the_end_of_its_section() -> None:
    lib = bytearray(compile_ir(CALLS))
    table = next(s for s in elf.ELFFile(bytes(lib)).sections if s.type == 4 and s.name == ".rela.text")
    text = next(s for s in elf.ELFFile(bytes(lib)).sections if s.name == ".text")
    struct.pack_into("<Q", lib, table.offset, text.size - 2)
    with pytest.raises(elf.ELFError, match=r"\.text\+0x\S+: its 4 bytes point outside the section"):
        elf.parse(bytes(lib)).image(1 << 32, lambda name: 1 << 40)
