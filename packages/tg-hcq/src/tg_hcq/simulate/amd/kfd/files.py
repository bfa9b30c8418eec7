"""The device nodes as files: ioctl takes the bytes at an address, mmap gives pages of the software GPU's memory."""

from __future__ import annotations

import ctypes
import errno
import os
import struct
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from ....core.fileio import FileIO
from . import abi
from .events import refuse
from .gpu import DOORBELL_SLICE, Gpu
from .pages import Pool
from .process import Process

if TYPE_CHECKING:
    from .buffers import Buffer

Argument = ctypes.Structure | ctypes.Array[ctypes.c_uint8] | int

_DRM_COMMAND_BASE = 0x40
_DRM_AMDGPU_INFO = _DRM_COMMAND_BASE + 0x05


class Part(NamedTuple):
    """Pages that mmap gives.

    Attributes:
      pool: which has them.
      place: the offset of the first.
      inherit: whether a child that is forked has them, too.
    """

    pool: Pool
    place: int
    inherit: bool


class Node(FileIO):
    """A device node that was opened; it has a descriptor of its own, which stands for the file.

    Attributes:
      number: the descriptor by which requests name the file; another one where the caller is another process.

    Args:
      path: of the node.
      process: who opened it, now.
    """

    def __init__(self, path: str, process: Callable[[], Process | None]) -> None:
        super().__init__(path)
        self._process, self.number = process, self.fd

    def _open(self, path: str, flags: int) -> int:
        return os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)

    def _opener(self) -> Process:
        """The process that opened the file.

        Raises:
          OSError: for any other (EBADF): a child that inherited it.
        """
        process = self._process()
        if self.fd < 0 or process is None or process.process_id != os.getpid():
            raise refuse(errno.EBADF, f"{self.path} was opened by another process, or closed")
        return process

    def ioctl(self, request: int, argument: Argument = 0) -> int:
        """Executes a request; the argument is its address, as for the system call.

        Raises:
          OSError: as the kernel refuses it.
        """
        process = self._opener()
        address = argument if isinstance(argument, int) else ctypes.addressof(argument)
        direction, nbytes, kind, number = request >> 30, request >> 16 & 0x3FFF, request >> 8 & 0xFF, request & 0xFF
        try:
            self._serve(process, chr(kind), number, direction, nbytes, address)
        except OSError as error:
            raise OSError(error.errno, f"ioctl {request:#x}: {error.strerror or error}", self.path) from None
        return 0

    def _serve(self, process: Process, kind: str, number: int, direction: int, nbytes: int, address: int) -> None:
        raise NotImplementedError

    def part(self, nbytes: int, offset: int) -> Part:
        """What mmap of an offset gives.

        Raises:
          OSError: as the kernel refuses it.
        """
        raise NotImplementedError

    def mmap(self, address: int, nbytes: int, prot: int, flags: int, offset: int = 0) -> int:
        """Maps pages of the software GPU's.

        Raises:
          OSError: as the kernel refuses it.
        """
        found = self.part(nbytes, offset)
        return found.pool.map(address, nbytes, prot, flags, found.place, inherit=found.inherit)


class KfdFile(Node):
    """/dev/kfd."""

    def _serve(self, process: Process, kind: str, number: int, direction: int, nbytes: int, address: int) -> None:
        most = next(last for since, last in abi.NUMBERS if process.minor >= since)
        request = abi.KFD.get(number)
        if kind != "K" or not 1 <= number <= most or (request is not None and process.minor < request.since):
            raise refuse(errno.ENOTTY, f"request {kind!r} {number:#x} is unknown to version 1.{process.minor}")
        if request is None:
            raise refuse(errno.EINVAL, f"request {number:#x} is not played")
        if direction != request.direction or nbytes not in (request.layout.nbytes, *request.earlier):
            raise refuse(errno.EINVAL, f"{request.name} with {nbytes} bytes and direction {direction}")
        data = process.user.read(address, nbytes) if direction & abi.WRITE else bytes(nbytes)
        answer = process.request(number, data)
        if direction & abi.READ:
            process.user.write(address, answer[:nbytes])

    def part(self, nbytes: int, offset: int) -> Part:
        """Doorbells, or the page of registers (``kfd_mmap``).

        Raises:
          OSError: as the kernel refuses it.
        """
        process, offset = self._opener(), offset % (1 << 64)
        kind = offset >> abi.MMAP_TYPE_SHIFT
        gpu_id = offset >> abi.MMAP_GPU_ID_SHIFT & 0xFFFF
        if kind in (abi.MMAP_RESERVED, abi.MMAP_EVENTS):
            raise refuse(errno.EINVAL, f"offset {offset:#x} is of event pages or reserved memory, which cards have not")
        pdd = process.pdds.get(gpu_id)
        if pdd is None:
            raise refuse(errno.ENODEV, f"offset {offset:#x} names no GPU")
        if kind == abi.MMAP_DOORBELL:
            if nbytes != DOORBELL_SLICE:
                raise refuse(errno.EINVAL, f"{nbytes} bytes of doorbells; all {DOORBELL_SLICE} are mapped at once")
            return Part(pdd.doorbells, 0, inherit=False)
        if nbytes != 4096:
            raise refuse(errno.EINVAL, f"{nbytes} bytes of registers")
        return Part(pdd.gpu.flush, 0, inherit=False)


