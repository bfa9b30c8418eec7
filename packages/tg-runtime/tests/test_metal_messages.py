"""The messages that METAL sends: their declared types, and what the stand-in for Metal sees of mistakes."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from ctypes import byref, c_void_p
from typing import Any

import pytest

from tg_runtime import DeviceError
from tg_runtime.backends.metal import api
from tg_runtime.backends.metal.objc import ObjC, Range, Size, Version, shape

CLASSES = (
    "NSArray", "NSString", "NSError", "NSProcessInfo", "MTLDevice", "MTLBuffer", "MTLCompileOptions", "MTLLibrary",
    "MTLFunction", "MTLComputePipelineDescriptor", "MTLComputePipelineState", "MTLIndirectCommandBufferDescriptor",
    "MTLIndirectCommandBuffer", "MTLIndirectComputeCommand", "MTLCommandQueue", "MTLCommandBuffer",
    "MTLComputeCommandEncoder", "MTLBlitCommandEncoder",
)  # fmt: skip
ONE = """#include <metal_stdlib>
using namespace metal;
kernel void one(device int* data0 [[buffer(0)]], uint3 group [[threadgroup_position_in_grid]], \
uint3 item [[thread_position_in_threadgroup]]) { data0[item.x] = 1; }
"""


@pytest.fixture
def objc(fake_metal: Any) -> Iterator[ObjC]:
    fake_metal.violations()
    runtime = api.runtime()
    with runtime.pool():
        yield runtime
    fake_metal.violations()


class Bench:
    """A device, and objects of it."""

    def __init__(self, objc: ObjC) -> None:
        self.objc, self.send = objc, objc.send
        self.device = api.devices()[0]
        self.queue = self.send(self.device, "newCommandQueue")
        self.block = self.buffer(64)

    def buffer(self, nbytes: int) -> int:
        found: int = self.send(self.device, "newBufferWithLength:options:", nbytes, 0)
        return found

    def commands(self) -> int:
        found: int = self.send(self.queue, "commandBuffer")
        return found

    def pipeline(self, indirect: bool = True) -> int:
        options = self.objc.new("MTLCompileOptions")
        self.send(options, "setMathMode:", 0)
        error = c_void_p()
        source = self.objc.string(ONE)
        library = self.send(self.device, "newLibraryWithSource:options:error:", source, options, byref(error))
        descriptor = self.objc.new("MTLComputePipelineDescriptor")
        function = self.send(library, "newFunctionWithName:", self.objc.string("one"))
        self.send(descriptor, "setComputeFunction:", function)
        self.send(descriptor, "setSupportIndirectCommandBuffers:", indirect)
        selector = "newComputePipelineStateWithDescriptor:options:reflection:error:"
        found: int = self.send(self.device, selector, descriptor, 0, None, byref(error))
        return found

    def dispatch(self, encoder: int, threads: int = 4) -> None:
        self.send(encoder, "dispatchThreadgroups:threadsPerThreadgroup:", Size(1, 1, 1), Size(threads, 1, 1))

    def indirect(self, pipeline: int) -> int:
        descriptor = self.objc.new("MTLIndirectCommandBufferDescriptor")
        self.send(descriptor, "setCommandTypes:", api.CONCURRENT_DISPATCH)
        self.send(descriptor, "setMaxKernelBufferBindCount:", 1)
        selector = "newIndirectCommandBufferWithDescriptor:maxCommandCount:options:"
        found: int = self.send(self.device, selector, descriptor, 1, 0)
        command = self.send(found, "indirectComputeCommandAtIndex:", 0)
        self.send(command, "setComputePipelineState:", pipeline)
        self.send(command, "setKernelBuffer:offset:atIndex:", self.block, 0, 0)
        selector = "concurrentDispatchThreadgroups:threadsPerThreadgroup:"
        self.send(command, selector, Size(1, 1, 1), Size(4, 1, 1))
        return found

    def execute(self, encoder: int, indirect: int) -> None:
        self.send(encoder, "executeCommandsInBuffer:withRange:", indirect, Range(0, 1))


def test_declared_types(fake_metal: Any) -> None:
    """Each selector has, in some class of the stand-in, a method of the types that we declare."""
    objc = api.runtime()
    lookup, encoding = fake_metal.library.class_getInstanceMethod, fake_metal.library.method_getTypeEncoding
    lookup.restype, lookup.argtypes = c_void_p, (c_void_p, c_void_p)
    encoding.restype, encoding.argtypes = ctypes.c_char_p, (c_void_p,)
    meta = fake_metal.library.object_getClass
    meta.restype, meta.argtypes = c_void_p, (c_void_p,)
    register = fake_metal.library.sel_registerName
    register.restype, register.argtypes = c_void_p, (ctypes.c_char_p,)
    classes = [found for name in CLASSES for found in (objc.cls(name), meta(objc.cls(name)))]
    for selector, declared in objc.messages.items():
        methods = [lookup(cls, register(selector.encode())) for cls in classes]
        known = {encoding(method).decode() for method in methods if method}
        assert known, f"{selector} is not in the stand-in"
        assert {shape(text, declared=False) for text in known} == {shape(declared, declared=True)}, selector


@pytest.mark.parametrize(
    ("encoded", "declared"),
    [
        ("v16@0:8", "v"), ("@24@0:8Q16", "@Q"), ("c24@0:8q16", "Bq"), ("d16@0:8", "d"), ("r*16@0:8", "r*"),
        ("v64@0:8{?=QQQ}16{?=QQQ}40", "v{Size}{Size}"), ("v40@0:8@16{_NSRange=QQ}24", "v@{Range}"),
        ("@48@0:8^v16Q24Q32@?40", "@^vQQ@"), ("v40@0:8r^@16Q24Q32", "v^vQQ"), ("B40@0:8{?=qqq}16", "B{Version}"),
        ('@32@0:8@"NSString"16^{__IOSurface=}24', "@@^v"),
    ],
)  # fmt: skip
def test_encodings(encoded: str, declared: str) -> None:
    """As the runtime of a Mac writes them."""
    assert shape(encoded, declared=False) == shape(declared, declared=True)


def test_a_method_that_is_not_there(objc: ObjC) -> None:
    """It is an error with words: the runtime itself would end the process."""
    (device, _) = api.devices()
    wrong = ObjC(api.function, {"name": "Q", "supportsFamily:": "BB", "newTexture": "@"})
    with pytest.raises(DeviceError, match="MTLDevice has no method newTexture on this system"):
        wrong.send(device, "newTexture")
    with pytest.raises(DeviceError, match="MTLDevice has a method supportsFamily: of type B24@0:8q16; BB was expected"):
        wrong.send(device, "supportsFamily:", True)
    with pytest.raises(DeviceError, match="there is no class MTLNothing"):
        wrong.cls("MTLNothing")
    assert objc.responds(device, "name")
    assert not objc.responds(device, "newTexture")
    assert wrong.send(None, "newTexture") is None


def test_strings(objc: ObjC) -> None:
    assert objc.text(objc.string("a µ")) == "a µ"
    assert objc.text(None) == ""
    assert objc.reason(None) == ""


def test_without_a_runtime() -> None:
    def find(name: str) -> Any:
        raise AttributeError(name)

    with pytest.raises(DeviceError, match="the Objective-C runtime here has no objc_getClass"):
        ObjC(find, {})


# what the stand-in sees


def an_open_encoder(b: Bench) -> None:
    commands = b.commands()
    encoder = b.send(commands, "computeCommandEncoder")
    b.send(commands, "commit")
    b.send(encoder, "endEncoding")


def two_encoders(b: Bench) -> None:
    commands = b.commands()
    encoder = b.send(commands, "computeCommandEncoder")
    b.send(commands, "blitCommandEncoder")
    b.send(encoder, "endEncoding")


def after_the_end(b: Bench) -> None:
    encoder = b.send(b.commands(), "computeCommandEncoder")
    b.send(encoder, "endEncoding")
    b.send(encoder, "setBuffer:offset:atIndex:", b.block, 0, 0)


def no_pipeline(b: Bench) -> None:
    encoder = b.send(b.commands(), "computeCommandEncoder")
    b.dispatch(encoder)
    b.send(encoder, "endEncoding")


def no_buffer(b: Bench) -> None:
    encoder = b.send(b.commands(), "computeCommandEncoder")
    b.send(encoder, "setComputePipelineState:", b.pipeline())
    b.dispatch(encoder)
    b.send(encoder, "endEncoding")


def too_many_threads(b: Bench) -> None:
    encoder = b.send(b.commands(), "computeCommandEncoder")
    b.send(encoder, "setComputePipelineState:", b.pipeline())
    b.send(encoder, "setBuffer:offset:atIndex:", b.block, 0, 0)
    b.dispatch(encoder, 1025)
    b.send(encoder, "endEncoding")


def beyond_the_buffers(b: Bench) -> None:
    encoder = b.send(b.commands(), "computeCommandEncoder")
    b.send(encoder, "setBuffer:offset:atIndex:", b.block, 0, 31)
    b.send(encoder, "endEncoding")


def beyond_the_buffer(b: Bench) -> None:
    encoder = b.send(b.commands(), "computeCommandEncoder")
    b.send(encoder, "setBuffer:offset:atIndex:", b.block, 64, 0)
    b.send(encoder, "endEncoding")


def not_committed(b: Bench) -> None:
    b.send(b.commands(), "waitUntilCompleted")


def committed_twice(b: Bench) -> None:
    commands = b.commands()
    for _ in range(2):
        b.send(commands, "commit")
    b.send(commands, "waitUntilCompleted")


def timed_too_early(b: Bench) -> None:
    commands = b.commands()
    b.send(commands, "commit")
    b.send(commands, "GPUEndTime")
    b.send(commands, "waitUntilCompleted")


def released_twice(b: Bench) -> None:
    block = b.buffer(64)
    for _ in range(2):
        b.send(block, "release")


def used_after_release(b: Bench) -> None:
    block = b.buffer(64)
    b.send(block, "release")
    encoder = b.send(b.commands(), "computeCommandEncoder")
    b.send(encoder, "setBuffer:offset:atIndex:", block, 0, 0)
    b.send(encoder, "endEncoding")


def of_another_class(b: Bench) -> None:
    encoder = b.send(b.commands(), "computeCommandEncoder")
    b.send(encoder, "setBuffer:offset:atIndex:", b.queue, 0, 0)
    b.send(encoder, "endEncoding")


def to_another_class(b: Bench) -> None:
    b.send(b.queue, "contents")


def to_no_object(b: Bench) -> None:
    b.send(4096, "contents")


def private_storage(b: Bench) -> None:
    b.send(b.device, "newBufferWithLength:options:", 64, 32)


def half_a_page(b: Bench) -> None:
    b.send(b.device, "newBufferWithBytesNoCopy:length:options:deallocator:", 4096 + 64, 4096, 0, None)


def fast_math(b: Bench) -> None:
    options, error = b.objc.new("MTLCompileOptions"), c_void_p()
    b.send(b.device, "newLibraryWithSource:options:error:", b.objc.string(ONE), options, byref(error))


def a_copy_too_long(b: Bench) -> None:
    blit = b.send(b.commands(), "blitCommandEncoder")
    selector = "copyFromBuffer:sourceOffset:toBuffer:destinationOffset:size:"
    b.send(blit, selector, b.block, 32, b.buffer(64), 0, 33)
    b.send(blit, "endEncoding")


def not_resident(b: Bench) -> None:
    commands = b.commands()
    encoder = b.send(commands, "computeCommandEncoder")
    b.execute(encoder, b.indirect(b.pipeline()))
    b.send(encoder, "endEncoding")


def changed_while_it_runs(b: Bench) -> None:
    indirect, commands = b.indirect(b.pipeline()), b.commands()
    encoder = b.send(commands, "computeCommandEncoder")
    b.execute(encoder, indirect)
    b.send(encoder, "endEncoding")
    b.send(commands, "commit")
    b.send(b.send(indirect, "indirectComputeCommandAtIndex:", 0), "setKernelBuffer:offset:atIndex:", b.block, 0, 0)
    b.send(commands, "waitUntilCompleted")


def not_for_indirect(b: Bench) -> None:
    b.indirect(b.pipeline(indirect=False))


MISTAKES: list[tuple[Callable[[Bench], None], str]] = [
    (an_open_encoder, "commit with an open encoder"),
    (two_encoders, "an encoder while another is open"),
    (after_the_end, "setBuffer: after endEncoding"),
    (no_pipeline, "dispatchThreadgroups: with no pipeline"),
    (no_buffer, "one: no buffer at 0"),
    (too_many_threads, "dispatchThreadgroups: 1 x 1 x 1 of 1025 threads"),
    (beyond_the_buffers, "setBuffer: at 31"),
    (beyond_the_buffer, "setBuffer: byte 64 of 64"),
    (not_committed, "waitUntilCompleted of a command buffer that is not committed"),
    (committed_twice, "commit of a command buffer that is committed"),
    (timed_too_early, "the time of a command buffer that is not done"),
    (released_twice, "release is sent to a released MTLBuffer"),
    (used_after_release, "setBuffer:: a released MTLBuffer"),
    (of_another_class, "setBuffer:: a MTLCommandQueue, not a MTLBuffer"),
    (to_another_class, "contents is sent to a MTLCommandQueue, which has no such method"),
    (to_no_object, "which is no object"),
    (private_storage, "not shared storage"),
    (half_a_page, "newBufferWithBytesNoCopy: 4096 bytes"),
    (fast_math, "newLibraryWithSource: with fast math"),
    (a_copy_too_long, "copyFromBuffer: 33 bytes"),
    (not_resident, "its pipeline is not resident\ncommand 0: its buffer 0 is not used by the encoder"),
    (changed_while_it_runs, "setKernelBuffer: of a command that is being executed"),
    (not_for_indirect, "a pipeline is not for indirect command buffers"),
]


@pytest.mark.parametrize(("mistake", "words"), MISTAKES, ids=[mistake.__name__ for mistake, _ in MISTAKES])
def test_mistakes_are_seen(mistake: Callable[[Bench], None], words: str, objc: ObjC, fake_metal: Any) -> None:
    bench = Bench(objc)
    objc.send(bench.block, "contents")  # known to be a method of buffers
    assert fake_metal.violations() == ""
    mistake(bench)
    assert words in fake_metal.violations()


def test_a_pool_is_missed(fake_metal: Any) -> None:
    objc = api.runtime()
    objc.string("leaks")
    assert "a NSString is autoreleased with no pool around, and leaks" in fake_metal.violations()


def test_version(objc: ObjC) -> None:
    process = objc.send(objc.cls("NSProcessInfo"), "processInfo")
    assert objc.send(process, "isOperatingSystemAtLeastVersion:", Version(15, 0, 0))
    assert not objc.send(process, "isOperatingSystemAtLeastVersion:", Version(16, 0, 0))
