"""An instruction set: its registers, and its handlers by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .emitter import Emitter, Operand
from .handlers import ControlHandler, Handler, ScalarHandler, Semantics, VectorHandler
from .state import Layout, Operation
from .transfers import MemoryHandler, ScalarLoadHandler, Shape

NO_APERTURES = (-1, -2)
"""No upper half of an address."""


class InstructionSet:
    """The handlers of an instruction set, by name.

    Args:
      name: of the instruction set, for messages.
      scalars: names of scalar registers, and the 32-bit words of each.
      vectors: how many vector registers there are.

    Attributes:
      handlers: by name.
      routines: functions that handlers call, by their signature.
      apertures: the upper halves of generic addresses in shared memory and in scratch.
    """

    def __init__(self, name: str, scalars: dict[str, int], vectors: int) -> None:
        self.name, self.scalars, self.vectors = name, scalars, vectors
        self.handlers: dict[str, Handler] = {}
        self.routines: dict[str, Callable[[Emitter], None]] = {}
        self.apertures = NO_APERTURES

    def layout(self, lanes: int) -> Layout:
        """Where registers lie in waves of so many lanes."""
        return Layout(self.scalars, self.vectors, lanes)

    def add(self, handler: Handler) -> None:
        """Takes a handler.

        Raises:
          ValueError: if one has its name.
        """
        if handler.name in self.handlers:
            raise ValueError(f"{self.name} has two handlers {handler.name}")
        self.handlers[handler.name] = handler

    def vector(self, name: str, semantics: Semantics, results: Sequence[Operand], sources: Sequence[Operand]) -> None:
        """Adds an instruction that does the same in every active lane."""
        self.add(VectorHandler(name, semantics, results, sources))

    def scalar(self, name: str, semantics: Semantics, results: Sequence[Operand], sources: Sequence[Operand]) -> None:
        """Adds an instruction that is done once for the wave."""
        self.add(ScalarHandler(name, semantics, results, sources))

    def control(self, name: str, body: Callable[[Emitter], None]) -> None:
        """Adds an instruction whose author writes the whole handler."""
        self.add(ControlHandler(name, body))

    def routine(self, signature: str, body: Callable[[Emitter], None]) -> None:
        """Adds a function that handlers call, ``ptr @swap(ptr %w, i32 %row)``; its author writes the whole body."""
        self.routines[signature] = body

    def memory(self, name: str, shape: Shape, address: Semantics, sources: Sequence[Operand]) -> None:
        """Adds a load, a store or an atomic; see :class:`MemoryHandler` and :class:`ScalarLoadHandler`."""
        kind = ScalarLoadHandler if shape.operation is Operation.SCALAR_LOAD else MemoryHandler
        self.add(kind(name, shape, address, sources))
