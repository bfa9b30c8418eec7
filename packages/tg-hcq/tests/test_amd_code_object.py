"""Code objects: what launches read of them, those for other cards, and damaged ones."""

from __future__ import annotations

import random
import struct
from functools import cache

import pytest

from tg_hcq.amd import AMDDevice
from tg_hcq.amd.architecture import NAMES
from tg_hcq.amd.code_object import args_layout, check_file, kernel, metadata
from tg_hcq.amd.msgpack import unpack
from tg_hcq.core.relocations import MACHINES
from tg_hcq.simulate.amd.kfd import KfdSystem
from tg_runtime import DevEntry
from tg_runtime.host.elf import ELFError, Layout, parse

llvm = pytest.importorskip("llvmlite.binding", reason="LLVM compiles the code objects")

IR = """
target triple = "amdgcn-amd-amdhsa"
@local = internal addrspace(3) global [256 x float] undef
declare i32 @llvm.amdgcn.workitem.id.x()
define amdgpu_kernel void @twice(ptr addrspace(1) %out, ptr addrspace(1) %in, i32 %n) #0 {
  %lane = call i32 @llvm.amdgcn.workitem.id.x()
  %i = zext i32 %lane to i64
  %from = getelementptr float, ptr addrspace(1) %in, i64 %i
  %x = load float, ptr addrspace(1) %from
  %cell = getelementptr float, ptr addrspace(3) @local, i32 %lane
  store volatile float %x, ptr addrspace(3) %cell
  %y = load volatile float, ptr addrspace(3) %cell
  %sum = fadd float %x, %y
  %to = getelementptr float, ptr addrspace(1) %out, i64 %i
  store float %sum, ptr addrspace(1) %to
  ret void
}
attributes #0 = { "amdgpu-flat-work-group-size"="1,256" "amdgpu-no-dispatch-ptr" "amdgpu-no-queue-ptr"
  "amdgpu-no-dispatch-id" "amdgpu-no-implicitarg-ptr" "amdgpu-no-workgroup-id-y" "amdgpu-no-workgroup-id-z"
  "amdgpu-no-workitem-id-y" "amdgpu-no-workitem-id-z" "amdgpu-no-lds-kernel-id" "amdgpu-no-heap-ptr"
  "amdgpu-no-hostcall-ptr" "amdgpu-no-multigrid-sync-arg" "amdgpu-no-default-queue" "amdgpu-no-completion-action" }
"""


@cache
def compiled(arch: str, features: str = "") -> bytes:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    machine = llvm.Target.from_triple("amdgcn-amd-amdhsa").create_target_machine(cpu=arch, features=features, opt=3)
    made: bytes = machine.emit_object(llvm.parse_assembly(IR))
    return made


def laid_out(lib: bytes) -> tuple[Layout, bytes]:
    layout = parse(lib, MACHINES)
    image = layout.image(1 << 20, lambda name: None)
    offset, nbytes = layout.offsets()["twice.kd"]
    return layout, bytes(image[offset : offset + nbytes])


@pytest.mark.parametrize("arch", ["gfx1030", "gfx1100", "gfx1201"])
def test_a_kernel_that_llvm_compiled(arch: str) -> None:
    layout, descriptor = laid_out(compiled(arch))
    check_file(layout.file, NAMES[arch])
    found = kernel("twice", descriptor, NAMES[arch])
    assert (found.lds, found.scratch, found.kernarg, found.wave32) == (1024, 0, 20, True)
    assert ("ENABLE_SGPR_KERNARG_SEGMENT_PTR", 2) in found.sgprs
    kd, code = layout.offsets()["twice.kd"][0], layout.offsets()["twice"][0]
    assert kd + found.entry == code
    args = args_layout("twice", metadata(layout.file)["twice"], found.kernarg)
    assert args is not None and (args.places, args.offsets, args.nbytes) == ((0, 8), (16,), 24)


def test_a_code_object_for_another_card() -> None:
    file = parse(compiled("gfx1201"), MACHINES).file
    with pytest.raises(ELFError, match="the code object is for gfx1201, and the card is a gfx1100"):
        check_file(file, NAMES["gfx1100"])


@pytest.mark.parametrize(("bits", "wanted"), [(0x300, "wants xnack"), (0xC00, "wants sramecc")])
def test_a_code_object_that_wants_what_the_card_does_not_do(bits: int, wanted: str) -> None:
    lib = bytearray(compiled("gfx1100"))
    struct.pack_into("<I", lib, 48, struct.unpack_from("<I", lib, 48)[0] & ~0xF00 | bits)
    with pytest.raises(ELFError, match=wanted):
        check_file(parse(bytes(lib), MACHINES).file, NAMES["gfx1100"])


