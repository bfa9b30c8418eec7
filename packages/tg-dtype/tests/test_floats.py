"""Float formats, against numpy and against tables of every representable value."""

from __future__ import annotations

import math
import random
import struct
from fractions import Fraction

import numpy as np
import pytest

from tg_dtype import DType, dtypes, float_format
from tg_dtype.floats import FloatFormat

FNUZ = (dtypes.fp8e4m3fnuz, dtypes.fp8e5m2fnuz)
SMALL = (dtypes.fp8e4m3, dtypes.fp8e5m2, *FNUZ, dtypes.float16, dtypes.bfloat16)


def bits_of(value: float) -> int:
    return int.from_bytes(struct.pack("<d", value), "little")


def table(dtype: DType) -> list[tuple[Fraction, int]]:
    """Every non-negative finite (value, bits), straight from the definition of a positional format."""
    exponent, mantissa = dtypes.finfo(dtype)
    bias = 2 ** (exponent - 1) - (dtype not in FNUZ)
    rows = []
    for e in range(2**exponent):
        for m in range(2**mantissa):
            last = e == 2**exponent - 1
            if last and dtype not in FNUZ and (dtype is not dtypes.fp8e4m3 or m == 2**mantissa - 1):
                continue
            implicit, power = (1, e - bias) if e else (0, 1 - bias)
            rows.append(((implicit + Fraction(m, 2**mantissa)) * Fraction(2) ** power, e << mantissa | m))
    return rows


@pytest.mark.parametrize("dtype", SMALL, ids=str)
def test_decode_every_value(dtype: DType) -> None:
    layout = float_format(dtype)
    sign = 1 << (dtype.bits - 1)
    for value, bits in table(dtype):
        assert Fraction(layout.decode(bits)) == value
        assert layout.encode(float(value)) == bits
        if dtype in FNUZ and value == 0:
            assert math.isnan(layout.decode(sign)) and layout.encode(-0.0) == 0
            continue
        assert math.copysign(1, layout.decode(bits | sign)) == -1 and Fraction(layout.decode(bits | sign)) == -value


@pytest.mark.parametrize("dtype", SMALL, ids=str)
def test_encode_is_nearest_even(dtype: DType) -> None:
    layout = float_format(dtype)
    rows = table(dtype)
    step = max(1, len(rows) // 4000)
    sample = range(0, len(rows) - 1, step)
    for k in [*sample, len(rows) - 2]:
        (low, low_bits), (high, high_bits) = rows[k], rows[k + 1]
        middle = float((low + high) / 2)
        even = low_bits if low_bits % 2 == 0 else high_bits
        assert layout.encode(middle) == even
        assert layout.encode(math.nextafter(middle, 0)) == low_bits
        assert layout.encode(math.nextafter(middle, math.inf)) == high_bits
    top, top_bits = rows[-1]
    limit = float(top + (top - rows[-2][0]) / 2)  # where an unbounded exponent would round up
    over = layout.encode(math.inf)
    assert layout.encode(math.nextafter(limit, 0)) == top_bits
    assert layout.encode(limit) == (top_bits if top_bits % 2 == 0 else over)
    assert layout.encode(math.nextafter(limit, math.inf)) == over
    assert layout.encode(1e300, saturate=True) == layout.encode(math.inf, saturate=True) == top_bits
    assert layout.largest == top
    assert layout.smallest_normal == rows[2 ** dtypes.finfo(dtype)[1]][0]


def test_overflow_without_infinity_is_the_largest() -> None:
    layout = float_format(dtypes.fp8e4m3)
    assert layout.encode(464.0) == layout.encode(464.1) == layout.encode(math.inf) == layout.encode(10**400) == 0x7E
    assert layout.encode(-1e9) == layout.encode(-math.inf) == 0xFE and layout.encode(math.nan) == 0x7F
    assert math.isnan(layout.decode(0x7F)) and layout.decode(0x7E) == 448.0


@pytest.mark.parametrize(("dtype", "largest", "least"), [(FNUZ[0], 240.0, 2.0**-10), (FNUZ[1], 57344.0, 2.0**-17)])
def test_one_zero_and_one_nan(dtype: DType, largest: float, least: float) -> None:
    layout = float_format(dtype)
    every = [layout.decode(bits) for bits in range(256)]
    assert [bits for bits, value in enumerate(every) if value != value] == [0x80]
    assert not any(map(math.isinf, every)) and len({value for value in every if value == value}) == 255
    assert (layout.largest, min(v for v in every if v > 0)) == (largest, least)
    for value in (math.nan, -math.nan, math.inf, -math.inf, 1e9, -1e9, 10**400, -(10**400), 2 * largest):
        assert layout.encode(value) == 0x80, value
    assert layout.encode(-1e-30) == layout.encode(-least / 2) == 0 and layout.encode(-least) == 0x81
    assert layout.encode(-1e9, saturate=True) == 0xFF


def test_half_bits_all_against_numpy() -> None:
    layout = float_format(dtypes.float16)
    every = np.arange(65536, dtype=np.uint16)
    values = every.view(np.float16).astype(np.float64)
    for bits, value in zip(every.tolist(), values.tolist(), strict=True):
        mine = layout.decode(bits)
        assert mine == value or (mine != mine and value != value)
        assert layout.encode(mine) == bits  # NaN payloads too


@pytest.mark.parametrize("name", ["float16", "float32"])
def test_random_doubles_against_numpy(name: str) -> None:
    rng = np.random.default_rng(1)
    exponents = rng.uniform(-30, 20, 20000) if name == "float16" else rng.uniform(-160, 140, 20000)
    doubles = np.concatenate([rng.standard_normal(20000) * 2.0**exponents, rng.standard_normal(5000)])
    with np.errstate(over="ignore"):
        want = doubles.astype(name).view(f"uint{np.dtype(name).itemsize * 8}")
    layout = float_format(dtypes.from_name(name))
    assert [layout.encode(v) for v in doubles.tolist()] == want.tolist()


def test_double_format_is_the_identity() -> None:
    layout = FloatFormat(11, 52)
    rng = random.Random(2)
    for _ in range(20000):
        bits = rng.getrandbits(64)
        assert layout.encode(layout.decode(bits)) == bits
        assert bits_of(layout.decode(bits)) == bits


@pytest.mark.parametrize("dtype", SMALL, ids=str)
def test_integers_round_once(dtype: DType) -> None:
    layout = float_format(dtype)
    rng = random.Random(3)
    for _ in range(3000):
        whole = rng.getrandbits(rng.randrange(1, 70))
        if dtype not in FNUZ:
            assert layout.encode(whole) == layout.encode(-whole) & ~(1 << (dtype.bits - 1))
        if whole < 1 << 53:
            assert layout.encode(whole) == layout.encode(float(whole))
    # 2**60 + 2**36 + 1 lies just over the middle between two floats; going through a double would lose the 1.
    assert float_format(dtypes.float32).encode(2**60 + 2**36 + 1) == float_format(dtypes.float32).encode(2**60 + 2**37)
    assert float_format(dtypes.float32).encode(float(2**60 + 2**36 + 1)) == float_format(dtypes.float32).encode(2.0**60)


def test_zeros_keep_their_sign() -> None:
    for dtype in (d for d in dtypes.floats if d not in FNUZ):
        layout = float_format(dtype)
        assert layout.encode(0.0) == 0 and layout.encode(-0.0) == 1 << (dtype.bits - 1) and layout.encode(0) == 0
        assert layout.encode(-5e-324) == (1 << (dtype.bits - 1)) | (dtype is dtypes.float64)
