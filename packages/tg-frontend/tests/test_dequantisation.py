"""Weights in blocks of small integers, unpacked by Tensor operations in the kernel that multiplies, against numpy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tg_frontend import Tensor, TinyJit
from tg_runtime import GlobalCounters
from tg_shape import Variable

Array = np.ndarray[Any, np.dtype[Any]]
Unpacked = tuple[Tensor, Array]


def numbers(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).uniform(-1, 1, shape).astype(np.float32)


def some_bytes(*shape: int) -> Array:
    return np.random.default_rng(1).integers(0, 256, shape, np.uint8)


def halves(rows: int, n: int) -> Unpacked:
    """GGUF's Q4_1: the low digits of a block of 32, then its high ones; a scale and a minimum."""
    packed, scale, least = some_bytes(rows, n // 32, 16), numbers(rows, n // 32, 1), numbers(rows, n // 32, 1, seed=2)
    scale, least = scale.astype(np.float16), least.astype(np.float16)
    p, s, m = Tensor(packed), Tensor(scale), Tensor(least)
    weight = (p & 15).cat(p >> 4, dim=-1).cast("float32") * s.float() + m.float()
    want = np.concatenate((packed & 15, packed >> 4), -1) * scale.astype(np.float32) + least.astype(np.float32)
    return weight.reshape(rows, n), want.reshape(rows, n)


def centred(rows: int, n: int) -> Unpacked:
    """GGUF's Q4_0: as Q4_1, less 8 instead of a minimum."""
    packed, scale = some_bytes(rows, n // 32, 16), numbers(rows, n // 32, 1).astype(np.float16)
    p, s = Tensor(packed), Tensor(scale)
    weight = ((p & 15).cat(p >> 4, dim=-1).cast("int8") - 8).cast("float32") * s.float()
    want = (np.concatenate((packed & 15, packed >> 4), -1).astype(np.int32) - 8) * scale.astype(np.float32)
    return weight.reshape(rows, n), want.reshape(rows, n)


def alternating(rows: int, n: int) -> Unpacked:
    """The digits of a byte beside each other; a scale for every 32."""
    packed, scale = some_bytes(rows, n // 2), numbers(rows, n // 32, 1)
    p = Tensor(packed)
    weight = (p & 15).stack(p >> 4, dim=-1).reshape(rows, n // 32, 32).float() * Tensor(scale)
    want = np.stack((packed & 15, packed >> 4), -1).reshape(rows, n // 32, 32) * scale
    return weight.reshape(rows, n), want.reshape(rows, n)


def shifted(rows: int, n: int) -> Unpacked:
    """Digits by a vector of shifts; a scale for a whole row."""
    packed, scale = some_bytes(rows, n // 2, 1), numbers(rows, 1)
    shifts = np.array([0, 4], np.uint8)
    weight = ((Tensor(packed) >> Tensor(shifts)) & 15).reshape(rows, n).float() * Tensor(scale)
    return weight, ((packed >> shifts) & 15).reshape(rows, n) * scale


def quarters(rows: int, n: int) -> Unpacked:
    """Four digits of 2 bits in a byte, in runs of 16."""
    packed, scale = some_bytes(rows, n // 64, 16), numbers(rows, n // 64, 1)
    p = Tensor(packed)
    weight = p.stack(p >> 2, p >> 4, p >> 6, dim=2).bitwise_and(3).reshape(rows, n // 64, 64).float() * Tensor(scale)
    want = np.stack([packed >> k & 3 for k in (0, 2, 4, 6)], 2).reshape(rows, n // 64, 64) * scale
    return weight.reshape(rows, n), want.reshape(rows, n)


def whole(rows: int, n: int) -> Unpacked:
    """GGUF's Q8_0: signed bytes, a scale for every 32."""
    values, scale = some_bytes(rows, n // 32, 32).view(np.int8), numbers(rows, n // 32, 1).astype(np.float16)
    weight = Tensor(values).float() * Tensor(scale).float()
    return weight.reshape(rows, n), (values * scale.astype(np.float32)).reshape(rows, n)


def nested(rows: int, n: int) -> Unpacked:
    """Blocks of 64 whose halves have a scale of 6 bits each, times that of the block."""
    packed, inner = some_bytes(rows, n // 64, 32), some_bytes(rows, n // 64, 2, 1) & 63
    outer = numbers(rows, n // 64, 1, 1)
    p = Tensor(packed)
    digits = (p & 15).stack(p >> 4, dim=2).float()
    weight = digits * Tensor(inner).float() * Tensor(outer)
    want = np.stack((packed & 15, packed >> 4), 2) * inner.astype(np.float32) * outer
    return weight.reshape(rows, n), want.reshape(rows, n)


LAYOUTS: dict[str, Callable[[int, int], Unpacked]] = {
    f.__name__: f for f in (halves, centred, alternating, shifted, quarters, whole, nested)
}


@pytest.mark.parametrize("rows", [1, 3, 40])
@pytest.mark.parametrize(("outputs", "n"), [(64, 128), (37, 64), (5, 192)])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_product(layout: str, outputs: int, n: int, rows: int) -> None:
    weight, want = LAYOUTS[layout](outputs, n)
    x = numbers(rows, n, seed=3)
    before = GlobalCounters.kernel_count
    got = (Tensor(x) @ weight.T).numpy()
    if rows == 1:
        assert GlobalCounters.kernel_count == before + 1, "unpacking is part of the product"
    np.testing.assert_allclose(got, x @ want.T, rtol=1e-4, atol=1e-3 * np.abs(want).max())


@pytest.mark.parametrize("layout", LAYOUTS)
def test_unpacked_alone(layout: str) -> None:
    weight, want = LAYOUTS[layout](7, 128)
    np.testing.assert_allclose(weight.numpy(), want, rtol=1e-6, atol=1e-6)


def test_rows_of_a_table() -> None:
    weight, want = halves(12, 96)
    np.testing.assert_allclose(weight[Tensor([3, 11, 3])].numpy(), want[[3, 11, 3]], rtol=1e-6, atol=1e-6)


def test_gated() -> None:
    """Two products of the same rows in one kernel."""
    (gate, want_gate), (up, want_up) = halves(33, 64), alternating(33, 64)
    x = numbers(1, 64, seed=4)
    left, right = x @ want_gate.T, x @ want_up.T
    got = (Tensor(x) @ gate.T).silu() * (Tensor(x) @ up.T)
    np.testing.assert_allclose(got.numpy(), left / (1 + np.exp(-left)) * right, rtol=1e-3, atol=1e-2)


def test_a_symbolic_number_of_rows() -> None:
    weight, want = centred(24, 64)
    x = numbers(9, 64, seed=5)
    count = Variable("count", 1, 9)
    table = Tensor(x).realize()
    product = TinyJit(lambda n: (table[:n] @ weight.T).sum(0).realize())
    for n in (1, 2, 5, 9):
        np.testing.assert_allclose(product(count.bind(n)).numpy(), (x[:n] @ want.T).sum(0), rtol=1e-4, atol=1e-3)
