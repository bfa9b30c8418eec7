"""CPUProgram: an object file in executable memory, called as a device program."""

from __future__ import annotations

import ctypes
import sys
import time
from collections.abc import Callable, Sequence

from ...device.launch import Launch, LoadedProgram
from ...device.limits import MAX_THREADS, ONE
from ...host.execmem import ExecutableMemory
from ...host.libc import HelperLibrary
from ...memory.host import HostMemory
from .fault import fault_table
from .pool import Pool, ir_compiler, pool

_WORD = 0xFFFFFFFFFFFFFFFF


class CPUProgram(LoadedProgram[HostMemory]):
    """A function of an object file, in memory that can be executed.

    It is called with the addresses of the buffers, then the variables, then, where it runs on several threads, the
    number of the thread; all are integers to the calling convention.

    Args:
      name: the function's name.
      lib: the object file.

    Attributes:
      helper_handle: of the class, too: the compiler's library of helpers, such as ``__clear_cache``.
      mem: the executable memory.
      fxn: the function, as ctypes calls it.

    Raises:
      elf.ELFError: if the object is damaged, or does not define the function.

    Example:
      >>> from tg_runtime import Device
      >>> cpu = Device["CPU"]
      >>> ir = "define void @fill(ptr %p, i32 %x) { store i32 %x, ptr %p ret void }"
      >>> from tg_runtime.backends.cpu.pool import ir_compiler
      >>> fill = CPUProgram("fill", ir_compiler().compile(ir))
      >>> block = cpu.allocator.alloc(4)
      >>> fill(block, vals=(7,))
      >>> bytes(cpu.allocator.as_buffer(block, 4))
      b'\\x07\\x00\\x00\\x00'
    """

    helper_handle = HelperLibrary()

    def __init__(self, name: str, lib: bytes) -> None:
        self.name, self.lib = name, lib
        self.memory = ExecutableMemory(lib)
        self.mem = self.memory.mem
        self.address = self.memory.function(name)
        self._by_arity: dict[int, ctypes._FuncPointer] = {}
        self.pool: Pool | None = pool()
        self._faults = fault_table(ir_compiler())
        self._row = -1 if self._faults is None else self._faults.add(name, self.memory.address, len(self.mem))

    def __del__(self, finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        if not finalizing() and getattr(self, "_row", -1) >= 0 and self._faults is not None:
            self._faults.remove(self._row)

    @property
    def fxn(self) -> ctypes._FuncPointer:
        """The function without declared arguments."""
        return ctypes.CFUNCTYPE(None)(self.address)

    def direct(self, buffers: int) -> Callable[..., object]:
        """What runs the function on one thread: the function itself, called with the addresses of its buffers."""
        return self._function(buffers)

    def _function(self, arity: int) -> ctypes._FuncPointer:
        found = self._by_arity.get(arity)
        if found is None:
            found = self._by_arity[arity] = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * arity)(self.address)
        return found

    def launch(self, bufs: Sequence[HostMemory], how: Launch) -> float | None:
        """Runs the function to its end, on as many threads as there are groups along x.

        Raises:
          DeviceError: if there are too many threads, or other sizes than ones.
        """
        groups, items, vals, wait = how
        threads = 1
        if groups != ONE or items != ONE:
            threads = how.threads(f"CPU: kernel {self.name}", MAX_THREADS)
            if threads == 0:
                return how.idle
        words = [b.address for b in bufs]
        if vals:
            words += [v & _WORD for v in vals]
        start = time.perf_counter() if wait else 0.0
        if threads == 1:
            function = self._by_arity.get(len(words)) or self._function(len(words))
            function(*words)
        else:
            self._on_threads(words, threads)
        return time.perf_counter() - start if wait else None

    def _on_threads(self, words: list[int], threads: int) -> None:
        if self.pool is None:
            function = self._function(len(words) + 1)
            for core in range(threads):
                function(*words, core)
            return
        if not self.pool.started:
            self.pool.start()
        arguments = (ctypes.c_uint64 * len(words))(*words)
        entry = (ctypes.c_uint64 * 4)(
            self.pool.thunk(len(words)), self.address, ctypes.addressof(arguments), threads
        )  # fmt: skip
        self.pool.run_table(self.pool.address, ctypes.addressof(entry), 1)
