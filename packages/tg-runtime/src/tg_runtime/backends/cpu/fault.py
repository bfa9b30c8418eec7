"""Faults inside kernels: the process prints the name of the kernel before it dies.

A handler of SIGSEGV, SIGBUS, SIGFPE and SIGILL looks up the interrupted instruction among the loaded kernels. It is
native code and calls nothing but ``write`` and ``sigaction``; afterwards whoever handled the signal before gets it, as
the instruction is executed again.

Offsets of the interrupted instruction in ``ucontext_t``: Linux, ``arch/*/include/uapi/asm/sigcontext.h``.
"""

from __future__ import annotations

import ctypes
import platform
import signal
import sys
import threading
from collections.abc import Callable

from ...device.compiler import Compiler
from ...host.execmem import ExecutableMemory
from ...host.libc import libc
from ...host.locks import fork_safe_lock
from .native import HANDLER_STACK_BYTES

_PC = {"x86_64": 168, "aarch64": 440}
_SIGNALS = (signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL)
_WORDS = 4  # of an entry: first and last address of the code, where its message is, and how long that is
_SA_SIGINFO, _SA_ONSTACK = 4, 0x08000000
_ACTION_BYTES = 256
_PLACE = 0x7461626C65207467  # a placeholder in the code for the address of the words


class _Action(ctypes.Structure):
    """``struct sigaction`` of glibc and musl on 64-bit Linux."""

    _fields_ = [
        ("handler", ctypes.c_void_p),
        ("mask", ctypes.c_uint64 * 16),
        ("flags", ctypes.c_int),
        ("restorer", ctypes.c_void_p),
    ]


class _Stack(ctypes.Structure):
    """``stack_t``."""

    _fields_ = [("address", ctypes.c_void_p), ("flags", ctypes.c_int), ("nbytes", ctypes.c_size_t)]


_SS_DISABLE = 2


class _Own:
    """A stack of this thread's, which the system forgets when the thread's local values go, that is in this thread."""

    def __init__(self) -> None:
        self.memory = (ctypes.c_char * HANDLER_STACK_BYTES)()
        self.call = libc().sigaltstack
        self.none = _Stack(None, _SS_DISABLE, 0)
        self.call(ctypes.byref(_Stack(ctypes.addressof(self.memory), 0, HANDLER_STACK_BYTES)), None)

    def __del__(self, byref: Callable[..., object] = ctypes.byref) -> None:
        self.call(byref(self.none), None)


class _Stacks(threading.local):
    own: _Own | None = None


_stacks = _Stacks()


def stack_for_handlers() -> None:
    """Gives this thread a stack for handlers of signals, unless it has one: who has run out of stack has no other."""
    if _stacks.own is not None:
        return
    found = _Stack()
    if libc().sigaltstack(None, ctypes.byref(found)) != 0 or not found.flags & _SS_DISABLE:
        return
    _stacks.own = _Own()


def handler_source(machine: str) -> str:
    """LLVM IR of ``fault``: the handler. Where its words are is put in the place of a number in its data."""
    return _HANDLER.replace("$PC", str(_PC[machine])).replace("$WHERE", str(_PLACE))


_HANDLER = """
declare i64 @write(i32, ptr, i64)
declare i32 @sigaction(i32, ptr, ptr)

; words: 0 address of the table, 1 entries in it, 2 address of the former actions, 3 and 4 text between, and its length
define private void @address(ptr %at, i64 %number) nounwind {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %shift.i = sub i64 15, %i
  %shift = mul i64 %shift.i, 4
  %moved = lshr i64 %number, %shift
  %digit = and i64 %moved, 15
  %small = icmp ult i64 %digit, 10
  %base = select i1 %small, i64 48, i64 87
  %char64 = add i64 %digit, %base
  %char = trunc i64 %char64 to i8
  %place = getelementptr i8, ptr %at, i64 %i
  store i8 %char, ptr %place
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, 16
  br i1 %more, label %loop, label %end
end:
  ret void
}

define private void @report(i32 %signal, ptr %info, ptr %context, ptr %words) nounwind {
entry:
  %digits = alloca [16 x i8]
  %pc.p = getelementptr i8, ptr %context, i64 $PC
  %pc = load i64, ptr %pc.p
  %table = load ptr, ptr %words
  %count.p = getelementptr i64, ptr %words, i64 1
  %count = load i64, ptr %count.p
  %any = icmp ne i64 %count, 0
  br i1 %any, label %loop, label %end
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %further ]
  %row = getelementptr [4 x i64], ptr %table, i64 %i
  %last.p = getelementptr i64, ptr %row, i64 1
  %first = load i64, ptr %row
  %last = load i64, ptr %last.p
  %above = icmp uge i64 %pc, %first
  %below = icmp ult i64 %pc, %last
  %inside = and i1 %above, %below
  br i1 %inside, label %found, label %further
further:
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %count
  br i1 %more, label %loop, label %end
found:
  %text.p = getelementptr i64, ptr %row, i64 2
  %length.p = getelementptr i64, ptr %row, i64 3
  %text = load ptr, ptr %text.p
  %length = load i64, ptr %length.p
  call i64 @write(i32 2, ptr %text, i64 %length)
  %at.p = getelementptr i8, ptr %info, i64 16
  %at = load i64, ptr %at.p
  call void @address(ptr %digits, i64 %at)
  call i64 @write(i32 2, ptr %digits, i64 16)
  %tail.p = getelementptr i64, ptr %words, i64 3
  %tail = load ptr, ptr %tail.p
  %tail.length.p = getelementptr i64, ptr %words, i64 4
  %tail.length = load i64, ptr %tail.length.p
  call i64 @write(i32 2, ptr %tail, i64 %tail.length)
  br label %end
end:
  %olds.p = getelementptr i64, ptr %words, i64 2
  %olds = load ptr, ptr %olds.p
  %wide = sext i32 %signal to i64
  %offset = mul i64 %wide, 256
  %old = getelementptr i8, ptr %olds, i64 %offset
  call i32 @sigaction(i32 %signal, ptr %old, ptr null)
  ret void
}

@where = private constant i64 $WHERE

define void @fault(i32 %signal, ptr %info, ptr %context) nounwind {
  %number = load volatile i64, ptr @where
  %words = inttoptr i64 %number to ptr
  call void @report(i32 %signal, ptr %info, ptr %context, ptr %words)
  ret void
}
"""


