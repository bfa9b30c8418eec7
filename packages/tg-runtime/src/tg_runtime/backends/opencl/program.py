"""OpenCL C to a device binary, and a binary as a program that can be launched."""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from time import perf_counter_ns

from ...device.compiler import Compiler, rejected
from ...device.launch import Launch, LoadedProgram
from ...telemetry.profiler import PROFILE, Value, launch
from ...telemetry.profiler import Launch as Told
from . import api
from .memory import CLMemory
from .queue import Queue

_POCL = "Portable Computing Language"


class CLCompiler(Compiler):
    """Builds OpenCL C for one device.

    Args:
      queue: of the device.
      options: build options, as ``clBuildProgram`` takes them.
    """

    def __init__(self, queue: Queue, options: str = "") -> None:
        physical = queue.physical
        if physical.platform == _POCL:
            # PoCL's own cache of kernels looks at options, not at the environment
            options = f"{options} -DWORK_GROUP_METHOD_{os.environ.get(api.METHOD)}".lstrip()
        self.queue, self.options = queue, options
        super().__init__(f"cl:{physical.platform}:{physical.name}:{physical.driver}:{options}")

    def compile(self, src: str) -> bytes:
        """The device's binary.

        Raises:
          CompileError: if the source is rejected; it is kept in a file that the message names.
        """
        cl, status, device = api.library(), ctypes.c_int32(), self.queue.physical.handle
        text = src.encode()
        program = cl.clCreateProgramWithSource(
            self.queue.context, 1, (ctypes.c_char_p * 1)(text), (ctypes.c_size_t * 1)(len(text)), ctypes.byref(status)
        )
        api.check(status.value, "a program from source")
        try:
            code = cl.clBuildProgram(program, 1, (ctypes.c_void_p * 1)(device), self.options.encode(), None, None)
            if code != api.SUCCESS:
                log = api.info_text("clGetProgramBuildInfo", (program, device), api.PROGRAM_BUILD_LOG)
                raise rejected(f"OpenCL on {self.queue.physical.name}", log or f"status {code}", src, ".cl")
            size = api.info_number("clGetProgramInfo", (program,), api.PROGRAM_BINARY_SIZES)
            binary = ctypes.create_string_buffer(size)
            pointers = (ctypes.c_void_p * 1)(ctypes.addressof(binary))
            code = cl.clGetProgramInfo(program, api.PROGRAM_BINARIES, ctypes.sizeof(pointers), pointers, None)
            api.check(code, "the program's binary")
            return binary.raw
        finally:
            cl.clReleaseProgram(program)


Part = tuple[str, Mapping[str, Value]]
"""Name and facts of a launch that is a part of a step."""


