"""A kernel in a CUDA module, launched on the device's stream."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

from tg_codegen.render import dynamic

from ...device.compiler import rejected
from ...device.launch import Launch, LoadedProgram
from ...errors import DeviceError
from ...headers.cuda import api
from ...host.locks import fork_safe_lock
from .context import Context
from .disassembly import ELF_MAGIC
from .memory import CUDAMemory

_LOG_BYTES = 16384
_ALIGNMENT = 16  # bytes at multiples of which vectors of a kernel may have to begin


class CUDAProgram(LoadedProgram[CUDAMemory]):
    """A kernel.

    Args:
      context: where it will run.
      name: the kernel's name.
      lib: PTX text, which the driver assembles, or a cubin.

    Attributes:
      function: ``CUfunction``.
      max_threads: most threads of a block, by the registers that the kernel takes.
      registers: how many each thread has.
      local_bytes: memory of each thread, where its registers do not suffice.
      shared_bytes: shared memory of a block, by its declaration.
      dynamic_bytes: shared memory of a block beside that, where it is more than a kernel can declare.
      parameters: how many arguments it takes; None where the driver does not tell.

    Raises:
      CompileError: if the driver rejects PTX text; it is kept in a file that the message names.
      DeviceError: if the driver does not take the binary, or it has no such kernel; the message holds the driver's log.
    """

    def __init__(self, context: Context, name: str, lib: bytes) -> None:
        self.context, self.name, self.lib = context, name, lib
        self.module = 0
        driver = context.driver
        context.enter()
        log = ctypes.create_string_buffer(_LOG_BYTES)
        options = (ctypes.c_int * 2)(api.JIT_ERROR_LOG, api.JIT_ERROR_LOG_BYTES)
        values = (ctypes.c_void_p * 2)(ctypes.addressof(log), _LOG_BYTES)
        module = ctypes.c_void_p()
        image = ctypes.create_string_buffer(lib)  # text must end with a NUL
        code = driver.cuModuleLoadDataEx(ctypes.byref(module), image, 2, options, values)
        if code:
            detail = log.value.decode(errors="replace").strip()
            if code == api.UNSUPPORTED_PTX_VERSION:
                detail += " (the compiler is newer than the driver: update the driver, or take an older NVRTC)"
            if code == api.INVALID_PTX and not lib.startswith(ELF_MAGIC):
                source = lib.decode(errors="replace")
                raise rejected(f"CUDA driver, kernel {name}", detail or driver.error_name(code), source, ".ptx")
            text = f"loading the binary of {name}"
            raise api.CUDAError(f"{text}: {detail}" if detail else text, code, driver.error_name(code))
        self.module = module.value or 0
        function = ctypes.c_void_p()
        driver.check(driver.cuModuleGetFunction(ctypes.byref(function), module, name.encode()), f"the kernel {name}")
        self.function = function.value or 0
        self.max_threads, self.registers, self.local_bytes, self.shared_bytes = (
            driver.number("cuFuncGetAttribute", attribute, self.function)
            for attribute in (api.FUNC_MAX_THREADS, api.FUNC_REGISTERS, api.FUNC_LOCAL_BYTES, api.FUNC_SHARED_BYTES)
        )
        self.dynamic_bytes = dynamic.wanted(name, lib)
        if self.dynamic_bytes:
            code = driver.cuFuncSetAttribute(self.function, api.FUNC_DYNAMIC_BYTES, self.dynamic_bytes)
            most = context.attribute(api.MOST_SHARED_PER_BLOCK)
            driver.check(code, f"kernel {name}: {self.dynamic_bytes} bytes of shared memory; {context.name} has {most}")
        self.parameters = self._count_parameters()
        self.vectors = lib.startswith(ELF_MAGIC) or b".v2." in lib or b".v4." in lib
        self._lock = fork_safe_lock()
        self._arguments: dict[tuple[int, int], Arguments] = {}
        self._moments: tuple[int, int] | None = None

    def launch(self, bufs: Sequence[CUDAMemory], how: Launch) -> float | None:
        """Queues the kernel.

        Raises:
          CUDAError: if the launch is refused, or, if it is waited for, the kernel failed.
          DeviceError: if it takes another number of arguments, or the sizes are none.
        """
        vals, wait = how.vals, how.wait
        given = len(bufs) + len(vals)
        if self.parameters not in (None, given):
            raise DeviceError(f"CUDA: kernel {self.name} takes {self.parameters} arguments, got {given}")
        if not how.runs(f"CUDA: kernel {self.name}"):
            return how.idle
        moved = [b for b in bufs if b.address % _ALIGNMENT] if self.vectors else []
        if moved:
            return self._aligned(moved, bufs, how)
        context, driver, order = self.context, self.context.driver, self.context.order
        blocks = [b.block for b in bufs]
        with self._lock:
            context.enter()
            order.before_kernel(blocks)
            arguments = self._arguments.get((len(bufs), len(vals)))
            if arguments is None:
                arguments = self._arguments[len(bufs), len(vals)] = Arguments(len(bufs), len(vals))
            arguments.set(bufs, vals)
            if wait:
                if self._moments is None:
                    self._moments = context.event(timed=True), context.event(timed=True)
                context.record(self._moments[0])
            code = driver.cuLaunchKernel(
                self.function, *how.groups, *how.items, self.dynamic_bytes, context.stream, arguments.pointers, None
            )
            if code:
                self._refused(code, how.groups, how.items)
            order.after_kernel(blocks)
            if not wait or self._moments is None:
                return None
            context.record(self._moments[1])
            return self._seconds(*self._moments)

    def _count_parameters(self) -> int | None:
        driver = self.context.driver
        if not driver.has("cuFuncGetParamInfo"):
            return None
        offset, nbytes, count = ctypes.c_size_t(), ctypes.c_size_t(), 0
        places = ctypes.byref(offset), ctypes.byref(nbytes)
        while driver.cuFuncGetParamInfo(self.function, count, *places) == api.SUCCESS:
            count += 1
        return count

    def blocks_at_once(self, threads: int) -> int:
        """How many blocks of so many threads a multiprocessor holds at a time: 0 if none fits."""
        name = "cuOccupancyMaxActiveBlocksPerMultiprocessor"
        return self.context.driver.number(name, self.function, threads, self.dynamic_bytes)

    def _refused(self, code: int, groups: tuple[int, int, int], threads: tuple[int, int, int]) -> None:
        reason = ""
        if threads[0] * threads[1] * threads[2] > self.max_threads:
            reason = f"; a block of it may have {self.max_threads} threads, of {self.registers} registers each"
        driver = self.context.driver
        what = f"kernel {self.name}: launch of {groups} blocks of {threads}{reason}"
        raise api.CUDAError(what, code, driver.error_name(code))

    def _seconds(self, start: int, end: int) -> float:
        context, driver = self.context, self.context.driver
        context.wait(end, f"kernel {self.name}: waiting for its end")
        milliseconds = ctypes.c_float()
        driver.check(driver.cuEventElapsedTime(ctypes.byref(milliseconds), start, end), f"timing on {context.name}")
        return milliseconds.value * 1e-3

    def _aligned(self, moved: Sequence[CUDAMemory], bufs: Sequence[CUDAMemory], how: Launch) -> float | None:
        """Vectors must lie at multiples of their size: parts that begin elsewhere are replaced by copies."""
        context, driver = self.context, self.context.driver
        context.enter()
        context.order.before_kernel([part.block for part in moved])
        copies: dict[tuple[int, int], CUDAMemory] = {}
        try:
            for part in moved:
                if (part.address, part.nbytes) not in copies:
                    place = ctypes.c_uint64()
                    code = driver.cuMemAlloc_v2(ctypes.byref(place), max(part.nbytes, 1))
                    driver.check(code, f"kernel {self.name}: a copy of a part of {part.nbytes} bytes")
                    copies[part.address, part.nbytes] = CUDAMemory(place.value, part.nbytes)
            for (address, nbytes), copy in copies.items():
                self._copy(copy.address, address, nbytes)
            chosen = [copies.get((b.address, b.nbytes), b) for b in bufs]
            seconds = self.launch(chosen, how)
            for (address, nbytes), copy in copies.items():
                self._copy(address, copy.address, nbytes)
            context.order.after_kernel([part.block for part in moved])
            return seconds
        finally:
            for copy in copies.values():
                driver.cuMemFree_v2(copy.address)

    def _copy(self, dest: int, src: int, nbytes: int) -> None:
        driver = self.context.driver
        code = driver.cuMemcpyDtoDAsync_v2(dest, src, nbytes, self.context.stream)
        driver.check(code, f"kernel {self.name}: copying {nbytes} bytes")

    def __del__(self) -> None:
        if getattr(self, "module", 0) and self.context.try_enter():
            self.context.driver.cuModuleUnload(self.module)
            for event in self.__dict__.get("_moments") or ():
                self.context.driver.cuEventDestroy_v2(event)


class Arguments:
    """The arguments of a launch, where the driver reads them.

    Attributes:
      pointers: array of pointers to each of them.
    """

    def __init__(self, buffers: int, values: int) -> None:
        self.addresses = (ctypes.c_uint64 * max(buffers, 1))()
        self.values = (ctypes.c_int32 * max(values, 1))()
        first, second = ctypes.addressof(self.addresses), ctypes.addressof(self.values)
        places = [first + 8 * i for i in range(buffers)] + [second + 4 * i for i in range(values)]
        self.pointers = (ctypes.c_void_p * max(len(places), 1))(*places)

    def set(self, bufs: Sequence[CUDAMemory], vals: Sequence[int]) -> None:
        """Puts the arguments in place."""
        addresses, values = self.addresses, self.values
        for place, buf in enumerate(bufs):
            addresses[place] = buf.address
        for place, value in enumerate(vals):
            values[place] = value
