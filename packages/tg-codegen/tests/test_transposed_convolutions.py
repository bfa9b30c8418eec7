"""Plans of transposed convolutions: what falls on the zeros between an image's elements is left out of the code."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tg_codegen import Target, interpret, linearize
from tg_codegen.emit.kernel import emit_nest
from tg_codegen.ir.uop import UOps
from tg_codegen.nest.nest import Nest
from tg_codegen.nest.spec import Kind
from tg_codegen.nest.text import parse_nest
from tg_codegen.plan.actions import apply
from tg_codegen.plan.heuristic import loop_actions
from tg_codegen.plan.planner import UNEVEN, busiest

Array = np.ndarray[Any, np.dtype[Any]]
AVX2 = Target(vector_bytes=32, registers=16, threads=2, folds=True, copies=100, l1_bytes=32 << 10, l2_bytes=1 << 20)
TARGETS = {
    "16 registers of 8": AVX2,
    "32 registers of 16": replace(AVX2, vector_bytes=64, registers=32),
    "32 registers of 4, 4 threads": replace(AVX2, vector_bytes=16, registers=32, threads=4, folds=False),
}
SHAPES = [  # images, channels, and those of the outputs, height, width, window, stride, padding
    (2, 11, 17, 7, 29, 4, 2, 1), (2, 16, 32, 5, 31, 3, 2, 1), (3, 37, 59, 6, 23, 5, 3, 2), (4, 64, 32, 16, 32, 2, 2, 0),
    (3, 13, 33, 5, 17, 5, 4, 1), (3, 15, 27, 6, 19, 3, 3, 1),
]  # fmt: skip
Shape = tuple[int, int, int, int, int, int, int, int]


def sides(shape: Shape) -> tuple[int, int]:
    """Height and width of the outputs."""
    _, _, _, h, w, k, stride, padding = shape
    high, wide = ((n - 1) * stride + k - 2 * padding for n in (h, w))
    return high, wide


def transposed(shape: Shape) -> Nest:
    """A convolution of an image that has ``stride - 1`` zeros after each element, with weights that are turned."""
    b, c, o, h, w, k, stride, padding = shape
    high, wide = sides(shape)
    before = k - 1 - padding
    first = -(-before // stride)
    shift = first * stride - before
    masks = [f"(i{n} + r{n - 1} + {shift})%{stride} < 1 and i{n} + r{n - 1} < {before + stride * size} "
             f"and -i{n} - r{n - 1} < {1 - before}" for n, size in ((2, h), (3, w))]  # fmt: skip
    extents = {"i0": b, "i1": o, "i2": high, "i3": wide, "r0": c, "r1": k, "r2": k}
    lines = [f"buffer float32*{size}" for size in (b * o * high * wide, b * c * h * w, c * o * k * k)]
    lines += [f"dim[{size}] {name}{' reduced' * (name[0] == 'r')}" for name, size in extents.items()]
    lines += [f"for[{size}] {name} of {name} by 1: {'reduce' if name[0] == 'r' else 'loop'}"
              for name, size in extents.items()]  # fmt: skip
    lines += [
        f"%0 = load[1, i0*{c * h * w} + r0*{h * w} + (i2 + r1 + {shift})//{stride}*{w} + (i3 + r2 + {shift})//{stride}"
        f" - {first * w + first}, {' and '.join(masks)}] float32",
        f"%1 = load[2, i1*{k * k} + r0*{o * k * k} - r1*{k} - r2 + {k * k - 1}] float32",
        "%2 = mul float32 (%0, %1)",
        "%3 = reduce[add, r0, r1, r2] float32 (%2)",
        f"store[0, i0*{o * high * wide} + i1*{high * wide} + i2*{wide} + i3] %3 over i0, i1, i2, i3",
    ]
    return parse_nest("\n".join(lines))


def planned(shape: Shape, target: Target) -> Nest:
    nest = transposed(shape)
    return apply(nest, loop_actions(nest, target))


def factor(nest: Nest, name: str, kind: Kind) -> int:
    """How many iterations of a dimension are done in some way."""
    return next((int(a.extent) for a in nest.axes if a.root.name == name and a.kind is kind), 1)


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_what_is_planned_knows_where_the_zeros_are(shape: Shape, target: Target) -> None:
    """All tiles have the same places along a row of pixels, and the loop over a column takes steps of the stride."""
    nest = planned(shape, target)
    k, stride = shape[5:7]
    assert factor(nest, "i3", Kind.UPCAST) % stride == 0
    assert factor(nest, "r2", Kind.UNROLL) == k and factor(nest, "r1", Kind.UNROLL) == 1
    assert [a.kind for a in nest.axes if a.root.name == "r1"] == [Kind.REDUCE]
    loads = [u for u in emit_nest(nest, target).toposort() if u.op is UOps.LOAD]
    image = [u for u in loads if u.src[0].op is UOps.PARAM and u.src[0].arg == 1]
    assert image and all(len(u.src) == 2 for u in image), "an element is read where there is one, or not at all"


@pytest.mark.parametrize("shape", [(3, 37, 59, 6, 23, 5, 3, 2), (3, 15, 27, 6, 19, 3, 3, 1)], ids=str)
def test_threads_share_channels_where_images_do_not_divide(shape: Shape) -> None:
    nest = planned(shape, AVX2)
    divided = next(a for a in nest.axes if a.kind is Kind.THREAD)
    assert divided.root.name == "i1" and busiest(int(divided.extent), AVX2.threads) * AVX2.threads <= UNEVEN


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
@pytest.mark.parametrize("shape", [(2, 3, 17, 3, 13, 4, 2, 1), (3, 5, 33, 2, 11, 5, 3, 2), (3, 2, 9, 4, 10, 3, 3, 0)])
def test_what_is_planned_computes(shape: Shape, target: Target) -> None:
    b, c, o, h, w, k, stride, padding = shape
    high, wide = sides(shape)
    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal(s).astype(np.float32) for s in ((b, c, h, w), (c, o, k, k)))
    want = np.zeros((b, o, high + 2 * padding, wide + 2 * padding))
    for p in range(h):
        for q in range(w):
            at = np.s_[:, :, p * stride : p * stride + k, q * stride : q * stride + k]
            want[at] += np.einsum("bc,coij->boij", x[:, :, p, q], y)
    out = bytearray(b * o * high * wide * 4)
    uops = linearize(emit_nest(planned(shape, target), target))
    interpret(uops, [out, bytearray(x.tobytes()), bytearray(y.tobytes())], threads=target.threads)
    got: Array = np.frombuffer(out, np.float32).reshape(b, o, high, wide)
    whole = want[:, :, padding : padding + high, padding : padding + wide]
    np.testing.assert_allclose(got, whole, rtol=1e-4, atol=1e-4)
