"""Code in device memory: objects that are uploaded, run there, and freed with whoever used them."""

from __future__ import annotations

import ctypes
import gc
import platform
import struct

import pytest

from tg_dtype import dtypes
from tg_hcq import HCQBuffer
from tg_hcq.core.args import ArgsLayout
from tg_hcq.core.errors import DeviceFault
from tg_hcq.core.upload import CODE_OPTIONS, UploadedCode
from tg_hcq.hostq import MEMORY, HostQueueDevice, HostQueueProgram
from tg_hcq.hostq.memory import Access
from tg_runtime import BufferOptions
from tg_runtime.compilers import llvm
from tg_runtime.device.launch import Launch
from tg_runtime.host.elf import ELFError, Layout

pytestmark = [
    pytest.mark.skipif(not llvm.available(), reason="llvmlite is not installed"),
    pytest.mark.skipif(platform.machine() not in ("x86_64", "aarch64"), reason="no loader for this processor"),
]

HOST = BufferOptions(host=True, nolru=True)
FILL = """
@table = hidden constant [4 x i32] [i32 3, i32 5, i32 7, i32 11], align 64
@calls = hidden global i32 0
@where = hidden global ptr @calls
define void @fill(ptr %out, i32 %i) nounwind {
  %at = getelementptr [4 x i32], ptr @table, i32 0, i32 %i
  %v = load i32, ptr %at
  store i32 %v, ptr %out
  %p = load ptr, ptr @where
  %n = load i32, ptr %p
  %m = add i32 %n, 1
  store i32 %m, ptr %p
  %next = getelementptr i32, ptr %out, i32 1
  store i32 %m, ptr %next
  ret void
}
"""
UNDEFINED = "declare void @nobody()\ndefine void @fill() { call void @nobody() ret void }"


def compiled(text: str = FILL, triple: str = "") -> bytes:
    return llvm.LLVMCompiler(triple=triple).compile(text)


def launch(device: HostQueueDevice, program: HostQueueProgram, out: HCQBuffer, value: int) -> list[int]:
    program.launch([out], Launch((1, 1, 1), (1, 1, 1), [value], False))
    device.synchronize()
    return out.host_view("I").read(0, 2)


def test_a_program_runs_from_device_memory(device: HostQueueDevice) -> None:
    program = HostQueueProgram.from_object(device, "fill", compiled())
    start, _ = program.code()
    assert MEMORY.view(start, 16, Access.EXECUTE) is not None and MEMORY.view(start, 16, Access.WRITE) is None
    out = device.allocator.alloc(64, HOST)
    assert [launch(device, program, out, i) for i in range(4)] == [[3, 1], [5, 2], [7, 3], [11, 4]]


def test_what_is_known_of_it(device: HostQueueDevice) -> None:
    code = UploadedCode(device.allocator, compiled())
    assert {"fill", "table", "calls", "where"} <= set(code.names())
    assert code.content("table") == struct.pack("<4i", 3, 5, 7, 11)
    assert code.content("where") == struct.pack("<Q", code.entry("calls"))  # relocated
    assert ctypes.string_at(code.entry("table"), 16) == code.content("table")
    assert code.entry("table") % 64 == 0 and code.file.section(".text")
    with pytest.raises(ELFError, match=r"defines no kernel; it defines .*fill"):
        code.entry("kernel")


def test_memory_is_given_back_once_the_device_is_done(device: HostQueueDevice) -> None:
    before = device.allocator.blocks
    program = HostQueueProgram.from_object(device, "fill", compiled())
    out = device.allocator.alloc(64, HOST)
    launch(device, program, out, 1)
    start, _ = program.code()
    del program
    gc.collect()
    device.synchronize()
    assert MEMORY.view(start, 1, Access.EXECUTE) is None
    device.allocator.free(out, 64, HOST)
    assert device.allocator.blocks <= before + 1  # the ring of recorded launches' arguments may have come


@pytest.mark.parametrize(
    ("lib", "message"),
    [
        (b"no object", "not an ELF64"),
        (lambda: compiled()[:300], "lies outside the file|truncated"),
        (lambda: compiled(UNDEFINED), "undefined symbol nobody, wanted by .* at "),
    ],
)
def test_what_cannot_be_loaded_leaves_nothing_behind(device: HostQueueDevice, lib: object, message: str) -> None:
    held = device.allocator.blocks
    with pytest.raises(ELFError, match=message):
        UploadedCode(device.allocator, lib() if callable(lib) else lib)  # type: ignore[arg-type]
    assert device.allocator.blocks == held


