"""What a plan keeps in scratch fits there: planner and emitter agree on the size of every stage."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from tg_codegen import Target
from tg_codegen.emit.kernel import emit_nest
from tg_codegen.ir.uop import UOps
from tg_codegen.nest.lower import lower
from tg_codegen.nest.nest import Nest
from tg_codegen.nest.scratch import planned_places
from tg_codegen.plan.actions import apply
from tg_codegen.plan.heuristic import loop_actions
from tg_dtype import DType, dtypes
from tg_lazy import BufferArg, LazyOp, Ops
from tg_lazy import ast as A
from tg_shape import ShapeTracker

ST = ShapeTracker.from_shape
LEFT_OVER = (72, 124, 125, 171, 284)
"""Convolutions of which a panel, with the terms that an unrolled loop leaves over, is larger than without them."""
VECTORS = ((16, 16), (16, 32), (32, 16), (64, 32))
"""Bytes of a vector, and how many registers there are."""


def machine(rng: random.Random) -> Target:
    """A CPU of caches so small that small programs are cut and packed as large ones are."""
    vector_bytes, registers = rng.choice(VECTORS)
    return Target(
        vector_bytes=vector_bytes, registers=registers, threads=rng.choice((1, 2, 3, 8)), l1_bytes=1 << 12, l1_ways=8,
        l2_bytes=rng.choice((1 << 15, 1 << 17, 1 << 20)))


def product(rng: random.Random) -> LazyOp:
    """A product of any sizes, its operands as they are or turned, in floats or in halves."""
    m, n, k = (rng.choice((rng.randint(1, 40), rng.randint(1, 400), 64)) for _ in range(3))
    dtype = rng.choice((dtypes.float32, dtypes.float32, dtypes.float16))
    left = ST((k, m)).permute((1, 0)) if rng.random() < 0.5 else ST((m, k))
    right = ST((n, k)) if rng.random() < 0.5 else ST((k, n)).permute((1, 0))
    x = operand(1, dtype, left.reshape((m, 1, k)).expand((m, n, k)))
    y = operand(2, dtype, right.reshape((1, n, k)).expand((m, n, k)))
    total = A.reduce(A.alu(Ops.MUL, x, y), Ops.ADD, (2,))
    sizes = ((dtypes.float32, m * n), (dtype, m * k), (dtype, k * n))
    return A.sink((A.store(0, ST((m, n, 1)), total),), tuple(BufferArg(*size) for size in sizes))


def operand(slot: int, dtype: DType, tracker: ShapeTracker) -> LazyOp:
    """A load, as float32."""
    load = A.load(slot, dtype, tracker)
    return load if dtype is dtypes.float32 else A.cast(load, dtypes.float32)


def convolution(rng: random.Random) -> LazyOp:
    """An image's windows times a kernel, or the gradient of its weights, summed over images and pixels."""
    b, c, o, k = rng.randint(1, 6), rng.randint(1, 40), rng.randint(1, 40), rng.choice((1, 2, 3, 5))
    h, w = k + rng.randint(0, 12), k + 8 * rng.randint(1, 8) + rng.choice((0, 0, 1, 5))  # a few terms are left over
    up, across = h - k + 1, w - k + 1
    times = (-(-k * (h + 1) // h), -(-k * (w + 1) // w))
    view = ST((b, c, h, w)).reshape((b, c, 1, h, 1, w)).expand((b, c, times[0], h, times[1], w))
    view = view.reshape((b, c, times[0] * h, times[1] * w)).shrink(((0, b), (0, c), (0, k * (h + 1)), (0, k * (w + 1))))
    view = view.reshape((b, c, k, h + 1, k, w + 1)).shrink(((0, b), (0, c), (0, k), (0, up), (0, k), (0, across)))
    images, pixels, weights = b * c * h * w, b * o * up * across, o * c * k * k
    if rng.random() < 0.8:
        full = (o, c, k, k, b, up, across)
        x = view.permute((1, 2, 4, 0, 3, 5)).reshape((1, c, k, k, b, up, across)).expand(full)
        y = ST((b, o, up, across)).permute((1, 0, 2, 3)).reshape((o, 1, 1, 1, b, up, across)).expand(full)
        result, sizes = ST((o, c, k, k, 1, 1, 1)), (weights, images, pixels)
    else:
        full = (b, o, up, across, c, k, k)
        x = view.permute((0, 3, 5, 1, 2, 4)).reshape((b, 1, up, across, c, k, k)).expand(full)
        y = ST((1, o, 1, 1, c, k, k)).expand(full)
        result, sizes = ST((b, o, up, across, 1, 1, 1)), (pixels, images, weights)
    total = A.reduce(
        A.alu(Ops.MUL, A.load(1, dtypes.float32, x), A.load(2, dtypes.float32, y)), Ops.ADD, (4, 5, 6))
    return A.sink((A.store(0, result, total),), tuple(BufferArg(dtypes.float32, n) for n in sizes))


def planned(nest: Nest, target: Target) -> dict[int, int]:
    """The bytes of a heuristic's stages, by the elements of each; those of each array of scratch are among them.

    Raises:
      EmitError: if what is planned does not fit together.
    """
    nest = apply(nest, loop_actions(nest, target))
    sizes = {planned_places(nest, s, target).size: s.node.dtype.itemsize for s in nest.stages}
    scratch = {u.arg[1] for u in emit_nest(nest, target).toposort() if u.op is UOps.SCRATCH}
    assert scratch <= sizes.keys(), "planner and emitter count alike"
    return {size: size * itemsize for size, itemsize in sizes.items()}


@pytest.mark.parametrize("number", [
    *range(12), *LEFT_OVER, *(pytest.param(n, marks=pytest.mark.slow) for n in range(12, 300) if n not in LEFT_OVER)])
def test_what_is_planned_fits(number: int) -> None:
    """Also on a machine with hardly as much scratch as was wanted of one with plenty."""
    rng = random.Random(number)
    target = machine(rng)
    nest = lower((product if rng.random() < 0.15 else convolution)(rng))
    most = max(planned(nest, target).values(), default=0)
    if most:
        planned(nest, replace(target, scratch_bytes=int(most * rng.uniform(0.96, 1.0))))
