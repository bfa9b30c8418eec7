"""The namespace of the array API standard, beside numpy's functions of the same names."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tg_dtype import dtypes
from tg_frontend import Tensor, array_api
from tg_frontend.array_api import linalg

xp: Any = array_api
RNG = np.random.default_rng(3)
X = RNG.uniform(-3, 3, (3, 5)).astype(np.float32)
WHOLE = RNG.integers(-9, 9, (3, 5)).astype(np.int32)
SMALL = RNG.integers(0, 100, (3, 5)).astype(np.int8)
REPEATED = np.array([3, 1, 3, -2, 1, 3], np.int32)
FRACTIONS = (X / 4).astype(np.float64)
SQUARE = (RNG.uniform(-1, 1, (4, 4)) + 3 * np.eye(4)).astype(np.float64)
SYMMETRIC = SQUARE @ SQUARE.T

CASES: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    *((name, (X,), {}) for name in "abs ceil floor trunc round sign sin cos tan exp expm1 sinh cosh tanh square isnan "
      "isfinite isinf signbit negative positive asinh atan reciprocal".split()),
    *((name, (FRACTIONS,), {}) for name in "asin acos atanh".split()), ("acosh", (np.abs(X) + 1,), {}),
    *((name, (np.abs(X),), {}) for name in "sqrt log log2 log10 log1p".split()),
    *((name, (X, X[::-1]), {}) for name in "add subtract multiply divide atan2 copysign hypot maximum minimum equal "
      "less less_equal greater greater_equal not_equal logaddexp nextafter".split()),
    *((name, (WHOLE, 3), {}) for name in "floor_divide remainder bitwise_and bitwise_or bitwise_xor pow".split()),
    *((name, (3, np.abs(WHOLE) + 1), {}) for name in "subtract floor_divide remainder bitwise_left_shift".split()),
    *((name, (WHOLE > 0, WHOLE > 2), {}) for name in "logical_and logical_or logical_xor".split()),
    ("logical_not", (WHOLE > 0,), {}), ("bitwise_invert", (WHOLE,), {}), ("clip", (X, -1, 1), {}),
    ("clip", (WHOLE, None, 3), {}), ("clip", (X, X - 1, None), {}),
    *((name, (array,), {"axis": axis, "keepdims": keep}) for name in ("sum", "prod", "max", "min", "mean", "std", "var")
      for array in (X, WHOLE) for axis, keep in ((None, False), (1, True), ((0, 1), False)) if not (
          array is WHOLE and name in ("mean", "std", "var"))),
    ("sum", (SMALL,), {}), ("sum", (SMALL.astype(np.uint8),), {}), ("var", (X,), {"axis": 1, "correction": 1}),
    *((name, (WHOLE > 0,), {"axis": 1}) for name in ("all", "any")), ("count_nonzero", (WHOLE,), {"axis": 0}),
    *((name, (X,), {"axis": 1}) for name in
    ("argmax", "argmin", "argsort", "sort", "cumulative_sum", "cumulative_prod")),
    *((name, (WHOLE,), {"axis": 0, "include_initial": True}) for name in ("cumulative_sum", "cumulative_prod")),
    ("diff", (X,), {"axis": 0}), ("nonzero", (WHOLE > 0,), {}),
    ("searchsorted", (np.sort(X[0]), X[1]), {"side": "right"}),
    ("where", (X > 0, 1.0, X), {}), ("where", (X > 0, X, -X), {}), ("take", (X, np.array([2, 0])), {"axis": 0}),
    ("take_along_axis", (X, np.argsort(X, 1)), {"axis": 1}), ("concat", ([X.astype(np.float64), WHOLE],), {"axis": 1}),
    ("concat", ([X, X],), {"axis": None}), ("stack", ([X, X],), {"axis": 1}), ("unstack", (X,), {"axis": 1}),
    ("expand_dims", (X,), {"axis": 1}), ("squeeze", (X[None],), {"axis": 0}), ("flip", (X,), {}),
    ("flip", (X,), {"axis": 1}),
    ("moveaxis", (X, 0, 1), {}), ("permute_dims", (X, (1, 0)), {}), ("repeat", (X, 2), {"axis": 1}),
    ("repeat", (X, 3), {}),
    ("reshape", (X, (5, 3)), {}), ("roll", (X, 2), {}), ("roll", (X, (1, 2)), {"axis": (0, 1)}),
    ("tile", (X, (2, 1)), {}),
    ("broadcast_to", (X, (2, 3, 5)), {}), ("tril", (X,), {"k": 1}), ("triu", (X,), {"k": -1}), ("matmul", (X, X.T), {}),
    ("matrix_transpose", (X,), {}), ("tensordot", (X, X), {"axes": ([0], [0])}), ("vecdot", (X, X), {"axis": 0}),
    ("unique_all", (REPEATED,), {}), ("unique_counts", (REPEATED,), {}), ("unique_inverse", (REPEATED,), {}),
    ("unique_values", (REPEATED,), {}), ("isin", (REPEATED, np.array([3, 7], np.int32)), {}),
    ("arange", (7,), {}), ("arange", (1, 9, 2), {}), ("arange", (0.5, 3.0), {}), ("linspace", (0.0, 1.0, 5), {}),
    ("linspace", (0.0, 1.0, 5), {"endpoint": False}), ("eye", (3,), {"k": 1}), ("eye", (3, 5), {"k": -2}),
    ("ones", (3,), {}),
    ("zeros", ((2, 3),), {}), ("full", ((2,), 3), {}), ("full", ((2,), 3.5), {}), ("full", ((2,), True), {}),
    ("zeros_like", (WHOLE,), {}), ("ones_like", (X,), {}), ("full_like", (WHOLE, 4), {}),
]  # fmt: skip
LINALG: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("det", (SQUARE,), {}), ("inv", (SQUARE,), {}), ("solve", (SQUARE, SQUARE[0]), {}), ("solve", (SQUARE, SQUARE), {}),
    ("cholesky", (SYMMETRIC,), {}), ("cholesky", (SYMMETRIC,), {"upper": True}), ("eigvalsh", (SYMMETRIC,), {}),
    ("matrix_norm", (SQUARE,), {}), ("matrix_norm", (SQUARE,), {"ord": 1}), ("matrix_power", (SQUARE, 3), {}),
    ("matrix_rank", (SQUARE,), {}), ("matrix_rank", (SQUARE,), {"rtol": 0.9}), ("pinv", (SQUARE[:2],), {}),
    ("pinv", (SQUARE,), {"rtol": 0.5}), ("slogdet", (SQUARE,), {}), ("svdvals", (SQUARE,), {}),
    ("trace", (SQUARE,), {}),
    ("trace", (SMALL,), {"offset": 1}), ("vector_norm", (SQUARE,), {}),
    ("vector_norm", (SQUARE,), {"axis": 0, "ord": 1}),
    ("diagonal", (SQUARE,), {"offset": 1}), ("outer", (SQUARE[0], SQUARE[1]), {}),
    ("cross", (SQUARE[:, :3], SQUARE[:, 1:]), {}), ("matmul", (SQUARE, SQUARE), {}), ("vecdot", (SQUARE, SQUARE), {}),
]  # fmt: skip


def given(value: Any) -> Any:
    if isinstance(value, list):
        return [given(part) for part in value]
    return Tensor(np.ascontiguousarray(value)) if isinstance(value, np.ndarray) else value


def compare(ours: Callable[..., Any], theirs: Callable[..., Any], args: Any, kwargs: dict[str, Any]) -> None:
    got, want = ours(*map(given, args), **kwargs), theirs(*args, **kwargs)
    several = isinstance(want, tuple | list)
    assert isinstance(got, tuple | list) == several
    pairs = zip(got, want, strict=True) if several else [(got, want)]
    for a, b in pairs:
        assert a.shape == np.shape(b)
        drawn_from_numbers = not any(isinstance(arg, np.ndarray | list) for arg in args)
        if not (drawn_from_numbers and a.dtype is dtypes.float32):  # numpy's default float is float64
            assert a.dtype.name == np.asarray(b).dtype.name
        np.testing.assert_allclose(a.numpy(), b, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_functions(case: tuple[str, tuple[Any, ...], dict[str, Any]]) -> None:
    name, args, kwargs = case
    compare(getattr(xp, name), getattr(np, name), args, kwargs)


@pytest.mark.parametrize("case", LINALG, ids=lambda case: case[0])
def test_linear_algebra(case: tuple[str, tuple[Any, ...], dict[str, Any]]) -> None:
    name, args, kwargs = case
    compare(getattr(linalg, name), getattr(np.linalg, name), args, kwargs)


def test_decompositions_multiply_to_what_they_are_of() -> None:
    x = Tensor(SQUARE)
    u, s, vh = linalg.svd(x)
    q, r = linalg.qr(x)
    values, vectors = linalg.eigh(Tensor(SYMMETRIC))
    for found, want in (((u * s) @ vh, SQUARE), (q @ r, SQUARE), ((vectors * values) @ vectors.mT, SYMMETRIC)):
        np.testing.assert_allclose(found.numpy(), want, atol=1e-10)
    assert linalg.svd(x).S is not None and linalg.qr(x).Q.shape == (4, 4)
    assert linalg.slogdet(x).logabsdet.shape == () and linalg.eigh(Tensor(SYMMETRIC)).eigenvectors.shape == (4, 4)


def test_a_tensor_names_its_namespace() -> None:
    for version in (None, "2024.12", "2023.12"):
        assert Tensor([1]).__array_namespace__(api_version=version) is array_api
    with pytest.raises(ValueError, match="version '1999.01'"):
        Tensor([1]).__array_namespace__(api_version="1999.01")
    assert set(array_api.__all__) <= set(dir(array_api)) and array_api.__array_api_version__ == "2024.12"


def test_every_function_is_documented_and_none_hides_its_arguments() -> None:
    for module in (array_api, linalg):
        for name in module.__all__:
            thing = getattr(module, name)
            if inspect.isfunction(thing):
                assert thing.__doc__, name
                assert all(p.kind is not p.VAR_KEYWORD for p in inspect.signature(thing).parameters.values()), name


def test_dtypes() -> None:
    assert xp.isdtype(xp.int8, "signed integer") and xp.isdtype(xp.uint8, ("bool", "integral"))
    assert not xp.isdtype(xp.float32, "integral") and xp.isdtype(xp.float32, xp.float32)
    with pytest.raises(ValueError, match="isdtype: 'odd'"):
        xp.isdtype(xp.int8, "odd")
    assert xp.result_type(xp.int8, xp.uint8) is xp.int16 and xp.result_type(Tensor([1.0]), 2) is xp.float32
    assert xp.result_type(xp.int32, 1.5) is xp.float32 and xp.can_cast(xp.int8, xp.int16)
    assert not xp.can_cast(xp.float64, xp.float32)
    with pytest.raises(ValueError, match="result_type"):
        xp.result_type(1, 2)
    for name in ("float32", "float64"):
        ours, theirs = xp.finfo(getattr(xp, name)), np.finfo(name)
        assert (ours.bits, ours.eps, ours.max, ours.min) == (theirs.bits, theirs.eps, theirs.max, theirs.min)
    assert xp.iinfo(xp.int8).max == 127 and xp.iinfo(Tensor([1], dtype="uint16")).min == 0
    with pytest.raises(ValueError, match="finfo: int8"):
        xp.finfo(xp.int8)
    assert xp.astype(Tensor([1.5]), xp.int8).tolist() == [1]
    x = Tensor([1])
    assert xp.astype(x, xp.int32, copy=False) is x and xp.astype(x, xp.int32) is not x


def test_asarray() -> None:
    assert xp.asarray(3).dtype is xp.int64 and xp.asarray([1.5]).dtype is xp.float32
    assert xp.asarray(True).dtype is xp.bool
    x = Tensor([1])
    assert xp.asarray(x) is x and xp.asarray(x, copy=True) is not x
    with pytest.raises(ValueError, match="asarray: a list must be copied"):
        xp.asarray([1], copy=False)
    with pytest.raises(ValueError, match="asarray: int32 on"):
        xp.asarray(x, dtype=xp.float32, copy=False)
    assert xp.asarray(np.arange(3, dtype=np.int16)).dtype is xp.int16
    assert xp.asarray([Tensor(1), 2]).dtype is dtypes.int32


def test_every_nan_is_one_of_its_own() -> None:
    found = xp.unique_all(Tensor([2.0, float("nan"), 2.0, float("nan")]))
    assert found.counts.tolist() == [2, 1, 1] and found.indices.tolist() == [0, 1, 3]
    empty = xp.unique_all(Tensor.zeros(0))
    assert [part.shape for part in empty] == [(0,)] * 4


def test_what_is_no_tensor_is_refused() -> None:
    x = Tensor([1])
    for name, args in (("sin", (1.0,)), ("add", (1, 2)), ("sum", ([1, 2],)), ("add", ([1], x)), ("concat", ([1, x],))):
        with pytest.raises(TypeError, match=f"^{name}: .*tensor"):
            getattr(xp, name)(*args)
    with pytest.raises(ValueError, match="squeeze: axis 0"):
        xp.squeeze(Tensor([1, 2]), axis=0)
    with pytest.raises(ValueError, match="nonzero"):
        xp.nonzero(Tensor(1))


def test_information() -> None:
    info = xp.__array_namespace_info__()
    assert info.default_device() in info.devices() and info.capabilities()["boolean indexing"]
    assert info.default_dtypes()["integral"] is xp.int64 and info.default_dtypes()["real floating"] is xp.float32
    assert set(info.dtypes(kind="unsigned integer")) == {"uint8", "uint16", "uint32", "uint64"}
    assert set(info.dtypes(kind=("bool", "signed integer"))) == {"bool", "int8", "int16", "int32", "int64"}
    with pytest.raises(ValueError, match="dtypes: 'odd'"):
        info.dtypes(kind="odd")


def test_a_tensor_of_no_axes_decides_as_any_other() -> None:
    wide, narrow = xp.asarray(2.0, dtype=xp.float64), xp.asarray([1.0, 3.0], dtype=xp.float32)
    for name in ("add", "multiply", "subtract", "divide", "pow", "maximum", "hypot", "copysign", "remainder"):
        assert getattr(xp, name)(narrow, wide).dtype is getattr(xp, name)(wide, narrow).dtype is xp.float64, name
    assert xp.where(narrow > 2, wide, narrow).dtype is xp.result_type(wide, narrow) is xp.float64
    assert xp.bitwise_or(xp.asarray([1], dtype=xp.int8), xp.asarray(2, dtype=xp.uint8)).dtype is xp.int16
