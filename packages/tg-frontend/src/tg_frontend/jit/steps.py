"""The steps of a record: kernels and copies, ready to be executed on memory that each replay puts in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tg_lazy import ANOMALY, DEBUG, ContextVar
from tg_runtime import Buffer, CompiledRunner, Device, DeviceError, EmptyOp, ExecItem, Usage, ViewOp, arrange, watched
from tg_runtime.telemetry.counters import human

from .made import written_by

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tg_runtime.steps.runner import Runner
    from tg_shape import Variable

    Source = tuple[int, int, int]
    """Which buffer of an item is replaced, by which one, and at which offset in bytes of a view of that; else -1."""

JIT: ContextVar[int] = ContextVar("JIT", 1)
"""0: TinyJit only calls. 1: records, and condenses the record for devices that can. 2: records only."""


class Steps:
    """What a recorded call executed.

    Args:
      items: it, in order.
      ended: memory between the items.
      replaced: the buffers that each replay replaces.
      values: the variables' values in that call.

    Attributes:
      steps: the items, runs of them condensed into one; each with the buffers of it that are replaced.
      items: what is executed, those left out that do nothing in a replay.
      memory: what the memory between them takes.
      doubts: views that some values of the variables lead out of their buffers.
      alone: what executes all, if it is one and takes exactly the buffers that are replaced; else None.
    """

    def __init__(
        self,
        items: Iterable[ExecItem],
        ended: Iterable[Buffer],
        replaced: Sequence[Buffer],
        values: Mapping[Variable, int],
    ) -> None:
        self._replaced, self._values = list(replaced), values
        self._places = {id(buffer): i for i, buffer in enumerate(replaced)}
        # views follow what they are views of; memory is there already
        executed = [item for item in items if not isinstance(item.prg, (ViewOp, EmptyOp))]
        # where memory is shared kernels are made anew, of which nobody knows what their parts are
        self.items, self.memory = arrange(executed, [] if ANOMALY.value else ended)
        self.doubts = tuple({doubt for item in self.items for doubt in item.prg.doubts})
        if DEBUG.value:
            print(f"recorded {len(self.items)} steps, {_told(self.memory)}")
        self.steps = self._condensed() if JIT.value == 1 else self._apart()
        self._single: list[tuple[ExecItem, list[Source]]] = []  # the items one by one, once anomaly mode wants them so
        self.alone: Runner | None = None
        if len(self.steps) == 1:
            one, sources = self.steps[0]
            everything = [(i, i, -1) for i in range(len(replaced))]
            if sources == everything and len(one.bufs) == len(everything):
                self.alone = one.prg

    def run(self, buffers: Sequence[Buffer], values: Mapping[Variable, int]) -> None:
        """Executes the steps one by one.

        Args:
          buffers: what stands in the place of those that are replaced.
          values: the variables' values.
        """
        looks, steps = ANOMALY.value, self.steps
        if looks:
            steps = self._single = self._single or self._apart()
        try:
            for item, sources in steps:
                for position, place, offset in sources:
                    buffer = buffers[place]
                    if offset >= 0:
                        part = item.bufs[position]
                        assert part is not None
                        buffer = buffer.view(part.size, part.dtype, offset)
                    item.bufs[position] = buffer
                watch = watched(item.prg, item.bufs, values, item.told_origin) if looks else None
                item.run(values, jit=True)
                if watch is not None:
                    watch.check()
        finally:
            self._let_go(steps)

    def _let_go(self, steps: list[tuple[ExecItem, list[Source]]]) -> None:
        """Drops the memory of this call, so that its owners alone decide when it is freed."""
        for item, sources in steps:
            for position, place, offset in sources:
                if offset < 0:
                    item.bufs[position] = self._replaced[place]

    def abandoned(self, buffers: Sequence[Buffer]) -> None:
        """Marks everything that the steps write: a second Ctrl-C ended them in the middle."""
        for item in self.items:
            for position in written_by(item):
                buffer = item.bufs[position]
                assert buffer is not None
                place = self._places.get(id(buffer.base))
                (buffer if place is None else buffers[place]).spoil("a replay of TinyJit was interrupted twice")

    def _sources(self, item: ExecItem) -> list[Source]:
        out: list[Source] = []
        for position, buffer in enumerate(item.bufs):
            assert buffer is not None
            place = self._places.get(id(buffer))
            if place is not None:
                out.append((position, place, -1))
            elif id(buffer.base) in self._places:
                place = self._places[id(buffer.base)]
                out.append((position, place, buffer.offset - self._replaced[place].offset))
        return out

    def _apart(self) -> list[tuple[ExecItem, list[Source]]]:
        """The items one by one."""
        return [(item, self._sources(item)) for item in self.items]

    def _condensed(self) -> list[tuple[ExecItem, list[Source]]]:
        """The items, runs of kernels of one device, and of what its graphs take besides, condensed into one."""
        steps: list[tuple[ExecItem, list[Source]]] = []
        batch: list[ExecItem] = []

        def close() -> None:
            if not batch:
                return
            graph = Device[batch[0].prg.device].graph
            if graph is not None and len(batch) >= Device[batch[0].prg.device].graph_from:
                try:
                    condensed = ExecItem(graph(batch, self._replaced, self._values), self._replaced)
                except DeviceError:
                    condensed = None
                if condensed is not None:
                    steps.append((condensed, [(i, i, -1) for i in range(len(self._replaced))]))
                    batch.clear()
                    return
            steps.extend((item, self._sources(item)) for item in batch)
            batch.clear()

        for item in self.items:
            simple = isinstance(item.prg, CompiledRunner) and not item.prg.symbolic
            own = simple and bool(batch) and item.prg.device == batch[0].prg.device
            if batch and not own and Device[batch[0].prg.device].joins(item.prg):
                batch.append(item)
                continue
            if not own:
                close()
            if simple:
                batch.append(item)
            else:
                steps.append((item, self._sources(item)))
        close()
        return steps


def _told(memory: Usage) -> str:
    if not memory.buffers:
        return "no buffers between them"
    shared, alone = (human(nbytes, "B", 1024) for nbytes in (memory.arena_nbytes, memory.nbytes))
    return f"{memory.buffers} buffers between them in {shared} instead of {alone}, {memory.in_place} in place"
