"""Code in a device's memory: an object file laid out there, its relocations applied for the address that it got."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, Protocol

from tg_runtime import BufferOptions
from tg_runtime.host.elf import ELFError, ELFFile, Layout, Machine, parse

from .buffer import HCQBuffer
from .relocations import MACHINES

CODE_OPTIONS: Final = BufferOptions(executable=True, nolru=True)


class CodeMemory(Protocol):
    """What is asked of an allocator."""

    def alloc(self, nbytes: int, options: BufferOptions) -> HCQBuffer:
        """Memory that the device may run instructions in."""

    def retire(
        self, opaque: HCQBuffer, options: BufferOptions, done: Callable[[], bool] | None = None, keep: object = None
    ) -> None:
        """Frees it once the device is done with it."""

    def load_code(self, opaque: HCQBuffer, image: bytes, layout: Layout) -> None:
        """Writes an image there, and has the device forget what it knew of the instructions."""


class UploadedCode:
    """An object file in a device's memory, until nobody uses it and the device is done with it.

    Attributes:
      memory: where it lies.
      file: the object: its sections and notes hold what a driver must know of its kernels.

    Args:
      allocator: of the device.
      lib: the object file.
      resolve: the address of a symbol that the object does not define, None if there is none.
      machines: the processors that the object may be for.

    Raises:
      ELFError: if the object is damaged, for another machine, or cannot be relocated; nothing is left behind.
      OutOfMemory: if there is no memory for it.
    """

    def __init__(
        self, allocator: CodeMemory, lib: bytes, resolve: Callable[[str], int | None] = lambda name: None,
        machines: Mapping[int, Machine] = MACHINES,
    ) -> None:  # fmt: skip
        layout = parse(lib, machines)
        self.file: ELFFile = layout.file
        self._offsets = layout.offsets()
        self._allocator = allocator
        self.memory = memory = allocator.alloc(layout.nbytes, CODE_OPTIONS)
        try:
            if _address(memory) % layout.alignment:  # of a larger block some part is aligned
                larger = allocator.alloc(layout.nbytes + layout.alignment, CODE_OPTIONS)
                allocator.retire(memory, CODE_OPTIONS)
                memory = larger
                self.memory = memory.offset(-_address(memory) % layout.alignment, layout.nbytes)
            image = layout.image(_address(self.memory), resolve)
            allocator.load_code(self.memory, image, layout)
        except BaseException:
            allocator.retire(memory, CODE_OPTIONS)
            raise
        self._image, self._block = image, memory

    def entry(self, name: str) -> int:
        """The device's address of a symbol.

        Raises:
          ELFError: if the object does not define it.
        """
        return _address(self.memory) + self._found(name)[0]

    def content(self, name: str) -> bytes:
        """The bytes of a symbol as they were loaded, relocated: a kernel's descriptor, a table of constants.

        Raises:
          ELFError: if the object does not define it.
        """
        offset, nbytes = self._found(name)
        return self._image[offset : offset + nbytes]

    def names(self) -> list[str]:
        """The symbols that the object defines."""
        return list(self._offsets)

    def _found(self, name: str) -> tuple[int, int]:
        if name not in self._offsets:
            raise ELFError(f"the object defines no {name}; it defines {', '.join(self._offsets) or 'nothing'}")
        return self._offsets[name]

    def __del__(self) -> None:
        block = self.__dict__.get("_block")
        if block is not None:
            self._allocator.retire(block, CODE_OPTIONS)


def _address(buffer: HCQBuffer) -> int:
    assert isinstance(buffer.address, int)
    return buffer.address
