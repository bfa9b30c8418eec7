"""Host casts: against numpy where C defines the result, against the stated rules where it does not."""

from __future__ import annotations

import math
import random
import struct

import numpy as np
import pytest

from tg_dtype import DType, as_const, bitcast_scalar, cast_scalar, dtypes, from_bits, interop, to_bits, truncate

NUMPY = tuple(d for d in dtypes.all if interop.to_numpy_name(d) is not None)
INTERESTING = (0, 1, -1, 2, 127, 128, 255, 256, -128, -129, 32767, 65535, 2**31 - 1, 2**31, 2**32, 2**53 + 1, 2**63 - 1)


def same(a: float, b: float) -> bool:
    return (a != a and b != b) or (a == b and type(a) is type(b) and math.copysign(1, a) == math.copysign(1, b))


@pytest.mark.parametrize("dst", NUMPY, ids=str)
@pytest.mark.parametrize("src", NUMPY, ids=str)
def test_against_numpy(src: DType, dst: DType) -> None:
    rng = random.Random(src.name + dst.name)
    pool = [*INTERESTING, *(rng.getrandbits(64) - 2**63 for _ in range(40)), *(rng.gauss(0, 100) for _ in range(40))]
    with np.errstate(all="ignore"):
        values = [truncate(v, src) for v in pool]
        if dtypes.is_float(src) and dtypes.is_int(dst):
            values = [v for v in values if math.isfinite(v) and dtypes.min(dst) <= int(v) <= dtypes.max(dst)]
        want = np.array(values, dtype=src.name).astype(dst.name).tolist()
    for value, expected in zip(values, want, strict=True):
        got = cast_scalar(value, src, dst)
        assert same(got, expected), (value, got, expected)


@pytest.mark.parametrize("dst", dtypes.ints, ids=str)
def test_floats_that_do_not_fit_saturate(dst: DType) -> None:
    for huge in (1e300, math.inf):
        assert cast_scalar(huge, dtypes.float64, dst) == dtypes.max(dst)
        assert cast_scalar(-huge, dtypes.float64, dst) == dtypes.min(dst)
    assert cast_scalar(math.nan, dtypes.float32, dst) == 0
    edge = float(dtypes.max(dst)) + 0.5
    assert cast_scalar(edge, dtypes.float64, dst) == dtypes.max(dst)


def test_to_bool_is_unlike_zero() -> None:
    for value, truth in ((0.0, False), (-0.0, False), (1e-300, True), (math.nan, True)):
        assert cast_scalar(value, dtypes.float64, dtypes.bool) is truth
    assert cast_scalar(256, dtypes.int32, dtypes.bool) is True
    assert cast_scalar(True, dtypes.bool, dtypes.float16) == 1.0
    # The source type is honoured first: this is 0 once it is a half.
    assert cast_scalar(1e-300, dtypes.float16, dtypes.bool) is False


def test_truncate_examples() -> None:
    assert (
        truncate(-1, dtypes.uint8) == 255
        and truncate(128, dtypes.int8) == -128
        and truncate(2**64 + 5, dtypes.int64) == 5
    )
    assert truncate(65519.9, dtypes.float16) == 65504.0 and truncate(65520.0, dtypes.float16) == math.inf
    assert truncate(-1e39, dtypes.float32) == -math.inf and truncate(2**200, dtypes.float64) == 2.0**200
    assert truncate(10**400, dtypes.float64) == math.inf and truncate(-(10**400), dtypes.float32) == -math.inf
    assert truncate(1.0 + 2**-8, dtypes.bfloat16) == 1.0 and truncate(1.0 + 3 * 2**-8, dtypes.bfloat16) == 1.0 + 2**-6
    assert truncate(2**-10, dtypes.fp8e4m3) == 0.0 and truncate(3 * 2**-10, dtypes.fp8e4m3) == 2**-8
    assert truncate(1e9, dtypes.fp8e4m3) == 448.0 and truncate(1e9, dtypes.fp8e5m2) == math.inf
    assert truncate(-math.inf, dtypes.fp8e4m3) == -448.0 and math.isnan(truncate(math.nan, dtypes.fp8e4m3))
    assert truncate(0.1, dtypes.float32.vec(4)) == struct.unpack("f", struct.pack("f", 0.1))[0]


@pytest.mark.parametrize("dtype", dtypes.all, ids=str)
def test_truncate_is_idempotent_and_typed(dtype: DType) -> None:
    rng = random.Random(dtype.name)
    for value in (
        *INTERESTING,
        -0.0,
        0.1,
        -2.5,
        math.inf,
        -math.inf,
        math.nan,
        True,
        *(rng.gauss(0, 1) for _ in range(50)),
    ):
        once = truncate(value, dtype)
        assert same(truncate(once, dtype), once)
        assert type(once) is (bool if dtype is dtypes.bool else int if dtypes.is_int(dtype) else float)
        assert same(as_const(value, dtype), once)


@pytest.mark.parametrize("dtype", [d for d in dtypes.all if d.bits in (8, 16)], ids=str)
def test_every_pattern_survives_a_bitcast(dtype: DType) -> None:
    unsigned = dtypes.uint8 if dtype.bits == 8 else dtypes.uint16
    for bits in range(1 << dtype.bits):
        value = bitcast_scalar(bits, unsigned, dtype)
        assert bitcast_scalar(value, dtype, unsigned) == bits


@pytest.mark.parametrize(
    ("dtype", "unsigned"), [(dtypes.float32, dtypes.uint32), (dtypes.float64, dtypes.uint64)], ids=str
)
def test_wide_floats_survive_a_bitcast(dtype: DType, unsigned: DType) -> None:
    rng = random.Random(4)
    nan = ((1 << dtypes.finfo(dtype)[0]) - 1) << dtypes.finfo(dtype)[1]
    for bits in [*(rng.getrandbits(dtype.bits) for _ in range(5000)), nan, nan | 1, nan | 1 << (dtype.bits - 1) | 2]:
        value = bitcast_scalar(bits, unsigned, dtype)
        assert bitcast_scalar(value, dtype, unsigned) == bits
        if value == value and dtype.fmt is not None:
            assert struct.pack("<" + dtype.fmt, value) == bits.to_bytes(dtype.itemsize, "little")


def test_bitcast_between_signs_and_its_error() -> None:
    assert bitcast_scalar(-1, dtypes.int16, dtypes.uint16) == 65535
    assert bitcast_scalar(0xBF80, dtypes.uint16, dtypes.bfloat16) == -1.0
    assert bitcast_scalar(True, dtypes.bool, dtypes.int8) == 1
    with pytest.raises(TypeError, match="float32 and int64 differ"):
        bitcast_scalar(1.0, dtypes.float32, dtypes.int64)
    assert to_bits(-2, dtypes.int8) == 0xFE and from_bits(0xFE, dtypes.int8) == -2


@pytest.mark.parametrize("dtype", [dtypes.void, dtypes.float32.ptr(), dtypes.imagef((1, 1, 4))], ids=str)
def test_no_numbers_in_void_and_pointers(dtype: DType) -> None:
    with pytest.raises(TypeError, match="holds no number"):
        truncate(1, dtype)
    with pytest.raises(TypeError, match="holds no number"):
        to_bits(1, dtype)


def test_what_is_no_number_is_named() -> None:
    with pytest.raises(TypeError, match="str 'x' is not"):
        truncate("x", dtypes.int32)  # type: ignore[arg-type]