def test_an_object_of_another_processor(device: HostQueueDevice) -> None:
    other = "aarch64-linux-gnu" if platform.machine() == "x86_64" else "x86_64-linux-gnu"
    with pytest.raises(ELFError, match=r"an object for machine \d+; .* can be loaded"):
        HostQueueProgram.from_object(device, "fill", compiled(triple=other))


class Copying:
    """An allocator that loads code as a card does: through its copy queue; blocks begin at odd pages."""

    def __init__(self, device: HostQueueDevice) -> None:
        self._allocator = device.allocator
        self.given: list[int] = []
        self.freed: list[int] = []

    def alloc(self, nbytes: int, options: BufferOptions) -> HCQBuffer:
        assert options == CODE_OPTIONS
        whole = self._allocator.alloc(nbytes + 2 * 4096, HOST)
        assert isinstance(whole.address, int)
        part = whole.offset(4096 if whole.address // 4096 % 2 == 0 else 0, nbytes)
        assert isinstance(part.address, int)
        self.given.append(part.address)
        return part

    def retire(self, opaque: HCQBuffer, options: BufferOptions, done: object = None, keep: object = None) -> None:
        assert isinstance(opaque.address, int)
        self.freed.append(opaque.address)

    def load_code(self, opaque: HCQBuffer, image: bytes, layout: Layout) -> None:
        super(type(self._allocator), self._allocator).load_code(opaque, image, layout)


def test_code_goes_through_the_copy_queue_where_the_host_sees_nothing(device: HostQueueDevice) -> None:
    allocator = Copying(device)
    text = FILL.replace("align 64", "align 16384")
    code = UploadedCode(allocator, compiled(text))
    device.synchronize()
    # the first block was not aligned, and a larger one was taken
    assert len(allocator.given) == 2 and allocator.freed == allocator.given[:1]
    assert code.entry("table") % 16384 == 0
    assert isinstance(code.memory.address, int)
    at = code.entry("table") - code.memory.address
    assert bytes(code.memory.host_view().bytes()[at : at + 16]) == code.content("table")
    del code
    assert allocator.freed == allocator.given


def test_a_program_in_memory_that_is_not_executable(device: HostQueueDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    """What an allocator does that ignores the option."""
    allocator = device.allocator
    plain = allocator._map
    monkeypatch.setattr(allocator, "_map", lambda nbytes, options: plain(nbytes, options._replace(executable=False)))
    program = HostQueueProgram.from_object(device, "fill", compiled())
    out = allocator.alloc(64, HOST)
    with pytest.raises(DeviceFault, match=r"EXEC of code: 1 bytes at 0x\w+ may not be executed") as caught:
        launch(device, program, out, 1)
    report = caught.value.report
    assert report is not None and report.access is not None and report.access.value == "execute"


def test_a_function_that_nobody_loaded(device: HostQueueDevice) -> None:
    program = HostQueueProgram.from_object(device, "fill", compiled())
    elsewhere = device.allocator.alloc(64, HOST).address
    assert isinstance(elsewhere, int)
    program.descriptor(ArgsLayout(1, (dtypes.int32,))).host_view("I").write(0, struct.pack("<Q", elsewhere))
    with pytest.raises(DeviceFault, match="may not be executed"):
        launch(device, program, device.allocator.alloc(64, HOST), 1)


def test_copies_do_not_change_code(device: HostQueueDevice) -> None:
    program = HostQueueProgram.from_object(device, "fill", compiled())
    start, _ = program.code()
    with pytest.raises(DeviceFault, match=r"WRITE: 4 bytes at 0x\w+ may not be written"):
        with device.submission() as queue:
            queue.write(start, [0])
        device.synchronize()


def test_after_a_reset_programs_still_run(device: HostQueueDevice) -> None:
    program = HostQueueProgram.from_object(device, "fill", compiled())
    out = device.allocator.alloc(64, HOST)
    assert launch(device, program, out, 1)[0] == 5
    device.reset()
    assert launch(device, program, out, 2)[0] == 7
