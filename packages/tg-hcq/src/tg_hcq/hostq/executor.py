"""The command processor of the host-thread device: a thread that reads 32-bit words from a ring in memory.

Nobody calls it: it watches the doorbell, a word in memory that says how far the ring is filled, and the words that its
WAIT and POLL packets name (:mod:`tg_hcq.core.watch`).

A packet is a header word, ``opcode | payload words << 8``, and its payload; 64-bit values are two words, the low first:

=========== ==================================================== ======================================================
opcode      payload                                              meaning
=========== ==================================================== ======================================================
NOP         any                                                  nothing
SIGNAL      address64, value64                                   store the 64-bit value
WAIT        address64, value64                                   hold until the 64-bit word is >= value
TIMESTAMP   address64                                            store the 64-bit clock, in nanoseconds
BARRIER     none                                                 order memory (the host's threads need nothing more)
EXEC        descriptor64, arguments64, global 3 x 32, local      call a function
COPY        dest64, source64, nbytes64                           copy memory
WRITE       dest64, words                                        store words
POLL        address64, value32, mask32                           hold until (word & mask) == value
INDIRECT    address64, words32                                   execute words elsewhere, then come back; not nested
=========== ==================================================== ======================================================

Every address is checked against the memory that the device may touch. Anything wrong stops the thread and is reported
as a fault: unknown opcodes, packets of a wrong size or cut off, addresses outside, functions that raise.
"""

from __future__ import annotations

import ctypes
import threading
import time
from array import array
from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import Final, NamedTuple

from tg_runtime import DeviceError
from tg_runtime.host.interrupts import Uninterrupted

from ..core.fileio import MMIO
from ..core.watch import Until, watch
from .memory import Access, HostMemory


class Opcode(IntEnum):
    """What a packet does."""

    NOP = 0
    SIGNAL = 1
    WAIT = 2
    TIMESTAMP = 3
    BARRIER = 4
    EXEC = 5
    COPY = 6
    WRITE = 7
    POLL = 8
    INDIRECT = 9


# A descriptor: entry64, number of buffers 32, number of scalars 32, flags 32, then one code of 32 bits a scalar.
DESCRIPTOR_WORDS: Final = 5
PASS_CORE_ID: Final = 1
SCALARS: Final[tuple[type[ctypes._SimpleCData[int]] | type[ctypes._SimpleCData[float]], ...]] = (
    ctypes.c_int8,
    ctypes.c_uint8,
    ctypes.c_int16,
    ctypes.c_uint16,
    ctypes.c_int32,
    ctypes.c_uint32,
    ctypes.c_int64,
    ctypes.c_uint64,
    ctypes.c_float,
    ctypes.c_double,
)

_PAYLOAD: Final = {
    Opcode.SIGNAL: 4,
    Opcode.WAIT: 4,
    Opcode.TIMESTAMP: 2,
    Opcode.BARRIER: 0,
    Opcode.EXEC: 10,
    Opcode.COPY: 6,
    Opcode.POLL: 4,
    Opcode.INDIRECT: 3,
}
_MAX_SCALARS: Final = 4096
LEAST_RING_WORDS: Final = 16
"""The wait, the barrier and the signal of an empty submission fit."""
_STOP_S: Final = 2.0
_SHOWN: Final = 10  # words of a packet in a report

_DONE: Final = {Access.READ: "read", Access.WRITE: "written", Access.EXECUTE: "executed"}

_thread = threading.local()


def note_exception(error: BaseException) -> None:
    """Called by a Python function that runs as a kernel, on the thread that runs it, to report an exception."""
    _thread.error = error


class Fault(Exception):
    """A command that cannot be executed.

    Attributes:
      address: what it wanted to touch; None if it got no further than the packet.
      access: how.
      pc: the function that it called; None if it called none.
    """

    def __init__(
        self, message: str, address: int | None = None, access: str = "read", pc: int | None = None
    ) -> None:  # fmt: skip
        super().__init__(message)
        self.address, self.access, self.pc = address, access, pc


class FaultRecord(NamedTuple):
    """What a queue that stopped tells the driver: the interface between them, as a kernel's event is for a card.

    Attributes:
      word: where in the ring the packet began, in words since the beginning.
      header: its first word.
      message: what is wrong.
      address: the address that was accessed, if one was.
      access: ``"read"``, ``"write"`` or ``"execute"``.
      pc: the address of the function that was running, if one was.
      cause: the exception of a Python function.
    """

    word: int
    header: int
    message: str
    address: int | None
    access: str
    pc: int | None
    cause: Exception


