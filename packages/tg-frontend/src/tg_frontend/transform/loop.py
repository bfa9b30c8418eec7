"""The loop itself, on nodes of the graph: where each value of its body lies in each step."""

from __future__ import annotations

from math import prod
from typing import NamedTuple

from tg_dtype import dtypes
from tg_lazy import LazyBuffer
from tg_lazy.graph.isolate import Isolated, bases_first, isolate
from tg_runtime import Body, BranchRunner, Condition, LoopRunner, Place, Runner, Walk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_ALIGNMENT = 256
"""Bytes at multiples of which results begin in their common memory: the strictest of the devices' own alignments."""


_ENDLESS = 1 << 62
"""Slots where nobody counts them."""


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
      packed: the memory in which all of it lies.
      finals: the values that the last step left.
      stacks: the values that each step left, if they are kept: axis 0 counts like that of what is gone through.
      ys: what the steps added up to.
    """

    packed: LazyBuffer
    finals: tuple[LazyBuffer, ...]
    stacks: tuple[LazyBuffer, ...]
    ys: tuple[LazyBuffer, ...]


def aligned(nbytes: int) -> int:
    """As many bytes as a result takes that is followed by another one."""
    return -(-nbytes // _ALIGNMENT) * _ALIGNMENT


class Packing:
    """Memory that all results share.

    Args:
      device: where it lies.
    """

    def __init__(self, device: str) -> None:
        self.device, self.nbytes = device, 0

    def room(self, shape: tuple[int, ...], node: LazyBuffer) -> int:
        """Where a result of a shape, and of the dtype of ``node``, begins, in bytes."""
        return self.bytes(prod(shape) * node.dtype.itemsize)

    def bytes(self, nbytes: int) -> int:
        """Where so many bytes begin."""
        offset = self.nbytes
        self.nbytes += aligned(nbytes)
        return offset

    def computed(self, runner: Runner, sources: Sequence[LazyBuffer]) -> LazyBuffer:
        """The memory, filled by a runner."""
        return LazyBuffer.custom(runner, sources, (self.nbytes,), dtypes.uint8, self.device)


def unpacked(packed: LazyBuffer, offset: int, shape: tuple[int, ...], node: LazyBuffer) -> LazyBuffer:
    """A result of a shape, and of the dtype of ``node``, that begins at a byte of the memory of all."""
    end = offset + prod(shape) * node.dtype.itemsize
    part = packed.shrink(((offset, end),))
    # a node of its own in any case: what is computed for many values is known by it
    return (part.clone() if node.dtype is packed.dtype else part.bitcast(node.dtype)).reshape(shape)


def shape_of(node: LazyBuffer) -> tuple[int, ...]:
    return node.shape  # type: ignore[return-value]


def nbytes_of(node: LazyBuffer) -> int:
    return prod(shape_of(node)) * node.dtype.itemsize


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
    given = [*steps.carry_in, *steps.x_in, *(one.placeholder for one in earlier)]
    part = isolate(outputs, given, length)
    reached = set(bases_first(part.outputs))
    first, move = (length - 1, -1) if reverse else (0, 1)
    sources: list[LazyBuffer] = []

    def source(node: LazyBuffer) -> int:
        sources.append(node)
        return len(sources)  # the results come first

    packing = Packing(steps.carry_in[0].device if steps.carry_in else outputs[0].device)
    slots = length if stacked else min(length, 2)
    sizes = [nbytes_of(node) if stacked else aligned(nbytes_of(node)) for node in steps.carry_out]
    rooms = [packing.bytes(slots * size) for size in sizes]
    y_rooms = [packing.room((length, *shape_of(node)), node) for node in own_ys]
    way = (first, move, length) if stacked else (0, 1, length, 2)  # two slots in turn
    places = []
    for size, offset, value in zip(sizes, rooms, init, strict=True):
        before = way[0] - way[1]
        places.append(Place(0, offset, size, before, *way[1:3], 0 if stacked else 2, source(value)))
    # what no step uses need not be computed; that something stands in its place makes no difference
    used = {node for node, own in zip(given, part.parameters, strict=True) if own in reached}
    for node, x in zip(steps.x_in, xs, strict=True):
        places.append(Place(source(x), 0, nbytes_of(node), first, move, length) if node in used else Place(0))
    for one in earlier:
        node = one.placeholder
        if node not in used:
            places.append(Place(0))
            continue
        places.append(
            Place(source(one.stack), 0, nbytes_of(node), first + move, move, length, 0, source(one.init))
        )  # fmt: skip
    places += [Place(source(node)) for node in part.captured]
    places += [
        Place(0, offset, size, *way) for size, offset in zip(sizes, rooms, strict=True)
    ]  # fmt: skip
    places += [
        Place(0, offset, nbytes_of(node), first, move, length) for node, offset in zip(own_ys, y_rooms, strict=True)
    ]  # fmt: skip
    runner = LoopRunner(what, packing.device, Body(part, Walk(places, length)), places, length)
    packed = packing.computed(runner, sources)
    last = first + move * (length - 1) if stacked else (length - 1) % 2
    finals = tuple(
        unpacked(packed, offset + last * size, shape_of(node), node)
        for node, offset, size in zip(steps.carry_out, rooms, sizes, strict=True)
    )  # fmt: skip
    stacks = tuple(
        unpacked(packed, offset, (slots, *shape_of(node)), node)
        for node, offset in zip(steps.carry_out, rooms, strict=True)
    ) if stacked else ()  # fmt: skip
    known = dict(zip(steps.carry_out, stacks, strict=False))
    for node, offset in zip(own_ys, y_rooms, strict=True):
        known[node] = unpacked(packed, offset, (length, *shape_of(node)), node)
    return Results(packed, finals, stacks, tuple(known[node] for node in steps.y_out))


def run_while(
    what: str, carry_in: Sequence[LazyBuffer], carry_out: Sequence[LazyBuffer], flag: LazyBuffer,
    init: Sequence[LazyBuffer], first: LazyBuffer,
) -> tuple[LazyBuffer, list[LazyBuffer]]:  # fmt: skip
    """What the last step of a loop leaves that goes on while a condition holds, and the memory in which it lies.

    Args:
      what: what to call it in print.
      carry_in: what stands for the values that one step leaves to the next.
      carry_out: the values that it leaves.
      flag: whether another step follows.
      init: the values with which the first step begins.
      first: whether there is a first step.

    Raises:
      ValueError: if a size is symbolic, or a tensor that is there is written in place.
    """
    part = isolate([*carry_out, flag], carry_in)
    packing = Packing(carry_in[0].device)
    sources = [*init, *part.captured, first]
    rooms = [packing.room((2, *shape_of(node)), node) for node in carry_out]
    told = packing.room((), flag)
    before, after, results = [], [], []
    for n, (node, offset) in enumerate(zip(carry_out, rooms, strict=True)):
        before.append(Place(0, offset, nbytes_of(node), -1, 1, _ENDLESS, 2, n + 1))
        after.append(Place(0, offset, nbytes_of(node), 0, 1, _ENDLESS, 2, n + 1))
        results.append((after[-1], Place(0, offset)))  # where the last step leaves it, every other time
    held = [Place(len(init) + 1 + n) for n in range(len(part.captured))]
    condition = Condition(len(sources), told, tuple(results))
    places = [*before, *held, *after, Place(0, told)]
    packed = packing.computed(LoopRunner(what, packing.device, Body(part), places, None, condition), sources)
    return packed, [unpacked(packed, at, shape_of(node), node) for node, at in zip(carry_out, rooms, strict=True)]


def run_branch(
    what: str, choice: LazyBuffer, ways: Sequence[tuple[Sequence[LazyBuffer], Sequence[LazyBuffer]]],
    args: Sequence[LazyBuffer],
) -> tuple[LazyBuffer, list[LazyBuffer]]:  # fmt: skip
    """What one of two ways computes, and the memory in which it lies.

    Args:
      what: what to call it in print.
      choice: whether it is the first one.
      ways: for each, what stands for the arguments, and what it computes: of the same shapes and dtypes.
      args: the arguments.

    Raises:
      ValueError: if a size is symbolic, or a tensor that is there is written in place.
    """
    packing = Packing(choice.device)
    like = ways[0][1]
    rooms = [packing.room(shape_of(node), node) for node in like]
    sources, bodies = [choice, *args], []
    for given, outputs in ways:
        part = isolate(outputs, given)
        places = [Place(n + 2) for n in range(len(args))]
        places += [Place(n + len(sources) + 1) for n in range(len(part.captured))]
        places += [Place(0, offset) for offset in rooms]
        sources += part.captured
        bodies.append((Body(part), places))
    packed = packing.computed(BranchRunner(what, packing.device, 1, (bodies[0], bodies[1])), sources)
    parts = [unpacked(packed, offset, shape_of(node), node) for offset, node in zip(rooms, like, strict=True)]
    return packed, parts


def run_body(
    what: str, body: Body, part: Isolated, like: Sequence[LazyBuffer], args: Sequence[LazyBuffer]
) -> tuple[LazyBuffer, list[LazyBuffer]]:  # fmt: skip
    """What a body computes of other values, and the memory in which it lies.

    Args:
      what: what to call it in print.
      body: of ``part``, which depends on as many nodes as there are ``args``.
      part: what is computed.
      like: nodes of the shapes and dtypes of what it computes.
      args: the values.
    """
    packing = Packing(like[0].device)
    rooms = [packing.room(shape_of(node), node) for node in like]
    sources = [*args, *part.captured]
    places = [*(Place(n + 1) for n in range(len(sources))), *(Place(0, offset) for offset in rooms)]
    packed = packing.computed(LoopRunner(what, packing.device, body, places, 1), sources)
    return packed, [unpacked(packed, offset, shape_of(node), node) for offset, node in zip(rooms, like, strict=True)]
