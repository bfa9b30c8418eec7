"""The loop itself, on nodes of the graph: where each value of its body lies in each step."""

from __future__ import annotations

from math import prod
from typing import NamedTuple

from tg_dtype import dtypes
from tg_lazy import LazyBuffer
from tg_lazy.graph.isolate import isolate
from tg_runtime import Body, LoopRunner, Place

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_ALIGNMENT = 256
"""Bytes at multiples of which results begin in their common memory: the strictest of the devices' own alignments."""


class Steps(NamedTuple):
    """What happens in each step of a loop.

    Attributes:
      carry_in: what stands for the values that one step leaves to the next.
      x_in: what stands for the step's parts of what is gone through.
      carry_out: the values that it leaves.
      y_out: what it adds to the results.
    """

    carry_in: tuple[LazyBuffer, ...]
    x_in: tuple[LazyBuffer, ...]
    carry_out: tuple[LazyBuffer, ...]
    y_out: tuple[LazyBuffer, ...]


class Earlier(NamedTuple):
    """The values with which the steps of another loop began, to be gone through from its end.

    Attributes:
      placeholder: what stands for the one of the step.
      stack: the values that each step left, as :class:`Results` holds them.
      init: the value with which the first one began.
    """

    placeholder: LazyBuffer
    stack: LazyBuffer
    init: LazyBuffer


class Results(NamedTuple):
    """What a loop computes.

    Attributes:
      finals: the values that the last step left.
      stacks: the values that each step left, if they are kept: axis 0 counts like that of what is gone through.
      ys: what the steps added up to.
    """

    finals: tuple[LazyBuffer, ...]
    stacks: tuple[LazyBuffer, ...]
    ys: tuple[LazyBuffer, ...]


class _Packing:
    """Memory that all results share."""

    def __init__(self, device: str) -> None:
        self.device, self.nbytes = device, 0

    def room(self, shape: tuple[int, ...], node: LazyBuffer) -> int:
        """Where a result of a shape begins, in bytes."""
        offset = self.nbytes
        self.nbytes += -(-prod(shape) * node.dtype.itemsize // _ALIGNMENT) * _ALIGNMENT
        return offset


def _shape(node: LazyBuffer) -> tuple[int, ...]:
    return node.shape  # type: ignore[return-value]


def _nbytes(node: LazyBuffer) -> int:
    return prod(_shape(node)) * node.dtype.itemsize


def run(
    what: str, steps: Steps, init: Sequence[LazyBuffer], xs: Sequence[LazyBuffer], length: int, reverse: bool,
    stacked: bool, earlier: Sequence[Earlier] = (),
) -> Results:  # fmt: skip
    """The results of a loop, which is executed when they are computed.

    Args:
      what: what to call it in print.
      steps: what happens in each step.
      init: the values with which the first step begins.
      xs: what is gone through along axis 0.
      length: how many steps there are, at least one.
      reverse: begin at the end.
      stacked: keep what every step leaves.
      earlier: what is gone through beside ``xs``.

    Raises:
      ValueError: if a size is symbolic, or a tensor that is there is written in place.
    """
    placed = steps.carry_out if stacked else ()
    own_ys = [y for y in dict.fromkeys(steps.y_out) if y not in placed]
    outputs = [*steps.carry_out, *own_ys]
    part = isolate(outputs, [*steps.carry_in, *steps.x_in, *(one.placeholder for one in earlier)])
    first, move = (length - 1, -1) if reverse else (0, 1)
    sources: list[LazyBuffer] = []

    def source(node: LazyBuffer) -> int:
        sources.append(node)
        return len(sources)  # the results come first

    packing = _Packing(steps.carry_in[0].device if steps.carry_in else outputs[0].device)
    slots = length if stacked else min(length, 2)
    rooms = [packing.room((slots, *_shape(node)), node) for node in steps.carry_out]
    y_rooms = [packing.room((length, *_shape(node)), node) for node in own_ys]
    way = (first, move, length) if stacked else (0, 1, length, 2)  # two slots in turn
    places = []
    for node, offset, value in zip(steps.carry_in, rooms, init, strict=True):
        before = way[0] - way[1]
        places.append(Place(0, offset, _nbytes(node), before, *way[1:3], 0 if stacked else 2, source(value)))
    places += [Place(source(x), 0, _nbytes(node), first, move, length) for node, x in zip(steps.x_in, xs, strict=True)]
    for one in earlier:
        node = one.placeholder
        places.append(
            Place(source(one.stack), 0, _nbytes(node), first + move, move, length, 0, source(one.init))
        )  # fmt: skip
    places += [Place(source(node)) for node in part.captured]
    places += [
        Place(0, offset, _nbytes(node), *way) for node, offset in zip(steps.carry_out, rooms, strict=True)
    ]  # fmt: skip
    places += [
        Place(0, offset, _nbytes(node), first, move, length) for node, offset in zip(own_ys, y_rooms, strict=True)
    ]  # fmt: skip
    runner = LoopRunner(what, packing.device, Body(part), places, length)
    packed = LazyBuffer.custom(runner, sources, (packing.nbytes,), dtypes.uint8, packing.device)

    def result(offset: int, shape: tuple[int, ...], node: LazyBuffer) -> LazyBuffer:
        end = offset + prod(shape) * node.dtype.itemsize
        return packed.shrink(((offset, end),)).bitcast(node.dtype).reshape(shape)

    last = first + move * (length - 1) if stacked else (length - 1) % 2
    finals = tuple(
        result(offset + last * _nbytes(node), _shape(node), node)
        for node, offset in zip(steps.carry_out, rooms, strict=True)
    )  # fmt: skip
    stacks = tuple(
        result(offset, (slots, *_shape(node)), node) for node, offset in zip(steps.carry_out, rooms, strict=True)
    ) if stacked else ()  # fmt: skip
    known = dict(zip(steps.carry_out, stacks, strict=False))
    known |= {
        node: result(offset, (length, *_shape(node)), node) for node, offset in zip(own_ys, y_rooms, strict=True)
    }  # fmt: skip
    return Results(finals, stacks, tuple(known[node] for node in steps.y_out))
