"""The worker pool and the thunks, loaded: started when a kernel first wants threads, remade in a forked child."""

from __future__ import annotations

import atexit
import ctypes
import functools
import os
import signal
import threading
import time

from tg_lazy import ContextVar

from ...compilers import clang, llvm
from ...device.compiler import Compiler
from ...host.execmem import ExecutableMemory
from ...host.libc import libc
from ...host.locks import fork_safe_lock
from ...host.processor import core_count
from ...host.tools import c_compiler
from . import native

SPIN: ContextVar[int] = ContextVar("CPU_SPIN", 400)
"""For how many microseconds a worker looks for work before it sleeps; to wake it takes tens of them.

From one launch to the next an eager program takes 100 to 300, in which Python builds a graph and recognises it. Others
wait longer: LLVM's OpenMP for 200 ms (`KMP_BLOCKTIME`).
"""

_ADDRESS = ctypes.c_void_p
_TIMED_TURNS = 500
_PREPARED_THUNKS = 24


@functools.cache
def ir_compiler() -> Compiler | None:
    """What compiles LLVM IR here: llvmlite, else clang, else nothing."""
    if llvm.available():
        return llvm.LLVMCompiler(by_hand=True)
    if c_compiler() is not None:
        return clang.ClangCompiler(language="ir")
    return None


class Pool:
    """Native dispatch: runs tables of launches, over as many threads as each wants.

    Attributes:
      threads: how many threads there are with the caller's.
      address: address of the pool's block, the first argument of the native functions.
      loop: address of the native function that runs a loop as a launch.
      home: address of the word that holds :attr:`address`, which is another one in a forked child.
      pauses: spins for a number of turns.
    """

    def __init__(self, compiler: Compiler, threads: int) -> None:
        self.threads = threads if native.supported() else 1
        self._compiler = compiler
        source = "\n".join(native.thunk_source(n) for n in range(_PREPARED_THUNKS + 1))
        if native.supported():
            source = native.pool_source() + source
        self._code = [self._load(source)]
        functions = self._code[0].functions
        self._thunks = {n: functions[f"thunk_{n}"] for n in range(_PREPARED_THUNKS + 1)}
        self.run_table = ctypes.CFUNCTYPE(None, _ADDRESS, _ADDRESS, ctypes.c_uint64)(functions["run_table"])
        self.replay = ctypes.CFUNCTYPE(None, _ADDRESS, _ADDRESS)(functions["replay"])
        self.repeat = ctypes.CFUNCTYPE(
            ctypes.c_int64, _ADDRESS, _ADDRESS, _ADDRESS, ctypes.c_uint64, ctypes.c_int64, ctypes.c_int64, _ADDRESS
        )(functions["repeat"])
        self.loop = functions["loop"]
        self._home = ctypes.c_uint64()
        self.home = ctypes.addressof(self._home)
        self._worker, self._stop = functions["worker"], ctypes.CFUNCTYPE(None, _ADDRESS)(functions["stop"])
        self.pauses = ctypes.CFUNCTYPE(None, ctypes.c_uint64)(functions["pauses"])
        self._turns_per_us = self._timed()
        self._lock = threading.Lock()
        self._workers: list[ctypes.c_ulong] = []
        self._new_block()

    def _timed(self) -> float:
        """Iterations of the spin loop in a microsecond: the fastest of several tries, as others may interrupt."""
        tries = []
        for _ in range(5):
            start = time.perf_counter_ns()
            self.pauses(_TIMED_TURNS)
            tries.append(time.perf_counter_ns() - start)
        return 1e3 * _TIMED_TURNS / max(min(tries), 1)

    def _load(self, source: str) -> ExecutableMemory:
        return ExecutableMemory(self._compiler.compile_cached(source))

    def _new_block(self) -> None:
        self._memory = ctypes.create_string_buffer(native.POOL_BYTES + 64)
        self.address = (ctypes.addressof(self._memory) + 63) // 64 * 64
        ctypes.c_uint32.from_address(self.address + native.SPIN).value = self.turns(SPIN.value)
        self._home.value = self.address
        self.started = self.threads == 1

    def turns(self, microseconds: int) -> int:
        """Iterations of the spin loop that last that long."""
        return min(max(round(microseconds * self._turns_per_us), 0), 0xFFFFFFFF)

    def thunk(self, arity: int) -> int:
        """The address of the thunk for kernels with ``arity`` arguments."""
        found = self._thunks.get(arity)
        if found is None:
            self._code.append(self._load(native.thunk_source(arity)))
            found = self._thunks[arity] = self._code[-1].function(f"thunk_{arity}")
        return found

    def start(self) -> None:
        """Starts the workers, unless they run. Where the system gives fewer threads, there are fewer."""
        with self._lock:
            if self.started:
                return
            create = libc().pthread_create
            create.argtypes = (ctypes.POINTER(ctypes.c_ulong), _ADDRESS, _ADDRESS, _ADDRESS)
            # signals go to Python's threads, except those that a kernel itself causes
            own = {signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL}
            mask = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals() - own)
            try:
                for _ in range(self.threads - 1):
                    thread = ctypes.c_ulong()
                    if create(ctypes.byref(thread), None, self._worker, self.address) != 0:
                        break
                    self._workers.append(thread)
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            ctypes.c_uint32.from_address(self.address + native.WORKERS).value = len(self._workers)
            self.started = True

    def close(self) -> None:
        """Stops the workers and waits until they have ended; the next launch with threads starts them again."""
        with self._lock:
            if not self._workers:
                return
            ctypes.c_uint32.from_address(self.address + native.WORKERS).value = 0
            self._stop(self.address)
            join = libc().pthread_join
            join.argtypes = (ctypes.c_ulong, _ADDRESS)
            for thread in self._workers:
                join(thread, None)
            self._workers.clear()
            self._new_block()

    def forked(self) -> None:
        """Forgets the parent's threads, which a forked child does not have."""
        self._lock = threading.Lock()
        self._workers = []
        self._new_block()


_pools: list[Pool] = []
_making = fork_safe_lock()


def pool() -> Pool | None:
    """The pool of this process; None where nothing can compile it."""
    if _pools:
        return _pools[0]
    with _making:
        if not _pools:
            compiler = ir_compiler()
            if compiler is None or not native.supported():
                return None
            _pools.append(Pool(compiler, core_count()))
            atexit.register(_pools[0].close)
    return _pools[0]


def pool_threads() -> int:
    """How many threads the pool has, which this does not make; 0 where nothing can compile it."""
    return core_count() if native.supported() and ir_compiler() is not None else 0


def _after_fork() -> None:
    for one in _pools:
        one.forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
