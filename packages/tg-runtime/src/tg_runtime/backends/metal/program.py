"""MSL to a library of Metal's compiler, and a kernel of it as a program that can be launched."""

from __future__ import annotations

import ctypes
import re
from collections import OrderedDict
from collections.abc import Sequence
from ctypes import byref, c_void_p
from functools import partial
from time import perf_counter_ns

from tg_codegen.render.c.msl import function_name

from ...device.compiler import Compiler, rejected
from ...device.launch import Launch, LoadedProgram
from ...host.locks import fork_safe_lock
from ...telemetry.profiler import PROFILE, launch
from ...telemetry.profiler import Launch as Told
from . import api
from .context import Context
from .memory import MetalMemory
from .objc import Size
from .queue import Queue

_LIBRARIES = 16  # that were compiled and not yet loaded
_NANOSECONDS = 1e9


class MetalCompiler(Compiler):
    """Compiles MSL for one device, without fast math.

    What Metal makes of a source is an object of this process, and there is a cache of the system's own behind it: the
    binary that we keep is the source.

    Args:
      context: the device.
    """

    def __init__(self, context: Context) -> None:
        super().__init__(None)
        self.context = context
        self._lock = fork_safe_lock()
        self._libraries: OrderedDict[bytes, int] = OrderedDict()

    def compile(self, src: str) -> bytes:
        """The source, once Metal's compiler has taken it.

        Raises:
          CompileError: if it is rejected; the message names the file in which it is kept, and the line.
        """
        text = src.encode()
        library = self._build(src)
        objc = self.context.objc
        with self._lock:
            self._libraries[text] = library
            old = [self._libraries.popitem(last=False)[1]] if len(self._libraries) > _LIBRARIES else []
        for handle in old:
            objc.send(handle, "release")
        return text

    def take(self, lib: bytes) -> int:
        """The ``MTLLibrary`` of a source, which the caller releases.

        Raises:
          CompileError: if Metal's compiler rejects it.
        """
        with self._lock:
            found = self._libraries.pop(lib, None)
        return found if found is not None else self._build(lib.decode())

    def _build(self, src: str) -> int:
        context, objc = self.context, self.context.objc
        context.enter()
        with objc.pool():
            options = objc.new("MTLCompileOptions")
            try:
                if objc.responds(options, "setMathMode:"):
                    objc.send(options, "setMathMode:", api.MATH_SAFE)
                else:
                    objc.send(options, "setFastMathEnabled:", False)
                error = c_void_p()
                library: int | None = objc.send(
                    context.handle, "newLibraryWithSource:options:error:", objc.string(src), options, byref(error)
                )
                if not library:  # with one, there may be warnings
                    reason = objc.reason(error.value) or "Metal gives no reason"
                    raise rejected(f"Metal on {context.name}", reason, src, ".metal")
                return library
            finally:
                objc.send(options, "release")

    def __del__(self) -> None:
        for handle in getattr(self, "_libraries", {}).values():
            if self.context.mine:
                self.context.objc.send(handle, "release")


