"""Kernels of another instruction set, run by an emulator: QEMU's user mode, and a small program of that machine in it.

The program, ``guest.c``, is compiled by the machine's cross compiler when it is first wanted. Buffers lie in memory
that both processes map; a kernel's object is linked here for the place that the guest gives it.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import struct
import subprocess
import sys
import tempfile
import weakref
from collections.abc import Callable, Sequence

from ...cache import diskcache
from ...device.launch import Launch, LoadedProgram
from ...device.limits import MAX_THREADS
from ...errors import DeviceError, DeviceUnavailable
from ...host import elf
from ...host.arch import CPUArch, Machine
from ...host.elf.aarch64 import AARCH64
from ...host.elf.riscv import RISCV
from ...host.elf.x86_64 import X86_64
from ...host.locks import fork_safe_lock
from ...host.tools import find_tool
from ...memory.arena import Arena
from ...memory.host import HostMemory

SHARED_BYTES = 1 << 33  # reserved, not used
_FIND, _RESERVE, _LOAD, _RELEASE, _CALL = range(1, 6)
_MOST_WORDS = 255
_WORD = 0xFFFFFFFFFFFFFFFF
_SOURCE = os.path.join(os.path.dirname(__file__), "guest.c")
_MACHINES = {"x86_64": X86_64, "aarch64": AARCH64, "riscv64": RISCV}
_PACKAGES = {"x86_64": "gcc", "aarch64": "gcc-aarch64-linux-gnu libc6-dev-arm64-cross",
             "riscv64": "gcc-riscv64-linux-gnu libc6-dev-riscv64-cross"}  # fmt: skip


def missing(machine: Machine) -> str | None:
    """Why no kernels of a machine can be run here; None if they can."""
    if machine.name not in _MACHINES:
        return f"there is no loader for {machine.name}"
    if _emulator(machine) is None:
        return f"qemu-{machine.name} is not on the PATH (apt install qemu-user-static)"
    if find_tool(f"{machine.name}-linux-gnu-gcc") is None:
        return f"{machine.name}-linux-gnu-gcc is not on the PATH (apt install {_PACKAGES[machine.name]})"
    return None


def _emulator(machine: Machine) -> str | None:
    return find_tool(f"qemu-{machine.name}-static", f"qemu-{machine.name}")


def _processor(arch: CPUArch) -> str:
    """The processor that the emulator plays: its most capable, with vectors of the requested length."""
    if arch.kind.name != "riscv64":
        return "max"
    vectors = f",v=true,vext_spec=v1.0,vlen={arch.target(1).vector_bytes * 8}" if arch.has("v") else ""
    return f"rv64{vectors}"


def _program(machine: Machine) -> bytes:
    """The guest's program, compiled or from the cache."""
    compiler = find_tool(f"{machine.name}-linux-gnu-gcc")
    if compiler is None:
        raise DeviceUnavailable(str(missing(machine)))
    with open(_SOURCE, "rb") as file:
        source = file.read()
    status = os.stat(os.path.realpath(compiler))
    key = diskcache.digest(source, compiler, f"{status.st_size}:{status.st_mtime_ns}")
    known = diskcache.get("guest", key)
    if known is not None:
        return known
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "guest")
        done = subprocess.run(
            [compiler, "-O1", "-static", "-x", "c", "-", "-o", out, "-lm"], input=source, capture_output=True
        )
        if done.returncode != 0:
            raise DeviceError(f"{compiler} does not compile {_SOURCE}: {done.stderr.decode(errors='replace')}")
        with open(out, "rb") as file:
            program = file.read()
    diskcache.put("guest", key, program)
    return program


