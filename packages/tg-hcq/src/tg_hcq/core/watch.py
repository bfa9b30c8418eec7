"""Waiting for a word in memory: natively, without the interpreter, with naps that grow as the wait does.

Nobody rings a bell: whoever stores to the word knows nothing of the watcher. A nap takes at most an eighth of the time
waited so far, and at most a millisecond; after half a second of waiting it takes a 512th, and at most 5 ms. So what
happens is noticed soon by whoever has waited little, and costs little where nothing happens.
"""

from __future__ import annotations

import ctypes
import functools
import platform
import sys
import time
from collections.abc import Callable
from enum import IntEnum
from typing import Final

from tg_runtime import CompileError
from tg_runtime.compilers.llvm import LLVMCompiler, available
from tg_runtime.host.execmem import ExecutableMemory

from .fileio import MMIO

SPIN_NS: Final = 20_000
"""How long a watcher looks without a nap: about what the shortest nap takes."""
_SHARE: Final = 8
_NAP_NS: Final = 1_000_000
_IDLE_SHARE: Final = 512
_IDLE_NAP_NS: Final = 5_000_000


class Until(IntEnum):
    """What a watcher waits for: the word, under the mask, differs from, is at least, or equals the value."""

    DIFFERENT = 0
    AT_LEAST = 1
    EQUAL = 2


def watch(word: MMIO, until: Until, value: int, stop: MMIO, *, mask: int = 2**64 - 1, most_ns: int = 2**62) -> bool:
    """Waits until a word of 4 or 8 bytes fulfils a condition, all numbers unsigned.

    Args:
      word: the memory; its first word is watched.
      until: the condition.
      value: what the word is compared with.
      stop: 8 bytes that end the wait once they are not zero.
      mask: the bits of the word that are compared.
      most_ns: the wait ends after so many nanoseconds.

    Returns:
      Whether the condition was fulfilled when the wait ended.

    Example:
      >>> doorbell, stop = MMIO.of(bytearray(8), "Q"), MMIO.of(bytearray(8), "Q")
      >>> doorbell[0] = 7
      >>> watch(doorbell, Until.DIFFERENT, 0, stop), watch(doorbell, Until.AT_LEAST, 8, stop, most_ns=1000)
      (True, False)
    """
    native = native_watch()
    if native is None:
        return watch_in_python(word, until, value, stop, mask, most_ns)
    wide = 1 if word.fmt == "Q" else 0
    return native(word.address, wide, mask, value, int(until), stop.address, most_ns) == 1


def watch_in_python(word: MMIO, until: Until, value: int, stop: MMIO, mask: int, most_ns: int) -> bool:
    """What :func:`watch` does, where there is no LLVM; the reference for the native one."""
    begin = time.monotonic_ns()
    while True:
        now = word[0] & mask
        if now >= value if until is Until.AT_LEAST else (now == value) is (until is Until.EQUAL):
            return True
        if stop[0]:
            return False
        waited = time.monotonic_ns() - begin
        if waited >= most_ns:
            return False
        time.sleep(nap_ns(waited) * 1e-9)


def nap_ns(waited_ns: int) -> int:
    """How long the nap takes after so many nanoseconds of waiting; 0 for none."""
    if waited_ns < SPIN_NS:
        return 0
    return min(waited_ns // _SHARE, max(_NAP_NS, min(waited_ns // _IDLE_SHARE, _IDLE_NAP_NS)))


@functools.cache
def native_watch() -> Callable[[int, int, int, int, int, int, int], int] | None:
    """The compiled function; None where LLVM is not there or makes no code that runs here."""
    if not available() or sys.platform not in ("linux", "darwin"):
        return None
    try:
        code = ExecutableMemory(LLVMCompiler(level=1).compile_cached(_text()))
    except (CompileError, OSError):
        return None
    long = ctypes.c_uint64
    call = ctypes.CFUNCTYPE(ctypes.c_int32, long, ctypes.c_int32, long, long, ctypes.c_int32, long, long)
    function = call(code.function("watch"))
    function.__dict__["code"] = code
    return function


def _text() -> str:
    x86 = platform.machine() in ("x86_64", "AMD64")
    pause = "call void @llvm.x86.sse2.pause()" if x86 else ""
    declared = "declare void @llvm.x86.sse2.pause()" if x86 else ""
    clock = 1 if sys.platform == "linux" else 6  # CLOCK_MONOTONIC
    return f"""
declare i32 @clock_gettime(i32, ptr)
declare i32 @nanosleep(ptr, ptr)
declare i64 @llvm.umin.i64(i64, i64)
declare i64 @llvm.umax.i64(i64, i64)
{declared}

define i64 @now(ptr %time) {{
  %_ = call i32 @clock_gettime(i32 {clock}, ptr %time)
  %s = load i64, ptr %time
  %at = getelementptr i64, ptr %time, i64 1
  %n = load i64, ptr %at
  %t = mul i64 %s, 1000000000
  %sum = add i64 %t, %n
  ret i64 %sum
}}

define i32 @watch(ptr %word, i32 %wide, i64 %mask, i64 %value, i32 %until, ptr %stop, i64 %most) {{
entry:
  %time = alloca [2 x i64]
  %begin = call i64 @now(ptr %time)
  %long = icmp ne i32 %wide, 0
  br label %look
look:
  br i1 %long, label %eight, label %four
eight:
  %q = load atomic i64, ptr %word acquire, align 8
  br label %read
four:
  %d = load atomic i32, ptr %word acquire, align 4
  %dq = zext i32 %d to i64
  br label %read
read:
  %raw = phi i64 [ %q, %eight ], [ %dq, %four ]
  %seen = and i64 %raw, %mask
  %ne = icmp ne i64 %seen, %value
  %ge = icmp uge i64 %seen, %value
  %eq = icmp eq i64 %seen, %value
  %is0 = icmp eq i32 %until, 0
  %is1 = icmp eq i32 %until, 1
  %rest = select i1 %is1, i1 %ge, i1 %eq
  %ok = select i1 %is0, i1 %ne, i1 %rest
  br i1 %ok, label %yes, label %not
yes:
  ret i32 1
not:
  %halt = load atomic i64, ptr %stop acquire, align 8
  %halted = icmp ne i64 %halt, 0
  br i1 %halted, label %no, label %on
no:
  ret i32 0
on:
  %t = call i64 @now(ptr %time)
  %waited = sub i64 %t, %begin
  %over = icmp uge i64 %waited, %most
  br i1 %over, label %no, label %rest1
rest1:
  %short = icmp ult i64 %waited, {SPIN_NS}
  br i1 %short, label %spin, label %nap
spin:
  {pause}
  br label %look
nap:
  %part = udiv i64 %waited, {_SHARE}
  %tiny = udiv i64 %waited, {_IDLE_SHARE}
  %idle = call i64 @llvm.umin.i64(i64 %tiny, i64 {_IDLE_NAP_NS})
  %cap = call i64 @llvm.umax.i64(i64 %idle, i64 {_NAP_NS})
  %ns = call i64 @llvm.umin.i64(i64 %part, i64 %cap)
  store i64 0, ptr %time
  %low = getelementptr i64, ptr %time, i64 1
  store i64 %ns, ptr %low
  %_ = call i32 @nanosleep(ptr %time, ptr null)
  br label %look
}}
"""
