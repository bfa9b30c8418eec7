"""Predicates, limits and the type of Python values."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tg_dtype import DType, dtypes, interop


def test_every_scalar_has_exactly_one_kind() -> None:
    for dtype in dtypes.all:
        assert [dtypes.is_bool(dtype), dtypes.is_int(dtype), dtypes.is_float(dtype)].count(True) == 1
        assert dtypes.is_unsigned(dtype) == dtype.name.startswith("uint")
    assert [d for d in dtypes.all if dtypes.is_int(d)] == list(dtypes.ints)
    assert [d for d in dtypes.all if dtypes.is_float(d)] == list(dtypes.floats)
    assert [d.priority for d in dtypes.all] == list(range(len(dtypes.all)))


@pytest.mark.parametrize("dtype", dtypes.ints, ids=str)
def test_integer_limits_are_numpys(dtype: DType) -> None:
    info = np.iinfo(dtype.name)
    assert (dtypes.min(dtype), dtypes.max(dtype)) == (info.min, info.max)


@pytest.mark.parametrize("dtype", dtypes.floats, ids=str)
def test_float_limits(dtype: DType) -> None:
    if dtype is dtypes.fp8e4m3:
        assert (dtypes.min(dtype), dtypes.max(dtype)) == (-448.0, 448.0)
    elif dtype.name.endswith("fnuz"):
        most = 240.0 if dtype is dtypes.fp8e4m3fnuz else 57344.0
        assert (dtypes.min(dtype), dtypes.max(dtype)) == (-most, most)
    else:
        assert (dtypes.min(dtype), dtypes.max(dtype)) == (-math.inf, math.inf)
    name = interop.to_numpy_name(dtype)
    if name is not None:
        info = np.finfo(name)
        assert dtypes.finfo(dtype) == (info.bits - 1 - info.nmant, info.nmant)


def test_limits_of_bool_and_of_what_has_none() -> None:
    assert dtypes.min(dtypes.bool) is False and dtypes.max(dtypes.bool) is True
    for ask in (dtypes.min, dtypes.max):
        with pytest.raises(TypeError, match=r"float32\* has no values"):
            ask(dtypes.float32.ptr())
    with pytest.raises(TypeError, match="int32 is not a float"):
        dtypes.finfo(dtypes.int32)


def test_from_py() -> None:
    assert dtypes.from_py(True) is dtypes.bool
    assert dtypes.from_py(3) is dtypes.int32
    assert dtypes.from_py(3.0) is dtypes.float32
    assert dtypes.from_py([]) is dtypes.float32
    assert dtypes.from_py([[True], (False,)]) is dtypes.bool
    assert dtypes.from_py([1, [2, 3.5]]) is dtypes.float32
    with pytest.raises(TypeError, match="str is not"):
        dtypes.from_py(["a"])
    deep: object = 1
    for _ in range(100_000):
        deep = [deep]
    assert dtypes.from_py(deep) is dtypes.int32
    del deep


def test_defaults_may_be_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dtypes, "default_float", dtypes.float16)
    monkeypatch.setattr(dtypes, "default_int", dtypes.int64)
    assert dtypes.from_py(1.0) is dtypes.float16 and dtypes.from_py(1) is dtypes.int64