class Guest:
    """The emulated process. Where a kernel ends it, the next request starts another one; memory stays.

    Args:
      arch: the processor.

    Attributes:
      arena: the memory that both processes map.
      generation: how many processes there were.

    Raises:
      DeviceUnavailable: if the emulator or the cross compiler is not there.
    """

    def __init__(self, arch: CPUArch) -> None:
        problem = missing(arch.kind)
        if problem is not None:
            raise DeviceUnavailable(problem)
        self.arch = arch
        self.generation = 0
        self._file = os.memfd_create("guest-memory")
        os.ftruncate(self._file, SHARED_BYTES)
        self.arena = Arena(mmap.mmap(self._file, SHARED_BYTES))
        self._lock = fork_safe_lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = os.getpid()
        self._base = 0
        self._names: dict[str, int] = {}
        weakref.finalize(self, os.close, self._file)

    def _start(self) -> None:
        emulator = _emulator(self.arch.kind)
        assert emulator is not None
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "guest")
            with open(path, "wb") as file:
                file.write(_program(self.arch.kind))
            os.chmod(path, 0o700)
            self._process = subprocess.Popen(
                [emulator, "-cpu", _processor(self.arch), path, str(self._file), str(SHARED_BYTES)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0,
                pass_fds=(self._file,), start_new_session=True,
            )  # fmt: skip
            weakref.finalize(self, _end, self._process)
            self.generation += 1
            self._names.clear()
            self._base = self._answer("starting")

    def _answer(self, what: str) -> int:
        process = self._process
        assert process is not None and process.stdout is not None
        data = process.stdout.read(8)
        if data is None or len(data) < 8:
            self._process = None
            code = process.wait()
            how = f"by signal {-code}" if code < 0 else f"with status {code}"
            raise DeviceError(f"{what}: the emulated {self.arch.kind.name} process ended {how}")
        word: int = struct.unpack("<Q", data)[0]
        return word

    def request(self, what: str, *parts: int | bytes) -> int:
        """Sends words and bytes, and waits for a word.

        Raises:
          DeviceError: if the process ended; the message begins with ``what``.
        """
        if os.getpid() != self._owner:
            raise DeviceError(f"{what}: the emulator was started before this process was forked")
        with self._lock:
            if self._process is None or self._process.poll() is not None:
                self._start()
            process = self._process
            assert process is not None and process.stdin is not None
            data = b"".join(part if isinstance(part, bytes) else struct.pack("<Q", part & _WORD) for part in parts)
            try:
                sent = 0
                while sent < len(data):
                    sent += process.stdin.write(data[sent:]) or 0
                return self._answer(what)
            except BrokenPipeError:
                return self._answer(what)
            except BaseException:  # an answer may be under way, and could be taken for that of another request
                if self._process is not None:
                    self._process = None
                    _end(process)
                raise

    def alive(self, generation: int) -> bool:
        """Whether the process of that number is the present one."""
        process = self._process
        return process is not None and process.poll() is None and self.generation == generation

    def find(self, name: str) -> int | None:
        """The address of a function of the guest's libraries."""
        if name not in self._names:
            encoded = name.encode()
            self._names[name] = self.request(f"looking for {name}", _FIND, len(encoded), encoded)
        return self._names[name] or None

    def load(self, name: str, lib: bytes) -> tuple[int, int, dict[str, int]]:
        """Links an object into the guest's memory: where it lies, its size, and the addresses of its functions.

        Raises:
          elf.ELFError: if the object is damaged, or for another machine.
          DeviceError: if the guest has no memory.
        """
        machine = _MACHINES[self.arch.kind.name]
        layout = elf.parse(lib, {machine.number: machine})
        what = f"loading {name}"
        address = self.request(what, _RESERVE, layout.nbytes)
        if not address:
            raise DeviceError(f"{what}: the guest has no {layout.nbytes} bytes")
        image = layout.image(address, self.find)
        if not self.request(what, _LOAD, address, len(image), layout.writable, image):
            raise DeviceError(f"{what}: the guest makes no memory executable")
        return address, layout.nbytes, layout.functions(address)

    def release(self, generation: int, address: int, nbytes: int) -> None:
        """Gives memory back, if its process is still there."""
        if os.getpid() == self._owner and self.alive(generation):
            self.request("releasing a kernel", _RELEASE, address, nbytes)

    def call(self, what: str, function: int, words: Sequence[int], threads: int) -> float:
        """Calls a function; returns the seconds that it took.

        Raises:
          DeviceError: if it takes too many words, or ended the process.
        """
        if len(words) + 1 > _MOST_WORDS:
            raise DeviceError(f"{what}: {len(words)} arguments; an emulated kernel has at most {_MOST_WORDS - 1}")
        return self.request(what, _CALL, function, threads, len(words), *words) * 1e-9

    def address(self, block: HostMemory) -> int | None:
        """Where the guest sees a block; None if it does not."""
        offset = block.address - self.arena.address
        return self._base + offset if 0 <= offset < SHARED_BYTES else None


def _end(process: subprocess.Popen[bytes]) -> None:
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            stream.close()
    process.kill()
    process.wait()


class GuestProgram(LoadedProgram[HostMemory]):
    """A function of an object file, called in the guest.

    Args:
      guest: where it runs.
      name: the function's name.
      lib: the object file.

    Raises:
      elf.ELFError: if the object is damaged, or does not define the function.
    """

    def __init__(self, guest: Guest, name: str, lib: bytes) -> None:
        self.guest, self.name, self.lib = guest, name, lib
        self._load()

    def _load(self) -> None:
        address, nbytes, functions = self.guest.load(self.name, self.lib)
        function = functions.get(self.name)
        if function is None:
            raise elf.ELFError(f"the object defines no {self.name}; it defines {', '.join(functions) or 'nothing'}")
        self._loaded = (self.guest.generation, address, nbytes, function)  # the last is the function's address

    def launch(self, bufs: Sequence[HostMemory], how: Launch) -> float | None:
        """Runs the function to its end; what the guest does not see of the memory is copied there and back.

        Raises:
          DeviceError: if the kernel ended the guest; the message names it. There are too many threads, which run one
            after the other, or other sizes than ones.
        """
        threads = how.threads(f"CPU: kernel {self.name}", MAX_THREADS)
        if threads == 0:
            return how.idle
        guest = self.guest
        if not guest.alive(self._loaded[0]):
            self._load()
        copies: list[tuple[HostMemory, HostMemory]] = []
        words = []
        for buf in bufs:
            address = guest.address(buf)
            if address is None:
                copy = guest.arena.allocate(buf.nbytes)
                ctypes.memmove(copy.address, buf.address, buf.nbytes)
                copies.append((buf, copy))
                address = guest.address(copy)
            assert address is not None
            words.append(address)
        seconds = guest.call(f"kernel {self.name}", self._loaded[3], [*words, *how.vals], threads)
        for buf, copy in copies:
            ctypes.memmove(buf.address, copy.address, buf.nbytes)
        return seconds if how.wait else None

    def __del__(self, ends: Callable[[], bool] = sys.is_finalizing) -> None:
        if hasattr(self, "_loaded") and not ends():  # when the interpreter ends, so does the emulator
            generation, address, nbytes, _ = self._loaded
            try:
                self.guest.release(generation, address, nbytes)
            except DeviceError:
                pass  # the memory went with the process
