"""KernelGraph: kernels of one device, condensed into one launch; the base of every device's graph."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Generic, NamedTuple, TypeVar

from tg_dtype import DType, dtypes

from ..errors import DeviceError
from ..kernels.runner import CompiledRunner
from ..memory.buffer import Buffer
from ..steps.runner import Runner
from .item import ExecItem

P = TypeVar("P")
"""The programs that a device loads."""


class Argument(NamedTuple):
    """A buffer that a kernel of a graph works on.

    Attributes:
      place: which argument of the kernel it is.
      buffer: the buffer, as the graph was made with it.
      input: the number of the input that it is or is a part of; None for memory that stays.
      offset: where in the input it begins, in bytes.
      whole: whether it is the input itself.
    """

    place: int
    buffer: Buffer
    input: int | None = None
    offset: int = 0
    whole: bool = False


class Place(NamedTuple):
    """Where a buffer lies in each step of a loop.

    Attributes:
      buffer: which buffer of the loop it is a part of.
      offset: where its slots begin there, in bytes.
      stride: bytes from one slot to the next.
      first: in which slot it lies in step 0.
      move: how many slots on it lies in the next step; backwards if negative.
      slots: how many there are.
      ring: after how many slots they lie where the first one does, a power of two; 0 for never.
      outside: the buffer that it is where there is no such slot.
    """

    buffer: int
    offset: int = 0
    stride: int = 0
    first: int = 0
    move: int = 0
    slots: int = 1
    ring: int = 0
    outside: int = -1

    @property
    def nbytes(self) -> int:
        """How long the slots are together; 0 if it lies in one place all the time."""
        return self.stride * (min(self.slots, self.ring) if self.ring else self.slots)

    def at(self, step: int) -> tuple[int, int]:
        """The buffer in a step, and the offset there in bytes."""
        slot = self.first + self.move * step
        if not 0 <= slot < self.slots:
            return self.outside, 0
        return self.buffer, self.offset + self.stride * (slot % self.ring if self.ring else slot)


class Walk(NamedTuple):
    """How a loop goes through memory.

    Attributes:
      places: where each buffer of what is executed lies in each step.
      length: how many steps there are.
    """

    places: Sequence[Place]
    length: int


def parts_at(
    bufs: Sequence[Buffer], places: Sequence[Place], kinds: Sequence[tuple[int, DType]], step: int
) -> list[Buffer]:
    """The parts of buffers that places name in a step, each of so many elements of a dtype."""
    out = []
    for place, (size, dtype) in zip(places, kinds, strict=True):
        number, offset = place.at(step)
        whole = bufs[number]
        exact = offset == 0 and whole.size == size and whole.dtype is dtype
        out.append(whole if exact else whole.view(size, dtype, offset))
    return out


def is_set(buffer: Buffer, byte: int = 0) -> bool:
    """Whether a byte of a buffer is not zero, once all work on it is done."""
    flag = buffer if buffer.nbytes == 1 else buffer.view(1, dtypes.bool, byte)
    seen = flag.host_view()
    return any(flag.copyout(memoryview(bytearray(1))) if seen is None else seen)


class KernelGraph(Runner, Generic[P]):
    """Kernels in order, launched as a whole. A subclass makes of them what its driver replays.

    Args:
      items: what to run; each a CompiledRunner of one device, its buffers allocated or inputs.
      inputs: buffers that each replay replaces; a view of one follows it.
      program: what the device loads kernels as.
      kind: a device of the kind, in words.

    Attributes:
      runners: of the items.
      programs: of the runners.
      vars: the variables whose values a replay takes.
      kept: the buffers that stay, which live as long as the graph.
      apart: whether no thread of a kernel reads what another one writes, in any step: each may then go through all
        steps of a loop without a look at the others.

    Raises:
      DeviceError: if an item is no kernel of such a device, or of another one than the first.
    """

    def __init__(self, items: Sequence[ExecItem], inputs: Sequence[Buffer], program: type[P], kind: str) -> None:
        self.items, self.inputs = list(items), list(inputs)
        self._program, self._kind = program, kind
        super().__init__(f"graph of {len(self.items)} kernels", self.items[0].prg.device if self.items else kind)
        self.runners: list[CompiledRunner] = []
        self.programs: list[P] = []
        for item in self.items:
            self.admit(item.prg)
            self.op_estimate = self.op_estimate + item.prg.op_estimate
            self.mem_estimate = self.mem_estimate + item.prg.mem_estimate
        self.num_kernels = len(self.items)
        self.vars = list(dict.fromkeys(var for runner in self.runners for var in runner.vars))
        self.kept: list[Buffer] = []
        self.apart = False
        self._numbers = {id(buffer): number for number, buffer in enumerate(self.inputs)}

    def admit(self, step: Runner) -> None:
        """Takes a step in: its runner and its program.

        Raises:
          DeviceError: if it is no kernel of such a device, or of another one than the first.
        """
        if not isinstance(step, CompiledRunner) or not isinstance(step.program, self._program):
            raise DeviceError(f"{step!r} is no kernel of {self._kind}: it cannot be part of a graph of one")
        if step.device != self.device:
            raise DeviceError(f"{step!r} cannot be part of a graph on {self.device}")
        self.runners.append(step)
        self.programs.append(step.program)

    def arguments(self, item: ExecItem) -> Iterator[Argument]:
        """What an item works on.

        Raises:
          DeviceError: if a buffer is missing.
        """
        for place, buffer in enumerate(item.bufs):
            if buffer is None:
                raise DeviceError(f"{item.prg!r} misses a buffer")
            number = self._numbers.get(id(buffer), self._numbers.get(id(buffer.base)))
            if number is None:
                yield Argument(place, buffer)
            elif buffer is self.inputs[number]:
                yield Argument(place, buffer, number, 0, whole=True)
            else:
                yield Argument(place, buffer, number, buffer.offset - self.inputs[number].offset)

    def keep(self, buffer: Buffer) -> Buffer:
        """Allocates a buffer that stays, if nobody did, and holds it."""
        self.kept.append(buffer)
        return buffer.ensure_allocated()

    def blocks(self, item: ExecItem) -> list[int]:
        """The identity of the block behind each buffer of an item, to tell which kernels must wait for which.

        Whole blocks count, not parts; and all inputs as one, since a replay may be given the same buffer twice.
        """
        return [0 if a.input is not None else id(a.buffer.base) for a in self.arguments(item)]

    def replaced(self, item: ExecItem, bufs: Sequence[Buffer]) -> list[Buffer]:
        """The buffers of an item in a replay with ``bufs`` for the inputs, to run it without the graph."""
        return [
            buffer if number is None
            else bufs[number] if whole
            else bufs[number].view(buffer.size, buffer.dtype, offset)
            for _, buffer, number, offset, whole in self.arguments(item)
        ]  # fmt: skip

    def repeat(
        self, bufs: Sequence[Buffer], places: Sequence[Place], start: int, stop: int, flag: int | None = None
    ) -> int:
        """Runs all kernels in each step from ``start`` to before ``stop``, on parts of ``bufs`` that places name.

        Args:
          flag: which byte of the first buffer no step may clear for another one to follow; None if there is no such.

        Returns:
          The number of the step that would be next.
        """
        kinds = [(buffer.size, buffer.dtype) for buffer in self.inputs]
        for step in range(start, stop):
            self(parts_at(bufs, places, kinds, step), {})
            if flag is not None and not is_set(bufs[0], flag):
                return step + 1
        return stop

    def wrong_count(self, bufs: Sequence[Buffer]) -> ValueError:
        """The error of a replay with another number of buffers than ``inputs``."""
        return ValueError(f"{self.name} takes {len(self.inputs)} buffers, got {len(bufs)}")
