"""Functions that numpy has at its top, called as there: polynomials, orders, bits, grids, functions along axes."""

from __future__ import annotations

import itertools
from typing import Any

import numpy
import pytest

import tg_frontend.functions
from tg_frontend import Tensor
from tg_frontend.functions.names import named

np: Any = numpy  # whose overloads are not what is tested
functions: Any = tg_frontend.functions
RNG = np.random.default_rng(7)
ROW = np.array([0.0, 2.0, -1.5, 0.0, 3.0, 0.0])
OTHER = np.array([0.5, -2.0, 1.0])
SQUARE = RNG.normal(size=(3, 3))
WHOLE = RNG.integers(-4, 5, (4, 6))
FLAGS = WHOLE > 0
BYTES = RNG.integers(0, 256, (3, 2)).astype(np.uint8)
KEYS = RNG.integers(0, 3, (3, 9))


def same(mine: Any, theirs: Any) -> None:
    """Results of one shape and with the same values, one or several, be they in lists."""
    if isinstance(theirs, tuple) and any(isinstance(one, list) for one in theirs):
        assert len(mine) == len(theirs)
        for one, other in zip(mine, theirs, strict=True):
            same(one, other)
        return
    left, right = ([one] if not isinstance(one, (tuple, list)) else list(one) for one in (mine, theirs))
    assert len(left) == len(right)
    for a, b in zip(left, right, strict=True):
        got, wanted = a.numpy() if isinstance(a, Tensor) else np.asarray(a), np.asarray(b)
        assert got.shape == wanted.shape
        np.testing.assert_allclose(got, wanted, rtol=1e-6, atol=1e-6)


