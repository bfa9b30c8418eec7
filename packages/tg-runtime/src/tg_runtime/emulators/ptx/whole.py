"""A translation as those see it who translate a family of instructions: what they all stand on."""

from __future__ import annotations

from typing import Protocol

from .addresses import Addresses
from .emitter import Emitter
from .exchange import Exchange
from .operands import Operands
from .storage import Storage
from .syntax import Function, Module
from .waits import Waits


class Whole(Protocol):
    """One function while it is translated.

    Attributes:
      module: the text that it stands in.
      function: what is translated.
      helpers: functions that the translation calls, by name.
      ir: its LLVM IR so far.
      storage: where variables lie.
      operands: reads and writes registers.
      addresses: turns addresses into pointers.
      waits: the places at which it stops.
      exchange: what the threads of a warp show one another.
    """

    module: Module
    function: Function
    helpers: dict[str, str]
    ir: Emitter
    storage: Storage
    operands: Operands
    addresses: Addresses
    waits: Waits
    exchange: Exchange
