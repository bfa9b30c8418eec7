"""Random chains of movement operations against numpy, every index enumerated."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from hypothesis import given, settings
from hypothesis import strategies as some

from tg_shape import ShapeTracker, View

Array = npt.NDArray[np.int64]
Viewer = Callable[[ShapeTracker, Array], Array]
Table = Callable[[ShapeTracker], tuple[Array, Array]]
MOVES = ("reshape", "reshape", "permute", "expand", "pad", "shrink", "flip", "stride")
LARGEST = 400


def factored(draw: Any, n: int) -> tuple[int, ...]:
    """A random shape of ``n`` elements."""
    if n == 0:
        return tuple(draw(some.permutations([0, *draw(some.lists(some.integers(1, 3), max_size=2))])))
    out = []
    while n > 1:
        d = draw(some.sampled_from([d for d in range(2, n + 1) if n % d == 0]))
        out.append(d)
        n //= d
    for _ in range(draw(some.integers(0, 1))):
        out.insert(draw(some.integers(0, len(out))), 1)
    return tuple(out)


def moved(draw: Any, st: ShapeTracker, x: Array, moves: tuple[str, ...] = MOVES) -> tuple[ShapeTracker, Array]:
    """One random movement of a tracker and of the array that it shows."""
    move = draw(some.sampled_from(moves))
    if move == "reshape":
        shape = factored(draw, x.size)
        return st.reshape(shape), x.reshape(shape)
    if move == "permute":
        order = draw(some.permutations(range(x.ndim)))
        return st.permute(order), x.transpose(order)
    if move == "expand":
        shape = tuple(
            draw(some.integers(0 if x.size < 3 else 1, 3)) if s == 1 and x.size < LARGEST // 3 else s for s in x.shape
        )
        return st.expand(shape), np.broadcast_to(x, shape)
    if move == "pad":
        widths = [(draw(some.integers(0, 2)), draw(some.integers(0, 2))) for _ in x.shape]
        if np.prod([s + a + b for s, (a, b) in zip(x.shape, widths, strict=True)]) > LARGEST:
            return st, x
        return st.pad(widths), np.pad(x, widths) if x.ndim else x
    if move == "shrink":
        bounds = []
        for s in x.shape:
            a = draw(some.integers(0, s))
            bounds.append(
                (a, draw(some.integers(a, s))) if draw(some.integers(0, 9)) == 0 else (min(a, max(s - 1, 0)), s)
            )
        return st.shrink(bounds), x[tuple(slice(a, b) for a, b in bounds)]
    if move == "flip":
        axes = draw(some.lists(some.integers(0, x.ndim - 1), unique=True)) if x.ndim else []
        return st.flip(axes), np.flip(x, tuple(axes))
    steps = [draw(some.sampled_from([1, 1, 1, 2, 3, -1, -2])) for _ in x.shape]
    return st.stride(steps), x[tuple(slice(None, None, m) for m in steps)]


@some.composite
def chains(draw: Any, moves: tuple[str, ...] = MOVES) -> tuple[ShapeTracker, Array, Array]:
    """A tracker, the flat buffer below it (from 1, as 0 is padding), and the array it must show."""
    shape = tuple(draw(some.lists(some.integers(1, 4), min_size=0, max_size=4)))
    buffer = np.arange(1, int(np.prod(shape)) + 1)
    st, x = ShapeTracker.from_shape(shape), buffer.reshape(shape)
    for _ in range(draw(some.integers(0, 7))):
        st, x = moved(draw, st, x, moves)
    return st, buffer, x


@settings(max_examples=400)
@given(chain=chains())
def test_a_chain_of_movements_is_numpys(chain: tuple[ShapeTracker, Array, Array], view_buffer: Viewer) -> None:
    st, buffer, x = chain
    assert st.shape == x.shape
    np.testing.assert_array_equal(view_buffer(st, buffer), x)


@settings(max_examples=150)
@given(chain=chains())
def test_simplify_keeps_the_map_and_is_idempotent(
    chain: tuple[ShapeTracker, Array, Array], view_buffer: Viewer
) -> None:
    st, buffer, x = chain
    simple = st.simplify()
    assert len(simple.views) <= len(st.views)
    assert simple.simplify() is simple
    np.testing.assert_array_equal(view_buffer(simple, buffer), x)


@settings(max_examples=150)
@given(chain=chains())
def test_the_normal_form_of_a_view_is_a_fixed_point(chain: tuple[ShapeTracker, Array, Array]) -> None:
    for view in chain[0].views:
        assert View(view.shape, view.strides, view.offset, view.mask) is view


@settings(max_examples=150)
@given(data=some.data(), chain=chains())
def test_composition_views_the_elements(
    data: Any, chain: tuple[ShapeTracker, Array, Array], view_buffer: Viewer
) -> None:
    st, buffer, x = chain
    shape = factored(data.draw, x.size)
    top, y = ShapeTracker.from_shape(shape), x.reshape(shape)
    for _ in range(data.draw(some.integers(0, 4))):
        top, y = moved(data.draw, top, y)
    np.testing.assert_array_equal(view_buffer(st + top, buffer), y)


@settings(max_examples=200)
@given(chain=chains(("reshape", "permute", "flip", "pad")))
def test_an_inverse_restores_the_buffer(chain: tuple[ShapeTracker, Array, Array], view_buffer: Viewer) -> None:
    st, buffer, x = chain
    inverse = st.invert((buffer.size,))
    if inverse is None:  # a reshape of padding cannot be cut out again
        assert any(v.mask is not None for v in st.views)
        return
    assert inverse.shape == (buffer.size,)
    np.testing.assert_array_equal(view_buffer(inverse, np.ascontiguousarray(x).reshape(-1)), buffer)


@settings(max_examples=200)
@given(chain=chains())
def test_an_inverse_exists_only_for_a_bijection(chain: tuple[ShapeTracker, Array, Array], view_buffer: Viewer) -> None:
    st, buffer, x = chain
    inverse = st.invert((buffer.size,))
    if inverse is not None:
        np.testing.assert_array_equal(view_buffer(inverse, np.ascontiguousarray(x).reshape(-1)), buffer)
        assert sorted(x[x > 0]) == list(buffer)


@settings(max_examples=200)
@given(chain=chains())
def test_real_strides_and_masked_axes(chain: tuple[ShapeTracker, Array, Array], index_table: Table) -> None:
    st, _, x = chain
    if x.size == 0:
        return
    position, valid = index_table(st)
    for axis, (step, bare) in enumerate(zip(st.real_strides(), st.real_strides(ignore_valid=True), strict=True)):
        both = np.minimum(valid.take(range(1, x.shape[axis]), axis), valid.take(range(x.shape[axis] - 1), axis)) == 1
        moves = np.diff(position, axis=axis)[both]
        for s in (step, bare):
            assert s is None or (moves == s).all()
        if not st.axis_is_masked(axis):
            assert (np.diff(valid, axis=axis) == 0).all()
        elif step is not None:
            raise AssertionError(f"axis {axis} of {st} is masked but has the stride {step}")
