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
from math import gcd, prod

from tg_lazy import LazyOp, Ops, ScheduleItem

from ..device.compiled import Compiled
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
_MOST_BLOCKS = 64
"""Blocks for each thread, at the most: who touches what is asked of each of them."""
_IDLE = 7
"""Of so many blocks one may be missing at the end, for which a thread then has nothing to do."""
_COMMON = 16
"""What all blocks read, of a step that is cut in blocks, is at the most this part of the memory of one: each reads it
from further away again, and products with large matrices had better be of all rows at once."""
_MOST_WORK = 1 << 20
"""Operations of a step, from which on threads may well meet after each kernel: that takes a microsecond or two."""

Hulls = dict[int, tuple[int, int]]
"""For each thread, the bytes between which all lie that it touches."""


def threads_apart(schedule: Sequence[ScheduleItem], inputs: Sequence[Buffer], walk: Walk) -> int:
    """Into how many parts the kernels of a loop are cut, each of which goes through all steps by itself; 0 for none.

    There is one for each thread; or several, where what a step touches is more than fits into the caches of all cores:
    then a part stays in the cache from its first step to its last, before the thread takes another one.

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
    if threads < 2 or work * walk.length < _LEAST_TOTAL or not _Memory(inputs, walk).regular:
        return 0
    near = _near(device)
    kernels.sort(key=lambda item: _parts(item.ast))
    blocks = _blocks(kernels, -(-_nbytes(kernels) // near), threads)
    if blocks > threads and (memory := _apart(kernels, _Memory(inputs, walk), device, blocks)) is not None:
        if memory.common() <= near // _COMMON:
            return blocks
    if work >= _MOST_WORK or _apart(kernels, _Memory(inputs, walk), device, threads) is None:
        return 0
    return threads


def _near(device: Compiled) -> int:
    """Bytes of a block that stay in the cache of a core."""
    assert device.renderer is not None, "it compiles kernels"
    return device.renderer.target.beside_bytes


def _blocks(kernels: Sequence[ScheduleItem], least: int, threads: int) -> int:
    """How many blocks a step is cut into, at least as many as are wanted where that is not too many.

    Kernels may count rows or elements of rows: a number that divides the outermost dimension cuts all of them alike.
    """
    most, outer = threads * _MOST_BLOCKS, 0
    for item in kernels:
        for store in item.ast.src:
            dim = next((dim for dim in store.src[0].shape if dim != 1), 1)
            outer = gcd(outer, dim if isinstance(dim, int) else 1)
    even = [n for n in range(least, min(outer, most) + 1) if outer % n == 0 and -n % threads * _IDLE <= n]
    return even[0] if even else min(-(-least // threads) * threads, most)


def _nbytes(kernels: Sequence[ScheduleItem]) -> int:
    """How much memory a step of some kernels touches."""
    bases = {id(base): base for item in kernels for base in (buffer_of(storage).base for storage in item.bufs)}
    return sum(base.nbytes for base in bases.values())


def _apart(kernels: Sequence[ScheduleItem], memory: _Memory, device: Compiled, parts: int) -> _Memory | None:
    """The memory, and who touches what of it, where so many parts of a step stay apart."""
    alone = all(memory.tells(item) for item in kernels) and all(
        memory.apart_after(get_spec(device, item.ast, parts), item) for item in kernels)
    return memory if alone else None


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
        """The memory that a buffer is a part of, in whichever step, and where in it; None for parts of what is read.

        What a loop is given and reads whole in each step is memory by itself.
        """
        base = buffer.base
        number = self._numbers.get(id(buffer), self._numbers.get(id(base)))
        if number is None:
            return id(base), buffer.offset
        place = self._places[number]
        if place.buffer != 0 and not place.stride:
            return ("given", number), 0
        if place.buffer != 0 or not place.stride:
            return None, 0
        return ("slots", place.offset), buffer.offset - self._inputs[number].offset

    def common(self) -> int:
        """Bytes that the first two threads both touch, of what is the same in all steps."""
        shared = 0
        for cell, hulls in self._hulls.items():
            if cell is not None and cell not in self._written and 0 in hulls and 1 in hulls:
                shared += max(0, min(hulls[0][1], hulls[1][1]) - max(hulls[0][0], hulls[1][0]))
        return shared


def _disjoint(hulls: Hulls) -> bool:
    return all(end <= begin for (_, end), (begin, _) in pairwise(sorted(hulls.values())))
