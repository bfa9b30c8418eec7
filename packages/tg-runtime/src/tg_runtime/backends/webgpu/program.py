"""WGSL checked by the device's compiler, and WGSL as a program that can be launched.

A shader's storage buffers, all of ``@group(0)``, are the launch's buffers in the order of their bindings; a uniform, if
there is one, has the values as consecutive ``i32``. Comment lines of the renderer say more: see
:mod:`tg_codegen.render.wgsl`.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Sequence
from ctypes import byref
from typing import Any

from ...device.compiler import Compiler, rejected
from ...device.launch import Launch, LoadedProgram
from .driver import WebGPUError
from .memory import WebGPUMemory, words
from .queue import Binding, Queue

_BINDING = re.compile(r"@group\(0\)\s*@binding\((\d+)\)\s*var<(storage|uniform)\b")
_NOTE = re.compile(r"^// (packed|writes|groups):?(.*)$", re.MULTILINE)


class WGSLCompiler(Compiler):
    """Checks WGSL: what is loaded is the source, which every driver compiles anew.

    Args:
      queue: of the device.
    """

    def __init__(self, queue: Queue) -> None:
        super().__init__(None)
        self.queue = queue

    def compile(self, src: str) -> bytes:
        """The source.

        Raises:
          CompileError: if it is rejected; it is kept in a file that the message names.
        """
        driver = self.queue.driver
        try:
            shader = driver.create_shader(src)
        except WebGPUError as error:
            raise rejected(f"WGSL on {driver.adapter.name}", str(error), src, ".wgsl") from None
        with driver.lock:
            driver.library.wgpuShaderModuleRelease(shader)
        return src.encode()


class WebGPUProgram(LoadedProgram[WebGPUMemory]):
    """A shader's one entry point as a compute pipeline.

    Args:
      queue: where it will run.
      name: what to call it in messages.
      lib: the source.

    Raises:
      DeviceError: if the source is rejected, or asks for more than the device has.
    """

    def __init__(self, queue: Queue, name: str, lib: bytes) -> None:
        self.queue, self.name = queue, name
        self._layout = self._pipeline = 0
        source = lib.decode()
        notes = dict(_NOTE.findall(source))
        found = sorted((int(number), kind) for number, kind in _BINDING.findall(source))
        if [number for number, _ in found] != list(range(len(found))):
            raise WebGPUError(f"WebGPU: {name}: its bindings are not numbered 0, 1, 2 … in @group(0): {found}")
        kinds = [kind for _, kind in found]
        self._uniform = kinds.index("uniform") if "uniform" in kinds else None
        self._packed = list(map(int, notes.get("packed", "").split()))
        self._buffers = kinds.count("storage") - bool(self._packed) + len(self._packed)
        self._writes = (
            frozenset(map(int, notes["writes"].split())) if "writes" in notes else frozenset(range(self._buffers))
        )
        self._own = [slot for slot in range(self._buffers) if slot not in self._packed]
        self._numbered = "groups" in notes
        self._make(source, kinds)

    def _make(self, source: str, kinds: Sequence[str]) -> None:
        driver, library, api = self.queue.driver, self.queue.driver.library, self.queue.driver.api
        limit = driver.adapter.buffers
        if kinds.count("storage") > limit:
            raise WebGPUError(
                f"WebGPU: {self.name} has {kinds.count('storage')} storage buffers, a shader may have {limit} here"
            )
        entries = (api.BindGroupLayoutEntry * len(kinds))()
        for number, kind in enumerate(kinds):
            uniform = kind == "uniform"
            entries[number].binding, entries[number].visibility = number, api.ShaderStage_Compute
            entries[number].buffer.type = (
                api.BufferBindingType_Uniform if uniform else api.BufferBindingType_Storage
            )
            entries[number].buffer.hasDynamicOffset = uniform
        shader = driver.create_shader(source)
        layout = api.BindGroupLayoutDescriptor(entryCount=len(kinds), entries=entries)
        what = f"{self.name}: layout"
        self._layout = driver.attempt(
            what, lambda: library.wgpuDeviceCreateBindGroupLayout(driver.device, byref(layout))
        )
        layouts = (ctypes.c_void_p * 1)(self._layout)
        descriptor = api.PipelineLayoutDescriptor(
            bindGroupLayoutCount=1, bindGroupLayouts=ctypes.cast(layouts, ctypes.c_void_p)
        )
        whole = driver.attempt(what, lambda: library.wgpuDeviceCreatePipelineLayout(driver.device, byref(descriptor)))
        pipeline = api.ComputePipelineDescriptor(layout=whole, compute=api.ComputeState(module=shader))
        pipeline.compute.entryPoint.length = 2**64 - 1  # WGPU_STRLEN with a null pointer: the only entry point
        try:
            self._pipeline = driver.attempt(
                f"{self.name}: pipeline",
                lambda: library.wgpuDeviceCreateComputePipeline(driver.device, byref(pipeline)),
            )
        finally:
            with driver.lock:
                library.wgpuShaderModuleRelease(shader)
                library.wgpuPipelineLayoutRelease(whole)

    def launch(self, bufs: Sequence[WebGPUMemory], how: Launch) -> float | None:
        """Queues the shader, which tells the size of its work-groups itself.

        Raises:
          WebGPUError: if the launch is refused.
        """
        groups, _, vals, wait = how
        if not how.runs(f"WebGPU: {self.name}"):
            return how.idle
        queue = self.queue
        told = bool(vals or self._packed or self._numbered)
        if len(bufs) != self._buffers or told != (self._uniform is not None):
            raise WebGPUError(
                f"WebGPU: {self.name} takes {self._buffers} buffers and "
                f"{'some' if self._uniform is not None else 'no'} values; got {len(bufs)} and {len(vals)}"
            )
        with queue.driver.lock:
            ranges = _Ranges(queue, bufs)
            try:
                bindings = [ranges.range(slot, slot in self._writes) for slot in self._own]
                bases = ranges.pack(self._packed, self._writes) if self._packed else []
                values = [*bases, *(groups if self._numbered else ()), *vals]
                bindings += ranges.bound[len(bindings) :]
                if self._uniform is not None:
                    bindings.insert(self._uniform, (queue.arguments, 0, -(-4 * len(values) // 16) * 16))
                group = queue.bind_group(self._layout, tuple(bindings))
                seconds = queue.dispatch(self._pipeline, group, self._groups(groups), values, wait)
                ranges.copy_back()
            except WebGPUError as error:
                raise WebGPUError(f"kernel {self.name}: launch of {groups} workgroups: {error}") from None
            finally:
                ranges.release()
        return seconds

    def _groups(self, size: tuple[int, int, int]) -> tuple[int, int, int]:
        most = self.queue.driver.adapter.groups
        if max(size) <= most and not self._numbered:
            return size
        if not self._numbered:
            raise WebGPUError(f"no dimension may have more than {most}")
        count = size[0] * size[1] * size[2]
        return min(count, most), -(-count // most), 1

    def __del__(self) -> None:
        if getattr(self, "_pipeline", 0):
            with self.queue.driver.lock:
                self.queue.driver.library.wgpuComputePipelineRelease(self._pipeline)
        if getattr(self, "_layout", 0):
            self.queue.release_layout(self._layout)


class _Ranges:
    """The ranges of one launch; those that cannot be bound as they are, are copied and copied back.

    A range must begin at a multiple of the device's alignment, and no two of one launch may share bytes.
    """

    def __init__(self, queue: Queue, bufs: Sequence[WebGPUMemory]) -> None:
        self.queue, self.bufs = queue, bufs
        self.bound: list[Binding] = []
        self.back: list[tuple[int, int, WebGPUMemory]] = []
        self.made: list[int] = []

    def range(self, slot: int, written: bool) -> Binding:
        """The range of a buffer."""
        buf = self.bufs[slot]
        size = words(buf.nbytes)
        here = buf.handle, buf.begin, size
        free = buf.begin % self.queue.driver.adapter.alignment == 0 and not any(_overlap(here, b) for b in self.bound)
        if not free:
            here = self.make(size), 0, size
            self.fill(here[0], 0, buf, written)
        self.bound.append(here)
        return here

    def make(self, nbytes: int) -> int:
        """A buffer for this launch."""
        handle = self.queue.driver.create_buffer(nbytes, self.queue.storage_usage)
        self.made.append(handle)
        return handle

    def fill(self, handle: int, at: int, buf: WebGPUMemory, written: bool) -> None:
        """Copies a range to ``at`` in a buffer of this launch; what is written is copied back in the end."""
        copy(self.queue, WebGPUMemory(handle, buf.nbytes, at), buf)
        if written:
            self.back.append((handle, at, buf))

    def pack(self, slots: Sequence[int], writes: frozenset[int]) -> list[int]:
        """Binds the ranges of several slots one behind the other; returns the word where each begins."""
        places, end = [], 0
        for slot in slots:
            places.append(end)
            end += -(-max(self.bufs[slot].nbytes, 4) // 16) * 16
        handle = self.make(end)
        for slot, at in zip(slots, places, strict=True):
            self.fill(handle, at, self.bufs[slot], slot in writes)
        self.bound.append((handle, 0, end))
        return [at // 4 for at in places]

    def copy_back(self) -> None:
        """Queues the copies of what was written to where it belongs."""
        for handle, at, buf in self.back:
            copy(self.queue, buf, WebGPUMemory(handle, buf.nbytes, at))

    def release(self) -> None:
        """Gives up what was made."""
        for handle in self.made:
            self.queue.free(handle)


def _overlap(a: Binding, b: Binding) -> bool:
    return a[0] == b[0] and a[1] < b[1] + b[2] and b[1] < a[1] + a[2]


def copy(queue: Queue, dest: WebGPUMemory, src: WebGPUMemory) -> None:
    """Copies between ranges of different buffers: on the device in whole words, else through the host."""
    whole = not (dest.begin | src.begin) & 3
    # The padding of the last word is unused where the destination ends its buffer, or where the buffer is ours.
    if whole and (src.nbytes % 4 == 0 or dest.owner is None):
        queue.copy(dest.handle, dest.begin, src.handle, src.begin, words(src.nbytes))
        return
    raw: Any = bytearray(src.nbytes)
    queue.download(memoryview(raw), src.handle, src.begin)
    queue.upload(dest.handle, dest.begin, memoryview(raw), keep=True)
