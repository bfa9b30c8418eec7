"""Views and trackers: normal forms, merges, symbolic shapes, errors."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from tg_shape import Expr, ShapeTracker, Variable, View, sint, sym_eval
from tg_shape.merge import merged

Array = npt.NDArray[np.int64]
N, M = Variable("n", 1, 5), Variable("m", 1, 5)
flat = ShapeTracker.from_shape


# -- normal form -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("one", "other"), [
    (View((1, 3), (7, 1)), View((1, 3))),
    (View((2, 3), (3, 1), 0, ((0, 2), (0, 3))), View((2, 3))),
    (View((2, 3), (3, 1), 0, ((-1, 2), (0, 9))), View((2, 3))),
    (View((2, 3), (3, 1), 0, ((1, 2), (0, 3))), View((2, 3), (0, 1), 3, ((1, 2), (0, 3)))),
    (View((2, 3), (3, 1), 4, ((1, 1), (0, 3))), View((2, 3), (0, 0), 0, ((0, 0), (0, 0)))),
    (View((2, 0), (5, 1), 4), View((2, 0))),
    (View((2, 0), (5, 1), 4, ((0, 1), (0, 0))), View((2, 0))),
    (View((), (), 0, ()), View(())),
    (View((N, 1), (1, 9)), View((N, 1))),
    (View((N, 2), (2, 1), 0, ((0, N), (0, 2))), View((N, 2))),
])  # fmt: skip
def test_equal_maps_of_one_view_are_one_object(one: View, other: View) -> None:
    assert one is other
    assert View(one.shape, one.strides, one.offset, one.mask) is one
    assert pickle.loads(pickle.dumps(one)) is one


def test_contiguity() -> None:
    assert flat((2, 3)).contiguous and flat(()).contiguous and flat((2, 0)).contiguous and flat((N, 3)).contiguous
    assert flat((2, 3)).permute((1, 0)).permute((1, 0)).contiguous
    assert flat((1, 3)).permute((1, 0)).contiguous
    assert not flat((2, 3)).permute((1, 0)).contiguous
    assert not flat((1, 3)).expand((2, 3)).contiguous
    assert not flat((3,)).shrink(((1, 3),)).contiguous
    assert not flat((3,)).pad(((0, 1),)).contiguous
    assert flat((3,)).shrink(((0, 2),)).contiguous


def one_view(st: ShapeTracker) -> View:
    assert len(st.views) == 1, st
    return st.views[0]


@pytest.mark.parametrize(("st", "view"), [
    (flat((2, 3, 4)).permute((2, 0, 1)).reshape((4, 6)), View((4, 6), (1, 4))),
    (flat((6, 4)).flip((0, 1)).reshape((4, 6)), View((4, 6), (-6, -1), 23)),
    (flat((6, 4)).permute((1, 0)).reshape((24,)).shrink(((6, 18),)).reshape((2, 6)), View((2, 6), (1, 4), 1)),
    (flat((4, 4)).shrink(((1, 3), (0, 4))).reshape((8,)), View((8,), (1,), 4)),
    (flat((3,)).reshape((3, 1)).expand((3, 4)).reshape((12,)).reshape((3, 2, 2)), View((3, 2, 2), (1, 0, 0))),
    (flat((4, 4)).pad(((1, 1), (0, 0))).reshape((24,)), View((24,), (1,), -4, ((4, 20),))),
    (flat((16,)).pad(((4, 4),)).reshape((6, 4)), View((6, 4), (4, 1), -4, ((1, 5), (0, 4)))),
    (flat((2, 2)).pad(((0, 0), (0, 1))).reshape((6,)).reshape((2, 3)).shrink(((0, 2), (0, 2))), View((2, 2))),
    (flat((N, 4)).permute((1, 0)).permute((1, 0)).reshape((N * 4,)), View((N * 4,))),
    (flat((3, N, M)).permute((1, 2, 0)).reshape((N * M, 3)), View((N * M, 3), (1, N * M))),
    (flat((N * M, 3)).permute((1, 0)).reshape((3, N, M)), View((3, N, M), (1, 3 * M, 3))),
    (flat((N, 4)).pad(((1, 0), (0, 0))).reshape(((N + 1) * 4,)), View(((N + 1) * 4,), (1,), -4, ((4, N * 4 + 4),))),
    (flat((10,)).stride((-3,)), View((4,), (-3,), 9)),
    (flat((10, 10)).shrink(((0, 10), (N, N + 1))).reshape((10,)), View((10,), (10,), N)),
])  # fmt: skip
def test_chains_that_are_one_view(st: ShapeTracker, view: View) -> None:
    assert one_view(st) is view


def test_chains_with_one_map_are_one_object() -> None:
    x = flat((4, 6))
    assert x.permute((1, 0)).reshape((8, 3)) is x.permute((1, 0)).reshape((24,)).reshape((2, 4, 3)).reshape((8, 3))
    assert x.permute((1, 0)).reshape((24,)).reshape((6, 4)).permute((1, 0)) is x
    a = x.pad(((1, 1), (1, 0))).reshape((42,)).reshape((2, 21))
    assert a is x.pad(((1, 1), (1, 0))).reshape((3, 14)).reshape((2, 21)) and len(a.views) == 2
    assert pickle.loads(pickle.dumps(a)) is a
    assert a.simplify() is a


def test_a_position_is_plain_where_a_merge_fails() -> None:
    b, c = Variable("b", 0, 23), Variable("c", 0, 1023)
    st = flat((8, 3, 32, 32)).permute((0, 2, 3, 1)).reshape((8192, 3)).permute((1, 0)).reshape((24, 1024))
    position, valid = st.index((b, c))
    assert len(st.views) > 1 and valid == 1
    assert position is c + b // 8 * 1024 + b % 8 * 3072


def test_composition_and_inverse() -> None:
    st = flat((2, 3, 4)).permute((2, 0, 1)).flip((0,)).pad(((1, 0), (0, 2), (0, 0)))
    inverse = st.invert((2, 3, 4))
    assert inverse is not None and inverse.shape == (2, 3, 4)
    assert (st + inverse).contiguous
    assert flat((2, 3)).expand((2, 3)).invert((3, 2)) is flat((3, 2))
    assert flat((1, 3)).expand((2, 3)).invert((3,)) is None
    assert flat((4,)).shrink(((0, 3),)).invert((4,)) is None
    assert flat((4,)).stride((2,)).invert((4,)) is None
    assert ShapeTracker((View((3,), (1,), 5),)).invert((3,)) is None
    assert flat((N, 4)).permute((1, 0)).invert((N, 4)) is flat((4, N)).permute((1, 0))
    assert flat((0, 3)).invert((3, 0)) is flat((3, 0))
    assert (flat((3, 4)).permute((1, 0)) + flat((12,)).reshape((4, 3))) is flat((3, 4)).permute((1, 0))


def test_strides_and_masks() -> None:
    st = flat((3, 4)).pad(((0, 0), (1, 1)))
    assert st.real_strides() == (4, None) and st.real_strides(ignore_valid=True) == (4, 1)
    assert not st.axis_is_masked(0) and st.axis_is_masked(1) and st.axis_is_masked(-1)
    assert flat((3, 4)).permute((1, 0)).reshape((12,)).real_strides() == (None,)
    assert flat((3, N)).real_strides() == (N, 1)
    assert flat((1, 3)).expand((N, 3)).real_strides() == (0, 1)
    with pytest.raises(IndexError):
        st.axis_is_masked(2)


# -- symbolic shapes ---------------------------------------------------------------------------------------------------
def test_unbinding() -> None:
    st = flat((N.bind(3), 4)).permute((1, 0)).pad(((0, 0), (0, 5 - N.bind(3)))).shrink(((1, 3), (0, 5)))
    free, values = st.unbind()
    assert values == {N: 3} and free.vars() == {N} == st.vars()
    assert free is flat((N, 4)).permute((1, 0)).pad(((0, 0), (0, 5 - N))).shrink(((1, 3), (0, 5)))
    assert free.shape == (2, 5) and flat((2,)).unbind() == (flat((2,)), {})
    with pytest.raises(ValueError, match="variable 'n' is bound to 3 and to 4"):
        flat((N.bind(3), N.bind(4))).unbind()


def test_a_symbolic_row_of_a_buffer() -> None:
    start = Variable("start", 0, 7)
    row = flat((8, 4)).shrink(((start, start + 1), (0, 4)))
    j = Variable("j", 0, 3)
    assert row.shape == (1, 4) and row.index((0, j)) == (start * 4 + j, 1)
    part = flat((8, 4)).shrink(((0, start + 1), (0, 4)))
    assert part.shape == (start + 1, 4) and part.contiguous and part.size is start * 4 + 4


def test_a_dimension_is_put_into_a_permuted_symbolic_part() -> None:
    end = Variable("end", 0, 7)
    part = flat((2, 8, 4)).shrink(((0, 2), (0, end + 1), (0, 4))).permute((0, 2, 1))
    wide = part.reshape((2, 1, 4, end + 1)).expand((2, 3, 4, end + 1))
    assert [view.strides for view in wide.views] == [(32, 0, 1, 4)]


def test_masks_of_which_a_variable_tells() -> None:
    whole = flat((N,)).pad(((0, 5 - N),))
    one = whole.shrink(((2, 3),)).expand((4,))
    assert [at(one.index((3,))[1], {N: n}) for n in (1, 2, 3, 5)] == [0, 0, 1, 1]
    few = merged(View((5,), mask=((0, N),)), View((5,), mask=((0, 3),)))
    assert few is not None and [at(few.index((k,))[1], {N: n}) for n in (1, 5) for k in (0, 2, 3)] == [1, 0, 0, 1, 1, 0]


def test_a_symbolic_mask_under_a_stride_stays_a_stack() -> None:
    st = ShapeTracker((View((10,), (1,), 0, ((0, N * 2),)), View((5,), (2,))))
    assert one_view(st) is View((5,), (2,), 0, ((0, N),))
    st = ShapeTracker((View((10,), (1,), 0, ((0, N),)), View((5,), (2,))))
    i = Variable("i", 0, 4)
    _, valid = st.index((i,))
    assert isinstance(valid, Expr)
    for n, k in product(range(1, 6), range(5)):
        assert valid.evaluate({N: n, i: k}) == (2 * k < n)


def at(x: sint, values: dict[Variable, int]) -> sint:
    return x if isinstance(x, int) else x.substitute(values)


SYMBOLIC_STEPS: dict[str, Callable[[Any], Any]] = {
    "flatten": lambda x: x.reshape((size_of(x),)),
    "transpose": lambda x: x.permute(tuple(reversed(range(len(x.shape))))),
    "rotate": lambda x: x.permute((*range(1, len(x.shape)), 0)) if len(x.shape) else x,
    "split": lambda x: x.reshape((*x.shape[:-1], x.shape[-1] // 2, 2)) if x.shape and x.shape[-1] % 2 == 0 else x,
    "unit": lambda x: x.reshape((*x.shape[:1], 1, *x.shape[1:])),
    "join": lambda x: x.reshape((*x.shape[:-2], x.shape[-2] * x.shape[-1])) if len(x.shape) > 1 else x,
    "flip": lambda x: x.flip((0,)) if x.shape else x,
    "pad": lambda x: x.pad(((1, 0), *[(0, 0)] * (len(x.shape) - 1))) if x.shape else x,
    "pad last": lambda x: x.pad((*[(0, 0)] * (len(x.shape) - 1), (0, 1))) if x.shape else x,
    "cut": lambda x: x.shrink(((0, x.shape[0]), *[(0, s) for s in x.shape[1:]])) if x.shape else x,
    "drop": lambda x: (
        x.shrink(((1, x.shape[0]), *[(0, s) for s in x.shape[1:]])) if x.shape and low(x.shape[0]) > 1 else x
    ),
    "repeat": lambda x: x.reshape((1, *x.shape)).expand((N, *x.shape)),
    "fill": lambda x: x.pad((*[(0, 0)] * (len(x.shape) - 1), (0, 11 - x.shape[-1]))) if narrow(x) else x,
    "first two": lambda x: of_last(x, 0, 2) if x.shape and low(x.shape[-1]) > 1 else x,
    "second": lambda x: of_last(x, 1, 2) if x.shape and low(x.shape[-1]) > 1 else x,
    "last one": lambda x: of_last(x, x.shape[-1] - 1, x.shape[-1]) if x.shape else x,
    "skip": lambda x: x.stride((*(1 for _ in x.shape[1:]), 2)) if x.shape else x,
    "skip back": lambda x: x.stride((*(1 for _ in x.shape[1:]), -3)) if x.shape else x,
    "spread": lambda x: x.expand(tuple(3 if isinstance(s, int) and s == 1 else s for s in x.shape)),
    "spread over n": lambda x: x.expand(tuple(N if isinstance(s, int) and s == 1 else s for s in x.shape)),
}


def low(s: sint) -> int:
    return s if isinstance(s, int) else s.vmin


MASKED_STEPS = ["first two", "flip", "join", "last one", "pad", "second", "skip", "skip back", "spread"]


def of_last(x: Any, begin: sint, end: sint) -> Any:
    """A part of the last dimension."""
    return x.shrink((*((0, s) for s in x.shape[:-1]), (begin, end)))


def narrow(x: Any) -> bool:
    """Whether the last dimension has 11 elements at the most."""
    return bool(x.shape) and (x.shape[-1] if isinstance(x.shape[-1], int) else x.shape[-1].vmax) <= 11


def size_of(x: Any) -> sint:
    out: sint = 1
    for s in x.shape:
        out = out * s
    return out


class Concrete:
    """The same steps on an array, with the variables' values put into every argument."""

    def __init__(self, array: Array, shape: tuple[sint, ...], values: dict[Variable, int]) -> None:
        self.array, self.shape, self.values = array, shape, values

    def num(self, xs: Any) -> tuple[int, ...]:
        return tuple(int(at(x, self.values)) for x in xs)

    def reshape(self, shape: tuple[sint, ...]) -> Concrete:
        return Concrete(self.array.reshape(self.num(shape)), shape, self.values)

    def permute(self, order: tuple[int, ...]) -> Concrete:
        return Concrete(self.array.transpose(order), tuple(self.shape[i] for i in order), self.values)

    def expand(self, shape: tuple[sint, ...]) -> Concrete:
        return Concrete(np.broadcast_to(self.array, self.num(shape)), shape, self.values)

    def flip(self, axes: tuple[int, ...]) -> Concrete:
        return Concrete(np.flip(self.array, axes), self.shape, self.values)

    def pad(self, widths: tuple[tuple[sint, sint], ...]) -> Concrete:
        shape = tuple(s + a + b for s, (a, b) in zip(self.shape, widths, strict=True))
        return Concrete(np.pad(self.array, [self.num(pair) for pair in widths]), shape, self.values)

    def shrink(self, bounds: tuple[tuple[sint, sint], ...]) -> Concrete:
        cut = self.array[tuple(slice(*self.num(b)) for b in bounds)]
        return Concrete(cut, tuple(b - a for a, b in bounds), self.values)

    def stride(self, steps: tuple[int, ...]) -> Concrete:
        shape = tuple(-(-s // abs(m)) for s, m in zip(self.shape, steps, strict=True))
        return Concrete(self.array[tuple(slice(None, None, m) for m in steps)], shape, self.values)


@settings(max_examples=120)
@given(
    shape=some.lists(some.sampled_from([2, 3, N, M, N + 1, N * 2]), min_size=1, max_size=3),
    steps=some.lists(some.sampled_from(sorted(SYMBOLIC_STEPS)), max_size=5),
)
def test_symbolic_chains_are_numpys_for_every_value(shape: list[sint], steps: list[str], view_buffer: Any) -> None:
    check_symbolic_chain(shape, steps, view_buffer)


@settings(max_examples=120)
@given(
    shape=some.sampled_from([[N], [N + 1], [2, N], [N, 2]]),
    steps=some.lists(some.sampled_from(MASKED_STEPS), max_size=5),
)
def test_masks_with_symbolic_ends_are_numpys_for_every_value(
    shape: list[sint], steps: list[str], view_buffer: Any
) -> None:
    check_symbolic_chain(shape, ["fill", *steps, "fill"], view_buffer)


def check_symbolic_chain(shape: list[sint], steps: list[str], view_buffer: Any) -> None:
    """Steps on a view, for several values of its variables beside the same steps on an array."""
    st = flat(shape)
    for step in steps:
        st = SYMBOLIC_STEPS[step](st)
    for n, m in product((1, 2, 5), (1, 4)):
        values = {N: n, M: m}
        sizes = tuple(int(at(s, values)) for s in shape)
        buffer = np.arange(1, int(np.prod(sizes)) + 1)
        want = Concrete(buffer.reshape(sizes), tuple(shape), values)
        for step in steps:
            want = SYMBOLIC_STEPS[step](want)
        if want.array.size > 2000:
            continue
        fixed = ShapeTracker([
            View([at(s, values) for s in v.shape], [at(s, values) for s in v.strides], at(v.offset, values),
                 None if v.mask is None else [(at(a, values), at(b, values)) for a, b in v.mask])
            for v in st.views
        ])  # fmt: skip
        assert fixed.shape == want.array.shape
        np.testing.assert_array_equal(view_buffer(fixed, buffer), want.array)
        check_symbolic_index(st, values, buffer, want.array)


def check_symbolic_index(st: ShapeTracker, values: dict[Variable, int], buffer: Array, want: Array) -> None:
    """The index expression that was made for all values gives the right element for these."""
    idxs = [Variable(f"i{k}", 0, s - 1) for k, s in enumerate(st.shape)]
    position, valid = st.index(idxs)
    for where in list(np.ndindex(want.shape))[:: max(1, want.size // 40)]:
        env: dict[Any, int] = {**values, **dict(zip(idxs, where, strict=True))}
        if (valid if isinstance(valid, int) else valid.evaluate(env)) == 0:
            assert want[where] == 0
        else:
            assert buffer[position if isinstance(position, int) else position.evaluate(env)] == want[where]


# -- errors ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("act", "message"), [
    (lambda x: x.reshape((4,)), r"reshape: cannot reshape \(2, 3\) \(6 elements\) to \(4,\) \(4 elements\)"),
    (lambda x: x.reshape((-1, 6)), r"reshape: cannot reshape \(2, 3\) to \(-1, 6\): the size -1 is negative"),
    (lambda x: x.reshape((N, 6)), r"reshape: cannot reshape \(2, 3\) \(6 elements\) to \(n, 6\) \(n\*6 elements\)"),
    (lambda x: x.permute((0, 0)), r"permute: \(0, 0\) is not a permutation of the 2 dimensions of shape \(2, 3\)"),
    (lambda x: x.permute((0,)), r"permute: \(0,\) is not a permutation"),
    (lambda x: x.expand((2, 6)), r"expand: cannot expand \(2, 3\) to \(2, 6\): dimension 1 has size 3, only 1 can"),
    (lambda x: x.expand((2,)), r"expand: shape \(2, 3\) has 2 dimensions, but 1 sizes were given: \(2,\)"),
    (lambda x: x.reshape((1, 6)).expand((-1, 6)), r"expand: cannot expand \(1, 6\) to \(-1, 6\): the size -1 is neg"),
    (lambda x: x.pad(((0, 1),)), r"pad: shape \(2, 3\) has 2 dimensions, but 1 pairs were given"),
    (lambda x: x.pad(((0, 1), (-1, 0))), r"pad: widths must not be negative, got \(-1, 0\) for dimension 1 of shape"),
    (lambda x: x.pad(((0, -1), (0, 0))), r"pad: widths must not be negative, got \(0, -1\) for dimension 0 of shape"),
    (lambda x: x.shrink(((0, 2), (1, 4))), r"shrink: range \(1, 4\) is not within dimension 1 of shape \(2, 3\)"),
    (lambda x: x.shrink(((0, 2), (2, 1))), r"shrink: range \(2, 1\) is not within dimension 1"),
    (lambda x: x.flip((2,)), r"flip: axis 2 is out of range for shape \(2, 3\) of 2 dimensions"),
    (lambda x: x.flip((0, -2)), r"flip: axes \(0, -2\) of shape \(2, 3\) name a dimension twice"),
    (lambda x: x.stride((0, 1)), r"stride: steps must not be 0, got \(0, 1\) for shape \(2, 3\)"),
    (lambda x: x.stride((1,)), r"stride: shape \(2, 3\) has 2 dimensions, but 1 steps were given"),
    (lambda x: x.index((0,)), r"index: shape \(2, 3\) needs 2 indexes, got 1"),
    (lambda x: flat((2, -3)), r"view: shape \(2, -3\) has the negative size -3"),
    (lambda x: View((2, 3), (1,)), r"view: shape \(2, 3\) has 2 dimensions, strides \(1,\)"),
    (lambda x: ShapeTracker(()), r"shapetracker: at least one view is needed"),
])  # fmt: skip
def test_errors_name_the_operation_and_the_shapes(act: Callable[[ShapeTracker], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        act(flat((2, 3)))


def test_numpy_integers_are_accepted() -> None:
    two: Any = np.int64(2)
    st = flat((two, np.int64(3))).reshape((np.int32(3), two))  # type: ignore[arg-type]
    assert st is flat((3, 2)) and all(type(s) is int for s in st.shape)
    assert all(type(s) is int for s in flat((1, 2)).expand((5 * two, 2)).shape)
    assert st.index((two, True)) == (5, 1)
    assert isinstance(Variable("v", 0, 3) + two, Expr)


def test_variables_are_bound_anew() -> None:
    n, m = Variable("n", 1, 8), Variable("m", 1, 8)
    st = ShapeTracker.from_shape((4, n.bind(3), m)).permute((1, 0, 2)).shrink(((0, n.bind(3)), (1, 4), (0, m)))
    again = st.bind({n: 5, m: 2})
    assert again.unbind() == (st.unbind()[0], {n: 5, m: 2}) and again.shape[0] == n.bind(5)
    assert st.bind({}) is st and ShapeTracker.from_shape((2, 3)).bind({n: 4}) is ShapeTracker.from_shape((2, 3))
    index, valid = again.index([2, 1, 1])
    assert sym_eval(index, {}) == 2 * 5 * 2 + 2 * 2 + 1 and valid == 1


def test_an_equal_map_of_a_larger_buffer_is_another_tracker() -> None:
    """What its lowest view shows has to be there, also where the views above look at a part of it."""
    kept = []
    for rows in range(6, 1, -1):
        st = ShapeTracker.from_shape((rows, 4)).reshape((rows, 4, 1)).expand((rows, 4, 2)).reshape((rows, 8))
        for part in (st.shrink(((1, 2), (0, 8))), st.shrink(((0, 2), (1, 8))).flip((0,))):
            lowest = part.views[0]
            reach = sum((dim - 1) * stride for dim, stride in zip(lowest.shape, lowest.strides, strict=True))
            assert lowest.offset + reach < 4 * rows
            kept.append(part)
    assert len({st.key for st in kept}) < len(set(kept))


def test_keys_tell_every_view_apart() -> None:
    lowest = ShapeTracker.from_shape((6, 4)).permute((1, 0))
    maps = [lowest, lowest.reshape((24,)), lowest.reshape((24,)).flip((0,)), lowest.reshape((8, 3)),
            lowest.reshape((8, 3)).permute((1, 0)), ShapeTracker.from_shape((24,))]  # fmt: skip
    assert len({st.key for st in maps}) == len(maps)
    assert len({len(st.views) for st in maps}) == 2


@pytest.mark.parametrize("view", [
    View((N,)), View((8,), (N,)), View((8,), (1,), N), View((8,), (1,), 0, ((N, 8),)), View((8,), (1,), 0, ((0, N),)),
    View((8, 8), (8, 1), 0, ((0, 7), (N, 8))),
])  # fmt: skip
def test_symbols_are_found_wherever_they_are(view: View) -> None:
    assert not ShapeTracker([view]).numeric and ShapeTracker([view]).vars() == {N}
