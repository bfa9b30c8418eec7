"""The lattice: laws by enumeration, examples by hand, safe casts by trying every value."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from tg_dtype import (
    DType,
    can_safe_cast,
    cast_scalar,
    complex_dtype,
    dtypes,
    from_bits,
    interop,
    least_upper_dtype,
    least_upper_float,
    part_dtype,
    sum_acc_dtype,
    sum_dtype,
)

PAIRS = list(itertools.combinations_with_replacement(dtypes.all, 2))


def test_every_pair_has_a_join_and_order_does_not_matter() -> None:
    for a, b in PAIRS:
        joined = least_upper_dtype(a, b)
        assert joined is least_upper_dtype(b, a) and joined in dtypes.all
        assert least_upper_dtype(a, joined) in (joined, dtypes.default_float)


def test_every_set_of_three_has_a_join_that_is_an_upper_bound() -> None:
    for trio in itertools.combinations(dtypes.all, 3):
        joined = least_upper_dtype(*trio)
        for order in itertools.permutations(trio):
            assert least_upper_dtype(*order) is joined
        for one in trio:
            assert least_upper_dtype(one, joined) is joined


def test_kinds_are_ordered() -> None:
    for a, b in PAIRS:
        joined = least_upper_dtype(a, b)
        if dtypes.is_float(a) or dtypes.is_float(b):
            assert dtypes.is_float(joined)
        if dtypes.is_float(a) and not dtypes.is_float(b):
            assert joined is a
        if dtypes.is_bool(a):
            assert joined is b


@pytest.mark.parametrize("a", dtypes.ints[:-1], ids=str)
@pytest.mark.parametrize("b", dtypes.ints[:-1], ids=str)
def test_integers_join_as_in_numpy(a: DType, b: DType) -> None:
    assert least_upper_dtype(a, b).name == np.promote_types(a.name, b.name).name


@pytest.mark.parametrize(
    ("operands", "joined"),
    [
        ((dtypes.int64, dtypes.uint64), dtypes.float32),
        ((dtypes.int64, dtypes.uint64, dtypes.float16), dtypes.float16),
        ((dtypes.int64, dtypes.fp8e5m2), dtypes.fp8e5m2),
        ((dtypes.fp8e4m3, dtypes.fp8e5m2), dtypes.float16),
        ((dtypes.fp8e4m3, dtypes.fp8e5m2, dtypes.bfloat16), dtypes.bfloat16),
        ((dtypes.float16, dtypes.bfloat16), dtypes.float32),
        ((dtypes.bool, dtypes.bool), dtypes.bool),
        ((dtypes.int32.vec(4), dtypes.float16.vec(4)), dtypes.float16.vec(4)),
        ((dtypes.int8.ptr(3), dtypes.int8.ptr(3)), dtypes.int8.ptr(3)),
    ],
)
def test_examples(operands: tuple[DType, ...], joined: DType) -> None:
    assert least_upper_dtype(*operands) is joined


def test_the_float_of_two_wide_integers_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dtypes, "default_float", dtypes.bfloat16)
    assert least_upper_dtype(dtypes.int64, dtypes.uint64) is dtypes.bfloat16


def test_no_join() -> None:
    for bad in (dtypes.void, dtypes.float32.ptr(), dtypes.float32.vec(4), dtypes.imagef((1, 1, 4))):
        with pytest.raises(TypeError, match="no dtype holds both"):
            least_upper_dtype(dtypes.float32, bad)
    with pytest.raises(ValueError, match="at least one"):
        least_upper_dtype()


def test_least_upper_float() -> None:
    for dtype in dtypes.all:
        assert least_upper_float(dtype) is (dtype if dtypes.is_float(dtype) else dtypes.float32)
    assert least_upper_float(dtypes.int8.vec(2)) is dtypes.float32.vec(2)
    with pytest.raises(TypeError, match="void"):
        least_upper_float(dtypes.void)


def test_sums() -> None:
    expected = {
        dtypes.bool: (dtypes.int32, dtypes.int64),
        dtypes.int8: (dtypes.int32, dtypes.int64),
        dtypes.uint8: (dtypes.uint32, dtypes.int64),
        dtypes.uint16: (dtypes.uint32, dtypes.int64),
        dtypes.int32: (dtypes.int32, dtypes.int64),
        dtypes.int64: (dtypes.int64, dtypes.int64),
        dtypes.uint64: (dtypes.uint64, dtypes.uint64),
        dtypes.fp8e4m3: (dtypes.float32, dtypes.fp8e4m3),
        dtypes.float16: (dtypes.float32, dtypes.float16),
        dtypes.bfloat16: (dtypes.float32, dtypes.bfloat16),
        dtypes.float32: (dtypes.float32, dtypes.float32),
        dtypes.float64: (dtypes.float64, dtypes.float64),
        dtypes.float16.vec(4): (dtypes.float32.vec(4), dtypes.float16.vec(4)),
    }
    for dtype, (accumulator, result) in expected.items():
        assert (sum_acc_dtype(dtype), sum_dtype(dtype)) == (accumulator, result), dtype
    with pytest.raises(TypeError, match="cannot be added"):
        sum_acc_dtype(dtypes.float32.ptr())


def _values(dtype: DType) -> list[int | float]:
    """All values of small types; of wide ones the extremes and neighbours of powers of two."""
    if dtype.bits <= 8:
        return [from_bits(b, dtype) for b in range(256)]
    if dtype.bits == 16:
        return [from_bits(b, dtype) for b in range(0, 65536, 7)] + [dtypes.min(dtype), dtypes.max(dtype)]
    if dtypes.is_int(dtype):
        near = [2**k + d for k in range(dtype.bits) for d in (-1, 0, 1)]
        return [v for n in near for v in (n, -n) if dtypes.min(dtype) <= v <= dtypes.max(dtype)]
    exponent, mantissa = dtypes.finfo(dtype)
    edge = [1 + 2.0**-mantissa, 2.0 ** (2 ** (exponent - 1) - 1), 2.0 ** (2 - 2 ** (exponent - 1) - mantissa), math.inf]
    return [s * v for v in edge for s in (1, -1)]


@pytest.mark.parametrize("src", dtypes.all, ids=str)
def test_safe_casts_are_those_that_can_be_undone(src: DType) -> None:
    values = _values(src)
    for dst in dtypes.all:
        kept = all(
            cast_scalar(v, src, dst) == v and cast_scalar(cast_scalar(v, src, dst), dst, src) == v
            for v in values
            if v == v
        )
        assert can_safe_cast(src, dst) == kept, (src, dst)


def test_safe_casts_agree_with_numpy_for_integers() -> None:
    named = [d for d in (dtypes.bool, *dtypes.ints) if interop.to_numpy_name(d)]
    for a, b in itertools.product(named, repeat=2):
        assert can_safe_cast(a, b) == np.can_cast(a.name, b.name, "safe")
    assert not can_safe_cast(dtypes.int8, dtypes.int8.vec(2)) and not can_safe_cast(dtypes.void, dtypes.int8)


@pytest.mark.parametrize("other", [*dtypes.all, *dtypes.complexes], ids=str)
def test_complex_joins_as_in_torch(other: DType) -> None:
    wide = other in (dtypes.float64, dtypes.complex128)
    assert least_upper_dtype(dtypes.complex64, other) is (dtypes.complex128 if wide else dtypes.complex64)
    assert least_upper_dtype(other, dtypes.complex128) is dtypes.complex128
    assert complex_dtype(other) is (dtypes.complex128 if wide else dtypes.complex64)


@pytest.mark.parametrize("other", [d for d in dtypes.all if interop.to_numpy_name(d)], ids=str)
@pytest.mark.parametrize("kind", dtypes.complexes, ids=str)
def test_casts_to_complex_are_safe_where_the_parts_hold_all_values(kind: DType, other: DType) -> None:
    assert can_safe_cast(other, kind) is can_safe_cast(other, part_dtype(kind))
    assert not can_safe_cast(kind, other) and can_safe_cast(kind, kind)


def test_complex_is_its_own_sum_and_function() -> None:
    for kind in dtypes.complexes:
        assert sum_dtype(kind) is sum_acc_dtype(kind) is least_upper_float(kind) is kind
        assert part_dtype(kind).itemsize * 2 == kind.itemsize and not can_safe_cast(kind, dtypes.bool)
    assert can_safe_cast(dtypes.complex64, dtypes.complex128) and not can_safe_cast(dtypes.complex128, dtypes.complex64)
    with pytest.raises(TypeError, match="part_dtype: float32 is not complex"):
        part_dtype(dtypes.float32)
