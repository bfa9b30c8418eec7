"""Registers that packets write and dispatches read, by the names and fields of each generation's headers."""

from __future__ import annotations

from types import ModuleType
from typing import Final

from ....headers.amd import gc_9_4_3, gc_10_3_0, gc_11_0_0, gc_12_0_0
from ....headers.layout import Register
from .faults import PacketFault

SH_BASE: Final = 0x2C00  # PACKET3_SET_SH_REG_START
SH_END: Final = 0x3000

_HEADERS: Final[dict[int, ModuleType]] = {9: gc_9_4_3, 10: gc_10_3_0, 11: gc_11_0_0, 12: gc_12_0_0}

_REFUSED: Final = ("COMPUTE_VMID", "COMPUTE_DISPATCH_INITIATOR", "COMPUTE_RELAUNCH", "COMPUTE_RELAUNCH2")
"""Registers that a user's packet has no business with, or that start something when they are written."""


def _known(major: int) -> dict[str, Register]:
    found = vars(_HEADERS[major])
    return {name: register for name, register in found.items() if isinstance(register, Register)}


class Registers:
    """The state that packets set and a dispatch reads.

    Args:
      major: the generation.

    Attributes:
      values: of those that were written, by address in words.
    """

    def __init__(self, major: int) -> None:
        self._known = _known(major)
        self._at = {register.address: register for register in reversed(self._known.values())}
        self.values: dict[int, int] = {}

    def write(self, address: int, value: int, index: int) -> None:
        """Writes a register.

        Args:
          address: in words.
          value: of 32 bits.
          index: the word of the packet that holds the value.

        Raises:
          PacketFault: if there is no such register, it must not be written so, or a bit is reserved.
        """
        register = self._at.get(address)
        if register is None:
            raise PacketFault(f"no known register has the address {address:#x}", index)
        if register.name in _REFUSED:
            raise PacketFault(f"{register.name} is not for SET_SH_REG", index)
        self._split(register, value, index)
        self.values[address] = value

    def put(self, name: str, value: int) -> None:
        """Writes a register by its name, for the firmware.

        Raises:
          PacketFault: if a bit is reserved.
        """
        register = self._known[name]
        self._split(register, value, 0)
        self.values[register.address] = value

    def encode(self, name: str, **fields: int) -> int:
        """A register's value of fields."""
        return self._known[name].encode(**fields)

    def get(self, name: str) -> int:
        """A register that must have been written.

        Raises:
          PacketFault: if it was not: what it holds is anybody's.
        """
        address = self._known[name].address
        if address not in self.values:
            raise PacketFault(f"{name} was never written in this queue")
        return self.values[address]

    def fields(self, name: str) -> dict[str, int]:
        """The fields of a register that must have been written."""
        return self._split(self._known[name], self.get(name), 0)

    def split(self, name: str, value: int, index: int) -> dict[str, int]:
        """The fields of a value that is meant for a register.

        Raises:
          PacketFault: if a bit is reserved.
        """
        return self._split(self._known[name], value, index)

    def _split(self, register: Register, value: int, index: int) -> dict[str, int]:
        if value & ~register.known:
            raise PacketFault(f"{register.name} {value:#010x} sets reserved bits {value & ~register.known:#x}", index)
        return register.decode(value)