class RenderFile(Node):
    """/dev/dri/renderD*."""

    def __init__(self, path: str, gpu: Gpu, process: Callable[[], Process | None]) -> None:
        super().__init__(path, process)
        self.gpu = gpu

    def _opener(self) -> Process:
        process = self._process()  # drm files may be used by a child that inherited them
        if self.fd < 0 or process is None:
            raise refuse(errno.EBADF, f"{self.path} is closed")
        return process

    def _serve(self, process: Process, kind: str, number: int, direction: int, nbytes: int, address: int) -> None:
        if kind != "d":
            raise refuse(errno.ENOTTY, f"request {kind!r} {number:#x}")
        if number == 0:  # DRM_IOCTL_VERSION: three numbers, then pairs of a length and an address
            self._version(process, direction, nbytes, address)
        elif number == _DRM_AMDGPU_INFO:
            self._info(process, direction, nbytes, address)
        else:
            raise refuse(errno.EINVAL, f"request 'd' {number:#x} is not played")

    def _version(self, process: Process, direction: int, nbytes: int, address: int) -> None:
        if (direction, nbytes) != (abi.BOTH, 64):
            raise refuse(errno.EINVAL, f"VERSION with {nbytes} bytes and direction {direction}")
        given = list(struct.unpack("<iiiiQQQQQQ", process.user.read(address, 64)))
        given[:3] = [3, 61, 0]
        for index, text in ((4, b"amdgpu"), (6, b"20150101"), (8, b"AMD GPU")):
            if given[index + 1]:
                process.user.write(given[index + 1], text[: given[index]])
            given[index] = len(text)
        process.user.write(address, struct.pack("<iiiiQQQQQQ", *given))

    def _info(self, process: Process, direction: int, nbytes: int, address: int) -> None:
        if (direction, nbytes) != (abi.WRITE, 32):
            raise refuse(errno.EINVAL, f"AMDGPU_INFO with {nbytes} bytes and direction {direction}")
        pointer, size, query = struct.unpack_from("<QII", process.user.read(address, nbytes))
        answers = {0x00: self._accelerated, 0x16: self._device, 0x19: self._memory}
        if query not in answers:
            raise refuse(errno.EINVAL, f"AMDGPU_INFO query {query:#x} is not played")
        process.user.write(pointer, answers[query]()[:size])

    def _accelerated(self) -> bytes:
        return struct.pack("<I", 1)

    def _device(self) -> bytes:
        """``struct drm_amdgpu_info_device``, up to the address range and what follows as zeros."""
        card = self.gpu.card
        family = {9: 141, 10: 143, 11: 145, 12: 152}[card.major]
        data = struct.pack(
            "<IIIIIIIIQQII", card.device_id, 0, 1, 0, family, card.engines, card.arrays,
            100_000, 2_500_000, 1_000_000, card.units * card.xccs, 0,
        ) + bytes(64)  # fmt: skip
        data += struct.pack("<IIIIQQQII", 0, 0, 0, 4, 0, 0x10000, (1 << 47) - 1, 4096, 2097152)
        return data.ljust(440, b"\0")

    def _memory(self) -> bytes:
        """``struct drm_amdgpu_memory_info``: VRAM, the part that the host sees, system memory."""
        vram, system = self.gpu.vram, self.gpu.system
        seen = vram.memory.nbytes if self.gpu.large_bar else 256 << 20
        return b"".join(
            struct.pack("<QQQQ", total, total, used, total * 3 // 4)
            for total, used in ((vram.memory.nbytes, vram.used), (seen, 0), (system.memory.nbytes, system.used))
        )

    def part(self, nbytes: int, offset: int) -> Part:
        """A buffer by the offset that its allocation returned (``drm_gem_mmap``).

        Raises:
          OSError: as the kernel refuses it.
        """
        process = self._opener()
        for pdd in process.pdds.values():
            buffer = pdd.buffers.by_offset(offset)
            if buffer is not None:
                return self._pages(pdd.drm_file, buffer, nbytes)
        raise refuse(errno.EINVAL, f"no buffer has the offset {offset:#x}")

    def _pages(self, owner: int, buffer: Buffer, nbytes: int) -> Part:
        if owner != self.number:
            raise refuse(errno.EACCES, "the buffer belongs to another file")
        if nbytes > buffer.nbytes:
            raise refuse(errno.EINVAL, f"{nbytes} bytes of a buffer of {buffer.nbytes}")
        if buffer.pool is None or buffer.flags & (abi.DOORBELL | abi.MMIO_REMAP):
            raise refuse(errno.EPERM, "pages of the host's and registers are not mapped through a render node")
        if buffer.flags & abi.VRAM and not buffer.flags & abi.PUBLIC:
            raise refuse(errno.EPERM, "VRAM that was not allocated as public has no host mapping")
        pool = self.gpu.window.host if buffer.flags & abi.VRAM else buffer.pool
        return Part(pool, buffer.place, inherit=True)


def report(line: str) -> None:
    """Prints a line of the kernel's log."""
    print(line, file=sys.stderr, flush=True)
