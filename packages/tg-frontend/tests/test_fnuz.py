"""Floats of 8 bits with one zero and one NaN: every bit pattern, cast and put in order by kernels of each backend."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest

from tg_frontend import Tensor

BIASES = {"fp8e4m3fnuz": (3, 8), "fp8e5m2fnuz": (2, 16)}  # bits of the fraction, bias of the exponent


def value(bits: int, name: str) -> float:
    """What a bit pattern means."""
    fraction, bias = BIASES[name]
    if bits == 0x80:
        return math.nan
    exponent, rest = (bits & 0x7F) >> fraction, bits & ((1 << fraction) - 1)
    size = (rest + (exponent > 0) * (1 << fraction)) * 2.0 ** (max(exponent, 1) - bias - fraction)
    return -size if bits & 0x80 else size


@pytest.mark.parametrize("name", BIASES)
def test_every_pattern_there_and_back(name: str, backend: str) -> None:
    patterns = np.arange(256, dtype=np.uint8)
    wide = Tensor(patterns).realize().bitcast(name).cast("float32").numpy()
    np.testing.assert_array_equal(wide, np.array([value(bits, name) for bits in range(256)], np.float32))
    assert Tensor(wide).realize().cast(name).bitcast("uint8").tolist() == patterns.tolist()


@pytest.mark.parametrize("name", BIASES)
def test_what_lies_between_goes_to_the_nearest(name: str, backend: str) -> None:
    rows = [value(bits, name) for bits in range(128)]
    middles = np.array([(a + b) / 2 for a, b in pairwise(rows)], np.float32)
    even = [bits + bits % 2 for bits in range(127)]
    codes = [*even, *range(127), *range(1, 128)]
    given = np.concatenate([middles, np.nextafter(middles, np.float32(0)), np.nextafter(middles, np.float32(9e9))])
    for sign in (0, 0x80):
        got = Tensor(-given if sign else given).realize().cast(name).bitcast("uint8").tolist()
        assert got == [code | sign if code else 0 for code in codes]
    over = [math.inf, -math.inf, math.nan, 1e9, -1e9, rows[-1] * 1.25, -rows[-1] * 1.25]
    assert Tensor(over).realize().cast(name).bitcast("uint8").tolist() == [0x80] * len(over)
    assert Tensor([-0.0, -1e-30]).realize().cast(name).bitcast("uint8").tolist() == [0, 0]


@pytest.mark.parametrize("name", BIASES)
def test_every_pattern_in_order(name: str) -> None:
    values, _ = Tensor(np.arange(256, dtype=np.uint8)[::-1].copy()).bitcast(name).sort()
    assert values.bitcast("uint8").tolist() == [*range(0xFF, 0x80, -1), *range(0x80), 0x80]
