"""STRICT=1: sums of floats in the order of their terms, every product rounded."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tg_frontend import Tensor
from tg_lazy import Context

Array = np.ndarray[Any, np.dtype[Any]]


def in_order(terms: Array) -> Array:
    """Sums along the last axis, one term after the other."""
    total = np.zeros(terms.shape[:-1], np.float32)
    for n in range(terms.shape[-1]):
        total = (total + terms[..., n]).astype(np.float32)
    return total


@pytest.mark.parametrize("shape", [(3, 70000), (17, 130), (1, 5)])
def test_sums(shape: tuple[int, int]) -> None:
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    with Context(STRICT=1):
        np.testing.assert_array_equal(Tensor(x, device="CPU").sum(1).numpy(), in_order(x))
        np.testing.assert_array_equal(Tensor(x.T.copy(), device="CPU").sum(0).numpy(), in_order(x))
    plain = Tensor(x, device="CPU").sum(1).numpy()
    if shape[1] > 1000:
        assert (plain != in_order(x)).any()  # so that the test would notice


@pytest.mark.parametrize(("m", "n", "k"), [(40, 50, 300), (1, 33, 64), (70, 130, 90)])
def test_products(m: int, n: int, k: int) -> None:
    rng = np.random.default_rng(1)
    a, b = rng.standard_normal((m, k)).astype(np.float32), rng.standard_normal((k, n)).astype(np.float32)
    with Context(STRICT=1):
        found = (Tensor(a, device="CPU") @ Tensor(b, device="CPU")).numpy()
    np.testing.assert_array_equal(found, in_order(a[:, None, :] * b.T[None]))