CASES: list[tuple[Any, ...]] = [
    ("polyval", ROW, SQUARE), ("polyval", WHOLE[0], WHOLE), ("polyval", ROW[:0], OTHER), ("polyadd", ROW, OTHER),
    ("polyadd", OTHER, ROW), ("polysub", OTHER, ROW), ("polymul", ROW, OTHER),
    ("polymul", np.zeros(2), OTHER), *(("polyder", ROW, m) for m in (0, 1, 2, 7)), ("polyder", WHOLE[0]),
    ("polyint", ROW), ("polyint", WHOLE[0], 2), ("polyint", OTHER, 2, [3.0, -1.0]), ("polyint", OTHER, 2, 4.0),
    ("polyint", OTHER, 2, 1j), ("poly", WHOLE[:3, :3]), ("polyfit", ROW.astype(np.float32), ROW**2, 2),
    ("polyfit", ROW, ROW**2 + 1j * ROW, 2), ("polyfit", ROW + 1j * ROW**2, ROW, 1), ("spacing", np.array([-0.0])),
    ("poly", ROW), ("poly", OTHER + 1j), ("poly", SQUARE), ("poly", WHOLE[0]), ("polyfit", ROW, ROW**2 - ROW, 2),
    ("polyfit", np.arange(7.0), RNG.normal(size=(7, 2)), 3), ("lexsort", KEYS), ("lexsort", list(KEYS)),
    ("lexsort", KEYS.reshape(3, 3, 3), 0), ("rollaxis", np.zeros((2, 3, 4)), 2),
    ("rollaxis", np.zeros((2, 3, 4)), 0, 3),
    ("rollaxis", np.zeros((2, 3, 4)), -1, -2), ("size", WHOLE), ("size", WHOLE, 1), ("size", WHOLE, (0, -1)),
    ("apply_over_axes", lambda x, axis: x.sum(axis), WHOLE, [0, 1]), ("apply_over_axes", lambda x, axis: x, WHOLE, 1),
    ("spacing", np.array([1.0, -3.0, 0.0, 1e300])), ("fabs", WHOLE), ("fabs", -OTHER),
    ("mask_indices", 4, lambda m, k: np.triu(m, k) if isinstance(m, np.ndarray) else m.triu(k), 1),
    *(("bitwise_count", RNG.integers(np.iinfo(kind).min, np.iinfo(kind).max, 9, endpoint=True, dtype=kind))
      for kind in ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")),
    ("bitwise_count", np.array([-128, 127, 0], np.int8)), ("bitwise_count", FLAGS),
    *(("packbits", FLAGS, axis, order) for axis in (None, 0, 1, -1) for order in ("big", "little")),
    ("packbits", WHOLE, 1), *(("unpackbits", BYTES, axis, count, order) for axis in (None, 0, -1)
                              for count in (None, 5, 40, -3) for order in ("big", "little")),
    ("ix_", [0, 2], np.array([True, False, True, True])),
    ("block", [[np.eye(2), np.zeros((2, 3))], [np.ones((1, 2)), np.full((1, 3), 7.0)]]), ("block", [1.0, OTHER, 2.0]),
    ("block", OTHER), ("block", [[OTHER], [OTHER]]), ("hamming", 7), ("hanning", 7), ("bartlett", 6), ("blackman", 1),
    ("conjugate", OTHER + 1j), ("histogram", ROW, [-1.0, 0.0, 2.0]), ("histogram", ROW, (-1.5, 3)),
    *(("histogram2d", ROW, ROW[::-1].copy(), bins) for bins in (3, (2, 3), [0.0, 1.0, 3.0], ([0.0, 1.0, 3.0], 2),
                                                               np.array([-1.0, 0.0, 3.0]))),
    *(("gradient", SQUARE, *apart) for apart in ((), (2.0,), (2.0, 0.5), (0.5, [0.0, 1.0, 4.0]))),
    ("histogramdd", SQUARE, (2, [-1.0, 0.0, 1.0], 3)), ("histogramdd", SQUARE, 2, [(-1, 1), (0, 2), (-2, 0)]),
    ("gradient", ROW, np.arange(6.0) ** 2), ("gradient", ROW, [0.0, 1.0, 3.0, 4.0, 8.0, 9.0]),
]  # fmt: skip


def _tensors(given: Any) -> Any:
    if isinstance(given, list):
        return [_tensors(one) for one in given]
    return Tensor(given) if isinstance(given, np.ndarray) else given


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_beside_numpy(case: tuple[Any, ...]) -> None:
    name, *args = case
    same(named(name)(*map(_tensors, args)), getattr(np, name)(*args))


def test_what_a_set_has_more_keeps_its_dtype() -> None:
    """No element is rounded to the digits of what the other set has."""
    kinds = "uint8", "int32", "int64", "float32", "float64"
    for first, second in itertools.product(kinds, kinds):
        elements = [one for one in (3, 7, 2**24 + 1, 2**53 + 1) if first[0] == "f" or one <= np.iinfo(first).max]
        a, b = np.array(elements).astype(first), np.array([3, 9]).astype(second)
        for alone in (False, True):
            mine, theirs = functions.setdiff1d(Tensor(a), Tensor(b), alone).numpy(), np.setdiff1d(a, b, alone)
            assert mine.dtype == theirs.dtype
            np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("name", ["polyval", "polysub"])
def test_polynomials_of_two_dtypes(name: str) -> None:
    """Neither is narrower than what both meet in: nothing wraps, and nothing is lost."""
    kinds = "uint8", "int8", "int32", "float64", "complex64"
    for first in kinds:
        for second in kinds:
            p, x = np.array([3, 100, 7]).astype(first), np.array([90, 2]).astype(second)
            mine, theirs = getattr(functions, name)(Tensor(p), Tensor(x)), getattr(np, name)(p, x)
            assert mine.dtype is functions.promote_types(first, second)
            np.testing.assert_array_equal(mine.numpy(), theirs)


def test_roots_in_any_order() -> None:
    for p in (ROW, OTHER, np.array([1.0, 0.0, 1.0]), np.array([0.0, 4.0]), np.array([2.0, 0.0, 0.0]), np.zeros(3)):
        mine, theirs = functions.roots(Tensor(p)).numpy(), np.roots(p)
        assert mine.shape == theirs.shape
        np.testing.assert_allclose(np.sort_complex(mine), np.sort_complex(theirs + 0j), atol=1e-9)


def test_what_lies_before_a_place_is_not_larger() -> None:
    for axis in (0, 1, None):
        for kth in (1, -1, [0, 2]):
            mine, where = (getattr(functions, name)(Tensor(WHOLE), kth, axis) for name in ("partition", "argpartition"))
            same(mine, np.sort(WHOLE, axis))
            flat = WHOLE.reshape(-1) if axis is None else WHOLE
            same(mine, np.take_along_axis(flat, where.numpy().astype(int), axis or 0))
    with pytest.raises(IndexError, match="partition: place 6 of 6"):
        functions.partition(Tensor(WHOLE), 6)


def test_functions_along_an_axis() -> None:
    x = RNG.normal(size=(2, 3, 4))
    ways: list[tuple[Any, Any]] = [
        (lambda row: row.sum(), lambda row: row.sum()), (lambda row: row[:2] * 2, lambda row: row[:2] * 2),
        (lambda row: row.reshape(-1, 1) + row, lambda row: row[:, None] + row), (lambda row: 3, lambda row: 3),
    ]  # fmt: skip
    for axis in (0, 1, -1):
        for mine, theirs in ways:
            same(functions.apply_along_axis(mine, axis, Tensor(x)), np.apply_along_axis(theirs, axis, x))


def test_what_is_written_in_brackets() -> None:
    mgrid, ogrid, r_, c_, s_, index_exp = map(named, "mgrid ogrid r_ c_ s_ index_exp".split())
    same(mgrid[0:3, 1:5:2], np.mgrid[0:3, 1:5:2])
    same(mgrid[:4], np.mgrid[:4])
    same(mgrid[-1:1:5j, 0:2], np.mgrid[-1:1:5j, 0:2])
    same(ogrid[0:3, 1:5:2], np.ogrid[0:3, 1:5:2])
    same(r_[1:4, 0, 4], np.r_[1:4, 0, 4])
    same(r_[0:1:3j, Tensor(OTHER)], np.r_[0:1:3j, OTHER])
    same(r_[Tensor(SQUARE), Tensor(SQUARE)], np.r_[SQUARE, SQUARE])
    same(c_[Tensor(OTHER), [1, 2, 3]], np.c_[OTHER, [1, 2, 3]])
    same(c_[Tensor(SQUARE), Tensor(OTHER)], np.c_[SQUARE, OTHER])
    assert s_[1:, ..., 2] == np.s_[1:, ..., 2] and index_exp[2] == np.index_exp[2] and s_[2] == 2
    with pytest.raises(NotImplementedError, match="not by '0,2'"):
        r_["0,2", 1]
    with pytest.raises(TypeError, match="wants an end"):
        mgrid[1:]


@pytest.mark.parametrize(("name", "args", "said"), [
    ("polyval", (SQUARE, OTHER), "a row of coefficients"), ("polyder", (ROW, -1), "no derivative -1"),
    ("polyint", (ROW, 3, [1.0, 2.0]), "2 constants for 3"), ("poly", (np.zeros((2, 3)),), "a row, or a square"),
    ("polyfit", (ROW, OTHER, 1), r"\(m,\) fit"), ("polyfit", (ROW, ROW, -1), "no degree"),
    ("lexsort", ([],), "one key"), ("lexsort", ([ROW, OTHER],), "keys of shapes"),
    ("ix_", (SQUARE,), "rows of indices"), ("block", ([],), "empty list"),
    ("block", ([OTHER, [OTHER]],), "several depths"), ("packbits", (FLAGS, None, "both"), "'big' or 'little'"),
    ("unpackbits", (BYTES, None, -99), "99 bits less than 48"),
    ("apply_along_axis", (lambda row: row, 0, np.zeros((3, 0))), "has no row"),
    ("histogram2d", (ROW, ROW, ([1.0, 0.0], 2)), "not in order"), ("gradient", (ROW, 1.0, 2.0), "2 spacings for 1"),
    ("apply_over_axes", (lambda x, axis: x.sum(), SQUARE, 0), "the function gave"),
])  # fmt: skip
def test_what_is_refused(name: str, args: Any, said: str) -> None:
    with pytest.raises(ValueError, match=rf"{name}: .*{said}"):
        getattr(functions, name)(*map(_tensors, args))
    for kind in ("bitwise_count", "packbits"):
        with pytest.raises(TypeError, match="integers"):
            getattr(functions, kind)(Tensor([1.5]))


def test_lists_are_beside_tensors() -> None:
    there = Tensor([1.0, 2.0], device="NUMPY")
    for found in (named("add")(there, [2.0, 3.0]), named("polyadd")([2.0], there), named("stack")(([1.0, 2.0], there))):
        assert found.device == "NUMPY" and found.ndim


LISTS: list[tuple[Any, ...]] = [
    *((name, [0.25, -0.5, 0.75]) for name in
      "exp2 expm1 arctan arcsin sin abs sign isnan isfinite signbit trunc cbrt fabs i0 sum prod max argmax ravel "
      "count_nonzero diagflat flipud any all logical_not square ediff1d roots".split()),
    *((name, [1.0, 2.0, 4.0], (0.5, -2.0, 4.0)) for name in
      "add multiply hypot copysign fmax fmin floor_divide fmod remainder greater less_equal equal logical_and arctan2 "
      "kron outer dot vdot inner cross isclose convolve correlate union1d polymul polyval power".split()),
    ("lexsort", ([3, 1, 1], [2, 2, 0])),
    *((name, ([1, 2, 3], [4, 5, 6])) for name in "hstack vstack dstack column_stack stack concatenate".split()),
    ("isin", [[1, 2], [3, 4]], [2, 3]), ("unique", [3, 1, 3]), ("meshgrid", ([1, 2], [3, 4, 5])),
    ("bitwise_count", [7, 8]), ("atleast_2d", [1, 2]), ("atleast_1d", 3.0), ("atleast_3d", [1], 2.0),
    ("interp", [0.5], [0.0, 1.0], [2.0, 3.0]), ("float_power", range(4), 3), ("where", [True, False], [1, 2], [3, 4]),
]  # fmt: skip


@pytest.mark.parametrize("case", LISTS, ids=lambda case: case[0])
def test_lists_of_numbers_stand_for_tensors(case: tuple[Any, ...]) -> None:
    name, *args = case
    if name in ("equal",):  # PyTorch's, which tells whether all are
        assert named(name)(*args) is False
        return
    wanted = np.meshgrid(*args[0], indexing="ij") if name == "meshgrid" else getattr(np, name)(*args)
    if name == "roots":
        wanted = wanted + 0j
    same(named(name)(*args), wanted)


def test_lists_of_tensors_where_one_is_wanted() -> None:
    one, other = named("atleast_2d")((Tensor(1.0), Tensor([2.0, 3.0])))  # PyTorch's form
    assert (one.shape, other.shape) == ((1, 1), (1, 2))
    out = Tensor([False])
    assert named("logical_and")(Tensor([True]), Tensor([True]), out=out) is out and out.tolist() == [True]
    assert [place.tolist() for place in Tensor(5).nonzero(as_tuple=True)] == [[0]]
    assert Tensor.zeros(3).slice_scatter(Tensor([4]), 0, 1, 2).tolist() == [0.0, 4.0, 0.0]
    assert Tensor.zeros(3, dtype="int32").select_scatter(Tensor(1.7), 0, 1).tolist() == [0, 1, 0]