def test_descriptors_that_cannot_be() -> None:
    arch = NAMES["gfx1100"]
    good = laid_out(compiled("gfx1100"))[1]
    for offset, code, value, wanted in (
        (0, "<I", 1 << 17, "declares 131072 bytes of LDS; a work-group has 65536"),
        (52, "<I", struct.unpack_from("<I", good, 52)[0] | 1 << 15, "holds a size of LDS"),
        (56, "<H", 0x7F, "user SGPRs, and its RSRC2 has room for"),
        (58, "<H", 2, "wants arguments in registers before it begins"),
    ):
        bad = bytearray(good)
        struct.pack_into(code, bad, offset, value)
        with pytest.raises(ELFError, match=wanted):
            kernel("k", bytes(bad), arch)
    with pytest.raises(ELFError, match="the descriptor of k has 63 bytes, not 64"):
        kernel("k", good[:63], arch)


def test_metadata_that_cannot_be() -> None:
    row: dict[str, object] = {".value_kind": "global_buffer", ".offset": 0, ".size": 8}
    for changed, wanted in (
        ({".offset": 1 << 40}, "an argument at 1099511627776 of 8 bytes in a block of 16"),
        ({".size": "8"}, "an argument at 0 of '8' bytes"),
        ({".value_kind": "pipe"}, "of kind 'pipe'"),
        ({".offset": 4}, "buffer 0 at byte 4 is not aligned"),
    ):
        with pytest.raises(ELFError, match=wanted):
            args_layout("k", {".args": [{**row, **changed}]}, 16)  # type: ignore[dict-item]
    assert args_layout("k", {}, 16) is None


def test_damaged_files_raise_and_nothing_else() -> None:
    good, random_bytes = compiled("gfx1100"), random.Random(14)
    arch = NAMES["gfx1100"]
    for _ in range(400):
        bad = bytearray(good)
        if random_bytes.random() < 0.3:
            del bad[random_bytes.randrange(len(bad)) :]
        for _ in range(random_bytes.randint(1, 8)):
            if bad:
                bad[random_bytes.randrange(len(bad))] = random_bytes.randrange(256)
        try:
            layout, descriptor = laid_out(bytes(bad))
            check_file(layout.file, arch)
            told = metadata(layout.file).get("twice", {})
            args_layout("twice", told, kernel("twice", descriptor, arch).kernarg)
        except (ELFError, KeyError):
            continue


@pytest.mark.parametrize("magic", [b"__CLANG_OFFLOAD_BUNDLE__", b"CCOB"])
def test_bundles_of_several_code_objects(magic: bytes) -> None:
    device = AMDDevice("AMD", DevEntry("AMD", arch="gfx1100"), system=KfdSystem("gfx1100"))
    assert device.runtime is not None
    with pytest.raises(ELFError, match="--no-gpu-bundle-output"):
        device.runtime("twice", magic + bytes(200))
    device.close()


def test_damaged_messages() -> None:
    for data, wanted in (
        ("", "1 bytes at 0 of 0"),
        ("dd7fffffff", "2147483647 elements in the 0 bytes"),
        ("91" * 40, "nested deeper than 32"),
        ("d9", "1 bytes at 1"),
        ("c1", "type 0xc1"),
    ):
        with pytest.raises(ValueError, match=wanted):
            unpack(bytes.fromhex(data))
    assert unpack(bytes.fromhex("94cd0100ccffd1fffec0")) == [256, 255, -2, None]


@pytest.mark.parametrize(
    ("flags", "sramecc", "xnack", "told"),
    [
        (0x500, True, False, None),  # for all cards
        (0xA00, True, False, "for cards without sramecc, and the gfx942 runs with it"),
        (0xE00, False, False, "wants sramecc, which the gfx942 runs without"),
        (0xE00, True, False, None),
        (0xE00, True, True, "for cards without xnack, and the gfx942 runs with it"),
        (0xF00, True, False, "wants xnack, which the gfx942 runs without"),
        (0xF00, True, True, None),
    ],
)
def test_code_for_cards_whose_memory_behaves_otherwise(
    flags: int, sramecc: bool, xnack: bool, told: str | None
) -> None:
    data = bytearray(compiled("gfx942"))
    assert int.from_bytes(data[48:52], "little") & 0xFF == 0x4C  # e_flags: gfx942
    data[48:52] = (0x4C | flags).to_bytes(4, "little")
    file = parse(bytes(data), MACHINES).file
    if told is None:
        check_file(file, NAMES["gfx942"], sramecc=sramecc, xnack=xnack)
        return
    with pytest.raises(ELFError, match=told):
        check_file(file, NAMES["gfx942"], sramecc=sramecc, xnack=xnack)