class HostExecutor:
    """One hardware queue: a thread behind a ring of words, a read pointer and a doorbell.

    The pointers count words since the beginning and never wrap; a word's place is its count modulo the ring's size. The
    doorbell holds how many words there are.

    Attributes:
      name: for messages.
      executed: number of packets executed, by opcode.
      fault: what stopped it; None while it runs.
    """

    def __init__(self, name: str, memory: HostMemory, ring: MMIO, read: MMIO, doorbell: MMIO) -> None:
        self.name, self._memory = name, memory
        self._ring, self._read, self._doorbell = ring, read, doorbell
        self._stop = MMIO.of(bytearray(8), "Q")
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None
        self.fault: FaultRecord | None = None
        self.executed = [0] * len(Opcode)
        self._functions: dict[tuple[int, ...], Callable[..., None]] = {}

    @property
    def ring_words(self) -> int:
        """Size of the ring."""
        return len(self._ring)

    @property
    def read_pointer(self) -> int:
        """Words executed so far."""
        return self._read[0]

    @property
    def write_pointer(self) -> int:
        """Words submitted so far."""
        return self._doorbell[0]

    def start(self) -> None:
        """Has the thread watch the doorbell. Starting twice does nothing.

        Raises:
          DeviceError: if the system gives no thread.
        """
        if self._thread is not None:
            return
        with Uninterrupted(), self._starting:  # a thread that runs and is not noted would be started again
            if self._thread is not None:
                return
            thread = threading.Thread(target=self._run, name=self.name, daemon=True)
            try:
                thread.start()
            except RuntimeError as error:
                raise DeviceError(f"{self.name}: no thread can be started to execute it: {error}") from None
            self._thread = thread

    def stop(self) -> bool:
        """Ends the thread, between two packets. What is left in the ring is not executed.

        Returns:
          Whether it has ended. One that is in the middle of a kernel is not waited for longer than two seconds.
        """
        self._stop[0] = 1
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(_STOP_S)
            return not thread.is_alive()
        return True

    # the thread

    def _run(self) -> None:
        at = self._read[0]
        while True:
            watch(self._doorbell, Until.DIFFERENT, at, self._stop)
            if self._stop[0]:
                return
            try:
                at = self._packet(self._fetch, at, self._doorbell[0], nested=False)
            except Exception as error:
                self._report(at, error)
                return
            if at < 0:
                return
            self._read[0] = at

    def _report(self, at: int, error: Exception) -> None:
        known = error if isinstance(error, Fault) else Fault(f"{type(error).__name__}: {error}")
        header = self._fetch(at, 1)[0]
        self.fault = FaultRecord(at, header, str(known), known.address, known.access, known.pc, error)

    def _fetch(self, at: int, count: int) -> list[int]:
        size = len(self._ring)
        start = at % size
        words = self._ring.read(start, min(count, size - start))
        return words if len(words) == count else words + self._ring.read(0, count - len(words))

    def _packet(self, fetch: Callable[[int, int], list[int]], at: int, end: int, nested: bool) -> int:
        """Executes the packet at ``at``; returns where the next one begins, -1 if the thread is to stop."""
        header = fetch(at, 1)[0]
        try:
            opcode = Opcode(header & 0xFF)
        except ValueError:
            raise Fault(f"unknown command {header & 0xFF:#x} (word {header:#010x})") from None
        count = header >> 8
        if at + 1 + count > end:
            raise Fault(f"{opcode.name} is cut off: {count} words announced, {end - at - 1} there")
        if _PAYLOAD.get(opcode, count) != count or (opcode is Opcode.WRITE and count < 2):
            raise Fault(f"{opcode.name} with {count} words")
        if nested and opcode is Opcode.INDIRECT:
            raise Fault("INDIRECT inside of INDIRECT")
        if not self._execute(opcode, fetch(at + 1, count)):
            return -1
        self.executed[opcode] += 1
        return at + 1 + count

    def _execute(self, opcode: Opcode, words: Sequence[int]) -> bool:
        if opcode is Opcode.SIGNAL:
            self._store(_long(words, 0), _long(words, 2))
        elif opcode is Opcode.TIMESTAMP:
            self._store(_long(words, 0), time.perf_counter_ns())
        elif opcode is Opcode.WAIT:
            target = self._at(_long(words, 0), 8, "WAIT").view(0, 8, "Q")
            return watch(target, Until.AT_LEAST, _long(words, 2), self._stop)
        elif opcode is Opcode.POLL:
            word = self._at(_long(words, 0), 4, "POLL").view(0, 4, "I")
            return watch(word, Until.EQUAL, words[2], self._stop, mask=words[3])
        elif opcode is Opcode.COPY:
            nbytes = _long(words, 4)
            source = self._at(_long(words, 2), nbytes, "COPY from")
            ctypes.memmove(self._at(_long(words, 0), nbytes, "COPY to", Access.WRITE).address, source.address, nbytes)
        elif opcode is Opcode.WRITE:
            payload = array("I", words[2:]).tobytes()
            self._at(_long(words, 0), len(payload), "WRITE", Access.WRITE).write(0, payload)
        elif opcode is Opcode.EXEC:
            self._call(_long(words, 0), _long(words, 2), words[4], words[5] * words[6])
        elif opcode is Opcode.INDIRECT:
            return self._indirect(_long(words, 0), words[2])
        return True

    def _indirect(self, address: int, count: int) -> bool:
        words = self._at(address, 4 * count, "INDIRECT").view(0, 4 * count, "I")
        at = 0
        while at < count:
            try:
                at = self._packet(words.read, at, count, nested=True)
            except Fault as error:
                where = f"in the bound queue at {address:#x}, word {at}: {error}"
                raise Fault(where, error.address, error.access, error.pc) from error.__cause__
            if at < 0:
                return False
        return True

    def _call(self, descriptor: int, arguments: int, cores: int, others: int) -> None:
        head = self._at(descriptor, 4 * DESCRIPTOR_WORDS, "EXEC descriptor").view(fmt="I").read(0, DESCRIPTOR_WORDS)
        entry, buffers, scalars, flags = _long(head, 0), head[2], head[3], head[4]
        if entry == 0 or scalars > _MAX_SCALARS or buffers > _MAX_SCALARS:
            raise Fault(f"EXEC: no program at {descriptor:#x}")
        tail = self._at(descriptor + 4 * DESCRIPTOR_WORDS, 4 * scalars, "EXEC descriptor")
        codes = tail.view(fmt="I").read(0, scalars)
        if any(code >= len(SCALARS) for code in codes):
            raise Fault(f"EXEC: unknown argument type in the program at {descriptor:#x}")
        if others != 1 or (cores != 1 and not flags & PASS_CORE_ID):
            raise Fault(f"EXEC: a program that knows no grid was launched on {cores} x {others} groups")
        try:
            values = self._arguments(arguments, buffers, codes)
        except Fault as fault:
            raise Fault(str(fault), fault.address, fault.access, entry) from None
        self._at(entry, 1, "EXEC of code", Access.EXECUTE)
        key = (entry, buffers, flags, *codes)
        function = self._functions.get(key)
        if function is None:
            types = [ctypes.c_uint64] * buffers + [SCALARS[code] for code in codes]
            types += [ctypes.c_int32] if flags & PASS_CORE_ID else []
            function = self._functions[key] = ctypes.CFUNCTYPE(None, *types)(entry)
        _thread.error = None
        for core in range(cores):
            function(*values, *((core,) if flags & PASS_CORE_ID else ()))
            error = _thread.error
            if error is not None:
                raise Fault(f"EXEC: {type(error).__name__}: {error}", pc=entry) from error

    def _arguments(self, address: int, buffers: int, codes: Sequence[int]) -> list[int | float]:
        values: list[int | float] = []
        at = 8 * buffers
        for pointer in self._at(address, at, "EXEC arguments").view(fmt="Q").read(0, buffers):
            self._at(pointer, 0, f"EXEC buffer {len(values)}")
            values.append(pointer)
        for code in codes:
            kind = SCALARS[code]
            size = ctypes.sizeof(kind)
            at = -(-at // size) * size
            values.append(kind.from_buffer_copy(self._at(address + at, size, "EXEC arguments").bytes()).value)
            at += size
        return values

    def _store(self, address: int, value: int) -> None:
        self._at(address, 8, "SIGNAL", Access.WRITE).view(0, 8, "Q")[0] = value

    def _at(self, address: int, nbytes: int, what: str, access: Access = Access.READ) -> MMIO:
        view = self._memory.view(address, nbytes, access)
        if view is None:
            mapped = self._memory.view(address, nbytes, Access(0)) is not None
            why = f"may not be {_DONE[access]}" if mapped else "are not mapped"
            raise Fault(f"{what}: {nbytes} bytes at {address:#x} {why}", address, str(access.name).lower())
        return view


def packet_text(words: Sequence[int]) -> tuple[int, str]:
    """What the packet is that some words begin with: how many words it has, and how it reads."""
    count, code = words[0] >> 8, words[0] & 0xFF
    name = Opcode(code).name if code in Opcode.__members__.values() else f"unknown {code:#x}"
    payload = " ".join(f"{word:x}" for word in words[1 : 1 + min(count, _SHOWN)])
    return 1 + count, f"{name} {payload}{' …' if count > _SHOWN else ''}".rstrip()


def _long(words: Sequence[int], at: int) -> int:
    return words[at] | words[at + 1] << 32