class CLProgram(LoadedProgram[CLMemory]):
    """A kernel of a binary.

    Args:
      queue: where it will run.
      name: the kernel's name.
      lib: the device's binary.

    Raises:
      DeviceError: if the binary does not load, or has no such kernel.
    """

    def __init__(self, queue: Queue, name: str, lib: bytes) -> None:
        cl, status, found = api.library(), ctypes.c_int32(), ctypes.c_int32()
        self.queue, self.name, self.lib = queue, name, lib
        self.kernel = 0
        # Setting arguments and launching are one step: a kernel object has one set of arguments.
        self._lock = threading.Lock()
        devices = (ctypes.c_void_p * 1)(queue.physical.handle)
        self.program: int = cl.clCreateProgramWithBinary(
            queue.context, 1, devices, (ctypes.c_size_t * 1)(len(lib)), (ctypes.c_char_p * 1)(lib),
            ctypes.byref(found), ctypes.byref(status),
        )  # fmt: skip
        if status.value != api.SUCCESS or found.value != api.SUCCESS:
            raise api.CLError(f"loading the binary of {name}", status.value or found.value)
        api.check(cl.clBuildProgram(self.program, 1, devices, None, None, None), f"loading the binary of {name}")
        self.kernel = cl.clCreateKernel(self.program, name.encode(), ctypes.byref(status))
        api.check(status.value, f"the kernel {name}")

    def launch(self, bufs: Sequence[CLMemory], how: Launch, part: Part | None = None) -> float | None:
        """Queues the kernel.

        Args:
          bufs: memory of the device's allocator.
          how: sizes, values, and whether to wait.
          part: what a profile shows of it, where the launch is a part of the step that is shown.

        Returns:
          Seconds that the kernel ran, if it was waited for.

        Raises:
          CLError: if the launch is refused.
          DeviceError: if its sizes are none.
        """
        groups, per_group, vals, wait = how
        if not how.runs(f"OpenCL: kernel {self.name}"):
            return how.idle
        cl = api.library()
        items = (ctypes.c_size_t * 3)(*(g * n for g, n in zip(groups, per_group, strict=True)))
        group = (ctypes.c_size_t * 3)(*per_group)
        event = ctypes.c_void_p()
        told = launch() if PROFILE.value else None
        timed = wait or told is not None
        with self._lock:
            for index, buf in enumerate(bufs):
                self._check(buf.bind(self.queue, self.kernel, index), f"argument {index} of {len(bufs) + len(vals)}")
            for index, value in enumerate(vals, len(bufs)):
                number = ctypes.c_int32(value)
                code = cl.clSetKernelArg(self.kernel, index, 4, ctypes.byref(number))
                self._check(code, f"argument {index} of {len(bufs) + len(vals)}, the value {value}")
            before = perf_counter_ns() if timed else 0
            code = cl.clEnqueueNDRangeKernel(
                self.queue.handle, self.kernel, 3, None, items, group, 0, None, ctypes.byref(event) if timed else None
            )
            after = perf_counter_ns() if timed else 0
            self._check(code, f"launch of {groups} groups of {per_group}")
            for buf in bufs:
                if buf.detached:
                    buf.attach(self.queue)
            reached = self.queue.queued()
            for buf in bufs:
                root = buf.root
                root.used = max(root.used, reached)
        if told is not None:
            if wait:
                cl.clRetainEvent(event)  # the profiler and this call release one reference each
            self._tell(told, event, before, after, part)
        if not wait:
            # Without it some drivers hold commands back until someone waits.
            cl.clFlush(self.queue.handle)
            return None
        return self._seconds(event)

    def _tell(self, told: Told, event: ctypes.c_void_p, before: int, after: int, part: Part | None) -> None:
        """Has the profiler ask for the times of a launch, which the host queued between two moments."""
        cl, clock = api.library(), self.queue.clock
        handle = event.value
        assert handle is not None

        def resolve() -> None:
            try:
                self._check(cl.clWaitForEvents(1, ctypes.byref(event)), "waiting for its end")
                queued, start, end = (
                    api.info_number("clGetEventProfilingInfo", (handle,), moment)
                    for moment in (api.PROFILING_COMMAND_QUEUED, api.PROFILING_COMMAND_START, api.PROFILING_COMMAND_END)
                )
                clock.sample(before, queued, after)
                name, args = part or (None, None)
                told.on_device("queue", start, end, clock, name, args)
            finally:
                cl.clReleaseEvent(event)

        told.later(resolve)

    def _check(self, code: int, what: str) -> None:
        if code != api.SUCCESS:
            raise self.queue.failed(code, f"kernel {self.name}: {what}")

    def _seconds(self, event: ctypes.c_void_p) -> float:
        start, end = tell_times(self.queue, event, f"kernel {self.name}")
        return (end - start) * 1e-9

    def another_kernel(self) -> int:
        """A kernel object of the same program, with arguments of its own."""
        status = ctypes.c_int32()
        found: int = api.library().clCreateKernel(self.program, self.name.encode(), ctypes.byref(status))
        self._check(status.value, "another object of it")
        return found

    def release_kernel(self, kernel: int) -> None:
        """Releases what :meth:`another_kernel` returned."""
        if self.queue.alive:
            api.library().clReleaseKernel(kernel)

    def __del__(self, library: Callable[[], ctypes.CDLL] = api.library) -> None:
        # bound as a default because the module's names are gone when the interpreter ends
        if not getattr(self, "program", 0) or not self.queue.alive:
            return
        if self.kernel:
            library().clReleaseKernel(self.kernel)
        library().clReleaseProgram(self.program)


def tell_times(queue: Queue, event: ctypes.c_void_p, what: str) -> tuple[int, int]:
    """Begin and end of what an event stands for, in nanoseconds of the device; waits for it, and drops the event.

    Raises:
      DeviceError: if it failed.
    """
    cl = api.library()
    try:
        code = queue.wait(event)
        if code:
            raise queue.failed(code, f"{what}: waiting for its end", waited=True)
        assert event.value is not None
        start, end = (
            api.info_number("clGetEventProfilingInfo", (event.value,), moment)
            for moment in (api.PROFILING_COMMAND_START, api.PROFILING_COMMAND_END)
        )
        return start, end
    finally:
        cl.clReleaseEvent(event)
