"""Objects of every machine, laid out and relocated, byte by byte as real linkers do it."""

from __future__ import annotations

import random
import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from tg_hcq.core.relocations import AMDGPU, CUDA, EM_AMDGPU, EM_CUDA, MACHINES
from tg_runtime.compilers import llvm
from tg_runtime.host import elf
from tg_runtime.host.elf.file import SHT_NOBITS

needs_llvm = pytest.mark.skipif(not llvm.available(), reason="llvmlite is not installed")
LINKERS = {
    "x86_64-linux-gnu": ["x86_64-linux-gnu-ld", "--no-relax"],
    "aarch64-linux-gnu": ["aarch64-linux-gnu-ld", "--no-relax"],
    "riscv64-linux-gnu": ["riscv64-linux-gnu-ld", "--no-relax"],
    "amdgcn-amd-amdhsa": ["ld.lld", "--no-relax"],
}
BASE = 0x400000


def random_module(seed: int, amd: bool) -> str:
    """Globals of several sizes, tables of addresses, and functions that use them and call one another."""
    rng = random.Random(seed)
    space = " addrspace(1)" if amd else ""
    lines, names = [], []
    for number in range(rng.randrange(1, 7)):
        count, align = rng.choice((1, 2, 3, 7, 64, 1000)), 1 << rng.randrange(3, 8)
        values = ", ".join(f"i64 {rng.getrandbits(63)}" for _ in range(count))
        what = rng.choice(("constant", "global", "zero"))
        text = "zeroinitializer" if what == "zero" else f"[{values}]"
        kind = "constant" if what == "constant" else "global"
        names.append(f"@g{number}")
        lines.append(f"@g{number} = hidden{space} {kind} [{count} x i64] {text}, align {align}")
    for number in range(rng.randrange(1, 4)):
        to, at = rng.choice(names), rng.randrange(0, 300)
        place = f"ptr{space} getelementptr (i8, ptr{space} {to}, i64 {at})"
        lines.append(f"@p{number} = hidden{space} global [1 x ptr{space}] [{place}], align 8")
        names.append(f"@p{number}")
    functions: list[str] = []
    for number in range(rng.randrange(1, 6)):
        kernel = "amdgpu_kernel " if amd else ""
        lines += [f"define {kernel}void @f{number}(ptr{space} %out) nounwind noinline {{"]
        for i, name in enumerate(rng.choices(names, k=rng.randrange(1, 5))):
            at = rng.randrange(0, 64)
            lines += [
                f"  %p{i} = getelementptr i8, ptr{space} {name}, i64 {at}",
                f"  %v{i} = load volatile i{8 << rng.randrange(4)}, ptr{space} %p{i}, align 1".replace("i32", "i64"),
                f"  store volatile ptr{space} %p{i}, ptr{space} %out",
            ]
        for name in [] if amd or not functions else rng.choices(functions, k=2):
            lines += [f"  call void {name}(ptr %out)"]
        if not amd and rng.random() < 0.5:
            lines += ["  call void @outside(ptr %out)"]
        lines += ["  ret void", "}"]
        functions.append(f"@f{number}")
    # the newest code object version that LLD 14 knows
    version = '!llvm.module.flags = !{!0}\n!0 = !{i32 1, !"amdhsa_code_object_version", i32 400}'
    return "\n".join([*lines, version if amd else "declare hidden void @outside(ptr)"])


