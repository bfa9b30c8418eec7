"""Recording: kernels and copies of one or several devices as bound queues, submitted together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import Final, NamedTuple

from tg_runtime import DeviceError
from tg_runtime.host.interrupts import Uninterrupted
from tg_shape import Variable, sint

from .allocator import HOST_OPTIONS
from .buffer import HCQBuffer
from .compiled import HCQCompiled
from .dependences import Use, Work, order
from .program import HCQProgram
from .queue import HWQueue
from .replay import Counter
from .signal import HCQSignal
from .timeline import LIMIT

_MOST_SIGNALS: Final = LIMIT
_STAMP_NBYTES: Final = 8


Written = tuple[HCQCompiled, HCQBuffer]
"""Memory that is written, and whose it is."""


class Kernel(NamedTuple):
    """A launch.

    Attributes:
      program: what is launched.
      bufs: its buffers; their addresses may be symbolic.
      vals: its scalars.
      global_size: work-groups along x, y, z.
      local_size: work-items of a group.
      uses: the bytes that it reads and writes.
    """

    program: HCQProgram
    bufs: Sequence[HCQBuffer]
    vals: Sequence[sint]
    global_size: tuple[sint, sint, sint]
    local_size: tuple[int, int, int]
    uses: Sequence[Use]

    @property
    def device(self) -> HCQCompiled:
        """Where it runs."""
        return self.program.device


class Copy(NamedTuple):
    """A copy, by a queue of the device that it is from.

    Attributes:
      device: whose queue copies.
      other: the device that it is to.
      dest: where to; its address may be symbolic.
      src: where from, as many bytes.
      uses: the bytes that it reads and writes.
    """

    device: HCQCompiled
    other: HCQCompiled
    dest: HCQBuffer
    src: HCQBuffer
    uses: Sequence[Use]


class _Lane:
    """A queue of the recording.

    Attributes:
      device: its device.
      copies: whether it is the device's copy queue.
      queue: its words.
      mark: the signal that tells others how far it is.
      turn: how often it was submitted.
      marks: for each step that signals, the how-manyth of its lane it is.
    """

    def __init__(self, device: HCQCompiled, copies: bool) -> None:
        make = device.copy_queue if copies else device.compute_queue
        assert make is not None
        self.device, self.copies, self.queue = device, copies, make()
        self.mark: HCQSignal = device.new_signal()
        self.turn = Counter()
        self.marks: dict[int, int] = {}


class Recording:
    """Steps that are submitted together, each after those alone that it depends on.

    Kernels go to the compute queue of their device and copies to a copy queue. A device's timeline is past a submission
    when all queues are.

    Args:
      steps: what to do.
      stamped: note when each step begins and ends.

    Attributes:
      devices: every device that executes a step, or whose memory one touches.
      tracks: for each step, the index of its device and the name of its queue.
    """

    def __init__(self, steps: Sequence[Kernel | Copy], stamped: bool = False) -> None:
        self.devices = list(dict.fromkeys(device for step in steps for device in _touched(step)))
        lanes: dict[tuple[int, bool], _Lane] = {}
        works: list[Work] = []
        for place, device in enumerate(self.devices):  # the one that ends a device's part is there in any case
            lanes[place, False] = _Lane(device, copies=False)
        for step in steps:
            key = self.devices.index(step.device), isinstance(step, Copy) and step.device.copy_queue is not None
            if key not in lanes:
                lanes[key] = _Lane(step.device, copies=True)
            works.append(Work(list(lanes).index(key), step.uses))
        self._lanes = list(lanes.values())
        self.tracks = [(list(lanes)[work.queue][0], _track(self._lanes[work.queue])) for work in works]
        last = {work.queue: number for number, work in enumerate(works)}
        for number, lane in enumerate(self._lanes):
            if not lane.copies:
                works.append(Work(number, after=[at for queue, at in last.items() if queue != number]))
        self._arguments: list[tuple[HCQCompiled, HCQBuffer]] = []
        self._stamps = [Variable(f"stamps{place}", 0, 2**63 - 1) for place in range(len(self.devices))]
        self._last = [Variable(f"timeline{place}_last", 0, LIMIT) for place in range(len(self.devices))]
        self._generations = [device.generation for device in self.devices]
        self._used: list[HCQBuffer] = []
        self._written: list[Written] = []
        self._record(steps, works, stamped)
        self._written = [(owner, buffer) for owner, buffer in self._written if isinstance(buffer.address, int)]

    def _record(self, steps: Sequence[Kernel | Copy], works: Sequence[Work], stamped: bool) -> None:
        orders = order(works)
        for number, (work, what) in enumerate(zip(works, orders, strict=True)):
            if what.signals:
                marks = self._lanes[work.queue].marks
                marks[number] = len(marks) + 1
        self._most_turns = _MOST_SIGNALS // max(1, *(len(lane.marks) for lane in self._lanes))
        turn = Variable("turn", 1, self._most_turns)
        blocks = self._blocks(steps)
        with ExitStack() as ends:
            for lane in self._lanes:
                self._begin(lane, turn, ends)
            for number, (work, what) in enumerate(zip(works, orders, strict=True)):
                lane = self._lanes[work.queue]
                for earlier in what.waits:
                    other = self._lanes[works[earlier].queue]
                    lane.queue.wait(other.mark, (turn - 1) * len(other.marks) + other.marks[earlier])
                if what.barrier:
                    lane.queue.memory_barrier()
                if number < len(steps):
                    self._step(lane.queue, number, steps[number], blocks, stamped)
                if what.signals:
                    lane.queue.signal(lane.mark, (turn - 1) * len(lane.marks) + lane.marks[number])
        for lane in self._lanes:
            lane.queue.bind(lane.device)

    def _begin(self, lane: _Lane, turn: Variable, ends: ExitStack) -> None:
        lane.queue.count(turn, lane.turn, 1)
        for place, device in enumerate(self.devices):
            if lane.copies or device is not lane.device:
                signal = Variable(f"timeline{place}_signal", 0, 2**64 - 1)
                device.timeline.follow(lane.queue, signal, self._last[place])
        if lane.copies:
            lane.queue.memory_barrier()
        else:
            ends.enter_context(lane.device.timeline.recording(lane.queue))

    def _blocks(self, steps: Sequence[Kernel | Copy]) -> list[HCQBuffer | None]:
        """Memory for the arguments of each kernel, all that a device launches in one piece."""
        sizes = [
            -(-step.program.layout_of(len(step.bufs), len(step.vals)).nbytes // 64) * 64
            if isinstance(step, Kernel) else 0
            for step in steps
        ]  # fmt: skip
        blocks: list[HCQBuffer | None] = [None] * len(steps)
        for device in self.devices:
            own = [number for number, step in enumerate(steps) if isinstance(step, Kernel) and step.device is device]
            if not own:
                continue
            memory = device.allocator.alloc(sum(sizes[number] for number in own), HOST_OPTIONS)
            self._arguments.append((device, memory))
            start = 0
            for number in own:
                blocks[number] = memory.offset(start, sizes[number])
                start += sizes[number]
        return blocks

    def _step(
        self, queue: HWQueue, number: int, step: Kernel | Copy, blocks: Sequence[HCQBuffer | None], stamped: bool
    ) -> None:
        stamp = self._stamps[self.tracks[number][0]] + (2 * number * _STAMP_NBYTES - HCQSignal.TIMESTAMP_OFFSET)
        assert not isinstance(stamp, int)
        if stamped:
            queue.timestamp(stamp)
        if isinstance(step, Copy):
            queue.copy(step.dest.address, step.src.address, step.src.nbytes)
            self._used += (step.dest, step.src)
            self._written.append((step.other, step.dest))
        else:
            args = step.program.fill_args(step.bufs, step.vals, blocks[number])
            queue.exec(step.program, args, step.global_size, step.local_size)
            self._used += step.bufs
            self._written += ((step.device, buffer) for buffer in args.written)
        if stamped:
            stop = stamp + _STAMP_NBYTES
            assert not isinstance(stop, int)
            queue.timestamp(stop)

    def keep(self, *objects: object) -> None:
        """Keeps objects alive as long as the recording."""
        self._lanes[0].queue.keep(*objects)

    def submit(self, values: Mapping[Variable, int], written: Sequence[Written] = ()) -> None:
        """Submits all queues, after everything that was submitted to any of the devices before.

        Args:
          values: the values of the variables.
          written: the memory that is written and whose addresses are among the values.

        Raises:
          ValueError: if a variable has no value or one outside of its bounds; nothing has been sent then.
          DeviceFault: if a device is stopped.
          DeviceTimeout: if a queue has no room, or the previous submission does not end; nothing has been sent then.
        """
        if len(self._lanes) == 1:
            lane = self._lanes[0]
            if lane.turn.value >= self._most_turns:
                lane.turn.value = 0  # nobody reads its mark
            lane.device.timeline.replay(lane.queue, values, [buffer for _, buffer in written])
            return
        with ExitStack() as locks:
            # one order for all threads, as of transfers
            for device in sorted(self.devices, key=lambda device: id(device.timeline)):
                locks.enter_context(device.timeline.lock)
            self._make_room()
            asked = {**values, **{v: d.timeline.value - 1 for v, d in zip(self._last, self.devices, strict=True)}}
            for lane in self._lanes:
                lane.queue.prepare(lane.device, asked)
            with Uninterrupted():
                self._note([*self._written, *written])
                self._send(asked)

    def submit_stamped(
        self, values: Mapping[Variable, int], written: Sequence[Written] = ()
    ) -> Callable[[], list[tuple[int, int]]]:
        """As ``submit``, for a stamped recording.

        Returns:
          A function that waits, and returns the nanoseconds of each device's own clock when each step began and ended.
        """
        nbytes = 2 * _STAMP_NBYTES * len(self.tracks)
        memories = [device.allocator.alloc(nbytes, HOST_OPTIONS) for device in self.devices]
        addresses = {v: m.address for v, m in zip(self._stamps, memories, strict=True)}
        self.submit({**values, **addresses}, written)  # type: ignore[dict-item]

        def read() -> list[tuple[int, int]]:
            for device in self.devices:
                device.synchronize()
            out = []
            for number, (place, _) in enumerate(self.tracks):
                start, stop = memories[place].host_view("Q").read(2 * number, 2)
                rate = self.devices[place].ticks_per_us
                out.append((round(start / rate * 1000), round(stop / rate * 1000)))
            for device, memory in zip(self.devices, memories, strict=True):
                device.allocator.retire(memory, HOST_OPTIONS)
            return out

        return read

    def _note(self, written: Sequence[Written]) -> None:
        """Notes what a reset of any of the devices would leave half written."""
        for owner in self.devices:
            own = [buffer for device, buffer in written if device is owner]
            for device in self.devices if own else ():
                device.timeline.pending.add((device.timeline.epoch, device.timeline.value), own, owner.allocator)
                if device is not owner:
                    owner.allocator.visited(device.timeline)

    def _make_room(self) -> None:
        generations = [device.generation for device in self.devices]
        if generations != self._generations or self._lanes[0].turn.value >= self._most_turns:
            for device in self.devices:
                device.synchronize()
            for lane in self._lanes:
                lane.mark.value = lane.turn.value = 0
            for buffer in self._used:
                _ = buffer.address  # which raises where its content is lost
            self._generations = generations
        for device in self.devices:
            device.timeline.make_room()

    def _send(self, values: Mapping[Variable, int]) -> None:
        """Submits the queues; those that end a device's part come last, for they count its timeline on."""
        try:
            for lane in sorted(self._lanes, key=lambda lane: not lane.copies):
                lane.queue.submit(lane.device, values)
        except BaseException as error:
            # some queues wait for others now that will never come
            for device in self.devices:
                device.fail(DeviceError(f"{device.device}: only a part of a graph could be submitted: {error}"))
            raise

    def __del__(self) -> None:
        for device, memory in self.__dict__.pop("_arguments", ()):
            device.allocator.retire(memory, HOST_OPTIONS)


def _touched(step: Kernel | Copy) -> tuple[HCQCompiled, ...]:
    return (step.device, step.other) if isinstance(step, Copy) else (step.device,)


def _track(lane: _Lane) -> str:
    return "copy queue" if lane.copies else "compute queue"
