"""Loops that threads go through each by itself: none of them reads or writes what another one writes, in any step.

A thread has the same part of every step: some elements of what is carried, or some rows. Where no kernel of a step
takes it beyond what it wrote itself, nobody has to wait for anybody until the last step is done, and a step may be far
too short for threads to meet after it.

What each thread of a kernel touches is told by the code generator (:attr:`tg_codegen.BufferParam.shares`), of the very
kernel that is executed. It is compared by the memory that is touched: the value that a step leaves and the one that
the next step begins with lie in slots of one array.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import prod

from tg_lazy import LazyOp, Ops, ScheduleItem

from ..device.registry import Device
from ..kernels.programs import get_spec
from ..kernels.runner import ast_estimates
from ..kernels.settings import BEAM, NOOPT
from ..memory.buffer import Buffer, buffer_of
from .graph import Walk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tg_codegen import ProgramSpec

_LEAST_SHARE = 3 << 9
"""Operations of a step that a thread does, at the least: a moving average of 700 elements is not faster on two threads,
one of 1,024 is."""
_LEAST_TOTAL = 1 << 16
"""Operations of all steps, from which on that is worth waking threads."""
_MOST_WORK = 1 << 20
"""Operations of a step, from which on threads may well meet after each kernel: that takes a microsecond or two."""

Hulls = dict[int, tuple[int, int]]
"""For each thread, the bytes between which all lie that it touches."""


def threads_apart(schedule: Sequence[ScheduleItem], inputs: Sequence[Buffer], walk: Walk) -> int:
    """How many threads go each by itself through a loop's kernels, made for so many that are awake; 0 for none.

    Args:
      schedule: of the body; what is a view follows what it is a view of already.
      inputs: the buffers that are put in.
      walk: where these lie in each step.
    """
    kernels = [item for item in schedule if item.ast.op is Ops.SINK]
    if BEAM.value or NOOPT.value or walk.length < 2 or not kernels:
        return 0
    device = Device[kernels[0].bufs[0].device]
    if any(
        item.ast.op not in (Ops.SINK, Ops.BUFFER_VIEW, Ops.EMPTY) or item.bufs[0].device != device.device
        for item in schedule
    ):
        return 0
    work = sum(ops if isinstance(ops := ast_estimates(item.ast)[0], int) else _MOST_WORK for item in kernels)
    threads = min(device.steps_apart, work // _LEAST_SHARE)
    memory = _Memory(inputs, walk)
    if threads < 2 or work >= _MOST_WORK or work * walk.length < _LEAST_TOTAL or not memory.regular:
        return 0
    kernels.sort(key=lambda item: _parts(item.ast))
    alone = all(memory.tells(item) for item in kernels) and all(
        memory.apart_after(get_spec(device, item.ast, threads), item) for item in kernels)
    return threads if alone else 0


def _parts(ast: LazyOp) -> tuple[bool, bool, int]:
    """A sort key: kernels of which threads are least likely to have parts come first, as one of these is enough.

    Those are reductions to a few elements, then what reads at computed places, then all others that write few.
    """
    outputs = sum(dim if isinstance(dim := prod(store.src[0].shape), int) else _MOST_WORK for store in ast.src)
    ops = {node.op for node in ast.toposort()}
    return Ops.REDUCE not in ops, not ops & {Ops.REDUCE, Ops.GATHER}, outputs


class _Memory:
    """Who touches what of the memory of a loop.

    Args:
      inputs: the buffers that its body works on.
      walk: where these lie.

    Attributes:
      regular: whether results lie in slots of arrays that are told apart by where they begin.
    """

    def __init__(self, inputs: Sequence[Buffer], walk: Walk) -> None:
        self._inputs, self._places = inputs, walk.places
        self._numbers = {id(buffer): number for number, buffer in enumerate(inputs)}
        self._hulls: dict[object, Hulls] = {}
        self._written: set[object] = set()
        slots = [(p, buffer) for p, buffer in zip(walk.places, inputs, strict=True) if p.buffer == 0 and p.stride]
        arrays = sorted({(place.offset, place.stride) for place, _ in slots})
        ends = {place.offset: place.offset + place.nbytes for place, _ in sorted(slots, key=lambda s: s[0].nbytes)}
        self.regular = all(buffer.nbytes <= place.stride for place, buffer in slots) and all(
            ends[one] <= other for (one, _), (other, _) in pairwise(arrays)
        )

    def tells(self, item: ScheduleItem) -> bool:
        """Whether it is known where a kernel's outputs lie, which it notes as written."""
        for store in item.ast.src:
            if store.arg[0] < len(item.bufs):  # internal ones come last
                cell, _ = self._cell(buffer_of(item.bufs[store.arg[0]]))
                if cell is None:
                    return False
                self._written.add(cell)
                self._hulls.setdefault(cell, {})
        return True

    def apart_after(self, spec: ProgramSpec, item: ScheduleItem) -> bool:
        """Whether threads stay apart that go through another kernel."""
        if spec.threads < 2 or spec.vars:
            return False
        for param, storage in zip(spec.buffers, item.bufs, strict=True):
            cell, offset = self._cell(buffer_of(storage))
            hulls = self._hulls.setdefault(cell, {})
            for thread, share in enumerate(param.shares):
                if share is not None:
                    begin, end = share[0] + offset, share[1] + offset
                    known = hulls.get(thread, (begin, end))
                    hulls[thread] = min(known[0], begin), max(known[1], end)
        return all(_disjoint(self._hulls[cell]) for cell in self._written)

    def _cell(self, buffer: Buffer) -> tuple[object, int]:
        """The memory that a buffer is a part of, in whichever step, and where in it; None for what stays as it is."""
        base = buffer.base
        number = self._numbers.get(id(buffer), self._numbers.get(id(base)))
        if number is None:
            return id(base), buffer.offset
        place = self._places[number]
        if place.buffer != 0 or not place.stride:
            return None, 0
        return ("slots", place.offset), buffer.offset - self._inputs[number].offset


def _disjoint(hulls: Hulls) -> bool:
    return all(end <= begin for (_, end), (begin, _) in pairwise(sorted(hulls.values())))