class FaultTable:
    """The kernels that the handler knows; made once a process.

    Args:
      compiler: of LLVM IR.
    """

    def __init__(self, compiler: Compiler) -> None:
        self._words = (ctypes.c_uint64 * 5)()
        self._rows = (ctypes.c_uint64 * (_WORDS * 64))()
        self._texts: dict[int, ctypes.Array[ctypes.c_char]] = {}
        self._free: list[int] = []
        self._lock = fork_safe_lock()
        self._tail = ctypes.create_string_buffer(
            b", which is not its memory or not allowed.\nIf its source is yours, so is the fault; "
            b"otherwise report it, with what DEBUG=5 prints.\n"
        )
        self._olds = (ctypes.c_char * (_ACTION_BYTES * 65))()
        self._words[0] = ctypes.addressof(self._rows)
        self._words[2] = ctypes.addressof(self._olds)
        self._words[3], self._words[4] = ctypes.addressof(self._tail), len(self._tail) - 1
        place, address = (n.to_bytes(8, "little") for n in (_PLACE, ctypes.addressof(self._words)))
        lib = compiler.compile_cached(handler_source(platform.machine()))
        self._code = ExecutableMemory(lib.replace(place, address))
        action = _Action(self._code.function("fault"), flags=_SA_SIGINFO | _SA_ONSTACK)
        for number in _SIGNALS:
            old = ctypes.byref(self._olds, _ACTION_BYTES * number)
            libc().sigaction(int(number), ctypes.byref(action), old)

    def add(self, name: str, first: int, nbytes: int) -> int:
        """Makes a kernel known; returns the number by which to remove it."""
        stack_for_handlers()
        text = ctypes.create_string_buffer(
            f"\ntinytg: the kernel {name} of the CPU was stopped by the processor at the address 0x".encode()
        )
        with self._lock:
            if self._free:
                row = self._free.pop()
            else:
                row = self._words[1]
                if _WORDS * (row + 1) > len(self._rows):
                    self._grow()
            at = _WORDS * row
            self._rows[at + 2], self._rows[at + 3] = ctypes.addressof(text), len(text) - 1
            self._rows[at], self._rows[at + 1] = first, first + nbytes
            self._words[1] = max(self._words[1], row + 1)
            self._texts[row] = text
        return row

    def _grow(self) -> None:
        larger = (ctypes.c_uint64 * (2 * len(self._rows)))(*self._rows)
        self._words[0] = ctypes.addressof(larger)
        self._rows = larger

    def remove(self, row: int) -> None:
        """Forgets a kernel, whose code is about to go."""
        with self._lock:
            self._rows[_WORDS * row] = self._rows[_WORDS * row + 1] = 0
            del self._texts[row]
            self._free.append(row)


_tables: list[FaultTable | None] = []
_making = fork_safe_lock()


def fault_table(compiler: Compiler | None) -> FaultTable | None:
    """The table of this process; None where there is no handler: elsewhere than on Linux, and without a compiler."""
    if not _tables:
        with _making:
            if not _tables:
                there = compiler is not None and sys.platform == "linux" and platform.machine() in _PC
                _tables.append(FaultTable(compiler) if there and compiler is not None else None)
    return _tables[0]
