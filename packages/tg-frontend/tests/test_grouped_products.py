"""Products of groups of matrices, and of matrices with scales beside them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tg_dtype import dtypes
from tg_frontend import Tensor
from tg_frontend.nn import functional

F: Any = functional
RNG = np.random.default_rng(3)


def _drawn(*shape: int) -> Any:
    return RNG.uniform(-1, 1, shape).astype(np.float32)


@pytest.mark.parametrize("ends", [[2, 5], [0, 7], [3, 3], [0, 0], [7, 7]])
def test_groups_of_each_axis(ends: list[int]) -> None:
    offs, spans = Tensor(ends), list(zip([0, *ends], ends, strict=False))
    rows, experts = _drawn(7, 3), _drawn(2, 3, 4)
    a, b = Tensor(rows, requires_grad=True), Tensor(experts, requires_grad=True)
    out = F.grouped_mm(a, b, offs=offs)
    wanted = np.zeros((7, 4), np.float32)
    slopes = np.zeros_like(experts)
    for n, (start, end) in enumerate(spans):
        wanted[start:end] = rows[start:end] @ experts[n]
        slopes[n] = rows[start:end].sum(0)[:, None]
    np.testing.assert_allclose(out.numpy(), wanted, rtol=1e-5, atol=1e-6)
    out.sum().backward()
    assert b.grad is not None
    np.testing.assert_allclose(b.grad.numpy(), slopes, rtol=1e-5, atol=1e-6)
    columns = _drawn(3, 7)
    wanted = np.zeros((4, 7), np.float32)
    for n, (start, end) in enumerate(spans):
        wanted[:, start:end] = experts[n].T @ columns[:, start:end]
    got = F.grouped_mm(Tensor(experts).mT, Tensor(columns), offs=offs)
    np.testing.assert_allclose(got.numpy(), wanted, rtol=1e-5, atol=1e-6)
    both = F.grouped_mm(Tensor(columns), Tensor(rows), offs=offs, bias=Tensor([1.0, 2.0, 3.0])).numpy()
    for n, (start, end) in enumerate(spans):
        np.testing.assert_allclose(both[n], columns[:, start:end] @ rows[start:end] + [1, 2, 3], rtol=1e-5, atol=1e-6)


def test_batches_need_no_ends() -> None:
    a, b = _drawn(2, 3, 4), _drawn(2, 4, 5)
    np.testing.assert_allclose(F.grouped_mm(Tensor(a), Tensor(b)).numpy(), a @ b, rtol=1e-5, atol=1e-6)
    assert F.grouped_mm(Tensor(a), Tensor(b), out_dtype=dtypes.float64).dtype is dtypes.float64


@pytest.mark.parametrize(
    ("shapes", "offs", "said"),
    [
        (((3, 4), (4, 5)), None, "offs say where groups end"), (((2, 3, 4), (2, 4, 5)), [1, 2], "offs say where"),
        (((3, 4), (2, 5, 6)), [1, 2], "matrices, or batches"), (((3, 4), (2, 4, 5)), [1], "one end for each"),
        (((3, 4), (2, 4, 5)), [2, 1], "to grow"), (((3, 4), (2, 4, 5)), [2, 4], "to grow from 0 to 3"),
        (((2, 3, 4), (3, 4, 5)), None, "2 matrices and 3"),
    ],
)  # fmt: skip
def test_shapes_that_do_not_fit(shapes: Any, offs: list[int] | None, said: str) -> None:
    a, b = (Tensor(_drawn(*shape)) for shape in shapes)
    with pytest.raises(ValueError, match=rf"^functional\.grouped_mm: .*{said}"):
        F.grouped_mm(a, b, offs=None if offs is None else Tensor(offs))


def test_scales_of_rows_and_of_all() -> None:
    a, b, kinds = Tensor(_drawn(4, 6)).cast("fp8e4m3"), Tensor(_drawn(6, 5)).cast("fp8e5m2"), F.ScalingType
    rows, columns = RNG.uniform(0.5, 2, (4, 1)).astype(np.float32), RNG.uniform(0.5, 2, (1, 5)).astype(np.float32)
    exact = a.float().numpy() @ b.float().numpy()
    got = F.scaled_mm(a, b, Tensor(rows), kinds.RowWise, Tensor(columns), kinds.RowWise, output_dtype="float32")
    np.testing.assert_allclose(got.numpy(), exact * rows * columns, rtol=1e-5, atol=1e-5)
    whole = Tensor(3.0), kinds.TensorWise
    got = F.scaled_mm(a, b, *whole, *whole, bias=Tensor([1.0] * 5), contraction_dim=(-1, -2))
    assert got.dtype is dtypes.bfloat16
    np.testing.assert_allclose(got.float().numpy(), exact * 9 + 1, rtol=1e-2, atol=1e-2)
    assert F.scaled_mm(a, b, *whole, *whole, output_dtype=None).dtype is dtypes.fp8e4m3
    with pytest.raises(NotImplementedError, match="scales of BlockWise1x32"):
        F.scaled_mm(a, b, Tensor(rows), kinds.BlockWise1x32, *whole)
    with pytest.raises(NotImplementedError, match="without a swizzle"):
        F.scaled_mm(a, b, *whole, *whole, swizzle_a=F.SwizzleType.SWIZZLE_32_4_4)
    with pytest.raises(ValueError, match="scales of mat_b have shape"):
        F.scaled_mm(a, b, *whole, Tensor(rows), kinds.RowWise)
    with pytest.raises(ValueError, match="shapes"):
        F.scaled_mm(b, b, *whole, *whole)