class MetalProgram(LoadedProgram[MetalMemory]):
    """A kernel of a library.

    Args:
      queue: where it will run.
      compiler: what makes libraries.
      name: the kernel's name.
      lib: the source.

    Attributes:
      pipeline: ``MTLComputePipelineState``.
      max_threads: most threads of a threadgroup, by the registers that the kernel takes.
      arguments: buffers that it takes, its variables being one; None if the source is not read so easily.

    Raises:
      MetalError: if there is no such kernel, or the device cannot run it.
    """

    def __init__(self, queue: Queue, compiler: MetalCompiler, name: str, lib: bytes) -> None:
        self.queue, self.name, self.lib = queue, name, lib
        self.pipeline = 0
        self._sizes: dict[tuple[int, int, int], Size] = {}
        objc = self.objc = queue.objc
        library = compiler.take(lib)
        with objc.pool():
            function = objc.send(library, "newFunctionWithName:", objc.string(function_name(name)))
            objc.send(library, "release")
            if not function:
                raise api.MetalError(f"Metal: the source has no kernel {name}")
            descriptor = objc.new("MTLComputePipelineDescriptor")
            objc.send(descriptor, "setComputeFunction:", function)
            objc.send(descriptor, "setSupportIndirectCommandBuffers:", True)
            error = c_void_p()
            selector = "newComputePipelineStateWithDescriptor:options:reflection:error:"
            found = objc.send(queue.context.handle, selector, descriptor, 0, None, byref(error))
            objc.send(descriptor, "release")
            objc.send(function, "release")
            if not found:
                raise api.MetalError(f"Metal: {queue.context.name} cannot run {name}: {objc.reason(error.value)}")
            self.pipeline = found
        signature = re.search(rf"\bkernel\s+void\s+{re.escape(function_name(name))}\s*\(([^{{]*)\{{", lib.decode())
        self.arguments = signature[1].count("[[buffer(") if signature else None
        self.max_threads = int(objc.send(self.pipeline, "maxTotalThreadsPerThreadgroup"))

    def launch(self, bufs: Sequence[MetalMemory], how: Launch) -> float | None:
        """Records the kernel.

        Raises:
          MetalError: if a threadgroup is too large, the kernel takes other arguments, or, if it is waited for, it
            failed.
        """
        vals, wait = how.vals, how.wait
        if 0 not in how.items and not how.runs(f"Metal: kernel {self.name}"):
            return how.idle
        self.check(how.groups, how.items)
        if self.arguments is not None and len(bufs) + bool(vals) != self.arguments:
            raise api.MetalError(
                f"Metal: kernel {self.name} takes {self.arguments} buffers, its variables being one; "
                f"got {len(bufs)} and {len(vals)} variables"
            )
        record = partial(self._record, bufs, how)
        told = launch() if PROFILE.value else None
        if told is None and not wait:
            record()
            return None
        queue = self.queue
        with queue.lock:
            before = perf_counter_ns()
            handle = queue.alone(record)
            if told is not None:
                if wait:
                    self.objc.send(handle, "retain")  # released by the last reader of its times
                self._tell(told, handle, before)
        if not wait:
            return None
        start, end = queue.times(handle)
        return end - start

    def check(self, groups: tuple[int, int, int], threads: tuple[int, int, int]) -> None:
        """Refuses a launch that the device cannot do; Metal would end the process.

        Raises:
          MetalError: if it cannot.
        """
        if threads[0] * threads[1] * threads[2] > self.max_threads or 0 in threads:
            raise api.MetalError(
                f"Metal: kernel {self.name}: launch of {groups} threadgroups of {threads}; a threadgroup of it may "
                f"have {self.max_threads} threads"
            )

    def size(self, size: tuple[int, int, int]) -> Size:
        """An ``MTLSize``."""
        found = self._sizes.get(size)
        if found is None:
            if len(self._sizes) > 64:
                self._sizes.clear()
            found = self._sizes[size] = Size(*size)
        return found

    def _record(self, bufs: Sequence[MetalMemory], how: Launch) -> None:
        groups, threads, vals, _ = how
        queue, send = self.queue, self.objc.send
        with queue.lock, self.objc.pool():
            encoder = queue.encoder()
            number = queue.number
            send(encoder, "setComputePipelineState:", self.pipeline)
            for index, buf in enumerate(bufs):
                buf.block.used = number
                send(encoder, "setBuffer:offset:atIndex:", buf.handle, buf.begin, index)
            if vals:
                values = (ctypes.c_int32 * len(vals))(*vals)
                send(encoder, "setBytes:length:atIndex:", ctypes.addressof(values), 4 * len(vals), len(bufs))
            send(encoder, "dispatchThreadgroups:threadsPerThreadgroup:", self.size(groups), self.size(threads))
            queue.recorded(self.name)

    def _tell(self, told: Told, handle: int, before: int) -> None:
        """Has the profiler ask for the times of a launch."""
        queue = self.queue

        def resolve() -> None:
            start, end = (int(moment * _NANOSECONDS) for moment in queue.times(handle))
            queue.clock.sample(before, start, None)
            queue.clock.sample(None, end, perf_counter_ns())
            told.on_device("queue", start, end, queue.clock)

        told.later(resolve)

    def __del__(self) -> None:
        if getattr(self, "pipeline", 0) and self.queue.context.mine:
            self.objc.send(self.pipeline, "release")
