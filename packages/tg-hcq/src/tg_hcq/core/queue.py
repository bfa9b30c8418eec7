"""HWQueue: a list of command words for a hardware queue, built once and submitted any number of times."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from array import array
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, Self

from tg_runtime import BufferOptions
from tg_runtime.host.interrupts import Uninterrupted
from tg_shape import Expr, Variable, sint

from .args import HCQArgsState
from .buffer import HCQBuffer
from .fileio import MMIO
from .native import Outcome
from .patch import PatchTable
from .replay import Counter, Replay
from .ring import Ring
from .signal import HCQSignal, SignalOwner
from .system import System

Dims = tuple[sint, sint, sint]

SERIAL = Variable("queue_serial", 0, 2**31 - 1)

_NO_VALUES: Mapping[Variable, int] = {}
_BOUND_OPTIONS = BufferOptions(host=True, nolru=True)


class Launchable(Protocol):
    """What a queue must know of a program to launch it; a device's queue takes the device's own programs only."""

    name: str


class QueueMemory(Protocol):
    """Where a bound queue puts its words."""

    def alloc(self, nbytes: int, options: BufferOptions) -> HCQBuffer:
        """Memory that the host can write."""

    def retire(self, opaque: HCQBuffer, options: BufferOptions, done: Callable[[], bool]) -> None:
        """Takes it back once ``done()``, without waiting."""


class QueueDevice(SignalOwner, Protocol):
    """What a queue asks of the device that it is bound or submitted to.

    Attributes:
      generation: how often the device was reset, which forgets what was submitted.
    """

    generation: int

    @property
    def system(self) -> System:
        """What the device asks of the operating system."""

    @property
    def queue_memory(self) -> QueueMemory:
        """Memory for bound queues."""

    def new_signal(self, value: int = 0) -> HCQSignal:
        """A signal of this device."""


class HWQueue(ABC):
    """Commands for one hardware queue, executed in order.

    Each method appends commands and returns the queue, so that they chain. Any address, size or value may be symbolic:
    it is given a number at each ``submit``, and only the words that hold changed values are written again. ``bind``
    moves the words to device memory, after which a submission is one jump.

    A queue that is bound, or has symbolic arguments, is fenced: before words or argument blocks are patched that the
    last submission may still read, it is waited for. A queue is sealed by its first ``submit`` or ``bind``; nothing can
    be appended then. It keeps alive what its commands refer to, so keep the queue until they are done; submissions
    through a timeline need no such care.

    A subclass says how each command looks, with :meth:`put` and :meth:`put64`, which ring words go to, and how a ring
    jumps to words elsewhere; or, where there is no ring, how the system is asked to execute them.

    Attributes:
      writes: the buffers that its launches write, and those that whoever appended a copy or a store put here. What a
        reset interrupts is lost.
    """

    def __init__(self) -> None:
        self.writes: list[HCQBuffer] = []
        self._words = array("I")
        self._patches = PatchTable()
        self._spaces: list[MMIO] = []
        self._staged: list[MMIO] = []
        self._counters: list[tuple[Variable, Counter, int]] = []
        self._kept: list[object] = []
        self._lock = threading.Lock()
        self._sealed_for: QueueDevice | None = None
        self._fence: HCQSignal | None = None
        self._serial, self._generation = Counter(), 0
        self._replay: Replay | None = None
        self._memory: HCQBuffer | None = None
        self._sent = array("I")
        self._content = MMIO.of(bytearray(4), "I")

    # commands

    def signal(self, signal: HCQSignal | Expr, value: sint) -> Self:
        """Sets a signal, or the one at a symbolic address, to ``value`` once everything before it is done."""
        self._signal(self._address(signal), value)
        return self

    def wait(self, signal: HCQSignal | Expr, value: sint) -> Self:
        """Holds the queue until a signal, or the one at a symbolic address, is at least ``value``."""
        self._wait(self._address(signal), value)
        return self

    def timestamp(self, signal: HCQSignal | Expr) -> Self:
        """Writes the device's clock to a signal once everything before it is done."""
        self._timestamp(self._address(signal) + HCQSignal.TIMESTAMP_OFFSET)
        return self

    @abstractmethod
    def _signal(self, address: sint, value: sint) -> None:
        """Appends the 64-bit store of a signal's value."""

    @abstractmethod
    def _wait(self, address: sint, value: sint) -> None:
        """Appends the wait for a signal's value."""

    @abstractmethod
    def _timestamp(self, address: sint) -> None:
        """Appends the store of the 64-bit clock."""

    @abstractmethod
    def memory_barrier(self) -> Self:
        """Makes writes before it, by whomever, visible to what comes after it."""

    @abstractmethod
    def copy(self, dest: sint, src: sint, nbytes: sint) -> Self:
        """Copies bytes between addresses."""

    @abstractmethod
    def write(self, dest: sint, words: Sequence[sint]) -> Self:
        """Stores 32-bit words at an address."""

    @abstractmethod
    def poll(self, address: sint, value: sint, mask: int = 0xFFFFFFFF) -> Self:
        """Holds the queue until the 32-bit word at an address, under ``mask``, equals ``value``."""

    @abstractmethod
    def _exec(self, program: Launchable, args: HCQArgsState, global_size: Dims, local_size: Dims) -> None:
        """Appends the launch."""

    def exec(
        self,
        program: Launchable,
        args: HCQArgsState,
        global_size: Dims = (1, 1, 1),
        local_size: Dims = (1, 1, 1),
    ) -> Self:
        """Launches ``program``. Symbolic arguments are patched in ``args``' memory, which no other launch may use.

        Where that memory is at a symbolic address, it is a draft: each submission copies it to where ``direct`` says.

        Raises:
          TypeError: if the program is of another kind of device.
        """
        self._exec(program, args, global_size, local_size)
        draft = isinstance(args.memory.address, Expr)
        if args.symbolic or draft:
            view = args.memory.host_view("I")
            space = self.add_space(view)
            if draft:
                self._staged.append(view)
            for offset, nbytes, value in args.symbolic:
                self._patches.add_bytes(value, space, offset, nbytes)
        self._kept += (program, args)
        self.writes += [buffer for buffer in args.written if isinstance(buffer.address, int)]
        return self

    # building blocks for subclasses

    def put(self, *values: sint) -> None:
        """Appends 32-bit words.

        Raises:
          ValueError: if the queue is sealed, or a value does not always fit in 32 bits.
        """
        self._check_open()
        for value in values:
            if isinstance(value, Expr):
                if value.vmin < -(2**31) or value.vmax >= 2**32:
                    raise ValueError(f"queue word: {value.render()} does not always fit in 32 bits")
                self._patches.add(value, 0, len(self._words))
                self._words.append(0)
            else:
                if not -(2**31) <= value < 2**32:
                    raise ValueError(f"queue word: {value} does not fit in 32 bits")
                self._words.append(value & 0xFFFFFFFF)

    def put64(self, *values: sint) -> None:
        """Appends 64-bit values, each as two words, the low one first.

        Raises:
          ValueError: if the queue is sealed, or a value does not always fit in 64 bits.
        """
        self._check_open()
        for value in values:
            low, high = (value.vmin, value.vmax) if isinstance(value, Expr) else (value, value)
            if low < -(2**63) or high >= 2**64:
                raise ValueError(f"queue words: {value} does not always fit in 64 bits")
            if isinstance(value, Expr):
                self._patches.add_bytes(value, 0, 4 * len(self._words), 8)
                self._words.extend((0, 0))
            else:
                self._words.extend((value & 0xFFFFFFFF, value >> 32 & 0xFFFFFFFF))

    def put_field(self, word: int, value: sint, low: int, width: int) -> None:
        """Sets bits ``low`` to ``low + width`` of a word that was appended before, counted from the queue's beginning.

        Raises:
          ValueError: if the queue is sealed, or the value does not always fit.
        """
        self._check_open()
        least, most = (value.vmin, value.vmax) if isinstance(value, Expr) else (value, value)
        if least < 0 or most >> width:
            raise ValueError(f"queue word: {value} does not always fit in {width} bits")
        if isinstance(value, Expr):
            self._patches.add(value, 0, word, width=width, low=low)
        else:
            mask = ((1 << width) - 1) << low
            self._words[word] = (self._words[word] & ~mask) | value << low

    def add_space(self, words: MMIO) -> int:
        """Registers memory outside of the queue that submissions patch; returns its number for the patch table."""
        self._check_open()
        self._spaces.append(words)
        return len(self._spaces)

    def count(self, variable: Variable, counter: Counter, step: int) -> Self:
        """Has each submission take a variable from memory: ``step`` more than a counter, which it advances by that."""
        self._check_open()
        self._counters.append((variable, counter, step))
        return self

    def direct(self, number: int, address: int) -> None:
        """Sets where the host finds the memory of the ``number``-th launch whose arguments are a draft."""
        assert self._replay is not None
        self._replay.direct(number, address)

    def release(self) -> None:
        """Drops what the commands refer to; who calls it keeps that alive."""
        self._kept.clear()

    def keep(self, *objects: object) -> None:
        """Keeps objects alive as long as the queue."""
        self._kept += objects

    def __len__(self) -> int:
        """Number of 32-bit words."""
        return len(self._words)

    @property
    def patches(self) -> PatchTable:
        """What a submission changes."""
        return self._patches

    @property
    def bound(self) -> HCQBuffer | None:
        """The device memory that holds the words, if the queue is bound."""
        return self._memory

    # submission

    def bind(self, device: QueueDevice) -> Self:
        """Moves the words to memory of ``device``, to which alone the queue can be submitted from now on.

        Raises:
          ValueError: if it was bound or submitted before.
          OutOfMemory: if there is no memory for the words.
        """
        with self._lock:
            self._check_open()
            self._bind(device)
        return self

    def _bind(self, device: QueueDevice) -> None:
        self._fence_off(device)
        self._end()
        memory = device.queue_memory.alloc(4 * max(len(self._words), 1), _BOUND_OPTIONS)
        words = memory.host_view("I")
        words.write(0, self._words)
        assert isinstance(memory.address, int)
        ringed = self._ring(device) is not None
        jump = array("I", self._jump(memory.address, len(self._words)) if ringed else ())
        self._memory = memory
        self._seal(device, words, jump)

    def submit(self, device: QueueDevice, var_vals: Mapping[Variable, int] | None = None) -> Self:
        """Sends the commands to the hardware, with values for their variables.

        Args:
          device: where to; the same one every time.
          var_vals: a value for each variable in the queue.

        Raises:
          ValueError: if a variable has no value or one outside of its bounds; nothing has been sent then.
          DeviceFault: if the device is stopped.
          ContentLost: if the device was reset, and the content of a buffer is lost that a launch uses.
          DeviceTimeout: if the previous submission, whose words are to be patched, does not end.
        """
        self._go(device, var_vals, dry=False)
        return self

    def prepare(self, device: QueueDevice, var_vals: Mapping[Variable, int] | None = None) -> Self:
        """Waits until ``submit`` with these values would not: its words are in use no more, and the ring has room.

        Raises:
          ValueError: as of ``submit``.
          DeviceFault: as of ``submit``.
          DeviceTimeout: if the previous submission does not end, or the ring does not empty.
        """
        self._go(device, var_vals, dry=True)
        return self

    def _go(self, device: QueueDevice, var_vals: Mapping[Variable, int] | None, dry: bool) -> None:
        device.raise_error_state()
        with self._lock:
            if self._replay is None:
                self._complete(device)
            replay, owner = self._replay, self._sealed_for
            assert replay is not None and owner is not None
            if owner is not device:
                raise ValueError(f"the queue belongs to {owner.device}, not {device.device}")
            if self._generation != device.generation:
                self._begin_again(device.generation)
            ring = self._ring(device)
            if ring is not None:
                replay.send(ring, self._sent)
            if self._serial.value == SERIAL.vmax and self._fence is not None:
                self._settle()
                self._fence.value = self._serial.value = 0
            values = _NO_VALUES if var_vals is None else var_vals
            while (outcome := self._attempt(replay, device, values, dry, ring is None)) is not Outcome.DONE:
                if ring is None or outcome is Outcome.BUSY:
                    self._settle()
                else:
                    ring.wait(len(self._sent), device.timeout_ms)

    def _attempt(
        self, replay: Replay, device: QueueDevice, values: Mapping[Variable, int], dry: bool, asks: bool
    ) -> Outcome:
        if dry or not asks:
            return replay(values, dry)
        with Uninterrupted():  # no signal between what is counted and what the system is asked
            outcome = replay(values)
            if outcome is Outcome.DONE:
                try:
                    self._hand_over(device, self._content, self._memory)
                except BaseException:
                    replay.undo()
                    raise
        return outcome

    def complete(self, device: QueueDevice) -> Self:
        """Seals the queue for ``device``, as its first submission would.

        Raises:
          ValueError: if it was bound or submitted before.
        """
        with self._lock:
            self._check_open()
            self._complete(device)
        return self

    def _complete(self, device: QueueDevice) -> None:
        if len(self._spaces) > len(self._staged):
            self._fence_off(device)
        self._end()
        self._seal(device, MMIO.of(memoryview(self._words), "I"), self._words)

    def _end(self) -> None:  # noqa: B027
        """Appends what must stand behind the last command: no-operations where a length must be a multiple."""

    @abstractmethod
    def _ring(self, device: QueueDevice) -> Ring | None:
        """The ring of ``device`` that the words go to; None where the system is asked to execute them."""

    def _jump(self, address: int, count: int) -> Sequence[int]:
        """What goes into the ring to have ``count`` words at an address executed. Asked of queues with a ring."""
        raise NotImplementedError(f"{type(self).__name__} has a ring, and says no jump")

    def _hand_over(self, device: QueueDevice, words: MMIO, memory: HCQBuffer | None) -> None:
        """Asks the system to execute words after all that it was asked before. Asked of queues without a ring.

        Args:
          device: whose queue it is.
          words: what is executed, with this submission's values, as the host sees it.
          memory: where the device finds it; None if the queue is not bound, and the words go wherever they are wanted.

        Raises:
          DeviceError: if the system refuses; nothing counts as submitted then.
        """
        raise NotImplementedError(f"{type(self).__name__} has no ring, and does not say how words are handed over")

    def _address(self, signal: HCQSignal | Expr) -> sint:
        if isinstance(signal, Expr):
            return signal
        self._kept.append(signal)
        return signal.address

    def _begin_again(self, generation: int) -> None:
        """After a reset: raises if it lost the content of a buffer that a launch uses; no submission is on its way."""
        for kept in self._kept:
            for buffer in kept.bufs if isinstance(kept, HCQArgsState) else ():
                _ = buffer.address
        if self._fence is not None:
            self._fence.value = self._serial.value
        self._generation = generation

    def _check_open(self) -> None:
        if self._sealed_for is not None:
            raise ValueError(f"the queue was submitted or bound to {self._sealed_for.device}: nothing can be appended")

    def _settle(self) -> None:
        """Waits for the last submission."""
        if self._fence is not None:
            self._fence.wait(self._serial.value)

    def _fence_off(self, device: QueueDevice) -> None:
        """Has every submission set a signal at its end, which tells that its words are in use no more."""
        self._fence = device.new_signal()
        self.signal(self._fence, SERIAL).count(SERIAL, self._serial, 1)

    def _seal(self, device: QueueDevice, words: MMIO, sent: array[int]) -> None:
        self._sealed_for, self._sent, self._content = device, sent, words
        self._replay = Replay(self._patches, [words, *self._spaces], self._counters)
        for draft in self._staged:
            self._replay.stage(draft)
        if self._fence is not None:
            self._replay.guard(self._fence.slot.host_view("Q"), self._serial)

    def __del__(self) -> None:
        memory, device = getattr(self, "_memory", None), getattr(self, "_sealed_for", None)
        fence = getattr(self, "_fence", None)
        if memory is None or device is None or fence is None:
            return
        serial, generation = self._serial.value, self._generation
        device.queue_memory.retire(
            memory, _BOUND_OPTIONS, lambda: device.generation != generation or fence.value >= serial
        )