def linked(lib: bytes, layout: elf.Layout, linker: list[str], folder: Path, symbols: dict[str, int]) -> elf.ELFFile:
    """The object as a linker relocates it with every section where ``layout`` has it."""
    if shutil.which(linker[0]) is None:
        pytest.skip(f"{linker[0]} is not installed")
    placed = sorted(layout.places.items(), key=lambda item: item[1])
    rows = [
        f"  {layout.file.sections[number].name} {BASE + place:#x} : {{ *({layout.file.sections[number].name}) }}"
        for number, place in placed
        if layout.file.sections[number].size
    ]
    (folder / "in.o").write_bytes(lib)
    (folder / "script").write_text("SECTIONS {\n" + "\n".join(rows) + "\n  /DISCARD/ : { *(.note*) *(.comment) }\n}\n")
    known = [f"--defsym={name}={address:#x}" for name, address in symbols.items()]
    command = [*linker, "-e", "0", "-T", "script", *known, "-o", "out", "in.o"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return elf.ELFFile((folder / "out").read_bytes())


@needs_llvm
@pytest.mark.parametrize("triple", LINKERS)
@pytest.mark.parametrize("seed", range(12))
def test_relocated_as_a_linker_does(triple: str, seed: int, tmp_path: Path) -> None:
    amd = triple.startswith("amd")
    lib = llvm.LLVMCompiler(triple=triple).compile(random_module(seed, amd))
    layout = elf.parse(lib, MACHINES)
    outside = {} if amd else {"outside": BASE + 0x123450}
    image = layout.image(BASE, outside.get)
    there = linked(lib, layout, LINKERS[triple], tmp_path, outside)
    compared = 0
    for section in there.sections:
        if section.flags & 2 and section.type != SHT_NOBITS and section.size:
            at = section.address - BASE
            if 0 <= at < len(image) and section.name in {layout.file.sections[i].name for i in layout.places}:
                assert image[at : at + section.size] == there.section(section.name), section.name
                compared += 1
    assert compared >= 2 and layout.file.relocations


def made(machine: int, kind: int, data: bytes, relocations: list[tuple[int, int, int]], explicit: bool = True) -> bytes:
    """An object of a section ``.text``, with relocations (offset, type, addend) to a symbol ``s`` at its byte 16."""
    names, texts = b"\0s\0", b"\0.text\0.rela\0.symtab\0.strtab\0.shstrtab\0"
    rows = [
        struct.pack("<QQq", at, 1 << 32 | number, addend)[: 24 if explicit else 16]
        for at, number, addend in relocations
    ]
    symbols = bytes(24) + struct.pack("<IBBHQQ", 1, 0x12, 0, 1, 16, 8)
    parts = [data, b"".join(rows), symbols, names, texts]
    at, starts = 64, []
    for part in parts:
        starts.append(at)
        at += -(-len(part) // 64) * 64
    heads = [(0,) * 10]
    kinds = [(1, 7), (4 if explicit else 9, 0), (2, 0), (3, 0), (3, 0)]
    for i, (part, start, name) in enumerate(zip(parts, starts, (1, 7, 13, 21, 29), strict=True)):
        link, info = {1: (3, 1), 2: (4, 1)}.get(i, (0, 0))
        heads.append((name, kinds[i][0], kinds[i][1], 0, start, len(part), link, info, 16 if i == 0 else 1, 0))
    head = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
    head += struct.pack("<HHIQQQIHHHHHH", kind, machine, 1, 0, 0, at, 0, 64, 56, 0, 64, len(heads), 5)
    body = b"".join(part.ljust(-(-len(part) // 64) * 64, b"\0") for part in parts)
    return head + body + b"".join(struct.pack("<IIQQQQIIQQ", *row) for row in heads)


def patched(machine: int, number: int, base: int, old: bytes, addend: int = 0, explicit: bool = True) -> bytes:
    """16 bytes after one relocation of them; the symbol is at ``base`` + 16."""
    lib = made(machine, 2 if machine == EM_CUDA else 1, old.ljust(32, b"\0"), [(0, number, addend)], explicit)
    return elf.parse(lib, MACHINES).image(base)[:16]


# LLVM, User Guide for AMDGPU Backend, "Relocation Records": S + A, S + A - P, B + A
@pytest.mark.parametrize("seed", range(20))
def test_amdgpu_values(seed: int) -> None:
    rng = random.Random(seed)
    base, addend = rng.randrange(1 << 51) * 4096, rng.randrange(-(1 << 30), 1 << 30)
    value, distance = base + 16 + addend, 16 + addend
    old = rng.randbytes(16)
    for number, want, nbytes in (
        (1, value & 0xFFFFFFFF, 4), (2, value >> 32 & 0xFFFFFFFF, 4), (3, value, 8), (4, distance, 4),
        (5, distance, 8), (10, distance & 0xFFFFFFFF, 4), (11, distance >> 32 & 0xFFFFFFFF, 4), (13, base + addend, 8),
    ):  # fmt: skip
        new = patched(EM_AMDGPU, number, base, old, addend)
        assert new == (want % (1 << 8 * nbytes)).to_bytes(nbytes, "little") + old[nbytes:], number
    near = 4 * rng.randrange(-(1 << 15), 1 << 15)
    assert patched(EM_AMDGPU, 14, base, old, near + 4 - 16)[:2] == (near // 4 % (1 << 16)).to_bytes(2, "little")


@pytest.mark.parametrize(
    ("number", "base", "addend", "message"),
    [
        (7, 0, 0, r"R_AMDGPU_GOTPCREL \(7\) of s at \.text\+0x0: there is no table of addresses"),
        (8, 0, 0, "no table of addresses"),
        (4, 0, 1 << 31, r"R_AMDGPU_REL32 \(4\) of s at \.text\+0x0: cannot reach 0x80000010 with 32 bits"),
        (6, 1 << 32, 0, r"R_AMDGPU_ABS32 \(6\) of s .*cannot reach 0x100000010"),
        (14, 0, 1, r"R_AMDGPU_REL16 \(14\) of s .*0xd is misaligned"),
        (14, 0, 1 << 17, "cannot reach 0x2000c with 18 bits"),
        (12, 0, 0, r"type \(12\) of s at \.text\+0x0: it is not known"),
    ],
)
def test_amdgpu_refusals(number: int, base: int, addend: int, message: str) -> None:
    with pytest.raises(elf.ELFError, match=message):
        patched(EM_AMDGPU, number, base, bytes(16), addend)


# name of the field's value, then bits of the place, lowest first, as nvdisasm prints them of its machine descriptions:
# (first bit, number of bits); what is stored is the value from bit `shift` on, in the fields' order
CUDA_FIELDS = {
    1: (0, [(0, 32)]), 2: (0, [(0, 64)]), 4: (0, [(0, 64)]), 10: (0, [(26, 32)]), 11: (32, [(26, 32)]),
    13: (0, [(23, 32)]), 14: (32, [(23, 32)]), 35: (0, [(0, 64)]), 42: (0, [(20, 32)]), 43: (0, [(20, 32)]),
    44: (32, [(20, 32)]), 55: (0, [(32, 32)]), 56: (0, [(32, 32)]), 57: (32, [(32, 32)]), 58: (2, [(34, 47)]),
    62: (0, [(32, 32)]), 63: (32, [(32, 32)]), 70: (0, [(0, 32)]), 71: (32, [(0, 32)]), 75: (2, [(16, 8), (34, 47)]),
    76: (0, [(0, 8)]), 79: (24, [(0, 8)]), 83: (56, [(0, 8)]), 90: (48, [(0, 8)]), 93: (8, [(0, 8)]),
    114: (2, [(16, 8), (34, 48)]),
}  # fmt: skip


@pytest.mark.parametrize("number", CUDA_FIELDS)
def test_cuda_fields(number: int) -> None:
    rng = random.Random(number)
    shift, fields = CUDA_FIELDS[number]
    whole = number in (1, 42, 55)  # these hold all of the address
    for explicit in (True, False):
        base, addend = rng.randrange(1 << (19 if whole else 35)) * 4096, 4 * rng.randrange(200)
        bits = [bit for low, width in fields for bit in range(low, low + width)]
        old = [rng.getrandbits(1) for _ in range(128)]
        if not explicit:  # the addend stands in the place
            for i, bit in enumerate(bits):
                old[bit] = addend >> shift + i & 1
        word = sum(bit << i for i, bit in enumerate(old)).to_bytes(16, "little")
        new = int.from_bytes(patched(EM_CUDA, number, base, word, addend, explicit), "little")
        in_place = addend if explicit else sum(old[bit] << shift + i for i, bit in enumerate(bits))
        value = base + 16 + in_place
        for bit in range(128):
            want = value >> shift + bits.index(bit) & 1 if bit in bits else old[bit]
            assert new >> bit & 1 == want, (bit, explicit)


@pytest.mark.parametrize(
    ("number", "base", "addend", "message"),
    [
        (1, 1 << 32, 0, r"CUDA relocation R_CUDA_32 \(1\) of s at \.text\+0x0: cannot reach 0x100000010"),
        (75, 0, 1, "0x11 is misaligned: it is no multiple of 4"),
        (6, 0, 0, "it is not known"),  # a texture header
        (50, 0, 0, "it is not known"),  # a constant bank's field
        (102, 0, 0, "it is not known"),  # the unified function table
    ],
)
def test_cuda_refusals(number: int, base: int, addend: int, message: str) -> None:
    with pytest.raises(elf.ELFError, match=message):
        patched(EM_CUDA, number, base, bytes(16), addend)


def test_cuda_objects_are_linked_before() -> None:
    with pytest.raises(elf.ELFError, match="relocatable object .type 1. for CUDA must be linked"):
        elf.parse(made(EM_CUDA, 1, bytes(32), []), MACHINES)


KERNEL = """
__device__ int table[8] = {1, 2, 3, 4, 5, 6, 7, 8};
__device__ int *where = table + 3;
__device__ __noinline__ float helper(float x) { return x * 3.f; }
typedef float (*function)(float);
__device__ function pointers[1] = {helper};
extern "C" __global__ void k(float *out, int i) {
  __shared__ float s[32];
  s[threadIdx.x] = i;
  __syncthreads();
  out[i] = pointers[i](s[i ^ 1]) + table[i] + *where;
}
"""


@pytest.mark.parametrize("separate", [False, True])
def test_a_cubin(separate: bool, tmp_path: Path) -> None:
    if shutil.which("nvcc") is None:
        pytest.skip("nvcc is not installed")
    (tmp_path / "k.cu").write_text(KERNEL)
    steps = [["-dc", "-cubin", "-o", "r.cubin", "k.cu"], ["-dlink", "-cubin", "-o", "k.cubin", "r.cubin"]]
    for step in steps if separate else [["-cubin", "-o", "k.cubin", "k.cu"]]:
        subprocess.run(["nvcc", "-arch=sm_90", *step], check=True, cwd=tmp_path, capture_output=True)
    layout = elf.parse((tmp_path / "k.cubin").read_bytes(), MACHINES)
    base = 0x7F0012340000
    image, names = layout.image(base), layout.functions(base)
    sections = [layout.file.sections[number].name for number in layout.places]
    assert {".text.k", ".nv.constant0.k", ".nv.global.init"} <= set(sections)
    assert not any(name.startswith(".nv.shared") for name in sections)  # given to a launch

    def long(at: int) -> int:
        return int(struct.unpack_from("<Q", image, at - base)[0])

    assert long(names["where"]) == names["table"] + 12
    assert names[".text.k"] == names["k"] and names["k"] % 128 == 0
    if separate:  # the linker leaves the addresses of functions to whoever loads
        assert long(names["pointers"]) == names["_Z6helperf"]
    assert layout.file.section(".nv.info.k") and layout.file.notes()[0].owner == "NVIDIA Corp"
    # every 64-bit address that code names is a pair of instructions, each with a half from bit 32 on
    halves = [r for r in layout.file.relocations if r.type in (56, 57)]
    for r in halves:
        target = layout.file.symbols[r.symbol]
        value = base + layout.places[target.section] + target.value + (r.addend or 0)
        place = layout.places[r.section] + r.offset + 4
        assert struct.unpack_from("<I", image, place)[0] == (value >> (32 if r.type == 57 else 0)) & 0xFFFFFFFF
    assert bool(halves) == separate


AMD = """
@table = hidden addrspace(4) constant [4 x i32] [i32 3, i32 5, i32 7, i32 11]
define amdgpu_kernel void @k(ptr addrspace(1) %out, i32 %i) nounwind {
  %p = getelementptr i32, ptr addrspace(4) @table, i32 %i
  %v = load i32, ptr addrspace(4) %p
  store i32 %v, ptr addrspace(1) %out
  ret void
}
"""


@needs_llvm
def test_a_kernel_descriptor_says_how_far_the_code_is() -> None:
    layout = elf.parse(llvm.LLVMCompiler(triple="amdgcn-amd-amdhsa").compile(AMD), MACHINES)
    base = 0x7F0000400000
    image, names = layout.image(base), layout.functions(base)
    at, nbytes = layout.offsets()["k.kd"]
    distance = struct.unpack_from("<q", image, at + 16)[0]  # kernel_code_entry_byte_offset
    assert nbytes == 64 and names["k.kd"] + distance == names["k"] and names["k"] % 256 == 0
    assert any(note.owner == "AMDGPU" and b"amdhsa.kernels" in note.data for note in layout.file.notes())


def objects() -> list[bytes]:
    made_objects = [
        made(EM_AMDGPU, 1, bytes(32), [(0, 4, 0), (8, 3, 1)]),
        made(EM_CUDA, 2, bytes(32), [(0, 56, 0), (0, 75, 4)], explicit=False),
    ]
    if llvm.available():
        made_objects += [
            llvm.LLVMCompiler(triple=triple).compile(random_module(3, triple.startswith("amd"))) for triple in LINKERS
        ]
    return made_objects


def test_damage_is_an_error_or_an_image(tmp_path: Path) -> None:
    rng = random.Random(7)
    libs = objects()
    if shutil.which("gcc"):
        text = "extern int x; static int *p = &x; int y[9], *q = y + 2; int f() { return *p + *q; }"
        (tmp_path / "a.c").write_text(text)
        subprocess.run(["gcc", "-shared", "-fPIC", "-o", "a.so", "a.c"], check=True, cwd=tmp_path)
        libs.append((tmp_path / "a.so").read_bytes())
    for lib in libs:
        for turn in range(600):
            data = bytearray(lib)
            for _ in range(rng.randrange(1, 5)):
                # headers and tables are where damage says most
                at = rng.choice((rng.randrange(64), rng.randrange(len(data)), len(data) - rng.randrange(1, 700)))
                data[at] = rng.choice((0, 1, 0x7F, 0xFF, rng.randrange(256)))
            if turn % 3 == 0:
                del data[rng.randrange(len(data)) :]
            try:
                layout = elf.parse(bytes(data), MACHINES, most=1 << 22)
                layout.image(1 << 40, lambda name: 1 << 41)
                layout.functions(1 << 40)
                layout.file.notes()
            except elf.ELFError as error:
                assert str(error)


def test_every_type_has_one_place() -> None:
    for machine in (AMDGPU, CUDA):
        names = [name for name, _ in machine.types.values()]
        assert len(set(names)) == len(names)
